/** Sends prepared requests to one endpoint and returns their answers as events.
 *  Invariant: every attempt sends the same bytes; a request is never repeated after its answer has shown content.
 *  Elsewhere: making the bytes (../prepare.ts), one attempt (transport.ts), reading its answer (reception.ts), waiting
 *  (retry.ts). */

import { ModelError } from "../errors.ts";
import type { Prepared } from "../prepare.ts";
import type { Credential } from "../protocols/index.ts";
import { emptyFold, foldEvent, type ModelEvent, type ModelResponse } from "../response.ts";
import { bodyLimits, describeArrival, Reception, readEvents } from "./reception.ts";
import { Backoff, defaultRetry, type RetryEdge, type RetryPolicy, realEdge } from "./retry.ts";
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
  readonly edge?: RetryEdge; // default: the real clock and randomness
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
  const backoff = new Backoff({ ...defaultRetry, ...options.retry }, options.edge ?? realEdge);
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
