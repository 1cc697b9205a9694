/** Why did the second request not read what the first one wrote, and how many tokens is that?
 *  Invariant: bytes are checked first, then times, then markers; a difference is blamed only if something after it was
 *  cached and occurs again; two conversations that diverge into different text have lost nothing except what no marker
 *  kept.
 *  Elsewhere: what was cached and found (lookup.ts), the differences (differences.ts), the sentences (cause.ts). */

import { promptTokens, writtenTokens } from "@prefork/wire";
import type { XrayCause } from "./cause.ts";
import type { Difference } from "./differences.ts";
import { breakpointsOf, distanceTo } from "./entries.ts";
import { type CacheLookup, type Entry, endOf, isExpired, isRaced } from "./lookup.ts";
import type { Prompt } from "./piece.ts";
import { isEdited, repeatedTokens } from "./repeated.ts";
import { isAutomatic, type Rules } from "./rules.ts";
import type { SentFacts } from "./sent.ts";

export type Verdict = {
  readonly cause: XrayCause;
  /** Tokens that were paid for again, as the second provider counts them. */
  readonly lost: number;
  /** Tokens read: as reported, or by the rules. */
  readonly read: number;
  readonly also: readonly XrayCause[];
};

export type VerdictTerms = {
  readonly lookup: CacheLookup;
  /** Without requests that merely continue with different text (`realDifferences`). */
  readonly differences: readonly Difference[];
  readonly sent: { readonly a: SentFacts; readonly b: SentFacts };
};

/** The smallest share of an expected read that counts as read: all but noise if the provider counted, half of an
 *  estimate. */
const MET_SHARE = 0.995;
const MET_ESTIMATE = 0.5;

export const verdictOf = (terms: VerdictTerms): Verdict => {
  const { lookup, sent } = terms;
  const ruled = byRules(terms);
  const [expected, sure] = [readTokens(lookup, lookup.live), readTokens(lookup, lookup.sure)];
  const read = sent.b.usage?.read ?? expected;
  const [more, less] = [Math.max(0, read - expected), Math.max(0, sure - read)];
  const isShort = sent.b.usage !== undefined && read < sure * (isCounted(terms) ? MET_SHARE : MET_ESTIMATE);
  if (ruled.cause.kind === "none" && isShort) return { ...ruled, cause: { kind: "unexplained" }, lost: less, read };
  // If both were counted, whatever was not read before a change was paid for again together with the rest.
  const isKnown = isShort || (ruled.lost > 0 && sent.a.usage !== undefined && sent.b.usage !== undefined);
  const lost = Math.max(0, ruled.lost - more + (isKnown ? less : 0));
  return lost > 0 ? { ...ruled, lost, read } : { ...ruled, cause: nothingLost(terms, read), lost: 0, read };
};

/** No model has a higher minimum. */
const HIGHEST_MINIMUM = 4_096;

/** A read that was not reported is certain only if the model is known to cache such short prompts. */
const nothingLost = ({ lookup, sent }: VerdictTerms, read: number): XrayCause => {
  const isGuess = sent.b.usage === undefined && !lookup.b.rules.isMinimumKnown && read > 0 && read < HIGHEST_MINIMUM;
  return isGuess ? { kind: "none", unless: "too-short" } : { kind: "none" };
};

/** The provider itself reported the length of the prefix that should have been read: everything the first request
 *  left. */
const isCounted = ({ lookup, sent }: VerdictTerms): boolean =>
  sent.a.usage !== undefined && lookup.sure >= 0 && (lookup.sure === lookup.kept || lookup.b.held === true);

/** Rounded down to whole steps, if the provider counts in steps. */
const roundToStep = ({ rules }: Prompt, tokens: number): number => {
  const { keeping } = rules;
  const step = keeping.kind === "everything" || keeping.kind === "units" ? keeping.step : "piece";
  return step === "piece" ? Math.round(tokens) : Math.floor(tokens / step) * step;
};

/** Tokens up to the end of a piece of the second prompt, as they would be read. */
export const readTokens = ({ b, measure, shared, partly }: CacheLookup, index: number): number =>
  index < 0 ? 0 : roundToStep(b, measure.b(endOf(b, index) + (index === shared - 1 ? partly : 0)));

/** What the first request left in the cache, as reported or by the rules. */
export const keptTokens = ({ lookup, sent }: Pick<VerdictTerms, "lookup" | "sent">): number => {
  const { a, kept, measure } = lookup;
  const { usage } = sent.a;
  if (isAutomatic(a.rules.keeping)) {
    const whole = usage ? promptTokens(usage) : Math.round(measure.a(a.tokens));
    return kept < 0 ? 0 : roundToStep(a, whole);
  }
  return usage && a.rules.statesWrites ? usage.read + writtenTokens(usage) : Math.round(measure.a(endOf(a, kept)));
};

// --- by the rules ----------------------------------------------------------------------------------------------------

type RuleVerdict = Omit<Verdict, "read">;

const byRules = (terms: VerdictTerms): RuleVerdict =>
  nothingKept(terms) ?? changedPrompt(terms) ?? tooLateOrEarly(terms) ?? outOfReach(terms);

const pathAt = ({ pieces }: Prompt, index: number): string => pieces[index]?.at?.path ?? "the end";

const causesOf = (differences: readonly Difference[]): readonly XrayCause[] => differences.map(({ cause }) => cause);

/** Everything that both contain, anywhere, up to a piece of the first prompt: what would have been read without the
 *  differences. */
const repeatedFrom = (lookup: CacheLookup, read: number, until: number): number => {
  const { a, b, measure } = lookup;
  const { tokens } = repeatedTokens(a.pieces.slice(read + 1, until + 1), b.pieces.slice(read + 1), b.text);
  const before = measure.b(endOf(b, read));
  const whole = before + Math.min(tokens, Math.max(0, endOf(a, until) - endOf(b, read))) * measure.repeated;
  return isAutomatic(b.rules.keeping)
    ? Math.max(0, roundToStep(b, whole) - readTokens(lookup, read))
    : Math.round(tokens * measure.repeated);
};

/** Where a marker was needed, and in which form. */
const missingMarker = (request: "a" | "b", prompt: Prompt, at: number): XrayCause => {
  const { pieces, rules } = prompt;
  const cause = { kind: "marker-missing", in: request, at: pathAt(prompt, at) } as const;
  if (rules.keeping.kind !== "endings") return cause;
  return { ...cause, form: pieces[at]?.markable ? "breakpoint" : "developer-message" };
};

const nothingKept = (terms: VerdictTerms): RuleVerdict | undefined => {
  const { lookup, differences } = terms;
  const { a, kept, measure } = lookup;
  if (kept >= 0) return undefined;
  const also = causesOf(differences);
  const last = breakpointsOf(a).at(-1);
  const repeated = (until: number): number =>
    also.length > 0 ? repeatedFrom(lookup, -1, until) : repeatedFrom(lookup, -1, Math.min(until, lookup.shared - 1));
  if (last === undefined) {
    const at = lookup.sharedEnd >= 0 ? lookup.sharedEnd : a.pieces.findLastIndex(({ markable }) => markable);
    const lost = repeated(a.pieces.length);
    return { cause: missingMarker("a", a, at), lost, also };
  }
  const tokens = Math.round(measure.a(endOf(a, last.index)));
  const { minimum } = a.rules;
  const lost = repeated(last.index);
  return { cause: tokens < minimum ? { kind: "below-minimum", minimum, tokens } : { kind: "unexplained" }, lost, also };
};

/** Drops differences between conversations that merely continue with different text: a real difference has the same
 *  content after it again. */
export const realDifferences = (lookup: CacheLookup, differences: readonly Difference[]): readonly Difference[] => {
  const { a, b, shared, measure, kept } = lookup;
  if (differences.length === 0) return [];
  const { tokens } = repeatedTokens(a.pieces.slice(shared), b.pieces.slice(shared), b.text);
  const start = endOf(b, shared - 1);
  const same = start + tokens;
  // Less would not have been read even without changes, and a few words that two agents were both asked are not a
  // prompt.
  const isEnough =
    tokens > 0 &&
    (measure.b(start) + tokens * measure.repeated >= b.rules.minimum || (kept >= 0 && same >= b.tokens / 2));
  const sharesMessage = b.pieces.slice(0, shared).some(({ level, at }) => level === "messages" && at !== undefined);
  if (!isEnough && !sharesMessage) return [];
  return differences.filter((difference) => isReal(lookup, difference, isEnough));
};

const isReal = ({ a, b }: CacheLookup, { level, isSetting, cause }: Difference, isEnough: boolean): boolean => {
  if (level !== "messages" || isSetting || cause.kind === "thinking-dropped") return isEnough;
  if (cause.kind === "message-edited" && cause.change === "block-removed") return true;
  const [ours, theirs] = [a, b].map(({ pieces }) => pieces.filter((piece) => piece.level === level && piece.at));
  if (!ours || !theirs) return false;
  let from = 0;
  while (from < ours.length && ours[from]?.own === theirs[from]?.own) from += 1;
  return isEdited(ours.slice(from), theirs.slice(from), b.text);
};

const isMendable = ({ cause, lost }: RuleVerdict): boolean => lost > 0 && cause.kind !== "below-minimum";

/** Something cached comes after a difference. */
const changedPrompt = (terms: VerdictTerms): RuleVerdict | undefined => {
  const { lookup, differences } = terms;
  const [first, ...later] = differences;
  if (first === undefined || lookup.kept < lookup.shared) return undefined;
  const lost = repeatedFrom(lookup, lookup.live, lookup.kept);
  if (lost === 0) return undefined;
  const reach = outOfReach(terms);
  return { cause: first.cause, lost, also: [...causesOf(later), ...(isMendable(reach) ? [reach.cause] : [])] };
};

const tooLateOrEarly = (terms: VerdictTerms): RuleVerdict | undefined => {
  const { lookup, sent } = terms;
  const { b, found, live, known } = lookup;
  const entry = known.get(b.pieces[found]?.key ?? "");
  if (found === live || entry === undefined) return undefined;
  const cause = timeCause(entry, sent.b.startedAt ?? 0, b.rules);
  return cause && { cause, lost: readTokens(lookup, found) - readTokens(lookup, live), also: [] };
};

const timeCause = (entry: Entry, at: number, { longerTtl, readable, settleMs }: Rules): XrayCause | undefined => {
  const { usedAt = at, ttl } = entry;
  const longest = ttl === "5m" && longerTtl === undefined ? { longest: true as const } : {};
  if (ttl !== undefined && isExpired(entry, at)) return { kind: "expired", ttl, unusedMs: at - usedAt, ...longest };
  const until = readable === "first-event" ? {} : { until: settleMs > 0 ? ("built" as const) : ("complete" as const) };
  return isRaced(entry, at) ? { kind: "raced", afterMs: at - usedAt, ...until } : undefined;
};

/** The shared part was not cached to its end, or the entry was not found. */
const outOfReach = ({ lookup }: VerdictTerms): RuleVerdict => {
  const { a, b, known, found, sharedEnd, shared, measure } = lookup;
  const none: RuleVerdict = { cause: { kind: "none" }, lost: 0, also: [] };
  const { keeping, minimum } = b.rules;
  if (keeping.kind === "everything" && found >= 0) return none;
  const common = measure.b(endOf(b, sharedEnd));
  const tokens = Math.round(common);
  const lost = roundToStep(b, common) - readTokens(lookup, found);
  if (lost <= 0) return none;
  if (tokens < minimum) return { cause: { kind: "below-minimum", minimum, tokens }, lost, also: [] };
  if (keeping.kind === "units") return { cause: { kind: "unit-missing", at: pathAt(a, sharedEnd) }, lost, also: [] };
  const entry = b.pieces.slice(0, shared).findLastIndex(({ key }) => known.has(key));
  if (entry <= found) return { cause: missingMarker("a", a, sharedEnd), lost, also: [] };
  const [runs, singly] = [distanceTo(b, entry, "runs"), distanceTo(b, entry, "singly")];
  if (runs === undefined || singly === undefined) return { cause: missingMarker("b", b, entry), lost, also: [] };
  const of = keeping.kind === "endings" ? ({ of: "endings" } as const) : {};
  return { cause: { kind: "look-back-exceeded", positions: { runs, singly }, ...of }, lost, also: [] };
};
