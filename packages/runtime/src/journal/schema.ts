/** Is the content of a line a valid entry?
 *  Invariant: the schema gives exactly the types of entry.ts. Values that came from JSON need no second check that they
 *  are JSON.
 *  Elsewhere: splitting lines (line.ts). */

import type {
  Block,
  Head,
  Json,
  JsonObject,
  KeySettings,
  MediaSource,
  Message,
  StopReason,
  ToolSpec,
  Usage,
} from "@prefork/wire";
import * as z from "zod";
import type { JournalEntry, ParentPointer } from "./entry.ts";

const raw = z.string();
const count = z.int().nonnegative();
const json = z.custom<Json>((value) => value !== undefined);

const source: z.ZodType<MediaSource> = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("base64"), mediaType: z.string(), data: z.string() }),
  z.object({ kind: z.literal("url"), url: z.string() }),
  z.object({ kind: z.literal("file"), fileId: z.string() }),
  z.object({ kind: z.literal("text"), text: z.string() }),
]);

const text = z.object({
  type: z.literal("text"),
  text: z.string(),
  citations: z.array(raw).exactOptional(),
  raw: raw.exactOptional(),
});
const image = z.object({ type: z.literal("image"), source });
const document = z.object({ type: z.literal("document"), source, title: z.string().exactOptional() });
const toolResult = z.object({
  type: z.literal("tool_result"),
  toolUseId: z.string(),
  content: z.array(z.discriminatedUnion("type", [text, image, document])),
  isError: z.boolean().exactOptional(),
});

const block: z.ZodType<Block> = z.discriminatedUnion("type", [
  text,
  image,
  document,
  z.object({
    type: z.literal("thinking"),
    thinking: z.string(),
    signature: z.string(),
    raw: raw.exactOptional(),
  }),
  z.object({ type: z.literal("redacted_thinking"), data: z.string(), raw: raw.exactOptional() }),
  z.object({
    type: z.literal("tool_use"),
    id: z.string(),
    name: z.string(),
    input: raw,
    extras: raw.exactOptional(),
    raw: raw.exactOptional(),
  }),
  toolResult,
  z.object({ type: z.literal("provider"), kind: z.string(), json: raw }),
]);

const message: z.ZodType<Message> = z.object({
  role: z.enum(["user", "assistant", "system"]),
  content: z.array(block),
});

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const tool: z.ZodType<ToolSpec> = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("function"),
    name: z.string(),
    description: z.string(),
    inputSchema: z.custom<JsonObject>(isRecord),
  }),
  z.object({ type: z.literal("provider"), name: z.string(), json: raw }),
]);

/** Only the betas of the settings are used again. The rest is in the bytes that were sent. */
const settings = z.custom<KeySettings>(
  (value) =>
    isRecord(value) &&
    (value.betas === undefined ||
      (Array.isArray(value.betas) && value.betas.every((beta: unknown) => typeof beta === "string"))),
);

const head: z.ZodType<Head> = z.object({
  model: z.string(),
  tools: z.array(tool),
  system: z.array(text),
  settings,
});

const ttl = z.enum(["5m", "30m", "1h", "12h"]);

const usage: z.ZodType<Usage> = z.object({
  plain: z.number(),
  read: z.number(),
  written: z.partialRecord(ttl, z.number()),
  output: z.number(),
  thinking: z.number().exactOptional(),
  estimated: z.number().exactOptional(),
});

const stop: z.ZodType<StopReason> = z.enum([
  "end",
  "tool-use",
  "max-tokens",
  "stop-sequence",
  "pause",
  "refusal",
  "context-full",
  "other",
]);

const marker = z.object({
  segment: count,
  role: z.enum(["system", "inherited", "shared", "previous", "tail"]),
  ttl,
});

const parent: z.ZodType<ParentPointer> = z.object({ session: z.string(), seq: count, hash: z.string() });

const shapes = {
  opened: z.object({
    kind: z.literal("opened"),
    id: z.string(),
    cwd: z.string(),
    model: z.string(),
    protocol: z.string(),
    address: z.string().exactOptional(),
    product: z.string(),
    parent: parent.exactOptional(),
    startedBy: z.object({ session: z.string(), task: z.string() }).exactOptional(),
  }),
  epoch: z.object({
    kind: z.literal("epoch"),
    epoch: count,
    reason: z.enum(["start", "compaction", "model", "clear"]),
    protocol: z.string(),
    head,
  }),
  message: z.object({ kind: z.literal("message"), message, source: z.string().exactOptional() }),
  blocks: z.object({ kind: z.literal("blocks"), blocks: z.array(block), source: z.string().exactOptional() }),
  request: z.object({
    kind: z.literal("request"),
    turn: count,
    markers: z.array(marker),
    prefixHash: z.string(),
    maxTokens: count,
    reservedUsd: z.number().exactOptional(),
  }),
  response: z.object({
    kind: z.literal("response"),
    turn: count,
    id: z.string(),
    model: z.string(),
    stop,
    usage,
    usd: z.number().exactOptional(),
    ms: z.number(),
  }),
  billed: z.object({
    kind: z.literal("billed"),
    turn: count,
    usage,
    usd: z.number().exactOptional(),
    for: z.enum(["stored", "storage"]).exactOptional(),
  }),
  call_started: z.object({
    kind: z.literal("call_started"),
    callId: z.string(),
    name: z.string(),
    readOnly: z.boolean(),
  }),
  call_ended: z.object({
    kind: z.literal("call_ended"),
    callId: z.string(),
    result: toolResult,
    ms: z.number(),
    state: json.exactOptional(),
  }),
  state: z.object({ kind: z.literal("state"), slot: z.string(), value: json }),
  notice: z.object({
    kind: z.literal("notice"),
    id: z.string(),
    text: z.string(),
    source: z.string().exactOptional(),
    facts: json.exactOptional(),
  }),
  notice_delivered: z.object({ kind: z.literal("notice_delivered"), id: z.string() }),
  fork: z.object({ kind: z.literal("fork"), session: z.string(), after: count }),
  unfork: z.object({ kind: z.literal("unfork"), session: z.string() }),
  branch: z.object({
    kind: z.literal("branch"),
    after: count,
    prefixHash: z.string(),
    pending: z.array(z.string()),
  }),
  exchange_ended: z.object({
    kind: z.literal("exchange_ended"),
    reason: z.string(),
    facts: json.exactOptional(),
  }),
} satisfies { readonly [Kind in JournalEntry["kind"]]: z.ZodType<Extract<JournalEntry, { readonly kind: Kind }>> };

const shapeOf = (kind: string): z.ZodType<JournalEntry> | undefined =>
  Object.hasOwn(shapes, kind) ? shapes[kind as keyof typeof shapes] : undefined;

export type CheckedEntry =
  | { readonly ok: true; readonly entry: JournalEntry }
  | { readonly ok: false; readonly kind: "unreadable" | "unknown"; readonly detail: string };

export const checkEntry = (value: Readonly<Record<string, unknown>>): CheckedEntry => {
  const { kind } = value;
  if (typeof kind !== "string") return { ok: false, kind: "unreadable", detail: "the line has no kind" };
  const shape = shapeOf(kind);
  if (!shape) return { ok: false, kind: "unknown", detail: `unknown kind of entry "${kind}"` };
  const checked = shape.safeParse(value);
  if (checked.success) return { ok: true, entry: checked.data };
  const [issue] = checked.error.issues;
  const place = issue?.path.length ? `${kind}.${issue.path.join(".")}` : kind;
  return { ok: false, kind: "unreadable", detail: `${place}: ${issue?.message ?? "is invalid"}` };
};
