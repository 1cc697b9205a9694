/** The cheapest possible server: it discards the body and answers with a canned stream.
 *  Invariant: it runs in its own process, on loopback, so that its work is not in a client's figure; it does not read what
 *  it receives, except once to check that all clients send the same bytes.
 *  Elsewhere: a server that bills and caches like a provider is the simulator. */

import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** `answer`: the whole stream. `hold`: its first event, and then nothing until the client leaves. `digest`: the whole
 *  stream, and the body's hash is kept. */
export type ServerMode = "answer" | "hold" | "digest";
export type ServerOrder = { readonly mode: ServerMode } | { readonly tell: true };
export type ServerReport =
  | { readonly type: "listening"; readonly url: string }
  | { readonly type: "set" }
  | { readonly type: "state"; readonly held: number; readonly digests: readonly string[] };

const frame = (type: string, rest: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;

const usage = {
  input_tokens: 100,
  cache_read_input_tokens: 200_000,
  cache_creation_input_tokens: 800,
  output_tokens: 1,
};
const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "bench",
  content: [],
  stop_reason: null,
  usage,
};
const FIRST = frame("message_start", { message });
const REST = [
  frame("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  frame("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Scope: one part. Result: done." } }),
  frame("content_block_stop", { index: 0 }),
  frame("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 12 } }),
  frame("message_stop", {}),
].join("");

const state = { mode: "answer" as ServerMode, held: 0, digests: new Set<string>() };

const answer = (request: IncomingMessage, response: ServerResponse): void => {
  const { mode } = state;
  const hash = createHash("sha256");
  if (mode === "digest") request.on("data", (chunk: Buffer) => hash.update(chunk));
  request.on("error", () => undefined); // a client that disconnects is not a failure here
  request.on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (mode === "digest") state.digests.add(hash.digest("hex"));
    if (mode !== "hold") {
      response.end(FIRST + REST);
      return;
    }
    state.held += 1;
    response.on("close", () => {
      state.held -= 1;
    });
    response.write(FIRST);
  });
  request.resume();
};

const tell = (report: ServerReport): void => void process.send?.(report);

// Between two samples a client's connections may be idle longer than a server usually allows.
const server = createServer({ keepAliveTimeout: 180_000 }, answer);
server.listen({ host: "127.0.0.1", port: 0, backlog: 2_048 }, () => {
  tell({ type: "listening", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});

process.on("message", (order: ServerOrder) => {
  if ("mode" in order) {
    state.mode = order.mode;
    tell({ type: "set" });
  } else tell({ type: "state", held: state.held, digests: [...state.digests] });
});
process.on("disconnect", () => process.exit());
