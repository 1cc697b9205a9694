/** A server on loopback that keeps every byte it gets and answers as each test says; and a clock for back-offs.
 *  Invariant: disposal closes every connection; nothing here waits for real time. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  anthropic,
  type Closing,
  FrozenPrefix,
  type Prepared,
  prepare,
  type RetryTiming,
  userText,
} from "../src/index.ts";
import { asStream } from "./conformance/protocol-suite.ts";

export type Call = {
  readonly number: number;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  readonly response: ServerResponse;
  /** Resolves when the connection of this call is gone, or its answer was sent to the end. */
  readonly closed: Promise<void>;
};

export type Handler = (call: Call) => unknown;

export interface LocalServer extends AsyncDisposable {
  readonly url: string;
  readonly calls: readonly Call[];
  /** Connections opened so far. */
  readonly connections: () => number;
  /** Resolves once so many calls have arrived whole. */
  readonly arrived: (count: number) => Promise<void>;
}

/** Answers call n by the nth handler, and all further ones by the last. */
export const startServer = async (...handlers: readonly Handler[]): Promise<LocalServer> => {
  const calls: Call[] = [];
  const waiting: { readonly count: number; readonly go: () => void }[] = [];
  let connections = 0;
  const server = createServer({ keepAliveTimeout: 60_000 }, async (request, response) => {
    const closed = new Promise<void>((resolve) => response.once("close", resolve));
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { url: path = "", headers } = request;
    const call = { number: calls.length, path, headers, body: Buffer.concat(chunks), response, closed };
    calls.push(call);
    for (const { count, go } of waiting) if (calls.length >= count) go();
    await (handlers[call.number] ?? handlers.at(-1))?.(call);
  });
  server.on("connection", () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    connections: () => connections,
    arrived: (count) =>
      calls.length >= count ? Promise.resolve() : new Promise((go) => void waiting.push({ count, go })),
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

// --- answers ---------------------------------------------------------------------------------------------------------

const frame = (type: string, fields = ""): { readonly event: string; readonly data: string } => ({
  event: type,
  data: `{"type":"${type}"${fields}}`,
});

export const frames = {
  start: frame(
    "message_start",
    `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}`,
  ),
  block: frame("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`),
  text: frame("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"Done."}`),
  blockEnd: frame("content_block_stop", `,"index":0`),
  reason: frame("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}`),
  end: frame("message_stop"),
  ping: frame("ping"),
  error: frame("error", `,"error":{"type":"overloaded_error","message":"Overloaded"}`),
};

const { start, block, text, blockEnd, reason, end } = frames;
export const beginning: readonly (typeof start)[] = [start, block, text];
export const ending: readonly (typeof start)[] = [blockEnd, reason, end];

/** What every good answer of this server folds to. */
export const done = {
  id: "msg_1",
  model: "claude-sonnet-5",
  message: { role: "assistant", content: [{ type: "text", text: "Done." }] },
  stop: "end",
  usage: { plain: 3, read: 0, written: {}, output: 2 },
};

const eventStream = { "content-type": "text/event-stream; charset=utf-8" };

/** Begins a stream and leaves it open. Resolves when the bytes have left. */
export const begin = ({ response }: Call, sent: readonly (typeof start)[]): Promise<void> =>
  new Promise((resolve) => {
    response.writeHead(200, eventStream);
    response.write(asStream(sent), () => resolve());
  });

export const streams: Handler = ({ response }) => {
  response.writeHead(200, eventStream);
  response.end(asStream([...beginning, ...ending]));
};

export const answersWhole: Handler = ({ response }) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(
    `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`,
  );
};

/** As this was asked for. */
export const answers: Handler = (call) => (call.body.includes(`"stream":true`) ? streams(call) : answersWhole(call));

export const refuses =
  (status: number, headers: Readonly<Record<string, string>> = {}, type = "some_error"): Handler =>
  ({ response }) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(`{"type":"error","error":{"type":"${type}","message":"told ${status}"},"request_id":"req_1"}`);
  };

export const resets: Handler = ({ response }) => response.socket?.resetAndDestroy();

/** Never a byte. */
export const silent: Handler = () => undefined;

// --- requests and time -----------------------------------------------------------------------------------------------

export const request = (words = "Hi", closing: Partial<Closing> = {}): Prepared => {
  const head = { model: "claude-sonnet-5", tools: [], system: [], settings: {} };
  const prefix = FrozenPrefix.open(anthropic.encoder, head).append(userText(words));
  return prepare({ protocol: anthropic, prefix, markers: [], closing: { maxTokens: 64, stream: true, ...closing } });
};

export type SteppingTiming = RetryTiming & { readonly waits: readonly number[] };

/** Time that jumps over every wait, and keeps them. */
export const steppingTiming = (chance = 0): SteppingTiming => {
  const waits: number[] = [];
  let now = 0;
  return {
    waits,
    now: () => now,
    random: () => chance,
    wait: async (ms) => {
      waits.push(ms);
      now += ms;
    },
  };
};

export type ManualTiming = RetryTiming & {
  readonly waiting: () => number;
  /** Resolves once so many wait. */
  readonly waited: (count: number) => Promise<void>;
  readonly advance: (ms: number) => void;
};

type Sleeper = { readonly at: number; readonly wake: () => void };

/** Time that stands still until a test moves it. */
export const manualTiming = (chance: () => number = () => 0): ManualTiming => {
  let sleepers: readonly Sleeper[] = [];
  let watchers: readonly { readonly count: number; readonly go: () => void }[] = [];
  let now = 0;
  return {
    now: () => now,
    random: chance,
    wait: (ms) =>
      new Promise((wake) => {
        sleepers = [...sleepers, { at: now + ms, wake }];
        for (const { count, go } of watchers) if (sleepers.length >= count) go();
      }),
    waiting: () => sleepers.length,
    waited: (count) =>
      sleepers.length >= count
        ? Promise.resolve()
        : new Promise((go) => {
            watchers = [...watchers, { count, go }];
          }),
    advance: (ms) => {
      now += ms;
      const due = sleepers.filter(({ at }) => at <= now);
      sleepers = sleepers.filter(({ at }) => at > now);
      for (const { wake } of due) wake();
    },
  };
};
