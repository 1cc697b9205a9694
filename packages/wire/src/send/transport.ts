/** One attempt to send bytes and read the response, over HTTP(S).
 *  Invariant: the chunks are sent unchanged, with their length; aborting or leaving the loop closes the connection;
 *  nothing that is sent can change the host, and no message of ours contains a key.
 *  Elsewhere: retrying (client.ts), decoding (decode.ts), what frames mean (../protocols). */

import type { ClientRequest, IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { urlToHttpOptions } from "node:url";
import { InputError, ModelError, printable } from "../errors.ts";
import type { Credential } from "../protocols/index.ts";
import type { Frame } from "../response.ts";
import { openCodecs, openFrames } from "./decode.ts";

// A static import of these modules also loads another HTTP client, at every start.
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

/** Where requests go: the parts of a URL that a request needs. */
export type Target = {
  readonly isSecure: boolean;
  readonly address: Pick<ReturnType<typeof urlToHttpOptions>, "protocol" | "hostname" | "port" | "path">;
};

export const parseBase = (baseUrl: string): URL => {
  const url = URL.parse(baseUrl);
  // The URL is not quoted, because people put keys into it by mistake.
  if (!url || !/^https?:$/.test(url.protocol)) throw new InputError("the base URL must start with http:// or https://");
  if (url.username !== "" || url.password !== "")
    throw new InputError("the base URL must not contain a user or a password");
  return url;
};

/** Set as a path, never resolved as a reference: `https://host//` must not turn what follows into a host. */
const urlUnder = (base: URL, path: string): URL => {
  const [way = "", query] = path.split("?");
  const url = new URL(base);
  url.pathname = base.pathname.replace(/\/+$/, "") + way;
  if (query !== undefined) url.search = base.search === "" ? query : `${base.search}&${query}`;
  return url;
};

export const targetUnder = (base: URL, path: string): Target => {
  const url = urlUnder(base, path);
  const { protocol, hostname, port, path: way } = urlToHttpOptions(url);
  return { isSecure: url.protocol === "https:", address: { protocol, hostname, port, path: way } };
};

/** If a provider repeats the key in its error, ours must not contain it. */
export const redactKey = (text: string, credential: Credential | undefined): string =>
  credential && credential.value.length >= SHORTEST_KEY ? text.replaceAll(credential.value, "[key]") : text;

/** Shorter values are not secrets, and occur in ordinary words. */
const SHORTEST_KEY = 6;

/** The most that is read of one answer. Anything longer is cut, so that no server can exhaust our memory. */
export type BodyLimits = {
  /** Of the whole body, decoded. */
  readonly totalBytes: number;
  /** Of one event, or of an answer that is not streamed. */
  readonly pieceBytes: number;
};

const MIB = 1_048_576;

export const defaultLimits: BodyLimits = { totalBytes: 256 * MIB, pieceBytes: 32 * MIB };

export type Attempt = {
  readonly target: Target;
  readonly method?: "POST" | "PATCH" | "DELETE"; // default: POST
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: readonly Buffer[];
  readonly byteLength: number;
  readonly timeouts: Timeouts;
  readonly limits?: BodyLimits;
  readonly signal: AbortSignal | undefined;
};

export type Answer = {
  readonly status: number;
  readonly isEventStream: boolean;
  /** Built on demand, because most answers are read without them. */
  readonly headers: () => Readonly<Record<string, string | undefined>>;
  /** The whole body. */
  readonly text: () => Promise<string>;
  /** The first bytes of the body, as they arrived. */
  readonly opening: () => Buffer;
  /** The body as server-sent events, grouped as they arrived. Leaving the loop closes the connection. */
  readonly frames: () => AsyncGenerator<readonly Frame[], void>;
  /** Throws if we ended the request: what had arrived by then no longer counts as an answer. */
  readonly check: () => void;
  /** Only the end of the answer is still missing, and a server that never ends it is not waited for. `ms`: the longest
   *  wait. Default: LINGER_MS. */
  readonly finishing: (ms?: number) => void;
};

export type Transport = {
  readonly send: (attempt: Attempt) => Promise<Answer>;
  /** Close idle connections. */
  readonly close: () => void;
};

/** Keep-alive connections for one client; nothing is shared between clients. */
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

/** How long a finished answer may take to close, so that the connection can be reused. */
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
    const { limits = defaultLimits } = attempt;
    const body = openBody(response, watch);
    return {
      status: response.statusCode ?? 0,
      isEventStream: response.headers["content-type"]?.includes("text/event-stream") ?? false,
      headers: () => flatHeaders(response),
      text: () => readText(body, limits),
      opening: body.opening,
      frames: () => readFrames(body, limits),
      check: watch.check,
      finishing: watch.finishing,
    };
  } catch (error) {
    watch.end();
    throw error;
  }
};

const open = ({ target, method = "POST", headers, byteLength }: Attempt, agents: Agents): ClientRequest => {
  const { isSecure, address: place } = target;
  const agent = isSecure ? agents.https : agents.http;
  const options = { ...place, agent, method, headers: { ...headers, "content-length": String(byteLength) } };
  try {
    return isSecure ? https.request(options) : http.request(options);
  } catch (cause) {
    // Headers come from the caller: a key that contains a line break is refused here, before anything is sent.
    throw new InputError(`the request cannot be sent: ${(cause as Error).message}`, { cause });
  }
};

// --- watching: one place that knows why a connection ended ------------------------------------------------------------

type Watch = {
  readonly request: ClientRequest;
  readonly response: Promise<IncomingMessage>;
  /** Something arrived. Until more is requested, silence is due to the reader and not to the server. */
  readonly arrived: () => void;
  /** More is requested. */
  readonly awaiting: () => void;
  readonly finishing: (ms?: number) => void;
  /** Throws if we ended the request: what had arrived by then no longer counts as an answer. */
  readonly check: () => void;
  /** Why it ended, if we ended it; otherwise the socket's error. */
  readonly reasonFor: (error: unknown) => ModelError;
  /** Stops watching, and closes the connection unless the response was read completely. */
  readonly end: () => void;
};

const watchRequest = (request: ClientRequest, timeouts: Timeouts, signal: AbortSignal | undefined): Watch => {
  let ended: ModelError | undefined;
  const endWith = (error: ModelError): void => {
    ended ??= error;
    unwatch();
    // Destroyed without an error: between the end of an answer and the next request nobody listens to the socket, and
    // an unhandled error would end the process. `reasonFor` has the error.
    request.destroy();
  };
  const onAbort = (): void => signal && endWith(abortedError(signal));
  signal?.addEventListener("abort", onAbort, { once: true });
  const limits = watchTime(timeouts.totalMs, endWith);
  limits.enter("connect", timeouts.connectMs);
  // Also if nobody reads after the end: no timer may outlive the connection.
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
    finishing: (ms = LINGER_MS) => {
      finishing = true;
      if (!received?.complete) limits.enter("idle", ms);
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

const PHASE_NAMES = {
  connect: "connection",
  "first-byte": "first byte",
  idle: "more of the answer",
  total: "end",
} as const;

type Phase = keyof typeof PHASE_NAMES;

type TimeLimits = {
  /** Starts a phase, which may take this long. */
  readonly enter: (phase: Phase, ms: number) => void;
  /** No phase is running; the total limit still applies. */
  readonly leave: () => void;
  readonly end: () => void;
};

/** One timer for all limits of a request. Most limits are never reached, so the timer is set again only for an earlier
 *  one; if it fires before the current limit, it is set again. */
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
  new ModelError(`no ${PHASE_NAMES[phase]} within ${ms} ms`, { kind: "timeout", phase });

const connectionError = (cause: unknown): ModelError =>
  cause instanceof ModelError
    ? cause
    : new ModelError(`the connection failed: ${(cause as Error).message}`, { kind: "connection" }, { cause });

// --- reading ---------------------------------------------------------------------------------------------------------

/** Adds our own date if the server sends none: a wait may be given as a date, which is compared with it. */
const flatHeaders = ({ headers }: IncomingMessage): ReturnType<Answer["headers"]> => {
  const flat: Record<string, string | undefined> = { date: new Date().toUTCString() };
  for (const [name, value] of Object.entries(headers)) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  return flat;
};

/** A response and its decoded body. */
type Body = {
  readonly response: IncomingMessage;
  /** The response itself, if it is not compressed. */
  readonly decoded: Readable;
  readonly watch: Watch;
  readonly opening: () => Buffer;
  readonly keepOpening: (bytes: Buffer) => void;
  /** Why `decoded` failed. Default: its own error. */
  readonly reasonFor?: (error: Error) => Error;
  /** An encoding that we cannot decode. */
  readonly unknown?: string;
};

const OPENING_BYTES = 512;

const openBody = (response: IncomingMessage, watch: Watch): Body => {
  let opening = Buffer.alloc(0);
  const keepOpening = (bytes: Buffer): void => {
    if (opening.length < OPENING_BYTES) opening = Buffer.concat([opening, bytes.subarray(0, OPENING_BYTES)]);
  };
  const common = { response, watch, opening: () => opening, keepOpening };
  const encoding = response.headers["content-encoding"] ?? "";
  const codecs = openCodecs(encoding);
  if (!codecs) return { ...common, decoded: response, unknown: encoding };
  const [first, ...more] = codecs;
  if (!first) return { ...common, decoded: response };
  const last = more.reduce<Readable>((stream, codec) => stream.pipe(codec), first);
  let lost: Error | undefined;
  const lose = (error: Error): void => {
    lost ??= error;
    last.destroy(lost);
  };
  for (const codec of codecs)
    codec.on("error", (error: Error) => {
      if (codec !== last) last.destroy(error);
    });
  response.on("data", keepOpening).on("error", lose);
  response.on("close", () => {
    if (!response.complete) lose(new Error("it was cut off"));
  });
  response.pipe(first);
  return {
    ...common,
    decoded: last,
    keepOpening: () => undefined,
    reasonFor: (error) => lost ?? undecodable(encoding, error),
  };
};

const undecodable = (encoding: string, cause?: unknown): ModelError =>
  new ModelError(
    `the answer cannot be decoded (content-encoding: ${printable(encoding, 40)})`,
    { kind: "malformed-response" },
    { final: true, ...(cause === undefined ? {} : { cause }) },
  );

/** Yields what `read` returns for each piece that arrives. Reads by hand, because the stream's own iterator costs more
 *  than the answer. */
async function* readBody<T>(body: Body, read: (bytes: Buffer) => T): AsyncGenerator<T, void> {
  const { response, decoded, watch } = body;
  let wake = (): void => {};
  let failure: Error | undefined;
  const changed = (): void => wake();
  decoded.on("readable", changed).on("end", changed).on("close", changed);
  // Stays for the whole life of the response, like the request's.
  decoded.on("error", (error) => {
    failure ??= body.reasonFor?.(error) ?? error;
    wake();
  });
  try {
    for (;;) {
      const chunk: Buffer | null = decoded.read();
      if (chunk) {
        watch.arrived();
        body.keepOpening(chunk);
        if (body.unknown !== undefined) throw undecodable(body.unknown);
        yield read(chunk);
        watch.check();
        watch.awaiting();
      } else if (failure) throw failure;
      else if (decoded.readableEnded || decoded.closed) break;
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
    if (decoded !== response) decoded.destroy();
    watch.end();
  }
}

const readText = async (body: Body, { pieceBytes }: BodyLimits): Promise<string> => {
  const chunks: Buffer[] = [];
  let total = 0;
  for await (const chunk of readBody(body, (bytes) => bytes)) {
    total += chunk.length;
    if (total > pieceBytes) throw tooLong(pieceBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
};

const tooLong = (bytes: number): ModelError =>
  new ModelError(
    `the answer was cut after ${Math.floor(bytes / MIB)} MiB: the provider did not stop`,
    { kind: "malformed-response" },
    { final: true },
  );

async function* readFrames(body: Body, { totalBytes, pieceBytes }: BodyLimits): AsyncGenerator<readonly Frame[], void> {
  const reader = openFrames();
  let [total, waiting] = [0, 0];
  for await (const [frames, bytes] of readBody(body, (chunk) => [reader.read(chunk), chunk.length] as const)) {
    total += bytes;
    // Comments and incomplete lines are not frames, so a server may send only this much of them.
    waiting = frames.length > 0 ? 0 : waiting + bytes;
    if (total > totalBytes || waiting > pieceBytes) throw tooLong(Math.min(total, waiting || total));
    yield frames;
  }
  yield reader.end();
}
