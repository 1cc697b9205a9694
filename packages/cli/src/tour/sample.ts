/** A small service as files, generated from a seed, with a few flaws to find.
 *  Invariant: pure; the same seed gives the same bytes, and the facts state exactly what a search of the files finds.
 *  Elsewhere: the text of each file (sample-code.ts, sample-edges.ts, conventions.ts), writing them (repository.ts). */

import { conventionsFile } from "./conventions.ts";
import {
  type Flaws,
  outcomeFile,
  schemaFile,
  schemaIndexFile,
  serviceFile,
  serviceIndexFile,
  storeFile,
  type Todo,
  tableFile,
  typesFile,
} from "./sample-code.ts";
import {
  errorsPage,
  mainFile,
  packageFile,
  pageFile,
  ROUTES_EACH,
  readmeFile,
  routeFile,
  routerFile,
  routerIndexFile,
  routesTestFile,
  tablesTestFile,
  testFile,
  tsconfigFile,
} from "./sample-edges.ts";
import { type Thing, TRADES, type Trade } from "./trades.ts";

/** What there is to find, by the part of the job that finds it. */
export type SampleFacts = {
  readonly schema: { readonly tables: number; readonly deprecated: string };
  readonly service: { readonly todos: number; readonly failing: string };
  readonly router: { readonly routes: number; readonly repeated: string };
  readonly tests: { readonly files: number; readonly skipped: string; readonly untested: string };
  readonly docs: { readonly unfinished: string; readonly undocumented: string };
};

export type Sample = {
  readonly seed: number;
  readonly trade: Trade;
  readonly things: readonly Thing[];
  /** Path → text. */
  readonly files: ReadonlyMap<string, string>;
  readonly facts: SampleFacts;
};

const THINGS = 6;
/** Test files that do not belong to a service. */
const OTHER_TESTS = 2;

export const sampleOf = (seed: number): Sample => {
  const chance = new Chance(seed);
  const trade = chance.one(TRADES);
  const [first, ...rest] = chance.some(trade.things, THINGS);
  if (first === undefined) throw new Error(`the trade ${trade.service} has no things`);
  const things: Things = [first, ...rest];
  const planted = plant(things, chance);
  const files = filesOf(trade, things, planted.flaws);
  return { seed, trade, things, files, facts: planted.facts };
};

type Things = readonly [Thing, ...(readonly Thing[])];

type Planted = { readonly flaws: (thing: Thing) => Flaws; readonly facts: SampleFacts };

const plant = (things: Things, chance: Chance): Planted => {
  const deprecated = chance.one(things);
  const failing = chance.one(things);
  const paged = chance.some(things, 1 + chance.below(2));
  const unitless = chance.some(things, 1 + chance.below(3));
  const [repeated, repeating] = inTurn(chance.some(things, 2), chance);
  const [untested, skipping] = inTurn(chance.some(things, 2), chance);
  const [undocumented, unfinished] = inTurn(chance.some(things, 2), chance);
  const todosOf = (thing: Thing): readonly Todo[] => [
    ...(paged.includes(thing) ? (["page"] as const) : []),
    ...(thing === failing ? (["fails"] as const) : []),
    ...(unitless.includes(thing) ? (["unit"] as const) : []),
  ];
  return {
    flaws: (thing) => ({
      isDeprecated: thing === deprecated,
      todos: todosOf(thing),
      ...(thing === repeating && repeated ? { alsoServes: repeated } : {}),
      isTested: thing !== untested,
      skips: thing === skipping,
      isDocumented: thing !== undocumented,
      isUnfinished: thing === unfinished,
    }),
    facts: {
      schema: { tables: things.length, deprecated: `src/schema/${deprecated.one}.ts` },
      service: {
        todos: things.flatMap(todosOf).length,
        failing: serviceOf(failing),
      },
      router: { routes: things.length * ROUTES_EACH + 1, repeated: `GET /${repeated?.many}/:id` },
      tests: {
        files: things.length - 1 + OTHER_TESTS,
        skipped: `test/${skipping?.one}-service.test.ts`,
        untested: serviceOf(untested ?? deprecated),
      },
      docs: { unfinished: `docs/${unfinished?.many}.md`, undocumented: `src/types/${undocumented?.one}.ts` },
    },
  };
};

const inTurn = <T>(two: readonly T[], chance: Chance): readonly T[] => (chance.below(2) === 0 ? two : two.toReversed());

const serviceOf = ({ one }: Thing): string => `src/service/${one}-service.ts`;

const filesOf = (trade: Trade, things: Things, flaws: Planted["flaws"]): ReadonlyMap<string, string> => {
  const each = things.flatMap((thing): readonly (readonly [string, string])[] => {
    const { one, many } = thing;
    const own = flaws(thing);
    return [
      [`src/types/${one}.ts`, typesFile(thing)],
      [`src/schema/${one}.ts`, schemaFile(thing, own)],
      [serviceOf(thing), serviceFile(thing, own)],
      [`src/router/${many}.ts`, routerFile(thing, own)],
      ...(own.isTested ? ([[`test/${one}-service.test.ts`, testFile(thing, own)]] as const) : []),
      ...(own.isDocumented ? ([[`docs/${many}.md`, pageFile(thing, own)]] as const) : []),
    ];
  });
  return new Map([
    [".gitignore", "node_modules/\n"],
    ["AGENTS.md", conventionsFile(trade, things)],
    ["README.md", readmeFile(trade, things)],
    ["package.json", packageFile(trade)],
    ["tsconfig.json", tsconfigFile()],
    ["src/main.ts", mainFile()],
    ["src/types/outcome.ts", outcomeFile()],
    ["src/schema/table.ts", tableFile()],
    ["src/schema/index.ts", schemaIndexFile(things)],
    ["src/service/store.ts", storeFile()],
    ["src/service/index.ts", serviceIndexFile(things)],
    ["src/router/route.ts", routeFile()],
    ["src/router/index.ts", routerIndexFile(things)],
    ["test/routes.test.ts", routesTestFile(things)],
    ["test/tables.test.ts", tablesTestFile(things)],
    ["docs/errors.md", errorsPage()],
    ...each,
  ]);
};

/** Seeded random numbers, the same on every machine: only 32-bit integers, so that no rounding differs. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    // A Weyl sequence, mixed by multiplying and shifting, so that neighbouring seeds give different numbers.
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return Math.floor((((mixed ^ (mixed >>> 15)) >>> 0) / 0x1_0000_0000) * count);
  }

  one<T>(list: readonly [T, ...(readonly T[])]): T {
    return list[this.below(list.length)] ?? list[0];
  }

  /** `count` random items, in the order of the list. */
  some<T>(list: readonly T[], count: number): readonly T[] {
    const left = list.map((_, index) => index);
    const drawn = Array.from({ length: Math.min(count, list.length) }, () => left.splice(this.below(left.length), 1));
    return drawn
      .flat()
      .toSorted((a, b) => a - b)
      .flatMap((index) => list.slice(index, index + 1));
  }
}
