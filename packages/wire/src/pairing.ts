/** Every tool call is answered in the very next message, or the provider refuses the request.
 *  Invariant: what is missing is answered by one constant at the moment the next message enters, so the answer is the
 *  same in every sibling and no earlier turn is ever touched.
 *  Elsewhere: the tail of a fork, where placeholders are meant (fork-messages.ts). */

import { type Message, type ToolResultBlock, type ToolUseBlock, toolResult } from "./request.ts";

/** Stands where a call has no result of its own. One constant, so that siblings stay byte-identical. */
export const FORK_PLACEHOLDER_RESULT = "No result stands here: this call is handled in the background.";

export const placeholderFor = (toolUseId: string): ToolResultBlock => toolResult(toolUseId, FORK_PLACEHOLDER_RESULT);

/** The calls a message leaves open for the next one. */
export const callsIn = (message: Message): readonly ToolUseBlock[] =>
  message.role === "assistant" ? message.content.filter((block) => block.type === "tool_use") : [];

/** `message` as it may follow calls that are still `pending`: all answered, results first. */
export const answerPending = (pending: readonly string[], message: Message): readonly Message[] => {
  if (pending.length === 0) return [message];
  if (message.role !== "user") return [{ role: "user", content: pending.map(placeholderFor) }, message];
  const results = message.content.filter((block) => block.type === "tool_result");
  const missing = stillPending(pending, results).map(placeholderFor);
  const others = message.content.filter((block) => block.type !== "tool_result");
  return [{ role: "user", content: [...results, ...missing, ...others] }];
};

/** What is still open once `content` stands there. */
export const stillPending = (pending: readonly string[], content: Message["content"]): readonly string[] => {
  const answered = new Set(content.flatMap((block) => (block.type === "tool_result" ? [block.toolUseId] : [])));
  return pending.filter((id) => !answered.has(id));
};
