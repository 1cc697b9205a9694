/** How is an answer encoded on the Messages API, whole and as events?
 *  Invariant: pure; the events, folded, give the whole message; message_delta repeats usage without the lifetime split.
 *  Elsewhere: writing them to a socket (../../serve-answer.ts), deciding the answer (../../script.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { piecesOf, type SentBlock, type SimMessage } from "../../answer.ts";
import { usageFields } from "../../bill.ts";
import { errorType, type Refusal } from "../../errors.ts";
import type { AnswerEncoder, SimEvent } from "../../wire.ts";

/** What an answer repeats of its request. */
export type Echo = {
  /** What the provider dropped from the prompt; undefined unless the client asked for it. */
  readonly transformations: Json | undefined;
  readonly speed: Json;
};

export const answerEncoder = (echo: Echo): AnswerEncoder => ({
  events: (message) => events(message, echo),
  whole: (message) => wholeMessage(message, echo),
  failure: ({ status, message }) =>
    event({ type: "error", error: { type: errorType(status), message }, request_id: null }, "closing"),
});

// --- errors ----------------------------------------------------------------------------------------------------------

export const errorBody = ({ status, message }: Refusal, requestId: string): JsonObject => ({
  type: "error",
  error: { type: errorType(status), message },
  request_id: requestId,
});

// --- the whole message -----------------------------------------------------------------------------------------------

const startUsage = (message: SimMessage, speed: Json, output: number): JsonObject => {
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
    speed,
  };
};

const thinkingDetails = (message: SimMessage): Json =>
  message.usage.thinking ? { thinking_tokens: message.usage.thinking } : null;

const wholeMessage = (message: SimMessage, { transformations, speed }: Echo): JsonObject => ({
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
  ...(transformations === undefined ? {} : { input_transformations: transformations }),
  usage: { ...startUsage(message, speed, message.usage.output), output_tokens_details: thinkingDetails(message) },
});

// --- events ----------------------------------------------------------------------------------------------------------

type Typed = JsonObject & { readonly type: string };

const event = (data: Typed, phase: SimEvent["phase"], more: Partial<SimEvent> = {}): SimEvent => ({
  phase,
  event: data.type,
  data,
  ...more,
});

function* events(message: SimMessage, echo: Echo): Generator<SimEvent> {
  yield startEvent(message, echo);
  for (const [index, block] of message.content.entries()) {
    yield event({ type: "content_block_start", index, content_block: opened(block) }, "content", {
      anchor: "content-start",
    });
    if (index === 0) yield event({ type: "ping" }, "content");
    for (const delta of deltasOf(block, message.rawInputs.get(index)))
      yield event({ type: "content_block_delta", index, delta }, "content", { grows: true });
    yield event({ type: "content_block_stop", index }, "content", { anchor: "content-end", generated: index });
  }
  yield* closingEvents(message);
}

const startEvent = (message: SimMessage, echo: Echo): SimEvent =>
  event(
    {
      type: "message_start",
      message: {
        ...wholeMessage(message, echo),
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: startUsage(message, echo.speed, Math.min(1, message.usage.output)),
      },
    },
    "start",
  );

function* closingEvents(message: SimMessage): Generator<SimEvent> {
  yield event(
    {
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
    },
    "closing",
    { grows: true },
  );
  yield event({ type: "message_stop" }, "closing");
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
