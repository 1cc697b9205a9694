/** Why did the second request not read what the first one wrote, and how many tokens is that?
 *  Invariant: bytes are asked first, then times, then markers; a difference is blamed only if something behind it was
 *  kept and stands there again; two conversations that part in their own words have lost nothing but what no marker kept.
 *  Elsewhere: what was kept and found (footing.ts), the differences (differences.ts), the words (cause.ts). */

import { promptTokens, writtenTokens } from "@prefork/wire";
import type { XrayCause } from "./cause.ts";
import type { Difference } from "./differences.ts";
import { breakpointsOf, distanceTo } from "./entries.ts";
import { type Entry, endOf, type Footing, isExpired, isRaced } from "./footing.ts";
import type { Prompt } from "./piece.ts";
import { isEdited, repeatedTokens } from "./repeated.ts";
import { isUnasked, type Rules } from "./rules.ts";
import type { SentFacts } from "./sent.ts";

export type Verdict = {
  readonly cause: XrayCause;
  /** Tokens that were paid for again, as the second provider counts them. */
  readonly lost: number;
  /** Tokens read: as stated, or by the rules. */
  readonly read: number;
  readonly also: readonly XrayCause[];
};

export type Terms = {
  readonly footing: Footing;
  /** Those that are none of two conversations going on in their own words (`realOnes`). */
  readonly differences: readonly Difference[];
  readonly sent: { readonly a: SentFacts; readonly b: SentFacts };
};

/** The least share of an expected read that counts as read: all but noise where the provider counted, half of an
 *  estimate. */
const MET = 0.995;
const MET_ESTIMATE = 0.5;

export const verdictOf = (terms: Terms): Verdict => {
  const { footing, sent } = terms;
  const ruled = byRules(terms);
  const [expected, sure] = [readBy(footing, footing.live), readBy(footing, footing.sure)];
  const read = sent.b.usage?.read ?? expected;
  const [more, less] = [Math.max(0, read - expected), Math.max(0, sure - read)];
  const isShort = sent.b.usage !== undefined && read < sure * (isCounted(terms) ? MET : MET_ESTIMATE);
  if (ruled.cause.kind === "none" && isShort) return { ...ruled, cause: { kind: "unexplained" }, lost: less, read };
  // Where both were counted, what was not read of the part that stands before a change was paid for again with the rest.
  const isKnown = isShort || (ruled.lost > 0 && sent.a.usage !== undefined && sent.b.usage !== undefined);
  const lost = Math.max(0, ruled.lost - more + (isKnown ? less : 0));
  return lost > 0 ? { ...ruled, lost, read } : { ...ruled, cause: nothingLost(terms, read), lost: 0, read };
};

/** No model has a higher minimum. */
const HIGHEST_MINIMUM = 4_096;

/** A read that nobody stated is sure only where the model is known to keep so little. */
const nothingLost = ({ footing, sent }: Terms, read: number): XrayCause => {
  const isGuess = sent.b.usage === undefined && !footing.b.rules.isMinimumKnown && read > 0 && read < HIGHEST_MINIMUM;
  return isGuess ? { kind: "none", unless: "too-short" } : { kind: "none" };
};

/** The provider itself stated how long the prefix is that should have been read: all that the first request left. */
const isCounted = ({ footing, sent }: Terms): boolean =>
  sent.a.usage !== undefined && footing.sure >= 0 && (footing.sure === footing.kept || footing.b.held === true);

/** Whole steps, where its provider counts in such. */
const stepped = ({ rules }: Prompt, tokens: number): number => {
  const { keeping } = rules;
  const step = keeping.kind === "everything" || keeping.kind === "units" ? keeping.step : "piece";
  return step === "piece" ? Math.round(tokens) : Math.floor(tokens / step) * step;
};

/** Tokens up to the end of a piece of the second prompt, as they would be read. */
export const readBy = ({ b, measure, shared, partly }: Footing, index: number): number =>
  index < 0 ? 0 : stepped(b, measure.b(endOf(b, index) + (index === shared - 1 ? partly : 0)));

/** What the first request left behind, as stated or by the rules. */
export const keptBy = ({ footing, sent }: Pick<Terms, "footing" | "sent">): number => {
  const { a, kept, measure } = footing;
  const { usage } = sent.a;
  if (isUnasked(a.rules.keeping)) {
    const whole = usage ? promptTokens(usage) : Math.round(measure.a(a.tokens));
    return kept < 0 ? 0 : stepped(a, whole);
  }
  return usage && a.rules.statesWrites ? usage.read + writtenTokens(usage) : Math.round(measure.a(endOf(a, kept)));
};

// --- by the rules ----------------------------------------------------------------------------------------------------

type Ruled = Omit<Verdict, "read">;

const byRules = (terms: Terms): Ruled =>
  nothingKept(terms) ?? changed(terms) ?? tooLateOrEarly(terms) ?? outOfReach(terms);

const pathAt = ({ pieces }: Prompt, index: number): string => pieces[index]?.at?.path ?? "the end";

const causesOf = (differences: readonly Difference[]): readonly XrayCause[] => differences.map(({ cause }) => cause);

/** All that both say, wherever it stands, up to a piece of the first prompt: as it would have been read, had nothing
 *  stood in the way. */
const repeatedFrom = (footing: Footing, read: number, until: number): number => {
  const { a, b, measure } = footing;
  const { tokens } = repeatedTokens(a.pieces.slice(read + 1, until + 1), b.pieces.slice(read + 1), b.text);
  const before = measure.b(endOf(b, read));
  const whole = before + Math.min(tokens, Math.max(0, endOf(a, until) - endOf(b, read))) * measure.repeated;
  return isUnasked(b.rules.keeping)
    ? Math.max(0, stepped(b, whole) - readBy(footing, read))
    : Math.round(tokens * measure.repeated);
};

/** Where a marker was needed, and what it is called there. */
const missingIn = (request: "a" | "b", prompt: Prompt, at: number): XrayCause => {
  const { pieces, rules } = prompt;
  const cause = { kind: "marker-missing", in: request, at: pathAt(prompt, at) } as const;
  if (rules.keeping.kind !== "endings") return cause;
  return { ...cause, form: pieces[at]?.markable ? "breakpoint" : "developer-message" };
};

const nothingKept = (terms: Terms): Ruled | undefined => {
  const { footing, differences } = terms;
  const { a, kept, measure } = footing;
  if (kept >= 0) return undefined;
  const also = causesOf(differences);
  const last = breakpointsOf(a).at(-1);
  const repeated = (until: number): number =>
    also.length > 0 ? repeatedFrom(footing, -1, until) : repeatedFrom(footing, -1, Math.min(until, footing.shared - 1));
  if (last === undefined) {
    const at = footing.sharedEnd >= 0 ? footing.sharedEnd : a.pieces.findLastIndex(({ markable }) => markable);
    const lost = repeated(a.pieces.length);
    return { cause: missingIn("a", a, at), lost, also };
  }
  const tokens = Math.round(measure.a(endOf(a, last.index)));
  const { minimum } = a.rules;
  const lost = repeated(last.index);
  return { cause: tokens < minimum ? { kind: "below-minimum", minimum, tokens } : { kind: "unexplained" }, lost, also };
};

/** Differences that are none of two conversations going on in their own words: what stood behind them is there again. */
export const realOnes = (footing: Footing, differences: readonly Difference[]): readonly Difference[] => {
  const { a, b, shared, measure, kept } = footing;
  if (differences.length === 0) return [];
  const { tokens } = repeatedTokens(a.pieces.slice(shared), b.pieces.slice(shared), b.text);
  const start = endOf(b, shared - 1);
  const same = start + tokens;
  // Had nothing changed, less would not have been read; a few words that two agents both were asked are no prompt.
  const isEnough =
    tokens > 0 &&
    (measure.b(start) + tokens * measure.repeated >= b.rules.minimum || (kept >= 0 && same >= b.tokens / 2));
  const sharesMessage = b.pieces.slice(0, shared).some(({ level, at }) => level === "messages" && at !== undefined);
  if (!isEnough && !sharesMessage) return [];
  return differences.filter((difference) => isReal(footing, difference, isEnough));
};

const isReal = ({ a, b }: Footing, { level, isSetting, cause }: Difference, isEnough: boolean): boolean => {
  if (level !== "messages" || isSetting || cause.kind === "thinking-dropped") return isEnough;
  if (cause.kind === "message-edited" && cause.change === "block-removed") return true;
  const [ours, theirs] = [a, b].map(({ pieces }) => pieces.filter((piece) => piece.level === level && piece.at));
  if (!ours || !theirs) return false;
  let from = 0;
  while (from < ours.length && ours[from]?.own === theirs[from]?.own) from += 1;
  return isEdited(ours.slice(from), theirs.slice(from), b.text);
};

const isMendable = ({ cause, lost }: Ruled): boolean => lost > 0 && cause.kind !== "below-minimum";

/** Something that was kept stands behind a difference. */
const changed = (terms: Terms): Ruled | undefined => {
  const { footing, differences } = terms;
  const [first, ...later] = differences;
  if (first === undefined || footing.kept < footing.shared) return undefined;
  const lost = repeatedFrom(footing, footing.live, footing.kept);
  if (lost === 0) return undefined;
  const reach = outOfReach(terms);
  return { cause: first.cause, lost, also: [...causesOf(later), ...(isMendable(reach) ? [reach.cause] : [])] };
};

const tooLateOrEarly = (terms: Terms): Ruled | undefined => {
  const { footing, sent } = terms;
  const { b, found, live, known } = footing;
  const entry = known.get(b.pieces[found]?.key ?? "");
  if (found === live || entry === undefined) return undefined;
  const cause = timeCause(entry, sent.b.startedAt ?? 0, b.rules);
  return cause && { cause, lost: readBy(footing, found) - readBy(footing, live), also: [] };
};

const timeCause = (entry: Entry, at: number, { longerTtl, readable, settleMs }: Rules): XrayCause | undefined => {
  const { usedAt = at, ttl } = entry;
  const longest = ttl === "5m" && longerTtl === undefined ? { longest: true as const } : {};
  if (ttl !== undefined && isExpired(entry, at)) return { kind: "expired", ttl, unusedMs: at - usedAt, ...longest };
  const until = readable === "first-event" ? {} : { until: settleMs > 0 ? ("built" as const) : ("complete" as const) };
  return isRaced(entry, at) ? { kind: "raced", afterMs: at - usedAt, ...until } : undefined;
};

/** The shared part was not kept up to its end, or what was kept is not found. */
const outOfReach = ({ footing }: Terms): Ruled => {
  const { a, b, known, found, sharedEnd, shared, measure } = footing;
  const none: Ruled = { cause: { kind: "none" }, lost: 0, also: [] };
  const { keeping, minimum } = b.rules;
  if (keeping.kind === "everything" && found >= 0) return none;
  const common = measure.b(endOf(b, sharedEnd));
  const tokens = Math.round(common);
  const lost = stepped(b, common) - readBy(footing, found);
  if (lost <= 0) return none;
  if (tokens < minimum) return { cause: { kind: "below-minimum", minimum, tokens }, lost, also: [] };
  if (keeping.kind === "units") return { cause: { kind: "unit-missing", at: pathAt(a, sharedEnd) }, lost, also: [] };
  const entry = b.pieces.slice(0, shared).findLastIndex(({ key }) => known.has(key));
  if (entry <= found) return { cause: missingIn("a", a, sharedEnd), lost, also: [] };
  const [runs, singly] = [distanceTo(b, entry, "runs"), distanceTo(b, entry, "singly")];
  if (runs === undefined || singly === undefined) return { cause: missingIn("b", b, entry), lost, also: [] };
  const of = keeping.kind === "endings" ? ({ of: "endings" } as const) : {};
  return { cause: { kind: "look-back-exceeded", positions: { runs, singly }, ...of }, lost, also: [] };
};
