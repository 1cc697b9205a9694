/** Requests that go on arriving: which earlier one does each repeat most of, and what of all that was kept does it read?
 *  Invariant: requests come in about the order in which they were sent; what any of them left in the cache counts for every
 *  later one; what is remembered is bounded: whole bodies up to a size, of older ones hashes and sizes, of the oldest
 *  nothing.
 *  Elsewhere: two requests (diff.ts), keeping every step (chain.ts), what is left of a body (thin.ts). */

import { LIFETIME_MS, promptTokens, type Recording, type Service } from "@prefork/wire";
import { type Body, readBody } from "./body.ts";
import { type Compared, compare, promptOf, type Xray, type XrayOptions } from "./diff.ts";
import { type Entry, entriesOf, isExpired } from "./footing.ts";
import { measured } from "./measure.ts";
import { serviceOf } from "./money.ts";
import { agreement, type Prompt, type PromptPiece } from "./piece.ts";
import type { At } from "./places.ts";
import type { SentFacts } from "./sent.ts";
import { toolName } from "./tool-differences.ts";

/** `starts`: shares no message with any earlier one. `extends`: begins with all of it. `changes`: goes on from it with
 *  something changed. `forks`: parts from it, or goes on where another already did. `returns`: is the beginning of it. */
export type XrayRelation = "starts" | "repeats" | "extends" | "changes" | "forks" | "returns";

export type XrayStep = {
  readonly index: number;
  readonly relation: XrayRelation;
  readonly lineage: number;
  readonly model: string;
  /** How it is served, where that changes its price. */
  readonly service: Service;
  /** Tokens of its prompt, as stated or estimated. */
  readonly prompt: number;
  /** The earlier request it is compared with. */
  readonly against?: number;
  /** The one whose whole prompt it begins with, or that was the first to name the entry it names (itself, where it was),
   *  and the tokens of that. */
  readonly grewFrom?: number;
  readonly inherited?: number;
  readonly xray?: Xray;
};

export type TrailOptions = XrayOptions & {
  /** How many requests can be compared with; the oldest go first. */
  readonly remembers?: number; // default: 200
  /** How many bytes of bodies are kept to show where they differ; the latest body always is. */
  readonly bodyBytes?: number; // default: 64 MiB
};

/** `index` is one that no request had before. */
export type TrailFacts = SentFacts & { readonly index: number };

const REMEMBERED = 200;
const BODY_BYTES = 64 * 1024 * 1024;
const MOST_ALIKE = 4;
const MOST_LATEST = 16;
/** How much of a prompt may repeat by chance what another one says. */
const CHANCE_TOKENS = 32;
const CHANCE_SHARE = 0.01;

type Remembered = {
  readonly index: number;
  readonly prompt: Prompt;
  readonly sent: SentFacts;
  readonly lineage: number;
  /** Bytes of its body that are kept. */
  readonly bytes: number;
};
type Grown = { readonly index: number; readonly relation: XrayRelation };
type Lineage = { readonly id: number; last: number; isForked: boolean };

export class Trail {
  readonly #options: TrailOptions;
  readonly #remembered = new Map<number, Remembered>();
  readonly #lineages = new Map<number, Lineage>();
  readonly #entries = new Map<string, Entry>();
  /** The latest request that has a piece with this key; that ends in one; that has this piece, wherever it stands. */
  readonly #reached = new Map<string, number>();
  readonly #ends = new Map<string, number>();
  readonly #seen = new Map<string, number>();
  readonly #nextLineage: () => number;
  #bytes = 0;

  /** Several trails can number their lineages together. */
  constructor(options: TrailOptions = {}, nextLineage = counter()) {
    this.#options = options;
    this.#nextLineage = nextLineage;
  }

  add(body: Recording, facts: TrailFacts): XrayStep {
    return this.addRead(readBody(body, `request ${facts.index + 1}`, facts.model), facts);
  }

  /** One that has been read already. */
  addRead(body: Body, { index, ...sent }: TrailFacts): XrayStep {
    const prompt = promptOf(body, this.#options, sent.betas);
    const best = this.#bestFor(prompt);
    const compared = best && this.#compared(best, prompt, sent);
    this.#shareHeld(prompt, index);
    const grown = prompt.pieces.findLast(({ key }) => this.#ends.has(key));
    const grewFrom = this.#ends.get(grown?.key ?? "");
    const inherited = Math.round(inheritedBy(grown?.end ?? 0, { prompt, sent, compared }));
    const relation = best && compared ? relationOf(best.prompt, prompt, compared) : "starts";
    const lineage = this.#lineageFor({ index, relation }, best);
    const isFork = relation === "extends" && lineage.isForked && best?.lineage !== lineage.id;
    const step: XrayStep = {
      index,
      relation: isFork ? "forks" : relation,
      lineage: lineage.id,
      model: prompt.body.model,
      service: serviceOf(prompt, sent.startedAt),
      prompt: compared?.xray.tokens.b ?? (sent.usage ? promptTokens(sent.usage) : prompt.tokens),
      ...(best ? { against: best.index } : {}),
      ...(grewFrom === undefined ? {} : { grewFrom, inherited }),
      ...(compared ? { xray: compared.xray } : {}),
    };
    const bytes = prompt.body.root.bytes.length;
    this.#remember({ index, prompt, sent, lineage: lineage.id, bytes }, compared?.footing.live ?? -1);
    // All of it stands in the longer one, which is what later requests are compared with.
    if (best && (step.relation === "extends" || step.relation === "repeats")) this.#drop(best.index);
    this.#makeRoom(index);
    return step;
  }

  /** Whoever names an entry that the provider holds begins with it: the first of them stands for it. */
  #shareHeld({ held, pieces }: Prompt, index: number): void {
    const { key } = pieces[0] ?? {};
    if (held && key !== undefined && !this.#ends.has(key)) this.#ends.set(key, index);
  }

  #compared(best: Remembered, b: Prompt, sent: SentFacts): ReturnType<typeof compare> {
    const { reading = "runs" } = this.#options;
    return compare({ a: best.prompt, b, known: this.#entries, sent: { a: best.sent, b: sent }, reading });
  }

  /** The one it repeats most of; of equals the one with the longest common prefix, then with the least else, then the
   *  latest. */
  #bestFor(prompt: Prompt): Remembered | undefined {
    const { protocol } = prompt.body;
    const at = prompt.pieces.findLastIndex(({ key, at: place }) => place !== undefined && this.#reached.has(key));
    const nearest = this.#remembered.get(this.#reached.get(prompt.pieces[at]?.key ?? "") ?? -1);
    const isNew = ({ own, at: place }: PromptPiece): boolean => place === undefined || !this.#seen.has(own);
    if (nearest && prompt.pieces.slice(at + 1).every(isNew)) return nearest;
    const tips = [...this.#lineages.values()].flatMap(({ last }) => this.#remembered.get(last) ?? []);
    const latest = [...this.#remembered.values()].slice(-MOST_LATEST);
    const candidates = [...new Set([...(nearest ? [nearest] : []), ...this.#alike(prompt), ...latest, ...tips])].filter(
      (candidate) => candidate.prompt.body.protocol === protocol,
    );
    const counts = countsOf(prompt);
    const weighed = candidates.map((candidate) => {
      const overlap = overlapOf(candidate.prompt, counts);
      const shared = agreement(candidate.prompt, prompt);
      // Whoever goes on from all of it does so, whatever few words it repeats of somebody else.
      const isWhole = shared === candidate.prompt.pieces.length;
      const weight = overlap + (isWhole ? CHANCE_TOKENS + prompt.tokens * CHANCE_SHARE : 0);
      return { candidate, weight, rest: candidate.prompt.tokens - overlap, shared };
    });
    weighed.sort(
      (one, other) =>
        other.weight - one.weight ||
        other.shared - one.shared ||
        one.rest - other.rest ||
        other.candidate.index - one.candidate.index,
    );
    return weighed[0]?.candidate;
  }

  /** The few that were the last to say most of what this one says. */
  #alike({ pieces }: Prompt): readonly Remembered[] {
    const tokens = new Map<number, number>();
    for (const piece of pieces) {
      const index = this.#seen.get(piece.own);
      if (index !== undefined) tokens.set(index, (tokens.get(index) ?? 0) + piece.tokens);
    }
    return [...tokens]
      .sort(([, one], [, other]) => other - one)
      .slice(0, MOST_ALIKE)
      .flatMap(([index]) => this.#remembered.get(index) ?? []);
  }

  #lineageFor({ index, relation }: Grown, best: Remembered | undefined): Lineage {
    const of = best && this.#lineages.get(best.lineage);
    const goesOn =
      relation === "repeats" ||
      (relation !== "starts" && relation !== "forks" && relation !== "returns" && of?.last === best?.index);
    if (of && goesOn) {
      of.last = index;
      return of;
    }
    const lineage: Lineage = { id: this.#nextLineage(), last: index, isForked: relation !== "starts" };
    this.#lineages.set(lineage.id, lineage);
    return lineage;
  }

  /** A read keeps the entry that was read alive, and no shorter one below it. */
  #remember(request: Remembered, read: number): void {
    const { prompt, sent, index, bytes } = request;
    const { startedAt } = sent;
    this.#remembered.set(index, request);
    this.#bytes += bytes;
    const common = this.#commonUnit(prompt);
    for (const { key, own } of prompt.pieces) {
      this.#reached.set(key, index);
      this.#seen.set(own, index);
    }
    this.#ends.set(prompt.pieces.at(-1)?.key ?? "", index);
    const { key = "" } = prompt.pieces[read] ?? {};
    const used = this.#entries.get(key);
    if (used && startedAt !== undefined) this.#entries.set(key, { ...used, usedAt: later(used.usedAt, startedAt) });
    const left = entriesOf(prompt, sent, read);
    const [whole] = left.values();
    for (const [written, entry] of [...left, ...(whole && common ? [[common, whole] as const] : [])])
      this.#entries.set(written, renewed(this.#entries.get(written), entry));
  }

  /** Where units are kept, what this prompt and an earlier one have in common becomes one too. */
  #commonUnit({ pieces, rules }: Prompt): string | undefined {
    if (rules.keeping.kind !== "units") return undefined;
    return pieces.findLast(({ key, at }) => at !== undefined && this.#reached.has(key))?.key;
  }

  #drop(index: number): void {
    this.#bytes -= this.#remembered.get(index)?.bytes ?? 0;
    this.#remembered.delete(index);
  }

  #makeRoom(latest: number): void {
    const { remembers = REMEMBERED, bodyBytes = BODY_BYTES } = this.#options;
    for (const request of this.#remembered.values()) {
      if (this.#remembered.size <= remembers || request.index === latest) break;
      this.#forget(request);
    }
    if (this.#bytes <= bodyBytes) return;
    for (const request of this.#remembered.values()) {
      if (this.#bytes <= bodyBytes || request.index === latest) break;
      if (request.bytes === 0) continue;
      this.#bytes -= request.bytes;
      this.#remembered.set(request.index, { ...request, prompt: thinned(request.prompt), bytes: 0 });
    }
  }

  /** Whatever no later request has too. The oldest go first, so what another one has was reached after it. */
  #forget({ index, prompt, lineage }: Remembered): void {
    this.#drop(index);
    for (const { key, own } of prompt.pieces) {
      if (this.#reached.get(key) === index) {
        this.#reached.delete(key);
        this.#ends.delete(key);
        this.#entries.delete(key);
      }
      if (this.#seen.get(own) === index) this.#seen.delete(own);
    }
    if (this.#lineages.get(lineage)?.last === index) this.#lineages.delete(lineage);
  }
}

type Grew = { readonly prompt: Prompt; readonly sent: SentFacts; readonly compared: Compared | undefined };

/** Provider's tokens of what it grew from, up to so many that are estimated. */
const inheritedBy = (end: number, { prompt, sent, compared }: Grew): number =>
  compared && compared.footing.shared > 0 ? compared.footing.measure.b(end) : (measured(prompt, sent)?.(end) ?? end);

const counter = (): (() => number) => {
  let next = 0;
  return () => next++;
};

const later = (one: number | undefined, other: number): number => Math.max(one ?? other, other);

/** Written once more: an entry that still lived is there already, and lives as long as anyone paid for. */
const renewed = (there: Entry | undefined, entry: Entry): Entry => {
  if (there === undefined || isExpired(there, entry.usedAt)) return entry;
  const lives = ({ ttl }: Entry): number => (ttl === undefined ? 0 : LIFETIME_MS[ttl]);
  const readableAt = there.readableAt ?? entry.readableAt;
  return {
    ...entry,
    ...(entry.usedAt === undefined ? {} : { usedAt: later(there.usedAt, entry.usedAt) }),
    ttl: lives(there) > lives(entry) ? there.ttl : entry.ttl,
    ...(readableAt === undefined ? {} : { readableAt }),
  };
};

const relationOf = (a: Prompt, b: Prompt, { isEdited, isRelated }: Compared): XrayRelation => {
  const shared = agreement(a, b);
  const [ours, theirs] = [a.pieces.length, b.pieces.length];
  if (shared === ours) return shared === theirs ? "repeats" : "extends";
  if (shared === theirs) return "returns";
  if (isEdited) return "changes";
  const [one, other] = [a, b].map(({ pieces }) =>
    pieces.find(({ level, at }) => level === "messages" && at !== undefined),
  );
  const sharesMessage = other !== undefined && b.pieces.indexOf(other) < shared;
  return sharesMessage || (isRelated && one?.own === other?.own) ? "forks" : "starts";
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

// --- a prompt without its body ---------------------------------------------------------------------------------------

const NOTHING = Buffer.alloc(0);

const emptied = ({ path }: At): At => ({ bytes: NOTHING, start: 0, end: 0, path });

const named = (piece: PromptPiece, { path }: At): At => {
  const bytes = Buffer.from(JSON.stringify({ name: toolName(piece) }));
  return { bytes, start: 0, end: bytes.length, path };
};

const thinPiece = (piece: PromptPiece): PromptPiece => {
  const { at, stripped, settings } = piece;
  return {
    ...piece,
    fields: [],
    settings: settings.map(({ name, text }) => ({ name, text })),
    ...(at ? { at: piece.kind === "tool" ? named(piece, at) : emptied(at) } : {}),
    ...(stripped ? { stripped: emptied(stripped) } : {}),
  };
};

export const thinned = (prompt: Prompt): Prompt => {
  const { body, pieces, images } = prompt;
  return {
    ...prompt,
    body: { ...body, root: emptied(body.root), members: [] },
    pieces: pieces.map(thinPiece),
    images: images.map(emptied),
  };
};
