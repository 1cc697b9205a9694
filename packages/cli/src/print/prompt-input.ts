/** Prompts from the command line and from standard input, as one text or as JSON lines
 *  (`{"type":"user","message":{"role":"user","content":"…"}}` or `{"prompt":"…"}`).
 *  Invariant: an input pipe that stays silent neither delays a run nor keeps the process alive; input that arrives is never
 *  dropped silently; each JSON line is one prompt, in order, and an invalid line is named by its number.
 *  Elsewhere: what is printed for them (output.ts). */

import { type Io, UsageError } from "../io.ts";

export type PromptInput = {
  readonly words: readonly string[];
  /** The text on standard input; undefined if there is none. */
  readonly piped: string | undefined;
};

/** 2 MB of text is more than any model can read at once. */
export const MAX_PIPED_CHARACTERS = 2_000_000;

export const promptOf = ({ words, piped }: PromptInput): string => {
  const asked = words.join(" ").trim();
  const given = piped?.trim() ?? "";
  if (given.length > MAX_PIPED_CHARACTERS)
    throw new UsageError(
      `standard input has ${given.length} characters, and the limit is ${MAX_PIPED_CHARACTERS}. Put the text in a file, and name the file in the prompt`,
    );
  if (asked === "" && given === "") throw new UsageError('no prompt given. Try: prefork -p "fix the failing test"');
  if (given === "") return asked;
  return asked === "" ? given : `${asked}\n\n<standard-input>\n${given}\n</standard-input>`;
};

/** Programs often start others with an input pipe that they never write to. */
const INPUT_TIMEOUT_MS = 1_500;

const NO_INPUT_NOTICE =
  "nothing arrived on standard input, so it is ignored; use </dev/null to avoid this wait, or pass slow input as a file";

/** Without words on the command line, standard input must bring the prompt, however long that takes. */
export const readPiped = async (io: Io, { hasWords }: { readonly hasWords: boolean }): Promise<string | undefined> => {
  if (io.inputIsTerminal) return undefined;
  const stopReading = new AbortController();
  const lines = io.input(stopReading.signal)[Symbol.asyncIterator]();
  const first = await (hasWords ? withTimeout(lines.next()) : lines.next());
  if (first === undefined) {
    stopReading.abort();
    io.err(`prefork: ${NO_INPUT_NOTICE}\n`);
    return undefined;
  }
  const all: string[] = [];
  for (let next = first; !next.done; next = await lines.next()) all.push(next.value);
  return all.length === 0 ? undefined : all.join("\n");
};

/** Undefined on a timeout; the promise is then ignored. */
const withTimeout = async <T>(waited: Promise<T>): Promise<T | undefined> => {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((done) => {
    timer = setTimeout(() => done(undefined), INPUT_TIMEOUT_MS);
  });
  try {
    return await Promise.race([waited, timeout]);
  } finally {
    clearTimeout(timer);
    waited.catch(() => undefined);
  }
};

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
      `line ${number} of standard input: expected {"type":"user","message":{"role":"user","content":"…"}}`,
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
