/** The cells of the fork matrix: how many siblings, from which parent, in which state, with which tail.
 *  Invariant: the same cells in every run; the covering ones meet every pair of values of any two dimensions.
 *  Elsewhere: the family of one cell (matrix-family.ts), what must hold in it (matrix-laws.ts). */

import { seededRandom } from "@prefork/testing/chance";

const kinds = [
  "one tool call",
  "mixed tools",
  "thinking with signatures",
  "images",
  "60 blocks in one turn",
  "replaced tool results",
  "after compaction",
  "after resume",
  "a thinking-strip model",
] as const;

export type Kind = (typeof kinds)[number];

export type Cell = {
  readonly forks: number;
  readonly entry: "warm" | "cold" | "near expiry";
  readonly tail: "keep" | "trim" | "placeholders all";
  readonly kind: Kind;
  /** At least so many tokens stand in the parent's last request. */
  readonly tokens: number;
  /** What the provider counts as a position: a run of calls, or each of them. */
  readonly lookback: "runs" | "singly";
  readonly ttl: "5m" | "1h";
  /** Of a child: with one, nobody reads what stands after its directive. */
  readonly turns: 1 | 2;
};

const dimensions: { readonly [D in keyof Cell]: readonly Cell[D][] } = {
  kind: kinds,
  forks: [1, 2, 5, 20, 50],
  entry: ["warm", "cold", "near expiry"],
  tail: ["keep", "trim", "placeholders all"],
  tokens: [8_000, 50_000],
  lookback: ["runs", "singly"],
  ttl: ["5m", "1h"],
  turns: [1, 2],
};

/** Long parents are there with 5 and 50 forks. */
const isMeant = ({ tokens, forks }: Cell): boolean => tokens === 8_000 || forks === 5 || forks === 50;

const counted = (count: number, thing: string): string => (count === 1 ? `1 ${thing}` : `${count} ${thing}s`);

export const nameOf = ({ forks, entry, tail, kind, tokens, lookback, ttl, turns }: Cell): string => {
  const family = `${counted(forks, "fork")} of ${counted(turns, "turn")}`;
  return `${family}, ${entry}, ${tail}, ${kind}, ${tokens} tokens, ${lookback}, ${ttl}`;
};

/** Everything with everything; only lifetime and turns alternate, so that each stands beside each of the others. */
export const allCells = (): readonly Cell[] => {
  const cells: Cell[] = [];
  for (const kind of dimensions.kind)
    for (const forks of dimensions.forks)
      for (const entry of dimensions.entry)
        for (const tail of dimensions.tail)
          for (const tokens of dimensions.tokens)
            for (const lookback of dimensions.lookback) {
              const at = cells.length + Math.floor(cells.length / 4);
              const ttl = at % 2 === 0 ? "5m" : "1h";
              const turns = Math.floor(at / 2) % 2 === 0 ? 2 : 1;
              const cell: Cell = { kind, forks, entry, tail, tokens, lookback, ttl, turns };
              if (isMeant(cell)) cells.push(cell);
            }
  return cells;
};

const SEED = 20_261_115;
/** Tried for each cell; the one that meets most new pairs is taken. */
const TRIES = 60;

const names = Object.keys(dimensions) as readonly (keyof Cell)[];

const pairsOf = (cell: Cell): readonly string[] =>
  names.flatMap((a, at) => names.slice(at + 1).map((b) => `${a} ${cell[a]} / ${b} ${cell[b]}`));

/** Few cells in which every two values of any two dimensions meet. */
export const coveringCells = (seed = SEED): readonly Cell[] => {
  const chance = seededRandom(seed);
  const missing = new Set(allPairs());
  const cells: Cell[] = [];
  while (missing.size > 0) {
    const tried = Array.from({ length: TRIES }, () => drawn(chance, missing)).filter(isMeant);
    const gain = (cell: Cell): number => pairsOf(cell).filter((pair) => missing.has(pair)).length;
    const best = tried.reduce((a, b) => (worth(b, gain(b)) > worth(a, gain(a)) ? b : a));
    if (gain(best) === 0) continue;
    for (const pair of pairsOf(best)) missing.delete(pair);
    cells.push(best);
  }
  return cells;
};

/** New pairs against what a cell takes to run: requests of children, and their bytes. */
const worth = ({ forks, turns, tokens }: Cell, gain: number): number =>
  gain - (forks * turns * (1 + tokens / 50_000)) / 25;

/** Every pair that some cell has. */
const allPairs = (): ReadonlySet<string> => {
  const every = names.reduce<readonly Partial<Cell>[]>(
    (cells, name) => cells.flatMap((cell) => dimensions[name].map((value) => ({ ...cell, [name]: value }))),
    [{}],
  );
  return new Set((every as readonly Cell[]).filter(isMeant).flatMap(pairsOf));
};

type Chance = ReturnType<typeof seededRandom>;

/** Any cell, with one pair in it that is still missing. */
const drawn = (chance: Chance, missing: ReadonlySet<string>): Cell => {
  const any = Object.fromEntries(names.map((name) => [name, chance.one<Cell[keyof Cell]>(dimensions[name])]));
  const wanted = chance
    .one([...missing])
    .split(" / ")
    .map((part) => {
      const name = names.find((each) => part.startsWith(`${each} `)) ?? "kind";
      return [name, dimensions[name].find((value) => part === `${name} ${value}`)];
    });
  return { ...any, ...Object.fromEntries(wanted) } as Cell;
};
