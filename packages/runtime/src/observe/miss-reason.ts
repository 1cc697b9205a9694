/** Why did a request read less from the cache than was once written for it? The reasons, their texts for people, and
 *  how one is found. Pure.
 *  Invariant: a closed union; each avoidable reason says how to avoid it. If a request read what was expected, the
 *  reason is what made the expectation small. Otherwise the journal's bytes, times and markers are checked, in this
 *  order, and nothing is blamed that the journal does not show.
 *  Elsewhere: what was expected (ledger.ts), printing it (the command line). */

import { entryLifetimeMs, LOOK_BACK, promptTokens, type Ttl } from "@prefork/wire";
import type { EpochReason } from "../events.ts";
import { ADDRESS_SLOT, REHEARSAL_SCHEME } from "../journal/index.ts";
import { type CacheEntry, cachedTokens, factsOf, type NamedEntry } from "./entries.ts";
import type { FamilyRole } from "./families.ts";
import type { SentAnswer, SentRequest } from "./requests.ts";
import type { AgentJournal, ChangedBytes } from "./timeline.ts";

export type MissReason =
  /** It read everything that was there. */
  | { readonly kind: "none" }
  | { readonly kind: "first-request" }
  | { readonly kind: "new-epoch"; readonly reason: EpochReason }
  | { readonly kind: "expired"; readonly ttl: Ttl; readonly unusedMs: number }
  | { readonly kind: "below-minimum"; readonly minimum: number; readonly tokens: number }
  /** Sent before the leader's cache entry could be read. */
  | { readonly kind: "raced"; readonly leader: string }
  | { readonly kind: "look-back-exceeded"; readonly positions: number }
  | { readonly kind: "changed-bytes"; readonly segment: number; readonly path: string }
  /** A new user message made the model drop its earlier thinking, and everything after it. */
  | { readonly kind: "thinking-dropped" }
  /** An entry stored by name was gone, and the request was sent in full. */
  | { readonly kind: "entry-gone"; readonly name: string }
  /** The previous request wrote nothing, although its prompt was long enough to be cached. */
  | { readonly kind: "not-written"; readonly tokens: number }
  /** The prefix was in the cache of another endpoint. */
  | { readonly kind: "other-address"; readonly from: string; readonly to: string }
  /** The rehearsal engine keeps its cache in its process. */
  | { readonly kind: "rehearsal-ended" }
  | { readonly kind: "unexplained" };

/** One or two words, for tables. */
export const missReasonLabel = (cause: MissReason): string => {
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

/** A sentence without its full stop. */
export const describeMissReason = (cause: MissReason): string => {
  switch (cause.kind) {
    case "none":
      return "everything in the cache was read";
    case "first-request":
      return "nothing had been sent before";
    case "new-epoch":
      return `a new context began (${cause.reason})`;
    case "expired":
      return `the cache entry had expired: unused for ${minutes(cause.unusedMs)}, with a lifetime of ${cause.ttl}`;
    case "below-minimum":
      return `${cause.tokens} tokens are too few: this model caches from ${cause.minimum}`;
    case "raced":
      return `sent before the entry of ${cause.leader} could be read`;
    case "look-back-exceeded":
      return `the last entry is ${cause.positions} blocks before the next marker, and only 20 are searched`;
    case "changed-bytes":
      return `the bytes changed at ${cause.path || `segment ${cause.segment}`} (segment ${cause.segment})`;
    case "thinking-dropped":
      return "a new user message made the model drop its earlier thinking";
    case "entry-gone":
      return `${cause.name} was gone, and the request was sent in full`;
    case "not-written":
      return `the previous request wrote none of its ${cause.tokens} tokens to the cache`;
    case "other-address":
      return `the conversation moved from ${cause.from} to ${cause.to}, which has another cache`;
    case "rehearsal-ended":
      return "the rehearsal engine's cache ended with its process";
    case "unexplained":
      return "same bytes, and the cache entry should still have been alive";
  }
};

/** A clock that was set back between two entries must not give a negative pause. */
const minutes = (ms: number): string => `${(Math.max(0, ms) / 60_000).toFixed(1)} min`;

/** How to avoid it; undefined if nothing is wrong. */
export const adviceForMiss = (cause: MissReason): string | undefined => {
  switch (cause.kind) {
    case "none":
    case "first-request":
      return undefined;
    case "new-epoch":
      return cause.reason === "model"
        ? "continue with the same model: another one has its own cache"
        : "compact less often: it pays once the context gets much shorter";
    case "expired":
      return cause.ttl === "5m"
        ? "if pauses are longer than five minutes, a cache lifetime of 1h costs less"
        : "send something before the entry expires, or accept the price of the pause";
    case "below-minimum":
      return "none needed: such a short prompt costs little";
    case "raced":
      return "let the leader answer first: a longer wait costs less than a second write";
    case "look-back-exceeded":
      return "fewer blocks in one turn, or a marker between them";
    case "changed-bytes":
      return "leave what was sent unchanged, and append what is new";
    case "thinking-dropped":
      return "this model always does so; one that keeps its thinking does not lose the cache";
    case "entry-gone":
      return "leave entries to the session that stored them: it removes them itself";
    case "not-written":
      return "check that the endpoint caches prompts and passes cache_control on";
    case "other-address":
      return "continue at the same address: another one has its own cache";
    case "rehearsal-ended":
      return "none needed: no provider is involved, and nothing is billed";
    case "unexplained":
      return "a provider may drop entries early or route elsewhere; if it is frequent, ask for its diagnostics";
  }
};

/** What the journal shows about a request, for finding the reason. */

export type CacheLookup = {
  /** Tokens that it should have read, and all tokens that were ever written for it. */
  readonly expected: number;
  readonly written: number;
  /** How many of the expected tokens no provider has counted. */
  readonly estimated: number;
  /** The longest entry there ever was, and the longest that was still alive. */
  readonly best?: CacheEntry;
  readonly live?: CacheEntry;
  /** Set if the previous request had other bytes. */
  readonly changed?: ChangedBytes;
  /** An entry stored by name that begins with the same bytes. */
  readonly named?: NamedEntry;
  /** Why everything written before is out of reach. */
  readonly moved?: MissReason;
  /** The previous request should have been cached, but no report says that it was. */
  readonly unwritten?: UnwrittenPrefix;
};

/** `isReported`: this provider reports what it writes, and reported nothing. */
export type UnwrittenPrefix = { readonly tokens: number; readonly isReported: boolean };

export type AnsweredRequest = CacheLookup & {
  readonly request: SentRequest;
  readonly answer: SentAnswer;
  readonly role?: FamilyRole;
};

/** The share of an expected read that counts as met: nearly all of what a provider counted, half of an estimate. */
const MET = 0.995;
const MET_ESTIMATE = 0.5;

export const findMissReason = (answered: AnsweredRequest): MissReason => {
  const { expected, estimated, answer, changed, named } = answered;
  const { read } = answer.usage;
  if (named?.lostAt !== undefined && named.lostAt <= answer.at && read < named.tokens)
    return { kind: "entry-gone", name: named.name };
  if (changed && read < expected) return { kind: "changed-bytes", ...changed };
  if (read >= (expected - estimated * MET_ESTIMATE) * MET) return explainExpectedRead(answered);
  return (
    expiredInFlight(answered) ??
    raced(answered) ??
    beyondLookBack(answered) ??
    thinkingDropped(answered) ??
    notWritten(answered) ?? { kind: "unexplained" }
  );
};

/** It read what was expected. Why was not more expected? */
const explainExpectedRead = (answered: AnsweredRequest): MissReason => {
  const { request, answer, written, expected, best, moved } = answered;
  const { previous, startsEpoch, askedAt } = request;
  if (startsEpoch !== undefined && startsEpoch !== "start") return { kind: "new-epoch", reason: startsEpoch };
  if (!previous?.answer) return { kind: "first-request" };
  const { read } = answer.usage;
  if (read > 0 && read >= written * MET) return { kind: "none" };
  const { usage } = previous.answer;
  const minimum = factsOf(previous)?.minimumPrefix ?? 0;
  if (cachedTokens(usage) === 0 && promptTokens(usage) < minimum)
    return { kind: "below-minimum", minimum, tokens: promptTokens(usage) };
  if (moved) return moved;
  const unwritten = read === 0 ? notWritten(answered) : undefined;
  if (unwritten) return unwritten;
  if (written <= expected) return { kind: "none" };
  const ttl = best?.ttl ?? previous.markers?.at(-1)?.ttl ?? "5m";
  return { kind: "expired", ttl, unusedMs: Math.max(0, askedAt - (best?.usedAt ?? previous.askedAt)) };
};

const notWritten = ({ unwritten }: AnsweredRequest): MissReason | undefined =>
  unwritten?.isReported ? { kind: "not-written", tokens: unwritten.tokens } : undefined;

/** Sent while the entry was alive, but possibly received after it had expired. */
const expiredInFlight = ({ live, answer, request }: AnsweredRequest): MissReason | undefined =>
  live && answer.at - live.usedAt >= entryLifetimeMs(live.ttl, factsOf(request))
    ? { kind: "expired", ttl: live.ttl, unusedMs: answer.at - live.usedAt }
    : undefined;

const raced = ({ live, role, request }: AnsweredRequest): MissReason | undefined => {
  const wasThere = live?.writers.some(
    ({ session, answer }) => session === request.session || (answer !== undefined && answer.at < request.askedAt),
  );
  const [leader] = live?.writers ?? [];
  return role?.role === "follower" && leader && !wasThere ? { kind: "raced", leader: leader.agent } : undefined;
};

/** Counted block by block, which is the more expensive interpretation. */
const beyondLookBack = ({ live, request }: AnsweredRequest): MissReason | undefined => {
  const next = live && request.markers?.find(({ segment }) => segment >= live.segment.index);
  const positions = live && next ? next.segment - live.segment.index : 0;
  return positions >= LOOK_BACK ? { kind: "look-back-exceeded", positions } : undefined;
};

const thinkingDropped = ({ request }: AnsweredRequest): MissReason | undefined => {
  const before = request.previous?.point.thinkingPassed ?? 0;
  const drops = factsOf(request)?.earlierThinking === "last-turn";
  return drops && request.point.thinkingPassed > before ? { kind: "thinking-dropped" } : undefined;
};

/** When was the family's engine at which address? The root session's journal knows it for all agents, because they
 *  share an engine. If no address was recorded, nothing counts as moved. */

export type Addresses = (at: number) => string | undefined;

export const addressesOf = ([root]: readonly AgentJournal[]): Addresses => {
  const noted = (root?.entries ?? []).flatMap(({ entry, at }) => {
    if (entry.kind === "opened" && entry.address !== undefined) return [{ at, address: entry.address }];
    const isMove = entry.kind === "state" && entry.slot === ADDRESS_SLOT && typeof entry.value === "string";
    return isMove ? [{ at, address: String(entry.value) }] : [];
  });
  return (at) => noted.findLast((one) => one.at <= at)?.address;
};

/** Why nothing that was written then can be read now, if that is so. */
export const moveReason = (then: string | undefined, now: string | undefined): MissReason | undefined => {
  if (then === undefined || now === undefined || then === now) return undefined;
  const isRehearsal = [then, now].every((address) => address.startsWith(REHEARSAL_SCHEME));
  return isRehearsal
    ? { kind: "rehearsal-ended" }
    : { kind: "other-address", from: describeAddress(then), to: describeAddress(now) };
};

const describeAddress = (address: string): string =>
  address.startsWith(REHEARSAL_SCHEME) ? "the rehearsal engine" : address;
