/** A tool server over streamable HTTP, on loopback. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { type Described, respond, type Side } from "./fixture-tools.ts";

export type HttpFixture = AsyncDisposable & {
  readonly url: string;
  readonly side: Side;
  /** Method, headers and body of every request, in order. */
  readonly requests: { method: string; headers: IncomingMessage["headers"]; body: string }[];
  /** From now on the existing sessions are unknown. */
  readonly forget: () => void;
};

export type HttpFixtureOptions = {
  readonly tools: readonly Described[];
  readonly answers?: "json" | "events"; // default: json
  /** Answers every request with this instead. */
  readonly instead?: (request: IncomingMessage, response: ServerResponse) => boolean;
};

export const startHttpServer = async (options: HttpFixtureOptions): Promise<HttpFixture> => {
  const { answers = "json", instead } = options;
  const requests: HttpFixture["requests"] = [];
  const listeners = new Set<ServerResponse>();
  const sessions = new Set<string>();
  let last = 0;
  const side: Side = {
    tools: options.tools,
    heard: [],
    notify: (method) => {
      for (const listener of listeners) listener.write(`data: ${JSON.stringify({ jsonrpc: "2.0", method })}\n\n`);
    },
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    requests.push({ method: request.method ?? "", headers: request.headers, body });
    if (instead?.(request, response)) return;
    const message = body === "" ? {} : JSON.parse(body);
    const session = String(request.headers["mcp-session-id"] ?? "");
    const isKnown = sessions.has(session);
    if (message.method !== "initialize" && !isKnown) return void response.writeHead(404).end("no such session");
    if (request.method === "DELETE") return void response.writeHead(sessions.delete(session) ? 200 : 404).end();
    if (request.method === "GET") {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": open\n\n");
      listeners.add(response);
      return;
    }
    const answer = await respond(side, message);
    if (message.id === undefined) return void response.writeHead(202).end();
    if (message.method === "initialize") {
      sessions.add(`s${++last}`);
      response.setHeader("mcp-session-id", `s${last}`);
    }
    if (!answer) return; // hangs
    if (answers === "json")
      return void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(
      `: a comment\n\ndata: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/message" })}\n\nid: 1\ndata: ${JSON.stringify(answer)}\n\n`,
    );
  };
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    side,
    requests,
    forget: () => sessions.clear(),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
};
