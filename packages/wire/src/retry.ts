/** When a failed request is sent again, and after how long.
 *  Invariant: all requests on one key wait behind one back-off, so fifty forks do not knock fifty times on a door that
 *  has just been shut; a provider's `retry-after` is the least wait, never the most.
 *  Elsewhere: which errors can be retried at all (errors.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import { ModelError } from "./errors.ts";

export type RetryPolicy = {
  readonly attempts: number;
  readonly baseMs: number;
  readonly capMs: number;
};

export const defaultRetry: RetryPolicy = { attempts: 6, baseMs: 500, capMs: 30_000 };

/** Time and chance, given from outside so that tests own them. */
export type RetryEdge = {
  readonly now: () => number;
  readonly random: () => number;
  readonly wait: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
};

/** A longer timer would fire at once; whoever waits asks again when it is up. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const realEdge: RetryEdge = {
  now: () => performance.now(),
  random: () => Math.random(),
  wait: async (ms, signal) => {
    try {
      await sleep(Math.min(ms, LONGEST_TIMER_MS), undefined, signal ? { signal } : {});
    } catch (cause) {
      throw new ModelError("the request was aborted", { kind: "aborted" }, { cause });
    }
  },
};

/** One key's shared back-off. */
export class Backoff {
  readonly #policy: RetryPolicy;
  readonly #edge: RetryEdge;
  #openAt = 0;
  #failures = 0;

  constructor(policy: RetryPolicy = defaultRetry, edge: RetryEdge = realEdge) {
    this.#policy = policy;
    this.#edge = edge;
  }

  /** Wait until the door is open. Those who waited behind the same failure do not all go in the same instant. */
  async pass(signal: AbortSignal | undefined): Promise<void> {
    for (let wait = this.#remaining(); wait > 0; wait = this.#remaining()) {
      await this.#edge.wait(wait + this.#edge.random() * Math.min(wait / 4, 1_000), signal);
    }
  }

  /** The key works: later failures start from the shortest wait again. */
  succeeded(): void {
    this.#failures = 0;
  }

  /** True when it is worth another attempt; the door is then shut for all, for a while. A wait that the provider asked
   *  for holds for all even when this request gives up. */
  failed(error: ModelError, attempt: number): boolean {
    const again = error.retryable && attempt < this.#policy.attempts;
    if (!again && error.retryAfterMs === undefined) return false;
    const busy = this.#remaining() > 0;
    // A burst of failures of requests that were already under way counts once.
    if (!busy) this.#failures += 1;
    const grown = Math.min(this.#policy.capMs, this.#policy.baseMs * 2 ** (Math.max(this.#failures, 1) - 1));
    const jittered = grown * (0.75 + this.#edge.random() / 4);
    const wait = Math.max(error.retryAfterMs ?? 0, busy ? 0 : jittered);
    this.#openAt = Math.max(this.#openAt, this.#edge.now() + wait);
    return again;
  }

  #remaining(): number {
    return this.#openAt - this.#edge.now();
  }
}
