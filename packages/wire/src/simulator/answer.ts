/** How does an answer look on the wire, whole and as events?
 *  Invariant: pure; the events, folded, give the whole message; message_delta repeats usage without the lifetime split.
 *  Elsewhere: writing them to a socket (serve-answer.ts), deciding the answer (script.ts). */

import { hash } from "node:crypto";
import type { Json, JsonObject } from "../request.ts";
import type { Usage } from "../usage.ts";
import { usageFields } from "./bill.ts";
import { countedBlock } from "./render-block.ts";
import type { AnswerBlock, SimAnswer } from "./script.ts";
import type { TokenRule } from "./tokens.ts";

export type SentBlock = JsonObject;

export type SimMessage = {
  readonly id: string;
  readonly model: string;
  readonly content: readonly SentBlock[];
  readonly stopReason: string;
  readonly stopSequence: string | null;
  readonly usage: Usage;
  readonly diagnostics: Json;
  /** What the provider left out of the prompt; undefined unless the client asked to be told. */
  readonly transformations: Json | undefined;
  readonly speed: Json;
  /** Output tokens of each block. */
  readonly blockTokens: readonly number[];
  /** Tool inputs that are streamed as given, by index of their block. */
  readonly rawInputs: ReadonlyMap<number, string>;
};

export type MessageTerms = {
  readonly sequence: number;
  readonly requestedModel: string;
  readonly promptUsage: Usage;
  readonly diagnostics: Json;
  readonly transformations: Json | undefined;
  readonly speed: Json;
  readonly tokenRule: TokenRule;
  readonly sign: (thinking: string) => string;
  readonly messageId: string;
};

/** Ids of the provider's form from what is known: two equal runs give equal ids. */
export const stableId = (prefix: string, sequence: number, content: string): string =>
  `${prefix}_sim${sequence}_${hash("sha256", `${sequence} ${content}`).slice(0, 16)}`;

const sent = (block: AnswerBlock, index: number, terms: MessageTerms): SentBlock => {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text, citations: (block as { citations?: Json }).citations ?? null };
    case "thinking": {
      const { thinking, signature } = block as { thinking: string; signature?: string };
      return { type: "thinking", thinking, signature: signature ?? terms.sign(thinking) };
    }
    case "tool_use":
    case "server_tool_use": {
      const { name, input = {}, id } = block as { name: string; input?: JsonObject; id?: string };
      const prefix = block.type === "tool_use" ? "toolu" : "srvtoolu";
      const content = `${index} ${name} ${JSON.stringify(input)}`;
      return {
        type: block.type,
        id: id ?? stableId(prefix, terms.sequence, content),
        name,
        input,
        caller: { type: "direct" },
      };
    }
    default:
      return block as JsonObject;
  }
};

export const messageOf = (answer: SimAnswer, terms: MessageTerms): SimMessage => {
  const content = answer.content.map((block, index) => sent(block, index, terms));
  const tokens = content.map((block) => terms.tokenRule(countedBlock(block)));
  const thinking = content.reduce((sum, { type }, at) => sum + (type === "thinking" ? (tokens[at] ?? 0) : 0), 0);
  const output = answer.outputTokens ?? tokens.reduce((sum, count) => sum + count, 0);
  const calls = content.some(({ type }) => type === "tool_use");
  return {
    id: terms.messageId,
    model: answer.model ?? terms.requestedModel,
    content,
    stopReason: answer.stopReason ?? (calls ? "tool_use" : "end_turn"),
    stopSequence: answer.stopSequence ?? null,
    usage: { ...terms.promptUsage, output, thinking },
    diagnostics: terms.diagnostics,
    transformations: terms.transformations,
    speed: terms.speed,
    blockTokens: tokens,
    rawInputs: new Map(
      answer.content.flatMap((block, index) => {
        const raw = (block as { inputJson?: string }).inputJson;
        return raw === undefined ? [] : [[index, raw] as const];
      }),
    ),
  };
};

const startUsage = (message: SimMessage, output: number): JsonObject => {
  const { short, long, all } = usageFields(message.usage);
  return {
    input_tokens: message.usage.plain,
    cache_creation_input_tokens: all,
    cache_read_input_tokens: message.usage.read,
    cache_creation: { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long },
    output_tokens: output,
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: "standard",
    inference_geo: null,
    speed: message.speed,
  };
};

const thinkingDetails = (message: SimMessage): Json =>
  message.usage.thinking ? { thinking_tokens: message.usage.thinking } : null;

/** The answer to a request that did not ask for a stream. */
export const wholeMessage = (message: SimMessage): JsonObject => ({
  id: message.id,
  type: "message",
  role: "assistant",
  model: message.model,
  content: message.content,
  stop_reason: message.stopReason,
  stop_sequence: message.stopSequence,
  stop_details: null,
  container: null,
  diagnostics: message.diagnostics,
  ...(message.transformations === undefined ? {} : { input_transformations: message.transformations }),
  usage: { ...startUsage(message, message.usage.output), output_tokens_details: thinkingDetails(message) },
});

export type SimEvent = { readonly event: string; readonly data: JsonObject };

const event = (data: JsonObject & { readonly type: string }): SimEvent => ({ event: data.type, data });

export const startEvent = (message: SimMessage): SimEvent =>
  event({
    type: "message_start",
    message: {
      ...wholeMessage(message),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: startUsage(message, Math.min(1, message.usage.output)),
    },
  });

export function* contentEvents(message: SimMessage): Generator<SimEvent> {
  for (const [index, block] of message.content.entries()) {
    yield event({ type: "content_block_start", index, content_block: opened(block) });
    if (index === 0) yield event({ type: "ping" });
    for (const delta of deltasOf(block, message.rawInputs.get(index)))
      yield event({ type: "content_block_delta", index, delta });
    yield event({ type: "content_block_stop", index });
  }
}

export function* closingEvents(message: SimMessage): Generator<SimEvent> {
  yield event({
    type: "message_delta",
    delta: {
      stop_reason: message.stopReason,
      stop_sequence: message.stopSequence,
      stop_details: null,
      container: null,
    },
    usage: {
      input_tokens: message.usage.plain,
      cache_creation_input_tokens: usageFields(message.usage).all,
      cache_read_input_tokens: message.usage.read,
      output_tokens: message.usage.output,
      output_tokens_details: thinkingDetails(message),
      server_tool_use: null,
    },
  });
  yield event({ type: "message_stop" });
}

/** A block as it looks before its deltas. */
const opened = (block: SentBlock): SentBlock => {
  switch (block.type) {
    case "text":
      return { ...block, text: "" };
    case "thinking":
      return { ...block, thinking: "", signature: "" };
    case "tool_use":
    case "server_tool_use":
      return { ...block, input: {} };
    default:
      return block;
  }
};

const PIECE_LENGTH = 48;

/** Cut at code points: a delta never holds half a character. */
const piecesOf = function* (text: string): Generator<string> {
  let start = 0;
  while (start < text.length) {
    let end = Math.min(start + PIECE_LENGTH, text.length);
    if (end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1] ?? "")) end += 1;
    yield text.slice(start, end);
    start = end;
  }
};

function* deltasOf(block: SentBlock, rawInput: string | undefined): Generator<JsonObject> {
  switch (block.type) {
    case "text":
      for (const text of piecesOf(block.text as string)) yield { type: "text_delta", text };
      return;
    case "thinking":
      for (const thinking of piecesOf(block.thinking as string)) yield { type: "thinking_delta", thinking };
      yield { type: "signature_delta", signature: block.signature as string };
      return;
    case "tool_use":
    case "server_tool_use":
      yield { type: "input_json_delta", partial_json: "" };
      for (const partial of piecesOf(rawInput ?? JSON.stringify(block.input)))
        yield { type: "input_json_delta", partial_json: partial };
  }
}
