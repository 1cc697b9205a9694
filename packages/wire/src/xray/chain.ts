/** Many requests: each against the earlier one that it repeats most of, with the lineages and forks that they form.
 *  Invariant: requests are given in the order in which they were sent; what any of them left in the cache counts for
 *  every later one; a body's bytes are kept only for as long as it can be compared with.
 *  Elsewhere: two requests (diff.ts). */

import type { Recording } from "../recorded/index.ts";
import { LIFETIME_MS } from "../request.ts";
import { promptTokens } from "../usage.ts";
import { readBody } from "./body.ts";
import { compare, promptOf, type Xray, type XrayOptions } from "./diff.ts";
import { type Entry, entriesOf, isExpired } from "./footing.ts";
import { agreement, type Prompt, type PromptPiece } from "./piece.ts";
import type { SentFacts } from "./sent.ts";

/** `starts`: shares no message with any earlier one. `extends`: begins with all of it. `changes`: goes on from it with
 *  something changed. `forks`: parts from it, or goes on where another already did. `returns`: is the beginning of it. */
export type XrayRelation = "starts" | "repeats" | "extends" | "changes" | "forks" | "returns";

export type XrayStep = {
  readonly index: number;
  readonly relation: XrayRelation;
  readonly lineage: number;
  /** Tokens of its prompt, as stated or estimated. */
  readonly prompt: number;
  /** The earlier request it is compared with, and the one whose whole prompt it begins with. */
  readonly against?: number;
  readonly grewFrom?: number;
  readonly xray?: Xray;
};

export type XrayLineage = { readonly id: number; readonly requests: readonly number[]; readonly forkedFrom?: number };

export type XrayChain = {
  readonly steps: readonly XrayStep[];
  readonly lineages: readonly XrayLineage[];
  /** Requests that grew from the same one, side by side. */
  readonly families: readonly { readonly from: number; readonly members: readonly number[] }[];
  /** `usd` is absent where no lost token has a price. */
  readonly lost: { readonly tokens: number; readonly usd?: number };
};

export type ChainRequest = SentFacts & { readonly body: Recording };

export type XrayHistoryOptions = XrayOptions & {
  /** How many bodies are kept to be compared with; the oldest go first. */
  readonly remembers?: number; // default: 200
};

export const xrayChain = (requests: readonly ChainRequest[], options: XrayOptions = {}): XrayChain => {
  const history = new XrayHistory({ ...options, remembers: requests.length });
  const hasBetas = requests.every(({ betas }) => betas !== undefined);
  for (const { body, betas, ...sent } of requests)
    history.add(body, { ...sent, ...(hasBetas && betas !== undefined ? { betas } : {}) });
  return history.chain();
};

const REMEMBERED = 200;

type Remembered = {
  readonly index: number;
  readonly prompt: Prompt;
  readonly sent: SentFacts;
  readonly lineage: number;
};
type Grown = { readonly index: number; readonly relation: XrayRelation; readonly grewFrom: number | undefined };
type Lineage = { readonly id: number; readonly requests: number[]; readonly forkedFrom?: number };

/** The same, request by request, for those that go on arriving. */
export class XrayHistory {
  readonly #options: XrayHistoryOptions;
  readonly #steps: XrayStep[] = [];
  readonly #remembered = new Map<number, Remembered>();
  readonly #lineages: Lineage[] = [];
  readonly #entries = new Map<string, Entry>();
  /** The latest request that has a piece with this key; that ends in one; all pieces that any has. */
  readonly #reached = new Map<string, number>();
  readonly #ends = new Map<string, number>();
  readonly #seen = new Set<string>();

  constructor(options: XrayHistoryOptions = {}) {
    this.#options = options;
  }

  add(body: Recording, sent: SentFacts = {}): XrayStep {
    const index = this.#steps.length;
    const prompt = promptOf(readBody(body, `request ${index + 1}`), this.#options, sent.betas);
    const best = this.#bestFor(prompt);
    const compared = best && this.#compared(best, prompt, sent);
    const grown = prompt.pieces.findLast(({ key }) => this.#ends.has(key))?.key ?? "";
    const grewFrom = this.#ends.get(grown);
    const relation = best && compared ? relationOf(best.prompt, prompt, compared.isEdited) : "starts";
    const lineage = this.#lineageFor({ index, relation, grewFrom }, best);
    const step: XrayStep = {
      index,
      relation:
        relation === "extends" && lineage.forkedFrom !== undefined && lineage.requests.length === 1
          ? "forks"
          : relation,
      lineage: lineage.id,
      prompt: compared?.xray.tokens.b ?? (sent.usage ? promptTokens(sent.usage) : prompt.tokens),
      ...(best ? { against: best.index } : {}),
      ...(grewFrom === undefined ? {} : { grewFrom }),
      ...(compared ? { xray: compared.xray } : {}),
    };
    this.#remember({ index, prompt, sent, lineage: lineage.id }, compared?.footing.live ?? -1);
    this.#steps.push(step);
    // All of it stands in the longer one, which is what later requests are compared with.
    if (best && (step.relation === "extends" || step.relation === "repeats")) this.#remembered.delete(best.index);
    const [oldest] = this.#remembered.keys();
    if (oldest !== undefined && this.#remembered.size > (this.#options.remembers ?? REMEMBERED))
      this.#remembered.delete(oldest);
    return step;
  }

  chain(): XrayChain {
    const lost = this.#steps.flatMap(({ xray }) => (xray && xray.lost.tokens > 0 ? [xray.lost] : []));
    const priced = lost.flatMap(({ usd }) => (usd === undefined ? [] : [usd]));
    const grown = Map.groupBy(this.#steps, ({ grewFrom }) => grewFrom ?? -1);
    return {
      steps: [...this.#steps],
      lineages: this.#lineages.map(({ requests, ...lineage }) => ({ ...lineage, requests: [...requests] })),
      families: [...grown]
        .filter(([from, members]) => from >= 0 && members.length > 1)
        .map(([from, members]) => ({ from, members: members.map(({ index }) => index) })),
      lost: {
        tokens: lost.reduce((sum, { tokens }) => sum + tokens, 0),
        ...(priced.length > 0 ? { usd: priced.reduce((sum, usd) => sum + usd, 0) } : {}),
      },
    };
  }

  #compared(best: Remembered, b: Prompt, sent: SentFacts): ReturnType<typeof compare> {
    const { reading = "runs" } = this.#options;
    return compare({ a: best.prompt, b, known: this.#entries, sent: { a: best.sent, b: sent }, reading });
  }

  /** The one it repeats most of; of equals the one with the longest common prefix, then the latest. */
  #bestFor(prompt: Prompt): Remembered | undefined {
    const { protocol } = prompt.body;
    const at = prompt.pieces.findLastIndex(({ key, at: place }) => place !== undefined && this.#reached.has(key));
    const nearest = this.#remembered.get(this.#reached.get(prompt.pieces[at]?.key ?? "") ?? -1);
    const isNew = ({ own, at: place }: PromptPiece): boolean => place === undefined || !this.#seen.has(own);
    if (nearest && prompt.pieces.slice(at + 1).every(isNew)) return nearest;
    const tips = this.#lineages.flatMap(({ requests }) => this.#remembered.get(requests.at(-1) ?? -1) ?? []);
    const candidates = [...new Set([...(nearest ? [nearest] : []), ...tips])].filter(
      (candidate) => candidate.prompt.body.protocol === protocol,
    );
    const counts = countsOf(prompt);
    const weighed = candidates.map((candidate) => ({
      candidate,
      overlap: overlapOf(candidate.prompt, counts),
      shared: agreement(candidate.prompt, prompt),
    }));
    weighed.sort(
      (one, other) =>
        other.overlap - one.overlap || other.shared - one.shared || other.candidate.index - one.candidate.index,
    );
    return weighed[0]?.candidate;
  }

  #lineageFor({ index, relation, grewFrom }: Grown, best: Remembered | undefined): Lineage {
    const of = best && this.#lineages[best.lineage];
    const goesOn =
      relation === "repeats" ||
      (relation !== "starts" && relation !== "forks" && relation !== "returns" && of?.requests.at(-1) === best?.index);
    if (of && goesOn) {
      of.requests.push(index);
      return of;
    }
    const forkedFrom = relation === "starts" || !best ? {} : { forkedFrom: grewFrom ?? best.index };
    const lineage: Lineage = { id: this.#lineages.length, requests: [index], ...forkedFrom };
    this.#lineages.push(lineage);
    return lineage;
  }

  /** A read keeps the entry that was read alive, and no shorter one below it. */
  #remember(request: Remembered, read: number): void {
    const { prompt, sent, index } = request;
    const { startedAt } = sent;
    this.#remembered.set(index, request);
    for (const { key, own } of prompt.pieces) {
      this.#reached.set(key, index);
      this.#seen.add(own);
    }
    this.#ends.set(prompt.pieces.at(-1)?.key ?? "", index);
    const { key = "" } = prompt.pieces[read] ?? {};
    const used = this.#entries.get(key);
    if (used && startedAt !== undefined) this.#entries.set(key, { ...used, usedAt: startedAt });
    for (const [written, entry] of entriesOf(prompt, sent, read))
      this.#entries.set(written, renewed(this.#entries.get(written), entry));
  }
}

/** Written once more: an entry that still lived is there already, and lives as long as anyone paid for. */
const renewed = (there: Entry | undefined, entry: Entry): Entry => {
  if (there === undefined || isExpired(there, entry.usedAt)) return entry;
  const lives = ({ ttl }: Entry): number => (ttl === undefined ? 0 : LIFETIME_MS[ttl]);
  const readableAt = there.readableAt ?? entry.readableAt;
  return {
    ...entry,
    ttl: lives(there) > lives(entry) ? there.ttl : entry.ttl,
    ...(readableAt === undefined ? {} : { readableAt }),
  };
};

const relationOf = (a: Prompt, b: Prompt, isEdited: boolean): XrayRelation => {
  const shared = agreement(a, b);
  const [ours, theirs] = [a.pieces.length, b.pieces.length];
  if (shared === ours) return shared === theirs ? "repeats" : "extends";
  if (shared === theirs) return "returns";
  if (isEdited) return "changes";
  const sharesMessage = b.pieces.slice(0, shared).some(({ level, at }) => level === "messages" && at !== undefined);
  return sharesMessage ? "forks" : "starts";
};

const countsOf = ({ pieces }: Prompt): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const { own } of pieces) counts.set(own, (counts.get(own) ?? 0) + 1);
  return counts;
};

/** Tokens of pieces that both have, wherever they stand. */
const overlapOf = ({ pieces }: Prompt, counts: ReadonlyMap<string, number>): number => {
  const left = new Map(counts);
  return pieces.reduce((sum, { own, tokens }) => {
    const there = left.get(own) ?? 0;
    if (there === 0) return sum;
    left.set(own, there - 1);
    return sum + tokens;
  }, 0);
};
