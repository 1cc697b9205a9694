/** Sends prepared requests to one endpoint and returns their answers as events.
 *  Invariant: every attempt sends the same bytes; a request is never repeated after its answer has shown content.
 *  Elsewhere: making the bytes (../prepare.ts), one attempt (transport.ts), reading its answer (reception.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import { ModelError } from "../errors.ts";
import type { Prepared } from "../prepare.ts";
import type { Credential } from "../protocols/index.ts";
import { emptyFold, foldEvent, type ModelEvent, type ModelResponse } from "../response.ts";
import { bodyLimits, describeArrival, Reception, readEvents } from "./reception.ts";
import {
  type Answer,
  createTransport,
  defaultTimeouts,
  parseBase,
  type Target,
  type Timeouts,
  targetUnder,
} from "./transport.ts";

export type ClientOptions = {
  readonly baseUrl: string;
  readonly credential?: Credential;
  readonly headers?: Readonly<Record<string, string>>; // sent as they are, in addition to the protocol's
  readonly timeouts?: Partial<Timeouts>;
  readonly retry?: Partial<RetryPolicy>;
  readonly timing?: RetryTiming; // default: the real clock and randomness
  /** Called for every failed attempt that will be repeated, with the wait before the next one. */
  readonly onRetry?: (error: ModelError, attempt: number, waitMs: number) => void;
};

export type Client = {
  /** Events as they arrive, then the whole answer. A second `response_started` means that the answer starts over,
   *  because the first attempt failed before it had any content. */
  readonly stream: (prepared: Prepared, signal?: AbortSignal) => AsyncGenerator<ModelEvent, ModelResponse>;
  /** The whole answer. */
  readonly send: (prepared: Prepared, signal?: AbortSignal, sending?: SendOptions) => Promise<ModelResponse>;
  readonly close: () => void;
};

export type SendOptions = {
  /** Called for each event, without a pause between events that arrived together. */
  readonly onEvent?: (event: ModelEvent) => void;
  /** May the request be repeated? Asked if the provider had begun to answer, and therefore bills it. Default: yes. */
  readonly mayRetry?: (error: ModelError) => boolean;
  /** Called for every failed attempt of this request that will be repeated, after the client's own `onRetry`. */
  readonly onRetry?: NonNullable<ClientOptions["onRetry"]>;
  /** The prompt's size, for a provider that does not report it. Default: estimated from its bytes. */
  readonly promptTokens?: number;
};

/** Events that arrived together. `check` throws if the request was ended in the meantime, so that nobody sees the
 *  rest. */
type Arrival = { readonly events: readonly ModelEvent[]; readonly check: () => void };

export const createClient = (options: ClientOptions): Client => {
  const transport = createTransport();
  const backoff = new Backoff({ ...defaultRetry, ...options.retry }, options.timing ?? systemTiming);
  const timeouts = { ...defaultTimeouts, ...options.timeouts };
  const base = parseBase(options.baseUrl);
  const targets = new Map<string, Target>();
  const targetFor = (path: string): Target => {
    const target = targets.get(path) ?? targetUnder(base, path);
    targets.set(path, target);
    return target;
  };

  const attempt = (prepared: Prepared, signal: AbortSignal | undefined): Promise<Answer> =>
    transport.send({
      target: targetFor(pathOf(prepared)),
      headers: { ...prepared.protocol.headers(options.credential, prepared.prefix.betas), ...options.headers },
      chunks: prepared.chunks,
      byteLength: prepared.byteLength,
      timeouts,
      limits: bodyLimits(prepared),
      signal,
    });

  async function* arrivals(
    prepared: Prepared,
    signal?: AbortSignal,
    { mayRetry, onRetry, promptTokens }: SendOptions = {},
  ): AsyncGenerator<Arrival, ModelResponse> {
    for (let count = 1; ; count += 1) {
      await backoff.waitUntilOpen(signal);
      let folded = emptyFold;
      let [begun, content] = [false, false];
      let answer: Answer | undefined;
      const reception = new Reception(prepared, promptTokens);
      try {
        answer = await attempt(prepared, signal);
        for await (const arrived of await readEvents(prepared, answer, options.credential)) {
          backoff.succeeded();
          begun = true;
          const events = reception.take(arrived);
          folded = events.reduce(foldEvent, folded);
          content ||= events.some(isContent);
          yield { events, check: answer.check };
          reception.check();
        }
        return folded.response;
      } catch (caught) {
        const error = describeArrival(markAfterContent(caught, content), answer, options.credential);
        if (!backoff.failed(error, count)) throw backoff.withRetryTime(error);
        if (begun && mayRetry?.(error) === false) throw error;
        for (const report of [options.onRetry, onRetry]) report?.(error, count, backoff.waitMs);
      }
    }
  }

  async function* stream(prepared: Prepared, signal?: AbortSignal): AsyncGenerator<ModelEvent, ModelResponse> {
    const arriving = arrivals(prepared, signal);
    try {
      for (;;) {
        const next = await arriving.next();
        if (next.done) return next.value;
        const { events, check } = next.value;
        for (const event of events) {
          check();
          yield event;
        }
      }
    } finally {
      await arriving.return(emptyFold.response); // left early: the connection is closed
    }
  }

  const send = async (prepared: Prepared, signal?: AbortSignal, sending: SendOptions = {}): Promise<ModelResponse> => {
    const { onEvent } = sending;
    const arriving = arrivals(prepared, signal, sending);
    try {
      for (;;) {
        const next = await arriving.next();
        if (next.done) return next.value;
        const { events, check } = next.value;
        for (const event of events) {
          check();
          onEvent?.(event);
        }
      }
    } finally {
      await arriving.return(emptyFold.response);
    }
  };

  return { stream, send, close: transport.close };
};

const pathOf = ({ protocol: { path }, prefix, stream }: Prepared): string =>
  typeof path === "string" ? path : path(prefix.model, stream);

const isContent = ({ type }: ModelEvent): boolean => type !== "response_started" && type !== "response_stopped";

/** Marks our own errors that happened after content. Anything else is a bug and is thrown unchanged. */
const markAfterContent = (caught: unknown, afterContent: boolean): ModelError => {
  if (!(caught instanceof ModelError)) throw caught;
  if (!afterContent) return caught;
  const { message, reason, requestId, isFinal: final } = caught;
  return new ModelError(message, reason, {
    afterContent,
    final,
    cause: caught,
    ...(requestId === undefined ? {} : { requestId }),
  });
};

/** When a failed request is retried, and after how long.
 *  Invariant: all requests on one key share one back-off, so that fifty forks do not send fifty retries to an endpoint
 *  that has just refused one; a provider's `retry-after` is a lower bound on the wait.
 *  Elsewhere: which errors can be retried at all (../errors.ts). */

export type RetryPolicy = {
  readonly attempts: number;
  readonly baseMs: number;
  readonly capMs: number;
  /** If a provider asks for a longer wait, the request fails with a message that says when to come back. */
  readonly longestWaitMs: number;
};

export const defaultRetry: RetryPolicy = { attempts: 6, baseMs: 500, capMs: 30_000, longestWaitMs: 300_000 };

/** Time and randomness, passed in so that tests control them. */
export type RetryTiming = {
  readonly now: () => number;
  /** Milliseconds since 1970, for the message that says when to come back. Default: the system's clock. */
  readonly date?: () => number;
  readonly random: () => number;
  readonly wait: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
};

/** A longer timer would fire at once. After this wait the caller waits again for the rest. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemTiming: RetryTiming = {
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
  readonly #timing: RetryTiming;
  #openAt = 0;
  #failures = 0;

  constructor(policy: RetryPolicy = defaultRetry, timing: RetryTiming = systemTiming) {
    this.#policy = policy;
    this.#timing = timing;
  }

  /** Waits until requests may be sent. Those that waited for the same failure do not all continue in the same
   *  instant. */
  async waitUntilOpen(signal: AbortSignal | undefined): Promise<void> {
    for (let wait = this.#remaining(); wait > 0; wait = this.#remaining()) {
      await this.#timing.wait(wait + this.#timing.random() * Math.min(wait / 4, 1_000), signal);
    }
  }

  /** The key works, so later failures start from the shortest wait again. */
  succeeded(): void {
    this.#failures = 0;
  }

  /** True if another attempt is worthwhile; all requests then wait for a while. A wait that the provider asked for
   *  applies to all even if this request gives up. A wait that is too long applies to no other request, because the
   *  user may change their subscription plan before coming back. */
  failed(error: ModelError, attempt: number): boolean {
    const askedMs = error.retryAfterMs ?? 0;
    const mayRetry = error.retryable && attempt < this.#policy.attempts && askedMs <= this.#policy.longestWaitMs;
    if (!mayRetry && (error.retryAfterMs === undefined || askedMs > this.#policy.longestWaitMs)) return false;
    const busy = this.#remaining() > 0;
    // A burst of failures of requests that were already in flight counts once.
    if (!busy) this.#failures += 1;
    const grown = Math.min(this.#policy.capMs, this.#policy.baseMs * 2 ** (Math.max(this.#failures, 1) - 1));
    const jittered = grown * (0.75 + this.#timing.random() / 4);
    const wait = Math.max(error.retryAfterMs ?? 0, busy ? 0 : jittered);
    this.#openAt = Math.max(this.#openAt, this.#timing.now() + wait);
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
    const until = new Date((this.#timing.date ?? Date.now)() + askedMs).toISOString().slice(0, 16).replace("T", " ");
    const limit = formatWait(longestWaitMs);
    const advice = `the provider asks to wait ${formatWait(askedMs)}, longer than the limit of ${limit}. Try again after ${until} UTC.`;
    const context = { afterContent, final: true, cause: error, ...(requestId === undefined ? {} : { requestId }) };
    return new ModelError(`${message} (${advice})`, reason, context);
  }

  #remaining(): number {
    return this.#openAt - this.#timing.now();
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
