/** What of one prompt was kept, what the next one shares with it, and how much of that it finds.
 *  Invariant: pieces are counted by the rules; tokens are the provider's own where it stated them, and else estimates
 *  scaled by what it stated of either request.
 *  Elsewhere: why it is not more (verdict.ts), the rules themselves (entries.ts). */

import { LIFETIME_MS, type Ttl, writtenTokens } from "@prefork/wire";
import { breakpointsOf, placesOf, type Reading } from "./entries.ts";
import { type Measure, measured, measureOf } from "./measure.ts";
import { agreement, fieldText, type Prompt, type PromptPiece } from "./piece.ts";
import { isUnasked, type Rules } from "./rules.ts";
import type { SentFacts } from "./sent.ts";
import { commonStart } from "./spot.ts";

/** What is known to have been kept, by the key of the piece it ends at. */
export type Entry = {
  readonly ttl: Ttl | undefined;
  /** When it was last written or read, and from when on it could be. */
  readonly usedAt?: number;
  readonly readableAt?: number;
};

export type Known = ReadonlyMap<string, Entry>;

export type Footing = {
  readonly a: Prompt;
  readonly b: Prompt;
  /** Everything that was kept, with the answers that the second prompt shows to have been. */
  readonly known: Known;
  /** Provider's tokens for those that are estimated. */
  readonly measure: Measure;
  /** How many pieces both begin with. */
  readonly shared: number;
  /** Index of the last piece: that any entry on the first prompt's line ends at; that both share and that could carry a
   *  marker; that the second finds an entry at, by the rules, and by the rules and the time. -1: none. */
  readonly kept: number;
  readonly sharedEnd: number;
  readonly found: number;
  readonly live: number;
  /** What is surely read of it: where answers are kept, whether one came back letter for letter no body tells. */
  readonly sure: number;
  readonly reading: Reading;
  /** Tokens that a prompt kept unasked shares inside the piece in which both part. */
  readonly partly: number;
};

export type FootingTerms = {
  readonly a: Prompt;
  readonly b: Prompt;
  readonly known: Known;
  readonly sent: { readonly a: SentFacts; readonly b: SentFacts };
  readonly reading: Reading;
};

/** What a request leaves behind that it did not read: entries behind the piece at `read`. Where its provider says that it
 *  kept nothing, nothing is there. */
export const entriesOf = (prompt: Prompt, sent: SentFacts, read = -1): Known => {
  const { usage, startedAt } = sent;
  const { keeping, statesWrites } = prompt.rules;
  const isWhole = keeping.kind === "everything";
  const saysNothing = usage !== undefined && usage.read + writtenTokens(usage) === 0;
  if (saysNothing && statesWrites && !isUnasked(keeping)) return new Map();
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

/** As far as it is known; an answer that is complete had begun before. */
const readableFrom = ({ readable, settleMs }: Rules, { firstEventAt, endedAt }: SentFacts): number | undefined =>
  readable === "complete" && endedAt !== undefined ? endedAt + settleMs : firstEventAt;

export const endOf = ({ pieces }: Prompt, index: number): number => pieces[index]?.end ?? 0;

export const footingOf = (terms: FootingTerms): Footing => {
  const { a, b, known, sent } = terms;
  const shared = agreement(a, b);
  const kept = a.pieces.findLastIndex(({ key }) => known.has(key));
  const inside = partlyShared(a, b, shared);
  const next = a.pieces.findIndex(({ key }, index) => index >= shared && known.has(key));
  const measure = measureOf({ a, b, sent, common: endOf(b, shared - 1) + inside });
  const unit = nearUnit({ a, b, next, shared, inside, measure });
  const partly = b.rules.keeping.kind === "units" && unit === undefined ? 0 : inside;
  // What is kept whole is kept in steps; what both share must be long enough to be one.
  const isLong = (index: number): boolean =>
    measure.b(endOf(b, index) + (index === shared - 1 ? partly : 0)) >= b.rules.minimum;
  const looking = { ...terms, known: unit === undefined ? known : withUnit(known, unit, b.pieces[shared - 1]) };
  const sure = lookedUp(looking, isLong, measure);
  const answered = { ...looking, known: withAnswers(b, looking.known) };
  const { found, live, reading } = answered.known === looking.known ? sure : lookedUp(answered, isLong, measure);
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

type UnitTerms = Pick<Footing, "a" | "b" | "shared" | "measure"> & {
  /** The first piece behind what both share that an entry ends at. */
  readonly next: number;
  readonly inside: number;
};

/** A unit ends before the last words of its prompt: whoever parts from it in these alone has all of it. */
const nearUnit = ({ a, b, next, shared, inside, measure }: UnitTerms): string | undefined => {
  const { keeping } = b.rules;
  if (keeping.kind !== "units" || next < 0 || shared === 0) return undefined;
  const end = Math.floor(measure.a(endOf(a, next)) / keeping.step) * keeping.step;
  return measure.b(endOf(b, shared - 1) + inside) >= end ? a.pieces[next]?.key : undefined;
};

const withUnit = (known: Known, unit: string, last: PromptPiece | undefined): Known => {
  const entry = known.get(unit);
  return entry && last ? new Map([...known, [last.key, entry]]) : known;
};

/** Where units are kept, the answer that followed a kept prompt is one too. */
const withAnswers = (b: Prompt, known: Known): Known => {
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
    (isUnasked(rules.keeping) && at !== undefined) ||
    (rules.keeping.kind === "endings" && !explicitOnly ? ending === true || markable : markable);

type LookedUp = Pick<Footing, "found" | "live" | "reading">;

/** Where a provider may count otherwise, and what was read can only be explained by that, it is taken to do so. */
const lookedUp = (terms: FootingTerms, isLong: (index: number) => boolean, measure: Measure): LookedUp => {
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

const search = ({ b, known, sent }: FootingTerms, isLong: (index: number) => boolean, reading: Reading): LookedUp => {
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

/** Providers that count in tokens read into the middle of a piece. */
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
