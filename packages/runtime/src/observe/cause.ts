/** Every reason why a request read less than was once written for it, with words for people.
 *  Invariant: a closed union; each reason that can be avoided says how.
 *  Elsewhere: finding it (ledger.ts), laying it out (the command line). */

import { entryLifetimeMs, LOOK_BACK, promptTokens, type Ttl } from "@prefork/wire";
import type { EpochReason } from "../events.ts";
import { ADDRESS_SLOT, REHEARSAL_SCHEME } from "../journal/index.ts";
import { type Entry, factsOf, keptTokens, type NamedEntry } from "./entries.ts";
import type { FamilyRole } from "./families.ts";
import type { AgentJournal, ChangedBytes } from "./line.ts";
import type { SentAnswer, SentRequest } from "./requests.ts";

export type ShortfallCause =
  /** It read all that was there. */
  | { readonly kind: "none" }
  | { readonly kind: "first-request" }
  | { readonly kind: "new-epoch"; readonly reason: EpochReason }
  | { readonly kind: "expired"; readonly ttl: Ttl; readonly unusedMs: number }
  | { readonly kind: "below-minimum"; readonly minimum: number; readonly tokens: number }
  /** Sent before the leader's entry could be read. */
  | { readonly kind: "raced"; readonly leader: string }
  | { readonly kind: "look-back-exceeded"; readonly positions: number }
  | { readonly kind: "changed-bytes"; readonly segment: number; readonly path: string }
  /** New words of the user made the model leave out its earlier thinking, and with it all that stood after it. */
  | { readonly kind: "thinking-dropped" }
  /** What was stored by name was no longer there, and the request was sent whole. */
  | { readonly kind: "entry-gone"; readonly name: string }
  /** The request before it wrote nothing, though its prompt was long enough to be cached. */
  | { readonly kind: "not-written"; readonly tokens: number }
  /** What was written stood in the cache of another endpoint. */
  | { readonly kind: "other-address"; readonly from: string; readonly to: string }
  /** The rehearsal engine keeps its cache in the process that it runs in. */
  | { readonly kind: "rehearsal-ended" }
  | { readonly kind: "unexplained" };

/** In two words, for tables. */
export const causeWords = (cause: ShortfallCause): string => {
  switch (cause.kind) {
    case "none":
      return "";
    case "changed-bytes":
      return "bytes changed";
    case "look-back-exceeded":
      return "look-back";
    case "first-request":
    case "new-epoch":
    case "below-minimum":
    case "thinking-dropped":
    case "entry-gone":
    case "not-written":
    case "other-address":
    case "rehearsal-ended":
      return cause.kind.replaceAll("-", " ");
    case "expired":
    case "raced":
    case "unexplained":
      return cause.kind;
  }
};

/** In a sentence without its full stop. */
export const causeSentence = (cause: ShortfallCause): string => {
  switch (cause.kind) {
    case "none":
      return "all that was there was read";
    case "first-request":
      return "nothing had been sent before";
    case "new-epoch":
      return `the context began anew (${cause.reason})`;
    case "expired":
      return `the entry had expired: ${minutes(cause.unusedMs)} without use, and it is kept for ${cause.ttl}`;
    case "below-minimum":
      return `${cause.tokens} tokens are not kept: this model caches from ${cause.minimum}`;
    case "raced":
      return `sent before the entry of ${cause.leader} could be read`;
    case "look-back-exceeded":
      return `the last entry lies ${cause.positions} blocks before the next marker, and 20 are looked at`;
    case "changed-bytes":
      return `the bytes changed at ${cause.path || `segment ${cause.segment}`} (segment ${cause.segment})`;
    case "thinking-dropped":
      return "new words of the user made the model leave out its earlier thinking";
    case "entry-gone":
      return `${cause.name} was no longer there, and the request was sent whole`;
    case "not-written":
      return `the request before it wrote none of its ${cause.tokens} tokens to the cache`;
    case "other-address":
      return `the conversation moved from ${cause.from} to ${cause.to}, whose cache did not know it`;
    case "rehearsal-ended":
      return "the rehearsal engine's cache ended with its process";
    case "unexplained":
      return "same bytes, and the entry should have lived";
  }
};

/** A clock that was set back between two entries is no negative pause. */
const minutes = (ms: number): string => `${(Math.max(0, ms) / 60_000).toFixed(1)} min`;

/** What would avoid it; undefined where nothing is wrong. */
export const adviceFor = (cause: ShortfallCause): string | undefined => {
  switch (cause.kind) {
    case "none":
    case "first-request":
      return undefined;
    case "new-epoch":
      return cause.reason === "model"
        ? "go on with the same model: another one reads nothing of its cache"
        : "sum up less often: it pays once the context is much shorter afterwards";
    case "expired":
      return cause.ttl === "5m"
        ? "where pauses are longer than five minutes, markers of 1h cost less"
        : "send something before the entry expires, or accept the price of the pause";
    case "below-minimum":
      return "none needed: so short a prompt costs little";
    case "raced":
      return "let the leader answer first: a longer wait costs less than a second write";
    case "look-back-exceeded":
      return "fewer blocks in one turn, or a marker between them";
    case "changed-bytes":
      return "leave what was sent as it is, and say what is new at the end";
    case "thinking-dropped":
      return "this model does so by rule; one that keeps its thinking does not lose it";
    case "entry-gone":
      return "leave entries to the session that stored them: it removes them itself";
    case "not-written":
      return "check that the endpoint caches prompts and passes cache_control on";
    case "other-address":
      return "go on at the same address: another one reads nothing of its cache";
    case "rehearsal-ended":
      return "none needed: no provider is asked, and nothing is paid";
    case "unexplained":
      return "a provider may drop entries early or route elsewhere; if it is frequent, ask for its diagnostics";
  }
};

/** Why did this request read less than had been written for it? Pure.
 *  Invariant: what it read as expected is explained by what made the expectation small; what it did not read by what the
 *  journal shows of bytes, times and markers, in that order; nothing is blamed that the journal does not show.
 *  Elsewhere: what was expected (ledger.ts), the reasons in words (cause.ts). */

/** What the cache should have held for a request. */
export type Found = {
  /** Tokens that it should have read, and all that had been written for it, whatever became of them. */
  readonly expected: number;
  readonly written: number;
  /** How many of the expected ones no provider has counted. */
  readonly estimated: number;
  /** The longest entry that was ever there, and the longest that still was. */
  readonly best?: Entry;
  readonly live?: Entry;
  /** The request before it had other bytes. */
  readonly changed?: ChangedBytes;
  /** What was stored by name of its bytes. */
  readonly named?: NamedEntry;
  /** Why all that was written before is out of reach. */
  readonly moved?: ShortfallCause;
  /** Of the request before it, which should have been kept and was reported by nobody. */
  readonly unwritten?: Unwritten;
};

/** `isTold`: this provider says what it writes, and said nothing. */
export type Unwritten = { readonly tokens: number; readonly isTold: boolean };

export type Answered = Found & {
  readonly request: SentRequest;
  readonly answer: SentAnswer;
  readonly role?: FamilyRole;
};

/** The least share of an expected read that counts as read: all but noise of what a provider counted, half of an
 *  estimate. */
const MET = 0.995;
const MET_ESTIMATE = 0.5;

export const findCause = (answered: Answered): ShortfallCause => {
  const { expected, estimated, answer, changed, named } = answered;
  const { read } = answer.usage;
  if (named?.lostAt !== undefined && named.lostAt <= answer.at && read < named.tokens)
    return { kind: "entry-gone", name: named.name };
  if (changed && read < expected) return { kind: "changed-bytes", ...changed };
  if (read >= (expected - estimated * MET_ESTIMATE) * MET) return foreseen(answered);
  return (
    expiredOnTheWay(answered) ??
    raced(answered) ??
    outOfReach(answered) ??
    thinkingDropped(answered) ??
    notWritten(answered) ?? { kind: "unexplained" }
  );
};

/** It read what it should have: why was that not more? */
const foreseen = (answered: Answered): ShortfallCause => {
  const { request, answer, written, expected, best, moved } = answered;
  const { goesOnFrom, opens, askedAt } = request;
  if (opens !== undefined && opens !== "start") return { kind: "new-epoch", reason: opens };
  if (!goesOnFrom?.answer) return { kind: "first-request" };
  const { read } = answer.usage;
  if (read > 0 && read >= written * MET) return { kind: "none" };
  const { usage } = goesOnFrom.answer;
  const minimum = factsOf(goesOnFrom)?.minimumPrefix ?? 0;
  if (keptTokens(usage) === 0 && promptTokens(usage) < minimum)
    return { kind: "below-minimum", minimum, tokens: promptTokens(usage) };
  if (moved) return moved;
  const unwritten = read === 0 ? notWritten(answered) : undefined;
  if (unwritten) return unwritten;
  if (written <= expected) return { kind: "none" };
  const ttl = best?.ttl ?? goesOnFrom.markers?.at(-1)?.ttl ?? "5m";
  return { kind: "expired", ttl, unusedMs: Math.max(0, askedAt - (best?.usedAt ?? goesOnFrom.askedAt)) };
};

const notWritten = ({ unwritten }: Answered): ShortfallCause | undefined =>
  unwritten?.isTold ? { kind: "not-written", tokens: unwritten.tokens } : undefined;

/** It was asked while the entry lived, and may have reached the provider after that. */
const expiredOnTheWay = ({ live, answer, request }: Answered): ShortfallCause | undefined =>
  live && answer.at - live.usedAt >= entryLifetimeMs(live.ttl, factsOf(request))
    ? { kind: "expired", ttl: live.ttl, unusedMs: answer.at - live.usedAt }
    : undefined;

const raced = ({ live, role, request }: Answered): ShortfallCause | undefined => {
  const wasThere = live?.writers.some(
    ({ session, answer }) => session === request.session || (answer !== undefined && answer.at < request.askedAt),
  );
  const [leader] = live?.writers ?? [];
  return role?.role === "follower" && leader && !wasThere ? { kind: "raced", leader: leader.agent } : undefined;
};

/** Counted block by block: the dearer reading. */
const outOfReach = ({ live, request }: Answered): ShortfallCause | undefined => {
  const next = live && request.markers?.find(({ segment }) => segment >= live.segment.index);
  const positions = live && next ? next.segment - live.segment.index : 0;
  return positions >= LOOK_BACK ? { kind: "look-back-exceeded", positions } : undefined;
};

const thinkingDropped = ({ request }: Answered): ShortfallCause | undefined => {
  const before = request.goesOnFrom?.point.thinkingPassed ?? 0;
  const drops = factsOf(request)?.earlierThinking === "last-turn";
  return drops && request.point.thinkingPassed > before ? { kind: "thinking-dropped" } : undefined;
};

/** Where was the engine of a family, and when? Pure.
 *  Invariant: the first session's journal tells it for all agents, since they share an engine; where nobody noted an
 *  address, nothing is said to have moved.
 *  Elsewhere: who notes it (../session), what a move costs (find-cause.ts). */

export type Addresses = (at: number) => string | undefined;

export const addressesOf = ([root]: readonly AgentJournal[]): Addresses => {
  const noted = (root?.entries ?? []).flatMap(({ entry, at }) => {
    if (entry.kind === "opened" && entry.address !== undefined) return [{ at, address: entry.address }];
    const isMove = entry.kind === "state" && entry.slot === ADDRESS_SLOT && typeof entry.value === "string";
    return isMove ? [{ at, address: String(entry.value) }] : [];
  });
  return (at) => noted.findLast((one) => one.at <= at)?.address;
};

/** Why nothing of what was written then can be read now, if so. */
export const movedSince = (then: string | undefined, now: string | undefined): ShortfallCause | undefined => {
  if (then === undefined || now === undefined || then === now) return undefined;
  const isRehearsal = [then, now].every((address) => address.startsWith(REHEARSAL_SCHEME));
  return isRehearsal
    ? { kind: "rehearsal-ended" }
    : { kind: "other-address", from: addressWords(then), to: addressWords(now) };
};

const addressWords = (address: string): string =>
  address.startsWith(REHEARSAL_SCHEME) ? "the rehearsal engine" : address;
