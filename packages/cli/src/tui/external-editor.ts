/** Edits the prompt, or a file, in the user's own editor.
 *  Invariant: the editor is started without a shell; the file is private and removed afterwards; a failed editor leaves the
 *  text as it was.
 *  Elsewhere: the terminal while another program has it (context.lend). */

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TerminalContext } from "./context.ts";

type EditorContext = Pick<TerminalContext, "io" | "lend" | "settings">;

const editorOf = async ({ io, settings }: EditorContext): Promise<readonly string[]> =>
  (await settings).editor ?? (io.env.VISUAL || io.env.EDITOR || "vi").split(/\s+/).filter(Boolean);

export const runEditor = async (context: TerminalContext): Promise<void> => {
  const { screen, lend } = context;
  const folder = await mkdtemp(join(tmpdir(), "prefork-edit-"));
  const file = join(folder, "prompt.md");
  try {
    await writeFile(file, screen.input.getExpandedText(), { mode: 0o600 });
    const [program = "vi", ...args] = await editorOf(context);
    const code = await lend(() => runProgram(program, [...args, file]));
    if (code !== 0) throw new Error(`${program} ended with code ${code}; the prompt is unchanged.`);
    screen.input.setText((await readFile(file, "utf8")).replace(/\n$/, ""));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

/** Opens a file in the editor and waits until it is closed. */
export const editFile = async (path: string, context: EditorContext): Promise<void> => {
  const [program = "vi", ...args] = await editorOf(context);
  const code = await context.lend(() => runProgram(program, [...args, path]));
  if (code !== 0) throw new Error(`${program} ended with code ${code}.`);
};

const runProgram = (program: string, args: readonly string[]): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: "inherit" });
    child.on("error", (error) =>
      reject(new Error(`${program} does not start: ${error.message}. Set terminal.editor, VISUAL or EDITOR.`)),
    );
    child.on("close", (code) => resolve(code ?? 1));
  });
