/** An answer as it may enter the context. Pure.
 *  Invariant: every call in it has an input that is a JSON object, and is known to be whole or not; nothing of an answer
 *  that was cut is ever run.
 *  Elsewhere: running the calls (dispatch.ts), what follows an answer (run.ts). */

import type { Block, Message, ModelResponse, ToolUseBlock } from "@prefork/wire";

export type Answered = {
  /** Undefined when there is nothing in it that a provider would take back. */
  readonly message: Message | undefined;
  readonly calls: readonly ToolUseBlock[];
  /** Why calls of it may not run, by their ids. */
  readonly unsound: ReadonlyMap<string, string>;
  readonly text: string;
};

const CUT =
  "Not run: the answer was cut at its length limit before this call was complete. Send smaller calls, fewer at a time.";
const BROKEN = "Not run: the input of this call was no complete JSON object.";
const TWICE = "Not run: another call of the same answer has the same id.";

export const readAnswer = ({ message, stop }: Pick<ModelResponse, "message" | "stop">): Answered => {
  const unsound = new Map<string, string>();
  const seen = new Set<string>();
  const content = message.content.flatMap((block): readonly Block[] => {
    if (block.type === "text" && block.text === "") return [];
    if (block.type !== "tool_use") return [block];
    // Two calls with one id cannot both be answered, and a provider takes neither back.
    if (seen.has(block.id)) {
      unsound.set(block.id, TWICE);
      return [];
    }
    seen.add(block.id);
    const isWhole = isJsonObject(block.input);
    if (!isWhole) unsound.set(block.id, BROKEN);
    if (stop !== "tool-use" && stop !== "end" && stop !== "stop-sequence") unsound.set(block.id, CUT);
    return [isWhole ? block : emptied(block)];
  });
  return {
    message: content.length > 0 ? { role: "assistant", content } : undefined,
    calls: content.filter((block) => block.type === "tool_use"),
    unsound,
    text: textOf(content),
  };
};

/** What had arrived of an answer that was interrupted: its text alone. Thinking is only taken back with its signature,
 *  which comes last, and no call of it may run. */
export const readPartial = (text: string): Message | undefined =>
  text.trim() === "" ? undefined : { role: "assistant", content: [{ type: "text", text: text.trimEnd() }] };

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
