/** When a failed request is retried, and after how long.
 *  Invariant: all requests on one key share one back-off, so that fifty forks do not send fifty retries to an endpoint
 *  that has just refused one; a provider's `retry-after` is the shortest wait, never the longest.
 *  Elsewhere: which errors can be retried at all (../errors.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import { ModelError } from "../errors.ts";

export type RetryPolicy = {
  readonly attempts: number;
  readonly baseMs: number;
  readonly capMs: number;
  /** If a provider asks for a longer wait, the request fails with a message that says when to come back. */
  readonly longestWaitMs: number;
};

export const defaultRetry: RetryPolicy = { attempts: 6, baseMs: 500, capMs: 30_000, longestWaitMs: 300_000 };

/** Time and randomness, passed in so that tests control them. */
export type RetryEdge = {
  readonly now: () => number;
  /** Milliseconds since 1970, for the message that says when to come back. Default: the system's clock. */
  readonly date?: () => number;
  readonly random: () => number;
  readonly wait: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
};

/** A longer timer would fire at once. After this wait the caller waits again for the rest. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const realEdge: RetryEdge = {
  now: () => performance.now(),
  date: () => Date.now(),
  random: () => Math.random(),
  wait: async (ms, signal) => {
    try {
      await sleep(Math.min(ms, LONGEST_TIMER_MS), undefined, signal ? { signal } : {});
    } catch (cause) {
      throw new ModelError("the request was aborted", { kind: "aborted" }, { cause });
    }
  },
};

/** The back-off that all requests on one key share. */
export class Backoff {
  readonly #policy: RetryPolicy;
  readonly #edge: RetryEdge;
  #openAt = 0;
  #failures = 0;

  constructor(policy: RetryPolicy = defaultRetry, edge: RetryEdge = realEdge) {
    this.#policy = policy;
    this.#edge = edge;
  }

  /** Waits until requests may be sent. Those that waited for the same failure do not all continue in the same
   *  instant. */
  async waitUntilOpen(signal: AbortSignal | undefined): Promise<void> {
    for (let wait = this.#remaining(); wait > 0; wait = this.#remaining()) {
      await this.#edge.wait(wait + this.#edge.random() * Math.min(wait / 4, 1_000), signal);
    }
  }

  /** The key works, so later failures start from the shortest wait again. */
  succeeded(): void {
    this.#failures = 0;
  }

  /** True if another attempt is worthwhile; all requests then wait for a while. A wait that the provider asked for
   *  applies to all even if this request gives up. A wait that is too long applies to nobody, because the user may
   *  change the plan before coming back. */
  failed(error: ModelError, attempt: number): boolean {
    const askedMs = error.retryAfterMs ?? 0;
    const mayRetry = error.retryable && attempt < this.#policy.attempts && askedMs <= this.#policy.longestWaitMs;
    if (!mayRetry && (error.retryAfterMs === undefined || askedMs > this.#policy.longestWaitMs)) return false;
    const busy = this.#remaining() > 0;
    // A burst of failures of requests that were already in flight counts once.
    if (!busy) this.#failures += 1;
    const grown = Math.min(this.#policy.capMs, this.#policy.baseMs * 2 ** (Math.max(this.#failures, 1) - 1));
    const jittered = grown * (0.75 + this.#edge.random() / 4);
    const wait = Math.max(error.retryAfterMs ?? 0, busy ? 0 : jittered);
    this.#openAt = Math.max(this.#openAt, this.#edge.now() + wait);
    return mayRetry;
  }

  /** How long the next request will wait, in milliseconds. */
  get waitMs(): number {
    return Math.max(0, Math.round(this.#remaining()));
  }

  /** The error as the caller should see it: with the time to come back, if that is too far away to wait for. */
  withRetryTime(error: ModelError): ModelError {
    const { message, reason, requestId, afterContent, retryAfterMs: askedMs = 0 } = error;
    const { longestWaitMs } = this.#policy;
    if (askedMs <= longestWaitMs || !isWaitable(error)) return error;
    const until = new Date((this.#edge.date ?? Date.now)() + askedMs).toISOString().slice(0, 16).replace("T", " ");
    const limit = formatWait(longestWaitMs);
    const advice = `the provider asks to wait ${formatWait(askedMs)}, longer than the limit of ${limit}. Try again after ${until} UTC.`;
    const context = { afterContent, final: true, cause: error, ...(requestId === undefined ? {} : { requestId }) };
    return new ModelError(`${message} (${advice})`, reason, context);
  }

  #remaining(): number {
    return this.#openAt - this.#edge.now();
  }
}

const isWaitable = ({ reason: { kind } }: ModelError): boolean =>
  kind === "rate-limited" || kind === "overloaded" || kind === "server";

/** 95,000 → "1 min 35 s". */
export const formatWait = (ms: number): string => {
  const seconds = Math.ceil(ms / 1_000);
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3_600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const shown = parts.filter(([amount]) => amount > 0).slice(0, 2);
  return shown.length === 0 ? "0 s" : shown.map(([amount, unit]) => `${amount} ${unit}`).join(" ");
};
