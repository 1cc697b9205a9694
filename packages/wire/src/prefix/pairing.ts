/** Every tool call is answered in the very next message, because providers refuse a request with an open call.
 *  Invariant: a missing answer is filled in by one constant when the next message enters, so it is the same in every
 *  sibling and no earlier turn is changed. An id names only one call of a conversation.
 *  Elsewhere: the tail of a fork, where placeholders are intended (../fork-messages.ts). */

import { type Block, type Message, type ToolResultBlock, type ToolUseBlock, toolResult } from "../request.ts";

/** Answers a call that has no result of its own. It is constant, so that siblings stay byte-identical. */
export const FORK_PLACEHOLDER_RESULT = "No result stands here: this call is handled in the background.";

export const placeholderFor = (toolUseId: string): ToolResultBlock => toolResult(toolUseId, FORK_PLACEHOLDER_RESULT);

/** The calls that a message leaves open for the next one. */
export const callsIn = (message: Message): readonly ToolUseBlock[] =>
  message.role === "assistant" ? message.content.filter((block) => block.type === "tool_use") : [];

/** `message` as it may follow calls that are still `pending`: all of them answered, results first. */
export const answerPending = (pending: readonly string[], message: Message): readonly Message[] => {
  if (pending.length === 0) return [message];
  if (message.role !== "user") return [{ role: "user", content: pending.map(placeholderFor) }, message];
  const results = message.content.filter((block) => block.type === "tool_result");
  const missing = stillPending(pending, results).map(placeholderFor);
  const others = message.content.filter((block) => block.type !== "tool_result");
  return [{ role: "user", content: [...results, ...missing, ...others] }];
};

/** The calls that are still open after `content`. */
export const stillPending = (pending: readonly string[], content: Message["content"]): readonly string[] => {
  const answered = new Set(content.flatMap((block) => (block.type === "tool_result" ? [block.toolUseId] : [])));
  return pending.filter((id) => !answered.has(id));
};

/** An answer's `content` in which no call repeats another call's id or one of an earlier answer (`isTaken`). Many
 *  endpoints count from `call_0` in each answer, and no provider accepts such a history. Only repeated and empty ids
 *  are replaced, and in a turn that its provider signed only empty ones, because every byte there is the provider's. */
export const withUniqueIds = (content: readonly Block[], isTaken: (id: string) => boolean): readonly Block[] => {
  const isSigned = content.some(hasSignature);
  const used = new Set<string>();
  return content.map((block) => {
    if (block.type !== "tool_use") return block;
    const isOwn = block.id !== "" && (isSigned || (!used.has(block.id) && !isTaken(block.id)));
    const id = isOwn ? block.id : freeId(block.id, (wanted) => used.has(wanted) || isTaken(wanted));
    used.add(id);
    if (isOwn) return block;
    // The provider's own encoding contains the old id.
    const { raw: _raw, ...call } = block;
    return { ...call, id };
  });
};

/** Some endpoints accept ids of at most forty characters. */
const LONGEST_STEM = 32;

const freeId = (id: string, isTaken: (id: string) => boolean): string => {
  const stem = id.slice(0, LONGEST_STEM) || "call";
  for (let count = id === "" ? 1 : 2; ; count += 1) {
    const candidate = `${stem}-${count}`;
    if (!isTaken(candidate)) return candidate;
  }
};

const hasSignature = (block: Block): boolean => {
  if (block.type === "redacted_thinking" || (block.type === "thinking" && block.signature !== "")) return true;
  return "raw" in block && block.raw !== undefined && /"thought_?[sS]ignature"/.test(block.raw);
};
