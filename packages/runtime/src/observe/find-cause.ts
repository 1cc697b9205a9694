/** Why did this request read less than had been written for it? Pure.
 *  Invariant: what it read as expected is explained by what made the expectation small; what it did not read by what the
 *  journal shows of bytes, times and markers, in that order; nothing is blamed that the journal does not show.
 *  Elsewhere: what was expected (ledger.ts), the reasons in words (cause.ts). */

import { LOOK_BACK, livesMs, promptTokens } from "@prefork/wire";
import type { ShortfallCause } from "./cause.ts";
import { type Entry, factsOf, keptTokens } from "./entries.ts";
import type { FamilyRole } from "./families.ts";
import type { ChangedBytes } from "./line.ts";
import type { SentAnswer, SentRequest } from "./requests.ts";
import type { NamedEntry } from "./stored-entries.ts";

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
  live && answer.at - live.usedAt >= livesMs(live.ttl, factsOf(request))
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
