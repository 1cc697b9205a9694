/** One attempt to send bytes and read what comes back, over HTTP(S).
 *  Invariant: the chunks go out as they are, with their length; aborting or leaving the loop closes the connection.
 *  Elsewhere: sending again (retry.ts), what frames mean (protocols/). */

import type { ClientRequest, IncomingMessage } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { urlToHttpOptions } from "node:url";
import { createParser } from "eventsource-parser";
import { InputError, ModelError } from "./errors.ts";
import type { Frame } from "./events.ts";

// Imported by name, the first of them loads all that it offers on demand, another HTTP client among it: at every start.
const http = process.getBuiltinModule("node:http");
const https = process.getBuiltinModule("node:https");

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

/** Where requests go: a URL, taken apart once, and no more of it than a request needs. */
export type Target = {
  readonly isSecure: boolean;
  readonly place: Pick<ReturnType<typeof urlToHttpOptions>, "protocol" | "hostname" | "port" | "path">;
};

export const targetOf = (url: URL): Target => {
  const { protocol, hostname, port, path } = urlToHttpOptions(url);
  return { isSecure: url.protocol === "https:", place: { protocol, hostname, port, path } };
};

export type Attempt = {
  readonly target: Target;
  readonly method?: "POST" | "PATCH" | "DELETE"; // default: POST
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: readonly Buffer[];
  readonly byteLength: number;
  readonly timeouts: Timeouts;
  readonly signal: AbortSignal | undefined;
};

export type Answer = {
  readonly status: number;
  readonly isEventStream: boolean;
  /** Made when they are asked for: most answers are read without them. */
  readonly headers: () => Readonly<Record<string, string | undefined>>;
  /** The whole body. */
  readonly text: () => Promise<string>;
  /** The body as server-sent events, those together that arrived together. Leaving the loop closes the connection. */
  readonly frames: () => AsyncGenerator<readonly Frame[], void>;
  /** Throws when we ended it: what had arrived by then is no answer any more. */
  readonly check: () => void;
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
  const agents = { http: new http.Agent({ keepAlive: true }), https: new https.Agent({ keepAlive: true }) };
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

type Agents = { readonly http: InstanceType<typeof http.Agent>; readonly https: InstanceType<typeof https.Agent> };

const sendOnce = async (attempt: Attempt, agents: Agents): Promise<Answer> => {
  const { signal, timeouts } = attempt;
  if (signal?.aborted) throw abortedError(signal);
  const watch = watchRequest(open(attempt, agents), timeouts, signal);
  try {
    const { chunks } = attempt;
    for (const chunk of chunks.slice(0, -1)) watch.request.write(chunk);
    watch.request.end(chunks.at(-1));
    const response = await watch.response;
    return {
      status: response.statusCode ?? 0,
      isEventStream: response.headers["content-type"]?.includes("text/event-stream") ?? false,
      headers: () => flatHeaders(response),
      text: () => readText(response, watch),
      frames: () => readBody(response, watch, frameReader()),
      check: watch.check,
      finishing: watch.finishing,
    };
  } catch (error) {
    watch.end();
    throw error;
  }
};

const open = ({ target, method = "POST", headers, byteLength }: Attempt, agents: Agents): ClientRequest => {
  const { isSecure, place } = target;
  const agent = isSecure ? agents.https : agents.http;
  const options = { ...place, agent, method, headers: { ...headers, "content-length": String(byteLength) } };
  try {
    return isSecure ? https.request(options) : http.request(options);
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
  const limits = watchTime(timeouts.totalMs, endWith);
  limits.enter("connect", timeouts.connectMs);
  // Also when nobody reads on after the end: no timer may outlive the connection.
  const unwatch = (): void => {
    limits.end();
    signal?.removeEventListener("abort", onAbort);
  };

  request.once("socket", (socket) => {
    const connected = (): void => limits.enter("first-byte", timeouts.firstByteMs);
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
      if (!finishing) limits.leave();
    },
    awaiting: () => {
      if (!finishing) limits.enter("idle", timeouts.idleMs);
    },
    finishing: () => {
      finishing = true;
      if (!received?.complete) limits.enter("idle", LINGER_MS);
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

type Phase = keyof typeof MISSING;

type TimeLimits = {
  /** From now on, for so long at most. */
  readonly enter: (phase: Phase, ms: number) => void;
  /** No phase is under way; the total goes on. */
  readonly leave: () => void;
  readonly end: () => void;
};

/** One timer for all limits of a request. Nearly all of them are left long before they are reached, so it is set anew
 *  only for an earlier one; when it fires too soon for the limit that holds by then, it is set again. */
const watchTime = (totalMs: number, expired: (error: ModelError) => void): TimeLimits => {
  const total = { phase: "total" as Phase, ms: totalMs, at: performance.now() + totalMs };
  let limit = total;
  let timer: NodeJS.Timeout | undefined;
  let firesAt = Number.POSITIVE_INFINITY;
  const fire = (): void => {
    firesAt = Number.POSITIVE_INFINITY;
    if (performance.now() < limit.at) set();
    else expired(timeoutError(limit.phase, limit.ms));
  };
  const set = (): void => {
    if (limit.at >= firesAt) return;
    clearTimeout(timer);
    firesAt = limit.at;
    timer = setTimeout(fire, Math.ceil(limit.at - performance.now()));
  };
  return {
    enter: (phase, ms) => {
      const at = performance.now() + ms;
      limit = at < total.at ? { phase, ms, at } : total;
      set();
    },
    leave: () => {
      limit = total;
      set();
    },
    end: () => {
      clearTimeout(timer);
      firesAt = Number.NEGATIVE_INFINITY;
    },
  };
};

const timeoutError = (phase: Phase, ms: number): ModelError =>
  new ModelError(`no ${MISSING[phase]} within ${ms} ms`, { kind: "timeout", phase });

const connectionError = (cause: unknown): ModelError =>
  cause instanceof ModelError
    ? cause
    : new ModelError(`the connection failed: ${(cause as Error).message}`, { kind: "connection" }, { cause });

// --- reading ---------------------------------------------------------------------------------------------------------

const flatHeaders = ({ headers }: IncomingMessage): ReturnType<Answer["headers"]> => {
  const flat: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(headers)) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  return flat;
};

/** What `read` makes of all that has arrived, each time something has. Read by hand: the stream's own iterator costs more
 *  than the answer. */
async function* readBody<T>(
  response: IncomingMessage,
  watch: Watch,
  read: (bytes: Buffer) => T,
): AsyncGenerator<T, void> {
  let wake = (): void => {};
  let failure: Error | undefined;
  const changed = (): void => wake();
  response.on("readable", changed).on("end", changed).on("close", changed);
  // Stays for the whole life of the response, like the request's.
  response.on("error", (error) => {
    failure ??= error;
    wake();
  });
  try {
    for (;;) {
      const chunk: Buffer | null = response.read();
      if (chunk) {
        watch.arrived();
        yield read(chunk);
        watch.check();
        watch.awaiting();
      } else if (failure) throw failure;
      else if (response.readableEnded || response.closed) break;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
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
  for await (const chunk of readBody(response, watch, (bytes) => bytes)) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
};

/** Gives the frames that each chunk completes, wherever the bytes were cut: inside a line, a name or a character. */
export const frameReader = (): ((chunk: Buffer) => readonly Frame[]) => {
  const ready: Frame[] = [];
  const parser = createParser({ onEvent: ({ event, data }) => ready.push({ event: event ?? "message", data }) });
  const decoder = new StringDecoder("utf8");
  return (chunk) => {
    parser.feed(decoder.write(chunk));
    return ready.splice(0);
  };
};
