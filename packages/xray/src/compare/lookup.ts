/** What was cached of one prompt, what the next prompt shares with it, and how much of that it finds.
 *  Invariant: pieces are counted by the rules; tokens are the provider's own if it reported them, otherwise estimates
 *  scaled by what it reported for either request.
 *  Elsewhere: the miss reason (verdict.ts), the rules (entries.ts). */

import { LIFETIME_MS, type Ttl, writtenTokens } from "@prefork/wire";
import { breakpointsOf, placesOf, type Reading } from "./entries.ts";
import { commonStart } from "./location.ts";
import { type Measure, measured, measureOf } from "./measure.ts";
import { agreement, fieldText, type Prompt, type PromptPiece } from "./piece.ts";
import { isAutomatic, type Rules } from "./rules.ts";
import type { SentFacts } from "./sent.ts";

/** A known cache entry, stored under the key of the piece it ends at. */
export type Entry = {
  readonly ttl: Ttl | undefined;
  /** When it was last written or read, and since when it can be read. */
  readonly usedAt?: number;
  readonly readableAt?: number;
};

export type KnownEntries = ReadonlyMap<string, Entry>;

export type CacheLookup = {
  readonly a: Prompt;
  readonly b: Prompt;
  /** Everything that was cached, including answers that the second prompt contains. */
  readonly known: KnownEntries;
  /** Converts estimated tokens to the provider's tokens. */
  readonly measure: Measure;
  /** The number of pieces that both begin with. */
  readonly shared: number;
  /** Indexes of the last piece: at which any entry of the first prompt ends; that both share and that could carry a
   *  marker; at which the second finds an entry by the rules; and by the rules and the time. -1: none. */
  readonly kept: number;
  readonly sharedEnd: number;
  readonly found: number;
  readonly live: number;
  /** What is certainly read: if answers are cached, no body shows whether one came back byte for byte. */
  readonly sure: number;
  readonly reading: Reading;
  /** With automatic caching: tokens shared inside the piece where the prompts diverge. */
  readonly partly: number;
};

export type LookupTerms = {
  readonly a: Prompt;
  readonly b: Prompt;
  readonly known: KnownEntries;
  readonly sent: { readonly a: SentFacts; readonly b: SentFacts };
  readonly reading: Reading;
};

/** The entries that a request leaves without having read them: those after the piece at `read`. None if its provider
 *  reports that it cached nothing. */
export const entriesOf = (prompt: Prompt, sent: SentFacts, read = -1): KnownEntries => {
  const { usage, startedAt } = sent;
  const { keeping, statesWrites } = prompt.rules;
  const isWhole = keeping.kind === "everything";
  const saysNothing = usage !== undefined && usage.read + writtenTokens(usage) === 0;
  if (saysNothing && statesWrites && !isAutomatic(keeping)) return new Map();
  const readableAt = readableFrom(prompt.rules, sent);
  if (readableAt === Number.POSITIVE_INFINITY) return new Map();
  const stated = measured(prompt, sent) ?? ((tokens: number): number => tokens);
  const times = {
    ...(startedAt === undefined ? {} : { usedAt: startedAt }),
    ...(readableAt === undefined ? {} : { readableAt }),
  };
  const ends = isWhole
    ? [...prompt.pieces.keys()].map((index) => ({ index, ttl: prompt.rules.defaultTtl }))
    : breakpointsOf(prompt);
  const isLong = (index: number): boolean =>
    stated(endOf(prompt, isWhole ? prompt.pieces.length - 1 : index)) >= prompt.rules.minimum;
  return new Map(
    ends
      .filter(({ index }) => index > read && isLong(index))
      .map(({ index, ttl }) => [prompt.pieces[index]?.key ?? "", { ttl, ...times }]),
  );
};

/** As far as it is known. A complete answer must have begun earlier. */
const readableFrom = ({ readable, settleMs }: Rules, { firstEventAt, endedAt }: SentFacts): number | undefined =>
  readable === "complete" && endedAt !== undefined ? endedAt + settleMs : firstEventAt;

export const endOf = ({ pieces }: Prompt, index: number): number => pieces[index]?.end ?? 0;

export const lookUp = (terms: LookupTerms): CacheLookup => {
  const { a, b, known, sent } = terms;
  const shared = agreement(a, b);
  const kept = a.pieces.findLastIndex(({ key }) => known.has(key));
  const inside = partlyShared(a, b, shared);
  const next = a.pieces.findIndex(({ key }, index) => index >= shared && known.has(key));
  const measure = measureOf({ a, b, sent, common: endOf(b, shared - 1) + inside });
  const unit = nearUnit({ a, b, next, shared, inside, measure });
  const partly = b.rules.keeping.kind === "units" && unit === undefined ? 0 : inside;
  // Automatic caches work in steps; what both share must be at least one step long.
  const isLong = (index: number): boolean =>
    measure.b(endOf(b, index) + (index === shared - 1 ? partly : 0)) >= b.rules.minimum;
  const looking = { ...terms, known: unit === undefined ? known : withUnit(known, unit, b.pieces[shared - 1]) };
  const sure = searchBothWays(looking, isLong, measure);
  const answered = { ...looking, known: withAnswers(b, looking.known) };
  const { found, live, reading } = answered.known === looking.known ? sure : searchBothWays(answered, isLong, measure);
  return {
    a,
    b,
    known: answered.known,
    measure,
    shared,
    kept,
    sharedEnd: b.pieces.slice(0, shared).findLastIndex(canEnd(b)),
    found,
    live,
    sure: b.held ? Math.min(sure.live, 0) : sure.live,
    reading,
    partly,
  };
};

type UnitTerms = Pick<CacheLookup, "a" | "b" | "shared" | "measure"> & {
  /** The first piece after the shared ones at which an entry ends. */
  readonly next: number;
  readonly inside: number;
};

/** A unit ends before the last tokens of its prompt, so a prompt that diverges only there can read all of it. */
const nearUnit = ({ a, b, next, shared, inside, measure }: UnitTerms): string | undefined => {
  const { keeping } = b.rules;
  if (keeping.kind !== "units" || next < 0 || shared === 0) return undefined;
  const end = Math.floor(measure.a(endOf(a, next)) / keeping.step) * keeping.step;
  return measure.b(endOf(b, shared - 1) + inside) >= end ? a.pieces[next]?.key : undefined;
};

const withUnit = (known: KnownEntries, unit: string, last: PromptPiece | undefined): KnownEntries => {
  const entry = known.get(unit);
  return entry && last ? new Map([...known, [last.key, entry]]) : known;
};

/** If the provider keeps units, the answer after a cached prompt is one too. */
const withAnswers = (b: Prompt, known: KnownEntries): KnownEntries => {
  if (b.rules.keeping.kind !== "units") return known;
  const answers = b.pieces.flatMap(({ key }, index): readonly (readonly [string, Entry])[] => {
    const entry = known.get(key);
    if (!entry || b.pieces[index + 1]?.role !== "assistant") return [];
    const next = b.pieces.findIndex(({ role }, at) => at > index && role !== "assistant");
    const last = b.pieces[(next < 0 ? b.pieces.length : next) - 1];
    return last && !known.has(last.key) ? [[last.key, entry]] : [];
  });
  return answers.length === 0 ? known : new Map([...known, ...answers]);
};

const canEnd =
  ({ rules, explicitOnly }: Prompt) =>
  ({ markable, ending, at }: PromptPiece): boolean =>
    (isAutomatic(rules.keeping) && at !== undefined) ||
    (rules.keeping.kind === "endings" && !explicitOnly ? ending === true || markable : markable);

type SearchResult = Pick<CacheLookup, "found" | "live" | "reading">;

/** If a provider may count positions differently, and only that explains what was read, we assume that it does. */
const searchBothWays = (terms: LookupTerms, isLong: (index: number) => boolean, measure: Measure): SearchResult => {
  const { b, sent } = terms;
  const { keeping } = b.rules;
  const reading = keeping.kind === "markers" && keeping.singly ? "singly" : terms.reading;
  const first = search(terms, isLong, reading);
  const read = sent.b.usage?.read;
  if (read === undefined || reading === "singly" || first.live < 0) return first;
  const other = search(terms, isLong, "singly");
  const distance = (index: number): number => Math.abs(measure.b(endOf(b, index)) - read);
  return distance(other.live) < distance(first.live) ? other : first;
};

const search = (
  { b, known, sent }: LookupTerms,
  isLong: (index: number) => boolean,
  reading: Reading,
): SearchResult => {
  const places = placesOf(b, reading);
  const hits = (isThere: (entry: Entry) => boolean): number =>
    b.pieces.findLastIndex(({ key }, index) => {
      const entry = places.has(index) ? known.get(key) : undefined;
      return entry !== undefined && isLong(index) && isThere(entry);
    });
  return { found: hits(() => true), live: hits((entry) => isLive(entry, sent.b)), reading };
};

/** No provider's answer begins sooner than this. */
const SOONEST_ANSWER_MS = 200;

export const isLive = (entry: Entry, { startedAt }: SentFacts): boolean =>
  !isExpired(entry, startedAt) && !isRaced(entry, startedAt);

export const isExpired = ({ ttl, usedAt }: Entry, at: number | undefined): boolean =>
  ttl !== undefined && usedAt !== undefined && at !== undefined && at - usedAt >= LIFETIME_MS[ttl];

export const isRaced = ({ usedAt, readableAt }: Entry, at: number | undefined): boolean => {
  const from = readableAt ?? (usedAt === undefined ? undefined : usedAt + SOONEST_ANSWER_MS);
  return at !== undefined && from !== undefined && at < from;
};

/** Providers that count in tokens can read into the middle of a piece. */
const partlyShared = (a: Prompt, b: Prompt, shared: number): number => {
  const [one, other] = [a.pieces[shared], b.pieces[shared]];
  const { keeping } = b.rules;
  const hasSteps = keeping.kind === "units" || (keeping.kind === "everything" && keeping.step !== "piece");
  if (!hasSteps || !one || !other || one.kind !== other.kind || one.role !== other.role) return 0;
  const texts = other.fields.map((field) => fieldText(field, b.text));
  const all = texts.reduce((sum, { length }) => sum + length, 0);
  let same = 0;
  for (const [index, theirs] of texts.entries()) {
    const field = one.fields[index];
    const text = field && field.name === other.fields[index]?.name ? fieldText(field, a.text) : "";
    same += commonStart(text, theirs);
    if (text !== theirs) break;
  }
  return all === 0 ? 0 : Math.floor((same / all) * other.tokens);
};
