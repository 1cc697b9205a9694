/** `prefork check-path`: may a file tool be called with these arguments, inside one folder? For scripts, CI and tests.
 *  Invariant: one JSON line per call, in order; nothing is written without --write, and then exactly as the tool would.
 *  Elsewhere: the decision and the writing (@prefork/guard). */

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
import { inputLines, jsonLine } from "../lines.ts";

const openRootFolder = async (folder: string): Promise<Root> => {
  // Otherwise a script with an empty variable would open its current folder.
  if (folder === "") throw new UsageError("option '--root': the folder name is empty");
  try {
    return await openRoot(folder);
  } catch (error) {
    if (error instanceof RootError) throw new UsageError(`option '--root': ${error.message}`, { cause: error });
    throw error;
  }
};

/** Commands are judged as the agent would judge them in that folder. */
const contextOf = (root: Root): FilterContext => ({
  classify: (command) => {
    const judged = classify(command);
    const hazard = judged.verdict === "read-only" ? planHazard(judged.plan, { cwd: root.path }) : undefined;
    return hazard === undefined ? judged : { verdict: "unknown", reason: hazard };
  },
});

export const checkPathCommand = (io: Io): Command =>
  newCommand("check-path", io)
    .description("check whether file tools may write inside one folder, by the rules of a memory run")
    .requiredOption("--root <dir>", "the only folder that may be written to")
    .option("--write", "perform allowed Write and Edit calls, as the tools would")
    .allowExcessArguments(false)
    .action(async (options: { readonly root: string; readonly write?: true }) => {
      await using root = await openRootFolder(options.root);
      const context = contextOf(root);
      const judge = options.write ? performFileCall : checkFileCall;
      for await (const { line, number } of inputLines(io)) {
        const read = readCallLine(line);
        if (read.kind === "malformed") throw new UsageError(`line ${number}: ${read.reason}`);
        const { allowed, reason } =
          read.kind === "refused" ? { allowed: false, reason: read.reason } : await judge(root, read.call, context);
        io.out(jsonLine({ allowed, reason }));
      }
    });
