/** What goes over the socket between a session and an attached client: one JSON object per line.
 *  Invariant: the server greets first, with the protocol's version. A request is checked before it is used. A line longer
 *  than the limit ends the connection, so nobody can fill the other side's memory.
 *  Elsewhere: the server (serve.ts, attached-client.ts), the client (connect.ts), the socket's folder (sockets.ts). */

import type { Answer, Question, RuntimeEvent, SessionControl } from "@prefork/runtime";
import * as z from "zod";

/** Raised when a client of an older version would misunderstand the frames. */
export const PROTOCOL_VERSION = 1;

/** Enough for a prompt with pictures. */
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024;
/** Enough for the event of the longest tool result. */
export const MAX_REPLY_BYTES = 64 * 1024 * 1024;

/** What a list of running sessions shows. */
export type SessionAbout = {
  readonly session: string;
  readonly pid: number;
  readonly cwd: string;
  /** The start of its first prompt; empty before that. */
  readonly title: string;
  /** Milliseconds since 1970. */
  readonly openedAt: number;
};

export type Goodbye = {
  readonly type: "goodbye";
  /** `ended`: the session is closed. `slow`: the client did not read its events in time, and may connect again. `full`:
   *  there are too many clients. `broken`: the client sent something that cannot be read on from. */
  readonly reason: "ended" | "slow" | "full" | "broken";
  readonly message: string;
};

export type ServerFrame =
  | (SessionAbout & {
      readonly type: "hello";
      readonly version: number;
      readonly keptFrom: number;
      readonly questions: readonly Question[];
    })
  /** `id`: of the request that subscribed. */
  | { readonly type: "event"; readonly id: number; readonly event: RuntimeEvent }
  /** Sent before an event that opens or closes a question. */
  | { readonly type: "questions"; readonly questions: readonly Question[] }
  | { readonly type: "reply"; readonly id: number; readonly result: unknown }
  /** Without an id: the request could not be read. */
  | { readonly type: "error"; readonly id?: number; readonly message: string }
  | Goodbye;

const id = z.int().min(0);
const taskId = z.string().min(1).max(200).exactOptional();
const reason = z.string().max(10_000).exactOptional();
const all = z.boolean().exactOptional();

const source = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("base64"), mediaType: z.string(), data: z.string() }),
  z.strictObject({ kind: z.literal("url"), url: z.string() }),
  z.strictObject({ kind: z.literal("file"), fileId: z.string() }),
  z.strictObject({ kind: z.literal("text"), text: z.string() }),
]);

/** Without a provider's own encoding: a client sends what a person entered. */
const block = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.string() }),
  z.strictObject({ type: z.literal("image"), source }),
  z.strictObject({ type: z.literal("document"), source, title: z.string().exactOptional() }),
]);

const answer = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("allow"), reason, all }),
  z.strictObject({ kind: z.literal("always"), rule: z.string().min(1).max(10_000), all }),
  z.strictObject({ kind: z.literal("deny"), reason, stop: z.boolean().exactOptional(), all }),
]) satisfies z.ZodType<Answer>;

const rewind = z.strictObject({
  to: z.string().min(1).max(200),
  place: z.enum(["before", "after"]).exactOptional(),
  restore: z.enum(["conversation", "files", "both"]).exactOptional(),
  preview: z.boolean().exactOptional(),
});

export const requestSchema = z.discriminatedUnion("method", [
  z.strictObject({ id, method: z.literal("subscribe"), fromSeq: z.int().min(0).exactOptional() }),
  /** `of`: the id of the request that subscribed, or that prompted. */
  z.strictObject({ id, method: z.literal("unsubscribe"), of: id }),
  z.strictObject({
    ...{ id, method: z.literal("prompt"), prompt: z.union([z.string(), z.array(block).min(1)]) },
    tasks: z.enum(["wait", "leave"]).exactOptional(),
  }),
  z.strictObject({ id, method: z.literal("cancel"), of: id }),
  z.strictObject({ id, method: z.literal("answer"), questionId: z.string().min(1).max(200), answer }),
  z.strictObject({ id, method: z.literal("steer"), text: z.string(), taskId }),
  z.strictObject({ id, method: z.literal("stop"), taskId }),
  z.strictObject({ id, method: z.literal("background"), taskId }),
  z.strictObject({ id, method: z.literal("tree") }),
  z.strictObject({ id, method: z.literal("rewind"), options: rewind }),
]);

export type Request = z.infer<typeof requestSchema>;
export type RequestBody = Request extends infer One ? (One extends Request ? Omit<One, "id"> : never) : never;

/** The blocks that a client may send are blocks that a prompt may have. */
export type PromptContent = Parameters<SessionControl["prompt"]>[0];

export const encodeFrame = (frame: ServerFrame | Request): string => `${JSON.stringify(frame)}\n`;

const LINE_FEED = 0x0a;

/** Splits what a socket receives into lines. */
export class FrameSplitter {
  readonly #maxBytes: number;
  readonly #onLine: (line: string) => void;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number, onLine: (line: string) => void) {
    this.#maxBytes = maxBytes;
    this.#onLine = onLine;
  }

  /** False if a line is too long; what follows cannot be read then. */
  push(chunk: Buffer): boolean {
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, from)) {
      this.#add(chunk.subarray(from, at));
      if (this.#bytes > this.#maxBytes) return false;
      const line = Buffer.concat(this.#parts).toString("utf8");
      this.#parts = [];
      this.#bytes = 0;
      from = at + 1;
      this.#onLine(line);
    }
    this.#add(chunk.subarray(from));
    return this.#bytes <= this.#maxBytes;
  }

  #add(part: Buffer): void {
    if (part.length > 0) this.#parts.push(part);
    this.#bytes += part.length;
  }
}
