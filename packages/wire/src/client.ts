/** Sends prepared requests to one endpoint and gives their answers as events.
 *  Invariant: every attempt sends the same bytes; an answer that already showed content is never asked for again.
 *  Elsewhere: making the bytes (prepare.ts), one attempt (transport.ts), waiting (retry.ts). */

import { parseBase, targetUnder, without } from "./endpoint.ts";
import { ModelError } from "./errors.ts";
import { type Frame, foldEvent, type ModelEvent, type ModelResponse, nothingFolded } from "./events.ts";
import type { Prepared } from "./prepare.ts";
import type { Credential, ParserState, Protocol } from "./protocols/index.ts";
import { Backoff, defaultRetry, type RetryEdge, type RetryPolicy, realEdge } from "./retry.ts";
import { type Answer, createTransport, defaultTimeouts, type Target, type Timeouts } from "./transport.ts";

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
  /** The whole answer. */
  readonly send: (prepared: Prepared, signal?: AbortSignal, hearing?: Hearing) => Promise<ModelResponse>;
  readonly close: () => void;
};

export type Hearing = {
  /** Hears the events, those that arrived together without a pause between them. */
  readonly told?: (event: ModelEvent) => void;
  /** May it be asked again? Asked where the provider had begun to answer, and so bills it. Default: yes. */
  readonly again?: (error: ModelError) => boolean;
};

/** Events that arrived together. `check` throws when the request was ended meanwhile: nobody is told more of it then. */
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
      signal,
    });

  async function* arrivals(
    prepared: Prepared,
    signal?: AbortSignal,
    again?: Hearing["again"],
  ): AsyncGenerator<Arrival, ModelResponse> {
    for (let count = 1; ; count += 1) {
      await backoff.pass(signal);
      let folded = nothingFolded;
      let [begun, content] = [false, false];
      try {
        const answer = await attempt(prepared, signal);
        for await (const events of await readEvents(prepared, answer, options.credential)) {
          backoff.succeeded();
          begun = true;
          folded = events.reduce(foldEvent, folded);
          content ||= events.some(isContent);
          yield { events, check: answer.check };
        }
        return folded.response;
      } catch (caught) {
        const error = placed(caught, content);
        if (!backoff.failed(error, count)) throw error;
        if (begun && again?.(error) === false) throw error;
        options.onRetry?.(error, count);
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
      await arriving.return(nothingFolded.response); // left early: the connection is closed
    }
  }

  const send = async (prepared: Prepared, signal?: AbortSignal, hearing: Hearing = {}): Promise<ModelResponse> => {
    const { told, again } = hearing;
    const arriving = arrivals(prepared, signal, again);
    try {
      for (;;) {
        const next = await arriving.next();
        if (next.done) return next.value;
        const { events, check } = next.value;
        for (const event of events) {
          check();
          told?.(event);
        }
      }
    } finally {
      await arriving.return(nothingFolded.response);
    }
  };

  return { stream, send, close: transport.close };
};

const pathOf = ({ protocol: { path }, prefix, stream }: Prepared): string =>
  typeof path === "string" ? path : path(prefix.model, stream);

/** Those events together that arrived together: a step between two of them would cost more than reading them. */
const readEvents = async (
  { protocol }: Prepared,
  answer: Answer,
  credential: Credential | undefined,
): Promise<AsyncIterable<readonly ModelEvent[]> | Iterable<readonly ModelEvent[]>> => {
  const { status, headers } = answer;
  if (status !== 200)
    throw protocol.failure({ status, headers: headers(), body: without(credential, await answer.text()) });
  return answer.isEventStream ? readStream(protocol, answer) : [protocol.whole(await answer.text())];
};

async function* readStream(protocol: Protocol, answer: Answer): AsyncGenerator<readonly ModelEvent[], void> {
  let state = protocol.initial;
  try {
    for await (const frames of answer.frames()) {
      // What follows a complete answer is read only so that the connection can be used again.
      if (state.stopped) continue;
      const { events, failure, ...read } = readFrames(protocol, { state, frames, answer });
      state = read.state;
      if (events.length > 0) yield events;
      if (failure) throw failure.error;
      if (state.stopped) answer.finishing();
    }
  } catch (error) {
    if (!state.stopped) throw error;
  }
  if (state.stopped) return;
  if (protocol.end) {
    const [, events] = protocol.end(state);
    return yield events;
  }
  throw new ModelError("the stream ended before the answer did", { kind: "connection" });
}

type Reading = { readonly state: ParserState; readonly frames: readonly Frame[]; readonly answer: Answer };

type FramesRead = {
  readonly state: ParserState;
  readonly events: readonly ModelEvent[];
  /** Why it stopped before the last frame; what came before it has been said all the same. */
  readonly failure?: { readonly error: unknown };
};

const readFrames = (protocol: Protocol, { state: before, frames, answer }: Reading): FramesRead => {
  const { status, headers } = answer;
  const events: ModelEvent[] = [];
  let state = before;
  try {
    for (const frame of frames) {
      if (state.stopped) break;
      if (frame.event === "error") throw protocol.failure({ status, headers: headers(), body: frame.data });
      const [next, said] = protocol.step(state, frame);
      state = next;
      events.push(...said);
    }
    return { state, events };
  } catch (error) {
    return { state, events, failure: { error } };
  }
};

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
