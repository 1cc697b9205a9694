/** Sends prepared requests to one endpoint and gives their answers as events.
 *  Invariant: every attempt sends the same bytes; an answer that already showed content is never asked for again.
 *  Elsewhere: making the bytes (prepare.ts), one attempt (transport.ts), waiting (retry.ts). */

import { InputError, ModelError } from "./errors.ts";
import { foldEvent, type ModelEvent, type ModelResponse, nothingFolded } from "./events.ts";
import type { Prepared } from "./prepare.ts";
import type { Credential, Protocol } from "./protocols/index.ts";
import { Backoff, defaultRetry, type RetryEdge, type RetryPolicy, realEdge } from "./retry.ts";
import { type Answer, createTransport, defaultTimeouts, type Timeouts } from "./transport.ts";

export type ClientOptions = {
  readonly baseUrl: string;
  readonly credential?: Credential;
  readonly headers?: Readonly<Record<string, string>>; // sent as they are, on top of the protocol's
  readonly timeouts?: Partial<Timeouts>;
  readonly retry?: Partial<RetryPolicy>;
  readonly edge?: RetryEdge; // default: the real clock and chance
  /** Told of every failed attempt that will be repeated. */
  readonly onRetry?: (error: ModelError, attempt: number) => void;
};

export type Client = {
  /** Events as they arrive, then the whole answer. A second `response_started` means that the answer begins anew: the
   *  first attempt failed before it had said anything. */
  readonly stream: (prepared: Prepared, signal?: AbortSignal) => AsyncGenerator<ModelEvent, ModelResponse>;
  readonly send: (prepared: Prepared, signal?: AbortSignal) => Promise<ModelResponse>;
  readonly close: () => void;
};

export const createClient = (options: ClientOptions): Client => {
  const transport = createTransport();
  const backoff = new Backoff({ ...defaultRetry, ...options.retry }, options.edge ?? realEdge);
  const timeouts = { ...defaultTimeouts, ...options.timeouts };
  const base = parseBase(options.baseUrl);

  const attempt = (prepared: Prepared, signal: AbortSignal | undefined): Promise<Answer> =>
    transport.send({
      url: under(base, prepared.protocol.path),
      headers: { ...prepared.protocol.headers(options.credential, prepared.prefix.betas), ...options.headers },
      chunks: prepared.chunks,
      byteLength: prepared.byteLength,
      timeouts,
      signal,
    });

  async function* stream(prepared: Prepared, signal?: AbortSignal): AsyncGenerator<ModelEvent, ModelResponse> {
    for (let count = 1; ; count += 1) {
      await backoff.pass(signal);
      let folded = nothingFolded;
      let content = false;
      try {
        for await (const event of readEvents(prepared, await attempt(prepared, signal), options.credential)) {
          backoff.succeeded();
          folded = foldEvent(folded, event);
          content ||= isContent(event);
          yield event;
        }
        return folded.response;
      } catch (caught) {
        const error = placed(caught, content);
        if (!backoff.failed(error, count)) throw error;
        options.onRetry?.(error, count);
      }
    }
  }

  const send = async (prepared: Prepared, signal?: AbortSignal): Promise<ModelResponse> => {
    const events = stream(prepared, signal);
    for (;;) {
      const next = await events.next();
      if (next.done) return next.value;
    }
  };

  return { stream, send, close: transport.close };
};

const parseBase = (baseUrl: string): URL => {
  const url = URL.parse(baseUrl);
  // The text is not repeated: people put keys into it by mistake.
  if (!url || !/^https?:$/.test(url.protocol)) throw new InputError("the base URL must start with http:// or https://");
  if (url.username !== "" || url.password !== "")
    throw new InputError("the base URL must not hold a user or a password");
  return url;
};

/** Set as a path, never resolved as a reference: `https://host//` must not make a host of what follows it. */
const under = (base: URL, path: string): URL => {
  const url = new URL(base);
  url.pathname = base.pathname.replace(/\/+$/, "") + path;
  return url;
};

const readEvents = async function* (
  { protocol }: Prepared,
  answer: Answer,
  credential: Credential | undefined,
): AsyncGenerator<ModelEvent, void> {
  const { status, headers } = answer;
  if (status !== 200) throw protocol.failure({ status, headers, body: without(credential, await answer.text()) });
  if (headers["content-type"]?.includes("text/event-stream")) yield* readStream(protocol, answer);
  else yield* protocol.whole(await answer.text());
};

/** A provider that repeats the key in its complaint must not put it into ours. */
const without = (credential: Credential | undefined, text: string): string =>
  credential && credential.value !== "" ? text.replaceAll(credential.value, "[key]") : text;

async function* readStream(protocol: Protocol, answer: Answer): AsyncGenerator<ModelEvent, void> {
  const { status, headers } = answer;
  let state = protocol.initial;
  try {
    for await (const frame of answer.frames()) {
      // What follows a complete answer is read only so that the connection can be used again.
      if (state.stopped) continue;
      if (frame.event === "error") throw protocol.failure({ status, headers, body: frame.data });
      const [next, events] = protocol.step(state, frame);
      state = next;
      if (state.stopped) answer.finishing();
      yield* events;
    }
  } catch (error) {
    if (!state.stopped) throw error;
  }
  if (state.stopped) return;
  throw new ModelError("the stream ended before the answer did", { kind: "connection" });
}

const isContent = ({ type }: ModelEvent): boolean => type !== "response_started" && type !== "response_stopped";

/** Errors of ours with the place they happened in; anything else is a defect and passes as it is. */
const placed = (caught: unknown, afterContent: boolean): ModelError => {
  if (!(caught instanceof ModelError)) throw caught;
  if (!afterContent) return caught;
  const { message, reason, requestId } = caught;
  return new ModelError(message, reason, {
    afterContent,
    cause: caught,
    ...(requestId === undefined ? {} : { requestId }),
  });
};
