/** The cheapest possible provider that can still play the model of this conversation.
 *  Invariant: it runs in its own process, on loopback; it reads only the end of a request, unless it was told to keep one.
 *  All times are of its own clock: from the last byte of the answer that starts a family to the first of a fork.
 *  Elsewhere: a provider that bills and caches is the simulator (simulator-process.ts). */

import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { directiveOf } from "../wire/history.ts";
import { type AgentCall, BYTES_PER_TOKEN, LOOKED_AT, REPORT, type Wanted, WORD, wantedAt } from "./conversation.ts";

export type ProviderOrder =
  /** Forks get the first event of their answer, and nothing more until they disconnect. */
  | { readonly holds: boolean }
  /** Forks get the rest of their answers once this many are open, or after a timeout. Only the simulator does this. */
  | { readonly gathers: number }
  /** Writes the request that starts a family, and that of its first fork, into this folder; "" for no more. */
  | { readonly keeps: string }
  | { readonly tell: true };

export type ProviderReport =
  | { readonly type: "listening"; readonly url: string }
  | { readonly type: "set" }
  /** About the latest family. */
  | {
      readonly type: "family";
      readonly forks: number;
      /** From the answer that started it to the first byte of the last fork. */
      readonly ms: number;
      /** Forks that are open now. */
      readonly held: number;
      /** Forks that were open when they got the rest of their answers, if answers were held back. */
      readonly gathered: number;
      /** Hash of the first fork's request, if requests are saved. */
      readonly digests: readonly string[];
      readonly refused: readonly string[];
    };

const state = {
  holds: false,
  keeps: "",
  /** About the latest family. */
  asked: 0,
  forks: 0,
  startedAt: 0,
  lastAt: 0,
  held: 0,
  digests: new Set<string>(),
};

// --- the answer ------------------------------------------------------------------------------------------------------

const frame = (type: string, rest: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;

/** The whole prompt was read from the cache. */
const begin = (bytes: number): string =>
  frame("message_start", {
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "bench",
      content: [],
      stop_reason: null,
      usage: {
        input_tokens: 100,
        cache_read_input_tokens: Math.round(bytes / BYTES_PER_TOKEN),
        cache_creation_input_tokens: 0,
        output_tokens: 1,
      },
    },
  });

const block = (index: number, start: object, delta: object): string =>
  frame("content_block_start", { index, content_block: start }) +
  frame("content_block_delta", { index, delta }) +
  frame("content_block_stop", { index });

const end = (reason: "end_turn" | "tool_use"): string =>
  frame("message_delta", { delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 12 } }) +
  frame("message_stop", {});

const saying = (words: string): string =>
  block(0, { type: "text", text: "" }, { type: "text_delta", text: words }) + end("end_turn");

/** An id must not occur again in a later turn. */
const calling = (calls: readonly AgentCall[], turn: number): string =>
  calls
    .map(({ name, input }, index) =>
      block(
        index,
        { type: "tool_use", id: `toolu_${turn}_${index}`, name, input: {} },
        { type: "input_json_delta", partial_json: JSON.stringify(input) },
      ),
    )
    .join("") + end("tool_use");

const restOf = (wanted: Wanted, turn: number): string => {
  switch (wanted.kind) {
    case "start":
      return calling(wanted.calls, turn);
    case "report":
      return saying(REPORT);
    case "word":
      return saying(WORD);
  }
};

// --- the request -----------------------------------------------------------------------------------------------------

type Arrived = { readonly at: number; readonly bytes: number; readonly end: string; readonly body?: Buffer };

const arrival = (request: IncomingMessage): Promise<Arrived> =>
  new Promise((resolve, reject) => {
    const at = performance.now();
    const kept: Buffer[] = [];
    let last = Buffer.alloc(0);
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (state.keeps !== "") kept.push(chunk);
      last = Buffer.concat([last, chunk.subarray(-LOOKED_AT)]).subarray(-LOOKED_AT);
    });
    request.on("error", reject);
    request.on("end", () => {
      resolve({ at, bytes, end: last.toString(), ...(kept.length > 0 ? { body: Buffer.concat(kept) } : {}) });
    });
  });

const keep = (wanted: Wanted, { body, end: words }: Arrived): void => {
  if (body === undefined || state.keeps === "") return;
  if (wanted.kind === "start") writeFileSync(join(state.keeps, `parent-${wanted.calls.length}.json`), body);
  const isFirst = wanted.kind === "report" && words.includes(directiveOf(0).slice(0, "Part 000000.".length));
  if (!isFirst) return;
  writeFileSync(join(state.keeps, `fork-${state.asked}.json`), body);
  state.digests.add(createHash("sha256").update(body).digest("hex"));
};

const beginFamily = (forks: number): void => {
  Object.assign(state, { asked: forks, forks: 0, lastAt: 0, startedAt: 0 });
  state.digests.clear();
};

const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const arrived = await arrival(request);
  const wanted = wantedAt(arrived.end);
  if (wanted.kind === "start") beginFamily(wanted.calls.length);
  keep(wanted, arrived);
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (wanted.kind === "report") {
    state.forks += 1;
    state.lastAt = Math.max(state.lastAt, arrived.at);
    if (state.holds) {
      state.held += 1;
      response.on("close", () => {
        state.held -= 1;
      });
      response.write(begin(arrived.bytes));
      return;
    }
  }
  response.end(begin(arrived.bytes) + restOf(wanted, arrived.bytes), () => {
    if (wanted.kind === "start") state.startedAt = performance.now();
  });
};

const tell = (report: ProviderReport): void => void process.send?.(report);

const tellFamily = (): void => {
  const { forks, lastAt, startedAt, held, digests } = state;
  tell({ type: "family", forks, ms: lastAt - startedAt, held, gathered: 0, digests: [...digests], refused: [] });
};

// Between two samples a client's connections may be idle longer than a server usually allows.
const server = createServer({ keepAliveTimeout: 180_000, requestTimeout: 0 }, (request, response) => {
  answer(request, response).catch(() => response.destroy()); // a client that disconnects is not a failure here
});
server.listen({ host: "127.0.0.1", port: 0, backlog: 2_048 }, () => {
  tell({ type: "listening", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});

process.on("message", (order: ProviderOrder) => {
  if ("tell" in order) {
    tellFamily();
    return;
  }
  Object.assign(state, order);
  tell({ type: "set" });
});
process.on("disconnect", () => process.exit());
