/** Did a fork's first request read what it could from the cache, and who warns if it did not? Pure but for the alarm's
 *  own count.
 *  The expectation comes from what the parent's provider reported, not from a guess. A shortfall has a cause, and only
 *  one that costs real money is a warning. A family warns once: the first member that misses warns for all others and
 *  says how many they are.
 *  Elsewhere: what could be read (family.ts), the same for a whole session afterwards (../observe). */

import { type FrozenPrefix, promptTokens, type Usage } from "@prefork/wire";
import type { EventBody } from "../events.ts";

export type Expectation = {
  readonly tokens: number;
  /** How many of them no provider has counted: a shortfall within these is not reported. */
  readonly estimated: number;
  /** Why little or nothing is expected, if that is known beforehand: a cold leader, a prefix below the minimum. */
  readonly knownMissReason?: string;
  /** Why the provider may have read all of it without reporting so, if it may. */
  readonly unreported?: string;
  /** The shared entry may have expired for a member that is sent later than this. */
  readonly until?: number;
  /** Until then the provider is still building the parent's entry. Default: it is there at once. */
  readonly settledAt?: number;
  /** What the parent had sent: the child's bytes must begin with it. */
  readonly parent: FrozenPrefix;
};

export type CacheMiss = {
  readonly expected: number;
  readonly read: number;
  readonly prompt: number;
  readonly cause: string;
  /** Where the bytes first differ, if they do. */
  readonly diverged?: string;
  readonly isWarning: boolean;
};

const ALL_BUT_NOISE = 0.995;
const HALF = 0.5;

export type Verifying = {
  readonly expectation: Expectation;
  /** Where its bytes differ from what the parent had sent, if they do (`divergenceOf`). */
  readonly diverged?: string | undefined;
  readonly usage: Usage;
  /** When it was sent. */
  readonly askedAt?: number | undefined;
  /** The provider's own account. */
  readonly diagnosed?: string | undefined;
};

/** JSON path of the first byte of a child that differs from its parent's; undefined: none does. */
export const findDivergence = (parent: FrozenPrefix, child: FrozenPrefix): string | undefined =>
  child.startsWith(parent) ? undefined : parent.firstDivergence(child)?.path;

/** Undefined where it read all that it could. */
export const findCacheMiss = ({
  expectation,
  diverged,
  usage,
  askedAt = 0,
  diagnosed,
}: Verifying): CacheMiss | undefined => {
  const { tokens: expected, estimated, knownMissReason, unreported, until = Number.POSITIVE_INFINITY } = expectation;
  const { settledAt = 0 } = expectation;
  const prompt = promptTokens(usage);
  const { read } = usage;
  const isShort = read < (expected - estimated) * ALL_BUT_NOISE;
  const isLow = read < prompt * HALF;
  if (!isShort && !(isLow && knownMissReason !== undefined)) return undefined;
  const isUnreported = read === 0 && unreported !== undefined && diverged === undefined;
  const isLate = askedAt > until && diverged === undefined;
  const isEarly = askedAt < settledAt && diverged === undefined;
  const why = { diverged, diagnosed, isLate, isEarly, unreported: isUnreported ? unreported : undefined };
  const cause = isShort || isUnreported ? causeOf(why) : (knownMissReason ?? "");
  const isWarning = isShort && isLow && expected >= prompt * HALF && !isUnreported && !isLate && !isEarly;
  return { expected, read, prompt, cause, isWarning, ...(diverged === undefined ? {} : { diverged }) };
};

type Why = {
  readonly diverged: string | undefined;
  readonly diagnosed: string | undefined;
  readonly unreported: string | undefined;
  readonly isLate: boolean;
  readonly isEarly: boolean;
};

const causeOf = ({ diverged, diagnosed, unreported, isLate, isEarly }: Why): string => {
  if (unreported !== undefined) return `cache reads were not reported: ${unreported}`;
  if (diverged !== undefined) return `the bytes differ from the parent's at ${diverged}`;
  if (isLate) return "it waited for a place longer than the entry lives, and wrote it again";
  if (isEarly) return "it was sent while the provider was still building the parent's entry, which takes seconds there";
  if (diagnosed !== undefined) return `the provider says: ${diagnosed}`;
  return "the bytes are the parent's; the provider no longer had the entry, or not yet";
};

/** Warns once for a family. The warning comes when no member waits for its first answer any more; events that are no
 *  warnings pass unchanged. */

type Missed = Extract<EventBody, { readonly type: "fork_cache_missed" }>;

type PendingAlarm = { readonly event: Missed; readonly emit: (event: EventBody) => void };

export class FamilyAlarm {
  /** Members whose first answer nobody has looked at yet. */
  readonly #waiting: Set<string>;
  #pendingAlarm: PendingAlarm | undefined;
  #siblings = 0;
  #isRaised = false;

  constructor(members: readonly string[]) {
    this.#waiting = new Set(members);
  }

  /** A member's first answer was looked at. */
  memberVerified(taskId: string, miss: CacheMiss | undefined, emit: (event: EventBody) => void): void {
    if (miss) this.#take({ type: "fork_cache_missed", taskId, ...miss }, emit);
    this.memberLeft(taskId);
  }

  /** A member has ended, or never began: nobody waits for its answer. */
  memberLeft(taskId: string): void {
    this.#waiting.delete(taskId);
    if (this.#waiting.size > 0 || !this.#pendingAlarm) return;
    const { event, emit } = this.#pendingAlarm;
    this.#pendingAlarm = undefined;
    this.#isRaised = true;
    emit(this.#siblings === 0 ? event : { ...event, siblings: this.#siblings });
  }

  #take(event: Missed, emit: (event: EventBody) => void): void {
    if (!event.isWarning) emit(event);
    else if (!this.#pendingAlarm && !this.#isRaised) this.#pendingAlarm = { event, emit };
    else {
      this.#siblings += 1;
      emit({ ...event, isWarning: false });
    }
  }
}
