/** When a failed request is sent again, and after how long.
 *  Invariant: all requests on one key wait behind one back-off, so fifty forks do not knock fifty times on a door that
 *  has just been shut; a provider's `retry-after` is the least wait, never the most.
 *  Elsewhere: which errors can be retried at all (errors.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import { ModelError } from "../errors.ts";

export type RetryPolicy = {
  readonly attempts: number;
  readonly baseMs: number;
  readonly capMs: number;
  /** A provider that asks for a longer wait is not waited for: the request fails and says when to come back. */
  readonly longestWaitMs: number;
};

export const defaultRetry: RetryPolicy = { attempts: 6, baseMs: 500, capMs: 30_000, longestWaitMs: 300_000 };

/** Time and chance, given from outside so that tests own them. */
export type RetryEdge = {
  readonly now: () => number;
  /** Milliseconds since 1970, to say when to come back. Default: the system's clock. */
  readonly date?: () => number;
  readonly random: () => number;
  readonly wait: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
};

/** A longer timer would fire at once; whoever waits asks again when it is up. */
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
   *  for holds for all even when this request gives up; one that is too long holds for nobody, since who comes back
   *  may have changed the plan meanwhile. */
  failed(error: ModelError, attempt: number): boolean {
    const asked = error.retryAfterMs ?? 0;
    const again = error.retryable && attempt < this.#policy.attempts && asked <= this.#policy.longestWaitMs;
    if (!again && (error.retryAfterMs === undefined || asked > this.#policy.longestWaitMs)) return false;
    const busy = this.#remaining() > 0;
    // A burst of failures of requests that were already under way counts once.
    if (!busy) this.#failures += 1;
    const grown = Math.min(this.#policy.capMs, this.#policy.baseMs * 2 ** (Math.max(this.#failures, 1) - 1));
    const jittered = grown * (0.75 + this.#edge.random() / 4);
    const wait = Math.max(error.retryAfterMs ?? 0, busy ? 0 : jittered);
    this.#openAt = Math.max(this.#openAt, this.#edge.now() + wait);
    return again;
  }

  /** How long the next request will wait, in milliseconds. */
  get waitMs(): number {
    return Math.max(0, Math.round(this.#remaining()));
  }

  /** The error as whoever asked should see it: with the time to come back, where that is too far away to wait for. */
  explained(error: ModelError): ModelError {
    const { message, reason, requestId, afterContent, retryAfterMs: asked = 0 } = error;
    const { longestWaitMs } = this.#policy;
    if (asked <= longestWaitMs || !isWaitable(error)) return error;
    const until = new Date((this.#edge.date ?? Date.now)() + asked).toISOString().slice(0, 16).replace("T", " ");
    const limit = formatWait(longestWaitMs);
    const words = `the provider asks to wait ${formatWait(asked)}, longer than the limit of ${limit}. Try again after ${until} UTC.`;
    const context = { afterContent, final: true, cause: error, ...(requestId === undefined ? {} : { requestId }) };
    return new ModelError(`${message} (${words})`, reason, context);
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
  const told = parts.filter(([amount]) => amount > 0).slice(0, 2);
  return told.length === 0 ? "0 s" : told.map(([amount, unit]) => `${amount} ${unit}`).join(" ");
};
