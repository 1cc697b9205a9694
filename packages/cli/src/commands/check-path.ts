/** `prefork check-path`: may a file tool be called with these arguments, inside one folder? For scripts, CI and tests.
 *  Invariant: one JSON line for one call, in order; nothing is written without --write, and then only as the tool would.
 *  Elsewhere: the judgement and the writing (guard, files and workspace of @prefork/runtime). */

import {
  checkFileCall,
  classify,
  type FilterContext,
  openRoot,
  performFileCall,
  planHazard,
  type Root,
  RootError,
  readCallLine,
} from "@prefork/guard";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { givenLines, jsonLine } from "../lines.ts";

const open = async (folder: string): Promise<Root> => {
  // Else a script whose variable is empty would open the folder it happens to be in.
  if (folder === "") throw new UsageError("option '--root': the name of a folder is missing");
  try {
    return await openRoot(folder);
  } catch (error) {
    if (error instanceof RootError) throw new UsageError(`option '--root': ${error.message}`, { cause: error });
    throw error;
  }
};

/** Commands are judged as the agent would judge them there. */
const contextOf = (root: Root): FilterContext => ({
  classify: (command) => {
    const judged = classify(command);
    const hazard = judged.verdict === "read-only" ? planHazard(judged.plan, { cwd: root.path }) : undefined;
    return hazard === undefined ? judged : { verdict: "unknown", reason: hazard };
  },
});

export const checkPathCommand = (io: Io): Command =>
  newCommand("check-path", io)
    .description("say whether file tools may be called inside one folder, as a memory run would be judged")
    .requiredOption("--root <dir>", "the folder that may be written in")
    .option("--write", "perform allowed Write and Edit calls the way the tools would")
    .allowExcessArguments(false)
    .addHelpText(
      "after",
      `
Reads JSON lines {"tool", "args"} from standard input and prints {"allowed", "reason"} for each, for instance
  {"tool": "Write", "args": {"file_path": "/dir/notes.md", "content": "text"}}
  {"tool": "Edit", "args": {"file_path": "/dir/notes.md", "old_string": "a", "new_string": "b"}}
Reading tools are allowed anywhere, Bash where the command only reads, everything else is not.`,
    )
    .action(async (options: { readonly root: string; readonly write?: true }) => {
      await using root = await open(options.root);
      const context = contextOf(root);
      const judge = options.write ? performFileCall : checkFileCall;
      for await (const { line, number } of givenLines(io)) {
        const read = readCallLine(line);
        if (read.kind === "malformed") throw new UsageError(`line ${number}: ${read.reason}`);
        const { allowed, reason } =
          read.kind === "refused" ? { allowed: false, reason: read.reason } : await judge(root, read.call, context);
        io.out(jsonLine({ allowed, reason }));
      }
    });
