/** Prompts as JSON lines: `{"type":"user","message":{"role":"user","content":"…"}}`, or `{"prompt":"…"}`.
 *  Invariant: each line is one prompt, in order; a line that is none is named by its number.
 *  Elsewhere: what is printed for them (output.ts). */

import { UsageError } from "../io.ts";

export async function* streamedPrompts(lines: AsyncIterable<string>): AsyncGenerator<string, void> {
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (line.trim() !== "") yield readPrompt(line, number);
  }
}

const readPrompt = (line: string, number: number): string => {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new UsageError(`line ${number} of standard input: not valid JSON`, { cause });
  }
  const prompt = promptIn(value);
  if (prompt === undefined || prompt.trim() === "")
    throw new UsageError(
      `line ${number} of standard input: give {"type":"user","message":{"role":"user","content":"…"}}`,
    );
  return prompt;
};

const promptIn = (value: unknown): string | undefined => {
  if (!isObject(value)) return undefined;
  if (typeof value.prompt === "string") return value.prompt;
  const { message } = value;
  if (value.type !== "user" || !isObject(message)) return undefined;
  const { content } = message;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return undefined;
  const texts = content.map((block: unknown) => (isObject(block) && block.type === "text" ? block.text : undefined));
  return texts.every((text): text is string => typeof text === "string") ? texts.join("\n") : undefined;
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
