/** An answer as it may enter the context. Pure.
 *  Invariant: every call in it has an input that is a JSON object, and is known to be whole or not; nothing of an answer
 *  that was cut is ever run.
 *  Elsewhere: running the calls (dispatch.ts), what follows an answer (run.ts). */

import {
  type Block,
  type Message,
  type ModelResponse,
  type ToolResultBlock,
  type ToolUseBlock,
  text,
  withUniqueIds,
} from "@prefork/wire";

export type Answered = {
  /** Undefined when there is nothing in it that a provider would take back. */
  readonly message: Message | undefined;
  readonly calls: readonly ToolUseBlock[];
  /** The answers to those of its calls that may not run. */
  readonly refused: readonly ToolResultBlock[];
  readonly text: string;
};

const CUT =
  "Not run: the answer was cut at its length limit before this call was complete. Send smaller calls, fewer at a time.";
const UNFINISHED = "Not run: the answer ended before it was complete.";
const BROKEN = "Not run: the input of this call was no complete JSON object.";
const TWICE = "Not run: another call of the same answer has the same id.";

/** `isTaken`: does an earlier answer of the conversation have a call with this id? */
export const readAnswer = (
  { message, stop }: Pick<ModelResponse, "message" | "stop">,
  isTaken: (id: string) => boolean = () => false,
): Answered => {
  const isComplete = stop === "tool-use" || stop === "end" || stop === "stop-sequence";
  const refusals = new Map<string, string>();
  const seen = new Set<string>();
  const content = withUniqueIds(message.content, isTaken).flatMap((block): readonly Block[] => {
    if (!isTakenBack(block, isComplete)) return [];
    if (block.type !== "tool_use") return [block];
    // In a signed turn, where ids stay as they are: two calls with one id cannot both be answered.
    if (seen.has(block.id)) {
      refusals.set(block.id, TWICE);
      return [];
    }
    seen.add(block.id);
    const isWhole = isJsonObject(block.input);
    if (!isWhole) refusals.set(block.id, BROKEN);
    if (!isComplete) refusals.set(block.id, stop === "max-tokens" ? CUT : UNFINISHED);
    return [isWhole ? block : emptied(block)];
  });
  return {
    message: content.length > 0 ? { role: "assistant", content } : undefined,
    calls: content.filter((block) => block.type === "tool_use"),
    refused: [...refusals].map(([id, why]) => refusal(id, why)),
    text: textOf(content),
  };
};

/** Providers refuse text without a letter in it, and thinking that was cut before its signature. */
const isTakenBack = (block: Block, isComplete: boolean): boolean =>
  block.type === "text"
    ? block.text.trim() !== ""
    : block.type !== "thinking" || block.signature !== "" || (isComplete && block.thinking !== "");

const refusal = (toolUseId: string, why: string): ToolResultBlock => ({
  type: "tool_result",
  toolUseId,
  content: [text(why)],
  isError: true,
});

/** What had arrived of an answer that was interrupted: its text alone. Thinking is only taken back with its signature,
 *  which comes last, and no call of it may run. */
export const readPartial = (shown: string): Message | undefined =>
  shown.trim() === "" ? undefined : { role: "assistant", content: [text(shown.trimEnd())] };

export const textOf = (content: readonly Block[]): string =>
  content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");

const emptied = ({ id, name }: ToolUseBlock): ToolUseBlock => ({ type: "tool_use", id, name, input: "{}" });

const isJsonObject = (json: string): boolean => {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
};
