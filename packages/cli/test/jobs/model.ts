/** What a scripted model knows: only the request.
 *  Invariant: a model is a function of its prompts and of the results of its calls; the same request gets the same
 *  answer. */

import { callTools, type SimAnswer, type SimScript, type ToolCall } from "@prefork/simulator";
import type { Json, JsonObject } from "@prefork/wire";
import { folderIn, objectsIn } from "../print/ground.ts";

export type SeenCall = {
  readonly name: string;
  readonly input: JsonObject;
  /** Empty while the call is open. */
  readonly text: string;
  readonly isError: boolean;
};

export type Seen = {
  /** The user's words. */
  readonly prompt: string;
  readonly folder: string;
  /** All calls so far with their results. */
  readonly calls: readonly SeenCall[];
  readonly last: SeenCall | undefined;
};

const textIn = (content: Json | undefined): string =>
  objectsIn(content)
    .map(({ text }) => String(text ?? ""))
    .join("\n");

export const seenIn = (body: JsonObject): Seen => {
  const blocks = objectsIn(body.messages).flatMap(({ content }) => objectsIn(content));
  const results = new Map(
    blocks.flatMap(({ type, tool_use_id, content, is_error }) =>
      type === "tool_result"
        ? [[String(tool_use_id), { text: textIn(content), isError: is_error === true }] as const]
        : [],
    ),
  );
  const calls = blocks.flatMap((block): readonly SeenCall[] => {
    if (block.type !== "tool_use") return [];
    const result = results.get(String(block.id)) ?? { text: "", isError: false };
    return [{ name: String(block.name), input: objectsIn([block.input ?? {}])[0] ?? {}, ...result }];
  });
  const [first] = objectsIn(body.messages);
  const prompt = objectsIn(first?.content).at(-1)?.text;
  return { prompt: String(prompt), folder: folderIn(body), calls, last: calls.at(-1) };
};

export const modelOf =
  (next: (seen: Seen) => SimAnswer): SimScript =>
  ({ body }) =>
    next(seenIn(body));

export const call = (name: string, input: JsonObject, words?: string): SimAnswer => callTools([{ name, input }], words);

export const TESTS = "node --test --test-isolation=none --test-reporter=tap";

export const bash = (command: string, more: JsonObject = {}): ToolCall => ({
  name: "Bash",
  input: { command, ...more },
});

/** The lines of a file as Read shows them, without their numbers. */
export const linesShown = (text: string): readonly string[] =>
  text.split("\n").flatMap((line) => /^\d+\t(.*)$/.exec(line)?.slice(1) ?? []);

/** The file names that Grep lists, one per line. */
export const filesShown = (text: string): readonly string[] =>
  text.split("\n").filter((line) => /^[\w./-]+$/.test(line));
