/** Requests that keep arriving: which earlier one does each repeat most of, and what does it read of everything that
 *  was cached?
 *  Invariant: requests come in roughly the order in which they were sent; what any of them left in the cache counts for
 *  every later one; memory is bounded: whole bodies up to a size, only hashes and sizes of older ones, nothing of the
 *  oldest.
 *  Elsewhere: two requests (diff.ts), keeping every step (chain.ts). */

import { LIFETIME_MS, promptTokens, type Recording, type Service } from "@prefork/wire";
import { type Body, readBody } from "./body.ts";
import { type Compared, compare, promptOf, type Xray, type XrayOptions } from "./diff.ts";
import { type Entry, entriesOf, isExpired } from "./lookup.ts";
import { measured } from "./measure.ts";
import { serviceOf } from "./money.ts";
import { agreement, type Prompt, type PromptPiece } from "./piece.ts";
import type { SentFacts } from "./sent.ts";
import { toolName } from "./tool-differences.ts";
import type { BodyValue } from "./values.ts";

/** `starts`: shares no message with any earlier one. `extends`: begins with all of it. `changes`: continues it with
 *  something changed. `forks`: diverges from it, or continues where another one already did. `returns`: is the
 *  beginning of it. */
export type XrayRelation = "starts" | "repeats" | "extends" | "changes" | "forks" | "returns";

export type XrayStep = {
  readonly index: number;
  readonly relation: XrayRelation;
  readonly lineage: number;
  readonly model: string;
  /** How it is served, if that changes its price. */
  readonly service: Service;
  /** Tokens of its prompt, as reported or estimated. */
  readonly prompt: number;
  /** The earlier request it is compared with. */
  readonly against?: number;
  /** The request whose whole prompt it begins with, or the first one to name the same stored entry (possibly itself),
   *  and that prompt's tokens. */
  readonly grewFrom?: number;
  readonly inherited?: number;
  readonly xray?: Xray;
};

export type TrailOptions = XrayOptions & {
  /** How many requests are remembered for comparison; the oldest are forgotten first. */
  readonly remembers?: number; // default: 200
  /** How many bytes of bodies are kept to show differences; the latest body is always kept. */
  readonly bodyBytes?: number; // default: 64 MiB
};

/** `index` must be unique. */
export type TrailFacts = SentFacts & { readonly index: number };

const REMEMBERED = 200;
const BODY_BYTES = 64 * 1024 * 1024;
const MOST_SIMILAR = 4;
const MOST_LATEST = 16;
/** How much of a prompt may repeat another one by chance. */
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
type LineageStep = { readonly index: number; readonly relation: XrayRelation };
type Lineage = { readonly id: number; last: number; isForked: boolean };

export class Trail {
  readonly #options: TrailOptions;
  readonly #remembered = new Map<number, Remembered>();
  readonly #lineages = new Map<number, Lineage>();
  readonly #entries = new Map<string, Entry>();
  /** The latest request that contains a piece with this key; that ends with it; that contains this piece anywhere. */
  readonly #reached = new Map<string, number>();
  readonly #ends = new Map<string, number>();
  readonly #seen = new Map<string, number>();
  readonly #nextLineage: () => number;
  #bytes = 0;

  /** Several trails can share the numbering of their lineages. */
  constructor(options: TrailOptions = {}, nextLineage = counter()) {
    this.#options = options;
    this.#nextLineage = nextLineage;
  }

  add(body: Recording, facts: TrailFacts): XrayStep {
    return this.addRead(readBody(body, `request ${facts.index + 1}`, facts.model), facts);
  }

  /** Adds a body that has already been read. */
  addRead(body: Body, { index, ...sent }: TrailFacts): XrayStep {
    const prompt = promptOf(body, this.#options, sent.betas);
    const best = this.#bestFor(prompt);
    const compared = best && this.#compared(best, prompt, sent);
    this.#shareHeld(prompt, index);
    const grown = prompt.pieces.findLast(({ key }) => this.#ends.has(key));
    const grewFrom = this.#ends.get(grown?.key ?? "");
    const inherited = Math.round(inheritedTokens(grown?.end ?? 0, { prompt, sent, compared }));
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
    this.#remember({ index, prompt, sent, lineage: lineage.id, bytes }, compared?.lookup.live ?? -1);
    // The longer request contains all of it, and later requests are compared with that one.
    if (best && (step.relation === "extends" || step.relation === "repeats")) this.#drop(best.index);
    this.#makeRoom(index);
    return step;
  }

  /** Every request that names a stored entry begins with it, and the first of them represents it. */
  #shareHeld({ held, pieces }: Prompt, index: number): void {
    const { key } = pieces[0] ?? {};
    if (held && key !== undefined && !this.#ends.has(key)) this.#ends.set(key, index);
  }

  #compared(best: Remembered, b: Prompt, sent: SentFacts): ReturnType<typeof compare> {
    const { reading = "runs" } = this.#options;
    return compare({ a: best.prompt, b, known: this.#entries, sent: { a: best.sent, b: sent }, reading });
  }

  /** The request that it repeats most of. Ties go to the longest common prefix, then to the least other content, then
   *  to the latest. */
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
      // A request that continues all of an earlier one belongs to it, whatever few words it repeats of another.
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

  /** The few requests that most recently contained most of this one's pieces. */
  #alike({ pieces }: Prompt): readonly Remembered[] {
    const tokens = new Map<number, number>();
    for (const piece of pieces) {
      const index = this.#seen.get(piece.own);
      if (index !== undefined) tokens.set(index, (tokens.get(index) ?? 0) + piece.tokens);
    }
    return [...tokens]
      .sort(([, one], [, other]) => other - one)
      .slice(0, MOST_SIMILAR)
      .flatMap(([index]) => this.#remembered.get(index) ?? []);
  }

  #lineageFor({ index, relation }: LineageStep, best: Remembered | undefined): Lineage {
    const of = best && this.#lineages.get(best.lineage);
    const continues =
      relation === "repeats" ||
      (relation !== "starts" && relation !== "forks" && relation !== "returns" && of?.last === best?.index);
    if (of && continues) {
      of.last = index;
      return of;
    }
    const lineage: Lineage = { id: this.#nextLineage(), last: index, isForked: relation !== "starts" };
    this.#lineages.set(lineage.id, lineage);
    return lineage;
  }

  /** A read renews the entry that was read, but no shorter one before it. */
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
      this.#entries.set(written, renewEntry(this.#entries.get(written), entry));
  }

  /** If the provider keeps units, the common part of this prompt and an earlier one becomes one too. */
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
      this.#remembered.set(request.index, { ...request, prompt: withoutBody(request.prompt), bytes: 0 });
    }
  }

  /** Forgets everything that no later request contains. The oldest are forgotten first, so shared pieces belong to a
   *  later request. */
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

type InheritedTerms = { readonly prompt: Prompt; readonly sent: SentFacts; readonly compared: Compared | undefined };

/** The provider's tokens of what it grew from, up to this many estimated ones. */
const inheritedTokens = (end: number, { prompt, sent, compared }: InheritedTerms): number =>
  compared && compared.lookup.shared > 0 ? compared.lookup.measure.b(end) : (measured(prompt, sent)?.(end) ?? end);

const counter = (): (() => number) => {
  let next = 0;
  return () => next++;
};

const later = (one: number | undefined, other: number): number => Math.max(one ?? other, other);

/** An entry that is written again while it still lives keeps the longest lifetime that anyone paid for. */
const renewEntry = (there: Entry | undefined, entry: Entry): Entry => {
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

/** Tokens of pieces that both contain anywhere. */
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

const emptyValue = ({ path }: BodyValue): BodyValue => ({ bytes: NOTHING, start: 0, end: 0, path });

const toolNameOnly = (piece: PromptPiece, { path }: BodyValue): BodyValue => {
  const bytes = Buffer.from(JSON.stringify({ name: toolName(piece) }));
  return { bytes, start: 0, end: bytes.length, path };
};

const thinPiece = (piece: PromptPiece): PromptPiece => {
  const { at, stripped, settings } = piece;
  return {
    ...piece,
    fields: [],
    settings: settings.map(({ name, text }) => ({ name, text })),
    ...(at ? { at: piece.kind === "tool" ? toolNameOnly(piece, at) : emptyValue(at) } : {}),
    ...(stripped ? { stripped: emptyValue(stripped) } : {}),
  };
};

export const withoutBody = (prompt: Prompt): Prompt => {
  const { body, pieces, images } = prompt;
  return {
    ...prompt,
    body: { ...body, root: emptyValue(body.root), members: [] },
    pieces: pieces.map(thinPiece),
    images: images.map(emptyValue),
  };
};
