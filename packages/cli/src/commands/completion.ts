/** `prefork completion bash|zsh|fish`: prints a script that completes commands, options, sessions, tasks and settings.
 *  Elsewhere: the scripts (../completion), the names that they request later (complete.ts). */

import { Argument, type Command } from "commander";
import { completionTable, SCRIPTS } from "../completion/index.ts";
import { type Io, newCommand } from "../io.ts";

type LoadAll = (io: Io) => Promise<{ readonly program: Command; readonly own: readonly Command[] }>;

export const completionCommand =
  (loadAll: LoadAll) =>
  (io: Io): Command =>
    newCommand("completion", io)
      .description("print a script that completes commands in your shell")
      .addArgument(new Argument("<shell>", "the shell to complete in").choices([...SCRIPTS.keys()]))
      .action(async (shell: string) => {
        const { program, own } = await loadAll(io);
        io.out(SCRIPTS.get(shell)?.(completionTable(program, own)) ?? "");
      });
