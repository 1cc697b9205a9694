/** Completion scripts for shells, made from the commands. */

import { bashScript } from "./bash.ts";
import { fishScript } from "./fish.ts";
import type { CompletionRow } from "./table.ts";
import { zshScript } from "./zsh.ts";

export { type CompletionRow, completionTable } from "./table.ts";

export const SCRIPTS: ReadonlyMap<string, (rows: readonly CompletionRow[]) => string> = new Map([
  ["bash", bashScript],
  ["zsh", zshScript],
  ["fish", fishScript],
]);
