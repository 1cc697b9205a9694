/** Forwards one request to the provider, and its answer back.
 *  Invariant: bodies, status, headers and trailers arrive as they were sent, at the pace of the reader; when one side
 *  ends the connection, in whatever way, the other side sees it; nothing is sent twice. After an upgrade every byte is
 *  forwarded unread.
 *  Elsewhere: which connection is used (server-links.ts), which headers are forwarded (headers.ts), listening in
 *  (tap.ts). */

import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
} from "node:http";
import { request as httpsRequest } from "node:https";
import type { Duplex } from "node:stream";
import {
  answerHeaders,
  hasHeader,
  listOf,
  pairsOf,
  type RawHeaders,
  requestHeaders,
  upgradeHeaders,
} from "./headers.ts";
import type { Outcome } from "./report.ts";
import { type Refusal, type Upstream, unreachable } from "./route.ts";
import type { ProviderLink } from "./server-links.ts";
import type { Tap } from "./tap.ts";

/** Room for longer headers than usual, in both directions. */
export const MOST_HEADER_BYTES = 256 * 1024;

export type Passing = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly upstream: Upstream;
  readonly line: ProviderLink;
  readonly tap: Tap | undefined;
  /** The provider cannot be reached. */
  readonly refuse: (refusal: Refusal) => void;
};

export const optionsTo = (
  upstream: Upstream,
  { method, url }: IncomingMessage,
  headers: RawHeaders,
): RequestOptions => ({
  method: method ?? "GET",
  host: upstream.hostname,
  port: upstream.port,
  path: `${upstream.base}${url}`,
  headers: headers as string[],
  setDefaultHeaders: false,
  maxHeaderSize: MOST_HEADER_BYTES,
});

export const open = (upstream: Upstream, options: RequestOptions): ClientRequest => {
  const { isSecure, hostname } = upstream;
  // An IP address is not a server name.
  const named = /^[\d.]+$|:/.test(hostname) ? {} : { servername: hostname };
  const outgoing = isSecure ? httpsRequest({ ...options, ...named }) : httpRequest(options);
  outgoing.maxHeadersCount = 0;
  return outgoing;
};

export const pass = (passing: Passing): void => {
  const { request, response, upstream, line, tap, refuse } = passing;
  const headers = requestHeaders(request.rawHeaders, upstream.host);
  const outgoing = open(upstream, { ...optionsTo(upstream, request, headers), agent: line.agentFor(upstream) });
  line.take(outgoing, response);
  let isConnected = false;
  let answer: IncomingMessage | undefined;
  let outcome: Outcome | undefined;
  const finish = (how: Outcome): void => {
    if (outcome !== undefined) return;
    outcome = how;
    tap?.ended(how);
  };

  outgoing.once("socket", (socket) => {
    const connected = (): void => {
      isConnected = true;
    };
    if (!socket.connecting) connected();
    else socket.once(upstream.isSecure ? "secureConnect" : "connect", connected);
  });
  outgoing.on("continue", () => {
    if (!response.headersSent) response.writeContinue();
  });
  outgoing.on("information", ({ statusCode, rawHeaders }) => {
    if (statusCode !== 100) sendInformation(response, statusCode, rawHeaders);
  });
  const broke = (): void => {
    // A break after the answer has begun is visible in the answer.
    if (answer || outcome !== undefined) return;
    finish("unanswered");
    request.socket.resetAndDestroy();
  };
  outgoing.on("response", (arrived) => {
    try {
      giveAnswer(arrived, passing, finish);
      answer = arrived;
    } catch {
      // A status line that may not be repeated is as good as no answer.
      outgoing.destroy();
      broke();
    }
  });
  outgoing.on("error", (error) => {
    if (isConnected) broke();
    else if (outcome === undefined) {
      finish("unanswered");
      refuse(unreachable(upstream, error));
    }
  });
  // Also if the provider agreed to something that was never asked for.
  outgoing.once("close", broke);
  // A client that disconnects is noticed by the close event that follows.
  request.on("error", () => undefined);
  response.on("error", () => undefined);
  const onDisconnect = (): void => {
    if (response.writableFinished) return;
    finish("aborted");
    outgoing.destroy();
  };
  // A response that waits behind another one on its connection never emits "close" itself.
  const { socket } = request;
  socket.once("close", onDisconnect);
  response.once("close", () => {
    socket.off("close", onDisconnect);
    onDisconnect();
  });
  sendBody(request, outgoing, tap);
};

const sendBody = (request: IncomingMessage, outgoing: ClientRequest, tap: Tap | undefined): void => {
  // Forwarding comes first, listening second.
  request.pipe(outgoing, { end: false });
  request.on("data", (chunk: Buffer) => tap?.sent(chunk));
  request.once("end", () => {
    addTrailers(outgoing, request.rawTrailers);
    outgoing.end();
    tap?.sentAll();
  });
  // The provider has stopped reading: the rest of the body is dropped, so that the client gets to its answer.
  outgoing.once("close", () => {
    request.unpipe(outgoing);
    request.resume();
  });
  // Headers are sent at once unless the first byte of the body takes them along.
  setImmediate(() => {
    if (!outgoing.destroyed) outgoing.flushHeaders();
  });
};

/** Trailers that may not be repeated are dropped, as any proxy may do. */
const addTrailers = (message: ClientRequest | ServerResponse, raw: RawHeaders): void => {
  if (raw.length === 0) return;
  try {
    message.addTrailers(pairsOf(raw) as [string, string][]);
  } catch {
    message.addTrailers([]);
  }
};

const BODILESS: ReadonlySet<number> = new Set([204, 304]);

const giveAnswer = (answer: IncomingMessage, passing: Passing, finish: (how: Outcome) => void): void => {
  const { request, response, tap } = passing;
  const { statusCode = 502, statusMessage = "", rawHeaders } = answer;
  const hasBody = request.method !== "HEAD" && !BODILESS.has(statusCode);
  // An answer without a length is sent in chunks to clients that understand them; otherwise it ends with the
  // connection.
  const isChunked = hasBody && !hasHeader(rawHeaders, "content-length") && request.httpVersion !== "1.0";
  const endsWithConnection = isChunked && !hasHeader(rawHeaders, "transfer-encoding");
  const closes =
    endsWithConnection || answer.httpVersion === "1.0" || listOf(rawHeaders, "connection").includes("close");
  response.sendDate = false;
  for (const name of ["connection", "transfer-encoding", "content-length"]) response.removeHeader(name);
  response.writeHead(statusCode, statusMessage, answerHeaders(rawHeaders, { closes, isChunked }) as string[]);
  tap?.answered(statusCode, rawHeaders);
  answer.pipe(response, { end: false });
  answer.on("data", (chunk: Buffer) => tap?.received(chunk));
  answer.once("end", () => {
    if (isChunked) addTrailers(response, answer.rawTrailers);
    finish("complete");
    response.end();
  });
  const cut = (): void => {
    if (answer.readableEnded) return;
    finish("cut");
    // Everything that arrived is sent, and then the connection ends as it did on the other side: too early.
    response.socket?.destroySoon();
  };
  answer.once("error", cut).once("close", cut);
  // Stream events may take long; the headers do not wait for them.
  setImmediate(() => {
    if (!response.destroyed && !response.writableEnded) response.flushHeaders();
  });
};

/** Informational responses. Those that this Node version cannot send are dropped, as any proxy may do. */
const sendInformation = (response: ServerResponse, status: number, raw: RawHeaders): void => {
  if (response.headersSent || typeof response.writeInformation !== "function") return;
  try {
    response.writeInformation(status, raw as string[]);
  } catch {
    return;
  }
};

// --- upgraded connections --------------------------------------------------------------------------------------------

export type Upgrading = {
  readonly request: IncomingMessage;
  readonly client: Duplex;
  /** What the client sent right after its request. */
  readonly head: Buffer;
  readonly upstream: Upstream;
  readonly refuse: (refusal: Refusal) => void;
};

export const headText = (status: number, message: string, raw: RawHeaders): string => {
  const lines = pairsOf(raw).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${message}\r\n${lines.join("")}\r\n`;
};

const write = (client: Duplex, { statusCode = 502, statusMessage = "", rawHeaders }: IncomingMessage): void => {
  client.write(headText(statusCode, statusMessage, rawHeaders), "latin1");
};

export const upgrade = ({ request, client, head, upstream, refuse }: Upgrading): void => {
  const headers = upgradeHeaders(request.rawHeaders, upstream.host);
  const outgoing = open(upstream, { ...optionsTo(upstream, request, headers), agent: false });
  let isAnswered = false;
  client.on("error", () => undefined);
  client.once("close", () => outgoing.destroy());
  outgoing.on("error", (error) => {
    if (isAnswered) client.destroy();
    else refuse(unreachable(upstream, error));
  });
  outgoing.on("upgrade", (answer, provider, rest) => {
    isAnswered = true;
    write(client, answer);
    client.write(rest);
    provider.write(head);
    provider.on("error", () => client.destroy());
    client.once("close", () => provider.destroy());
    provider.once("close", () => client.destroy());
    provider.pipe(client);
    client.pipe(provider);
  });
  // The provider declined the upgrade: an ordinary answer, after which the connection ends.
  outgoing.on("response", (answer) => {
    isAnswered = true;
    const { rawHeaders, statusCode = 502, statusMessage = "" } = answer;
    const kept = pairsOf(rawHeaders).filter(
      ([name]) => !/^(?:connection|transfer-encoding|keep-alive|trailer)$/i.test(name),
    );
    client.write(headText(statusCode, statusMessage, [...kept.flat(), "Connection", "close"]), "latin1");
    answer.on("error", () => client.destroy());
    answer.pipe(client);
  });
  outgoing.end();
};
