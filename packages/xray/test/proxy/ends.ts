/** The two ends of a proxy, as small as tests need them: a provider that does what it is told, a client on a bare socket.
 *  Invariant: disposal closes every connection. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";

export type Heard = {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly string[];
  readonly body: string;
  readonly trailers: readonly string[];
};

export type Provider = AsyncDisposable & {
  readonly url: string;
  readonly heard: readonly Heard[];
  readonly connections: () => number;
};

export type Answers = (response: ServerResponse, heard: Heard, request: IncomingMessage) => unknown;

const sayOk: Answers = (response) => response.end("ok");

/** Reads each request to its end and answers it. */
export const startProvider = async (answers: Answers = sayOk): Promise<Provider> => {
  const heard: Heard[] = [];
  let connections = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    } catch {
      return;
    }
    const { method = "", url = "", rawHeaders, rawTrailers } = request;
    const said = {
      method,
      url,
      headers: rawHeaders,
      body: Buffer.concat(chunks).toString("latin1"),
      trailers: rawTrailers,
    };
    heard.push(said);
    response.on("error", () => undefined);
    await answers(response, said, request);
  });
  server.on("connection", () => {
    connections += 1;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard,
    connections: () => connections,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

/** A provider that is only a socket. */
export const startTcp = async (
  served: (socket: Socket) => void,
): Promise<AsyncDisposable & { readonly url: string }> => {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    served(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
};

export type Line = {
  readonly socket: Socket;
  readonly send: (text: string) => void;
  /** All that came, once it ends with this, or the connection does. */
  readonly until: (end: string | RegExp) => Promise<string>;
  readonly closed: Promise<void>;
};

/** A connection on which a test writes every byte itself. */
export const dial = async (url: string): Promise<Line> => {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  let text = "";
  let wake = (): void => undefined;
  let isClosed = false;
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    wake();
  });
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => {
      isClosed = true;
      wake();
      resolve();
    });
  });
  return {
    socket,
    send: (sent) => socket.write(sent, "latin1"),
    until: async (end) => {
      const isThere = (): boolean => (typeof end === "string" ? text.endsWith(end) : end.test(text));
      while (!isThere() && !isClosed)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      return text;
    },
    closed,
  };
};
