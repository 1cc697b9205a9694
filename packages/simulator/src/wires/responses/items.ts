/** Which items does an answer consist of on the Responses API?
 *  Invariant: one item per block; ids are derived from the response's; thinking is encrypted, and shown only if asked
 *  for.
 *  Elsewhere: the events around them (encode-answer.ts), storing them (session.ts). */

import type { JsonObject } from "@prefork/wire";
import { inputText, type SimMessage } from "../../answer.ts";
import { stringOf } from "../../body.ts";

const prefixes: Readonly<Record<string, string>> = {
  text: "msg",
  thinking: "rs",
  redacted_thinking: "rs",
  tool_use: "fc",
};

const idOf = (message: SimMessage, index: number): string =>
  `${prefixes[stringOf(message.content[index]?.type)] ?? "item"}${message.id.replace(/^[a-z]+/, "")}_${index}`;

export const itemsOf = (message: SimMessage, showThinking: boolean): readonly JsonObject[] =>
  message.content.map((block, index): JsonObject => {
    const id = idOf(message, index);
    switch (block.type) {
      case "thinking":
        return {
          id,
          type: "reasoning",
          summary: showThinking ? [{ type: "summary_text", text: stringOf(block.thinking) }] : [],
          encrypted_content: stringOf(block.signature),
        };
      case "redacted_thinking":
        return { id, type: "reasoning", summary: [], encrypted_content: stringOf(block.data) };
      case "tool_use":
        return {
          id,
          type: "function_call",
          status: "completed",
          arguments: inputText(message, index),
          call_id: stringOf(block.id),
          name: stringOf(block.name),
        };
      default:
        return {
          id,
          type: "message",
          status: statusOf(message, index),
          role: "assistant",
          content: [textPart(message, stringOf(block.text))],
        };
    }
  });

export const isCutOff = ({ stopReason }: SimMessage): boolean =>
  stopReason === "max_tokens" || stopReason === "model_context_window_exceeded";

const statusOf = (message: SimMessage, index: number): string =>
  isCutOff(message) && index === message.content.length - 1 ? "incomplete" : "completed";

/** Text, or the text of a refusal. */
export const textPart = ({ stopReason }: SimMessage, text: string): JsonObject =>
  stopReason === "refusal"
    ? { type: "refusal", refusal: text }
    : { type: "output_text", text, annotations: [], logprobs: [] };
