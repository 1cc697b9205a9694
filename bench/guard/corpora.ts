/** The commands that are judged: both published corpora of the runtime, as plain texts.
 *  Elsewhere: what they are and why (packages/guard/test/rules/corpus). */

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "../../packages/guard/test/rules/corpus");

const commandsIn = (names: string): readonly string[] => {
  const commands = globSync(names, { cwd: folder })
    .sort()
    .flatMap((name) => readFileSync(join(folder, name), "utf8").trimEnd().split("\n"))
    .map((line) => (JSON.parse(line) as { readonly cmd: string }).cmd);
  if (commands.length === 0) throw new Error(`there is no corpus ${names}`);
  return commands;
};

export type Corpora = { readonly everyday: readonly string[]; readonly hostile: readonly string[] };

export const readCorpora = (): Corpora => ({
  everyday: commandsIn("allow-*.jsonl"),
  hostile: commandsIn("deny-*.jsonl"),
});
