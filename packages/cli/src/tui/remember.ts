/** `#text`: adds a line to AGENTS.md of the working folder, which every session there reads.
 *  Invariant: the text is appended and nothing else changes; a link or a folder in its place is not written to.
 *  Elsewhere: how conventions are read (@prefork/runtime). */

import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { TerminalContext } from "./context.ts";
import { safeLine } from "./state/index.ts";

export const rememberText = async (text: string, { state, dispatch }: TerminalContext): Promise<void> => {
  const path = join(state().cwd, "AGENTS.md");
  const { O_APPEND, O_CREAT, O_RDWR, O_NOFOLLOW } = constants;
  await using file = await open(path, O_APPEND | O_CREAT | O_RDWR | O_NOFOLLOW, 0o644);
  const { size } = await file.stat();
  const last = size === 0 ? "\n" : (await file.read(Buffer.alloc(1), 0, 1, size - 1)).buffer.toString();
  await file.appendFile(`${last === "\n" ? "" : "\n"}- ${text}\n`);
  dispatch({ type: "hinted", text: `Added to AGENTS.md: ${safeLine(text, 80)}` });
};
