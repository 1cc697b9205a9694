/** One attempt to send bytes and read what comes back, over HTTP(S).
 *  Invariant: the chunks go out as they are, with their length; aborting or leaving the loop closes the connection.
 *  Elsewhere: sending again (retry.ts), what frames mean (protocols/). */

import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { createParser } from "eventsource-parser";
import { InputError, ModelError } from "./errors.ts";
import type { Frame } from "./events.ts";

export type Timeouts = {
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
};

export const defaultTimeouts: Timeouts = {
  connectMs: 10_000,
  firstByteMs: 300_000,
  idleMs: 120_000,
  totalMs: 1_800_000,
};

export type Attempt = {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: readonly Buffer[];
  readonly byteLength: number;
  readonly timeouts: Timeouts;
  readonly signal: AbortSignal | undefined;
};

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The whole body. */
  readonly text: () => Promise<string>;
  /** The body as server-sent events. Leaving the loop closes the connection. */
  readonly frames: () => AsyncGenerator<Frame, void>;
  /** Nothing but the end is awaited any more: a server that never ends its answer is not waited for. */
  readonly finishing: () => void;
};

export type Transport = {
  readonly send: (attempt: Attempt) => Promise<Answer>;
  /** Close idle connections. */
  readonly close: () => void;
};

/** Kept-alive connections for one client; nothing is shared between clients. */
export const createTransport = (): Transport => {
  const agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) };
  return {
    send: (attempt) => sendOnce(attempt, agents),
    close: () => {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
};

/** How long a finished answer may take to close: long enough to keep the connection for the next request. */
const LINGER_MS = 1_000;

type Agents = { readonly http: HttpAgent; readonly https: HttpsAgent };

const sendOnce = async (attempt: Attempt, agents: Agents): Promise<Answer> => {
  const { signal, timeouts } = attempt;
  if (signal?.aborted) throw abortedError(signal);
  const watch = watchRequest(open(attempt, agents), timeouts, signal);
  try {
    for (const chunk of attempt.chunks) watch.request.write(chunk);
    watch.request.end();
    const response = await watch.response;
    return {
      status: response.statusCode ?? 0,
      headers: flatHeaders(response),
      text: () => readText(response, watch),
      frames: () => readFrames(response, watch),
      finishing: watch.finishing,
    };
  } catch (error) {
    watch.end();
    throw error;
  }
};

const open = ({ url, headers, byteLength }: Attempt, agents: Agents): ClientRequest => {
  const options = { method: "POST", headers: { ...headers, "content-length": String(byteLength) } };
  try {
    return url.protocol === "https:"
      ? httpsRequest(url, { ...options, agent: agents.https })
      : httpRequest(url, { ...options, agent: agents.http });
  } catch (cause) {
    // Headers come from the caller: a key with a line break in it is refused here, before anything is sent.
    throw new InputError(`the request cannot be sent: ${(cause as Error).message}`, { cause });
  }
};

// --- watching: one place that knows why a connection ended ------------------------------------------------------------

type Watch = {
  readonly request: ClientRequest;
  readonly response: Promise<IncomingMessage>;
  /** Something arrived; until the next is asked for, silence is the reader's and not the server's. */
  readonly arrived: () => void;
  /** More is asked for. */
  readonly awaiting: () => void;
  readonly finishing: () => void;
  /** Throws when we ended it: what had arrived by then is no answer any more. */
  readonly check: () => void;
  /** Why it ended, when we ended it; else what the socket said. */
  readonly reasonFor: (error: unknown) => ModelError;
  /** Stop watching, and close the connection unless the response was read to its end. */
  readonly end: () => void;
};

const watchRequest = (request: ClientRequest, timeouts: Timeouts, signal: AbortSignal | undefined): Watch => {
  let ended: ModelError | undefined;
  const endWith = (error: ModelError): void => {
    ended ??= error;
    unwatch();
    // Without the error: between the answer's end and the next request nobody listens to the socket, and one it is
    // destroyed with would end the process. `reasonFor` has it.
    request.destroy();
  };
  const onAbort = (): void => signal && endWith(abortedError(signal));
  signal?.addEventListener("abort", onAbort, { once: true });

  let phase = setTimeout(() => endWith(timeoutError("connect", timeouts.connectMs)), timeouts.connectMs);
  const enter = (name: "first-byte" | "idle", ms: number): void => {
    clearTimeout(phase);
    if (!ended) phase = setTimeout(() => endWith(timeoutError(name, ms)), ms);
  };
  const total = setTimeout(() => endWith(timeoutError("total", timeouts.totalMs)), timeouts.totalMs);
  // Also when nobody reads on after the end: no timer may outlive the connection.
  const unwatch = (): void => {
    clearTimeout(phase);
    clearTimeout(total);
    signal?.removeEventListener("abort", onAbort);
  };

  request.once("socket", (socket) => {
    const connected = (): void => enter("first-byte", timeouts.firstByteMs);
    if (socket.connecting) socket.once(request.protocol === "https:" ? "secureConnect" : "connect", connected);
    else connected();
  });

  const reasonFor = (error: unknown): ModelError => ended ?? connectionError(error);
  let received: IncomingMessage | undefined;
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    request.once("response", (message) => {
      received = message;
      resolve(message);
    });
    // Stays for the whole life of the request: a late error without a listener would end the process.
    request.on("error", (error) => reject(reasonFor(error)));
  });

  let finishing = false;
  return {
    request,
    response,
    arrived: () => {
      if (!finishing) clearTimeout(phase);
    },
    awaiting: () => {
      if (!finishing) enter("idle", timeouts.idleMs);
    },
    finishing: () => {
      finishing = true;
      enter("idle", LINGER_MS);
    },
    check: () => {
      if (ended) throw ended;
    },
    reasonFor,
    end: () => {
      unwatch();
      if (!request.destroyed && !received?.complete) request.destroy();
    },
  };
};

const abortedError = (signal: AbortSignal): ModelError =>
  new ModelError("the request was aborted", { kind: "aborted" }, { cause: signal.reason });

const MISSING = {
  connect: "connection",
  "first-byte": "first byte",
  idle: "more of the answer",
  total: "end",
} as const;

const timeoutError = (phase: keyof typeof MISSING, ms: number): ModelError =>
  new ModelError(`no ${MISSING[phase]} within ${ms} ms`, { kind: "timeout", phase });

const connectionError = (cause: unknown): ModelError =>
  cause instanceof ModelError
    ? cause
    : new ModelError(`the connection failed: ${(cause as Error).message}`, { kind: "connection" }, { cause });

// --- reading ---------------------------------------------------------------------------------------------------------

const flatHeaders = ({ headers }: IncomingMessage): Answer["headers"] =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value]),
  );

async function* readChunks(response: IncomingMessage, watch: Watch): AsyncGenerator<Buffer, void> {
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      watch.arrived();
      yield chunk;
      watch.check();
      watch.awaiting();
    }
    watch.check();
    if (!response.complete) throw new Error("it was cut off");
  } catch (error) {
    throw watch.reasonFor(error);
  } finally {
    watch.end();
  }
}

const readText = async (response: IncomingMessage, watch: Watch): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of readChunks(response, watch)) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
};

async function* readFrames(response: IncomingMessage, watch: Watch): AsyncGenerator<Frame, void> {
  const read = frameReader();
  for await (const chunk of readChunks(response, watch)) {
    for (const frame of read(chunk)) {
      yield frame;
      watch.check();
    }
  }
}

/** Gives the frames that each chunk completes, wherever the bytes were cut: inside a line, a name or a character. */
export const frameReader = (): ((chunk: Buffer) => readonly Frame[]) => {
  const ready: Frame[] = [];
  const parser = createParser({ onEvent: ({ event, data }) => ready.push({ event: event ?? "message", data }) });
  const decoder = new TextDecoder();
  return (chunk) => {
    parser.feed(decoder.decode(chunk, { stream: true }));
    return ready.splice(0);
  };
};
