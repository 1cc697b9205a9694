/** `prefork`, `prefork "prompt"`, `prefork --continue`: opens the terminal.
 *  Invariant: nothing of the agent is loaded before the first frame.
 *  Elsewhere: the terminal (../tui), one prompt without it (print.ts). */

import { resolve } from "node:path";
import type { Command } from "commander";
import { collect, type Io, newCommand, UsageError } from "../io.ts";
import { resolveFolder } from "../resolve-folder.ts";
import { addSessionOptions } from "../session-options.ts";
import type { TerminalRequest } from "../tui/index.ts";

type Run = TerminalRequest["run"];

export const terminalCommand =
  (run: Run) =>
  (io: Io): Command =>
    addSessionOptions(
      newCommand("terminal", io)
        .configureHelp({ commandUsage: () => 'prefork [options] ["prompt"]' })
        .description("talk to the agent in the terminal")
        .argument("[prompt...]", "what to do first")
        .option("--no-forks", "start no forks; sub-agents then know only their prompt")
        .option("--cwd <dir>", "folder to work in")
        .option("--add-dir <dir>", "another folder that belongs to the workspace (repeatable)", collect)
        .option("--append-system-prompt <text>", "text to add to the system prompt")
        .option("--screen-reader", "plain lines instead of a screen")
        .option("-c, --continue", "resume the last session in this folder")
        .option("-r, --resume [id]", "resume this session; without an id, choose from a list"),
    ).action(async (words: readonly string[], flags: TerminalRequest["flags"]) => {
      if (!io.isTerminal || !io.inputIsTerminal)
        throw new UsageError('this needs a terminal; to run one prompt without it: prefork -p "…"');
      const { openTerminal } = await import("../tui/index.ts");
      const prompt = words.join(" ").trim();
      io.exitWith(
        await openTerminal({ flags: await enterFolder(flags), run, ...(prompt === "" ? {} : { prompt }) }, io),
      );
    });

/** The terminal's own commands work in the folder of the session. Other folders are named from where the user is. */
const enterFolder = async ({ cwd, addDir, ...flags }: TerminalRequest["flags"]): Promise<TerminalRequest["flags"]> => {
  const folders = addDir === undefined ? {} : { addDir: addDir.map((folder) => resolve(folder)) };
  if (cwd !== undefined) process.chdir(await resolveFolder(cwd, "--cwd"));
  return { ...flags, ...folders };
};
