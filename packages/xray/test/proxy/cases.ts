/** Made-up exchanges, each from a number alone: what a client sends, what a provider answers, and what goes wrong. */

import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";

/** Chance from a number: the same number, the same case. */
export const chanceFrom = (seed: number): (() => number) => {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};

type Chance = () => number;
const below = (chance: Chance, limit: number): number => Math.floor(chance() * limit);
const oneOf = <T>(chance: Chance, items: readonly T[]): T => items[below(chance, items.length)] as T;

export type Fault =
  | "none"
  | "client leaves while sending"
  | "client leaves while reading"
  | "provider resets before it answers"
  | "provider resets in the middle"
  | "provider ends in the middle";

export type Message = {
  /** Flat, as they stand on the wire, without those that frame the body. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  /** Where the body is cut into writes. */
  readonly cuts: readonly number[];
  readonly framing: "length" | "chunks" | "none" | "close";
  readonly trailers: readonly (readonly [string, string])[];
};

export type Case = {
  readonly number: number;
  readonly method: string;
  readonly path: string;
  readonly request: Message;
  readonly hints: readonly string[];
  readonly status: number;
  readonly reason: string;
  readonly answer: Message;
  readonly fault: Fault;
  /** Each end takes its time with reading. */
  readonly isSlow: boolean;
};

const PATHS = [
  "/v1/messages",
  "/v1/messages?beta=true",
  "/v1/responses",
  "/v1/chat/completions?key=sk-in-the-query",
  "/v1/messages/count_tokens",
  "/v1/models?limit=1000&after_id=a%2Fb",
  "/v1/files/file%20one?x=%00",
  "/strange//path;with=parameters?and=a%20query&and=twice#",
];

const NAMES = [
  "x-custom",
  "X-Custom",
  "X-CUSTOM",
  "anthropic-beta",
  "Anthropic-Version",
  "authorization",
  "Cookie",
  "cookie",
  "accept",
  "X-Empty",
];
const ANSWER_NAMES = [
  "request-id",
  "Set-Cookie",
  "set-cookie",
  "X-RateLimit-Remaining",
  "retry-after",
  "Cache-Control",
  "Vary",
  "vary",
];

const word = (chance: Chance, length: number): string => {
  const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ;,=/+\u00e9\u00ff";
  const text = Array.from({ length }, () => letters[below(chance, letters.length)]).join("");
  return text.trim();
};

const headersOf = (chance: Chance, names: readonly string[]): readonly string[] =>
  Array.from({ length: below(chance, 9) }, () => [oneOf(chance, names), word(chance, below(chance, 30))]).flat();

const bytesOf = (chance: Chance, length: number): Buffer => {
  const bytes = Buffer.allocUnsafe(length);
  for (let at = 0; at < length; at += 1) bytes[at] = below(chance, 256);
  return bytes;
};

const sizeOf = (chance: Chance): number =>
  oneOf(chance, [0, 1, 40, 900, 5_000, 20_000, 70_000, 200_000]) + below(chance, 50);

const cutsOf = (chance: Chance, length: number): readonly number[] =>
  [...new Set(Array.from({ length: below(chance, 6) }, () => below(chance, length + 1)))].sort((a, b) => a - b);

const question = (chance: Chance): Buffer => {
  const words = (length: number): string =>
    Array.from({ length }, () => oneOf(chance, ["oak ", "elm ", "fir "])).join("");
  const marker = { cache_control: { type: "ephemeral" } };
  const body = {
    model: "claude-sonnet-5",
    max_tokens: 10,
    stream: true,
    system: [{ type: "text", text: "word ".repeat(2_000), ...marker }],
    messages: [{ role: "user", content: [{ type: "text", text: words(below(chance, 4_000)), ...marker }] }],
  };
  return Buffer.from(JSON.stringify(body));
};

const usage = { input_tokens: 3, cache_read_input_tokens: 10, cache_creation_input_tokens: 2_000, output_tokens: 1 };

const stream = (chance: Chance): Buffer => {
  const frames = [
    { type: "message_start", message: { id: "msg_1", usage } },
    ...Array.from({ length: below(chance, 40) }, () => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "text_delta", text: word(chance, 20) },
    })),
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 12 } },
    { type: "message_stop" },
  ];
  return Buffer.from(frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join(""));
};

const COMPRESSIONS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes),
  br: (bytes) => brotliCompressSync(bytes),
  zstd: (bytes) => zstdCompressSync(bytes),
};

const trailersOf = (chance: Chance): Message["trailers"] =>
  chance() < 0.3
    ? [
        ["X-Checksum", word(chance, 12)],
        ["x-second", word(chance, 5)],
      ]
    : [];

const requestOf = (chance: Chance, method: string): Message => {
  const isBare = method === "GET" || method === "HEAD" || chance() < 0.05;
  const body = isBare ? Buffer.alloc(0) : chance() < 0.4 ? question(chance) : bytesOf(chance, sizeOf(chance));
  const framing = isBare ? "none" : oneOf(chance, ["length", "length", "chunks"] as const);
  const trailers = framing === "chunks" ? trailersOf(chance) : [];
  const headers = [
    ...headersOf(chance, NAMES),
    ...(isBare ? [] : ["content-type", "application/json"]),
    ...(trailers.length > 0 ? ["Trailer", trailers.map(([name]) => name).join(", ")] : []),
  ];
  return { headers, body, cuts: cutsOf(chance, body.length), framing, trailers };
};

const answerOf = (chance: Chance, hasBody: boolean): Message => {
  const isStream = chance() < 0.5;
  const plain = isStream ? stream(chance) : bytesOf(chance, sizeOf(chance));
  const encoding = chance() < 0.3 ? oneOf(chance, Object.keys(COMPRESSIONS)) : undefined;
  const body = encoding === undefined ? plain : (COMPRESSIONS[encoding]?.(plain) ?? plain);
  const framing = oneOf(chance, ["length", "chunks", "chunks", "chunks", "close"] as const);
  const trailers = framing === "chunks" && hasBody ? trailersOf(chance) : [];
  const headers = [
    ...headersOf(chance, ANSWER_NAMES),
    "Content-Type",
    isStream ? "text/event-stream; charset=utf-8" : "application/json",
    ...(encoding === undefined ? [] : ["content-encoding", encoding]),
    ...(trailers.length > 0 ? ["Trailer", trailers.map(([name]) => name).join(", ")] : []),
  ];
  return { headers, body, cuts: cutsOf(chance, body.length), framing, trailers };
};

const FAULTS: readonly Fault[] = [
  "client leaves while sending",
  "client leaves while reading",
  "provider resets before it answers",
  "provider resets in the middle",
  "provider ends in the middle",
];

export const caseOf = (seed: number, number: number): Case => {
  const chance = chanceFrom(seed * 1_000_003 + number);
  const method = oneOf(chance, ["POST", "POST", "POST", "POST", "GET", "HEAD", "PUT", "DELETE", "PATCH"]);
  const status = oneOf(chance, [200, 200, 200, 200, 201, 204, 304, 400, 429, 529]);
  const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
  return {
    number,
    method,
    path: oneOf(chance, PATHS),
    request: requestOf(chance, method),
    hints: chance() < 0.1 ? ["Link", "</style.css>; rel=preload", "X-Progress", word(chance, 5)] : [],
    status,
    reason: oneOf(chance, ["OK", "Fine By Me", "as it is"]),
    answer: answerOf(chance, hasBody),
    fault: chance() < 0.2 ? oneOf(chance, FAULTS) : "none",
    isSlow: chance() < 0.05,
  };
};

/** The body as it is written, piece by piece. */
export const piecesOf = ({ body, cuts }: Message): readonly Buffer[] =>
  [0, ...cuts].map((from, index) => body.subarray(from, cuts[index] ?? body.length)).filter(({ length }) => length > 0);

/** The headers that frame a body go with it. */
export const framedHeaders = ({ headers, body, framing }: Message): readonly string[] => {
  if (framing === "length") return [...headers, "Content-Length", String(body.length)];
  return framing === "chunks" ? [...headers, "Transfer-Encoding", "chunked"] : headers;
};
