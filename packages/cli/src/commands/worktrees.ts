/** `prefork worktrees`: the worktrees of this repository that forks work in: what they contain, whether it would
 *  merge, where they are, and repairing what a crash interrupted.
 *  Invariant: list, show and path change nothing in the checkout and remove nothing.
 *  Elsewhere: merging (merge.ts), removing (worktrees-prune.ts), layout (worktrees-report.ts). */

import type { Command } from "commander";
import { type Io, newCommand } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { visible } from "../visible.ts";
import { pruneCommand } from "./worktrees-prune.ts";
import { crashLines, worktreeAsJson, worktreeAsObject, worktreeAsText, worktreeTable } from "./worktrees-report.ts";
import { type CheckoutFlags, CWD_OPTION, findWorktree, openWorktrees, withWorktreeErrors } from "./worktrees-store.ts";

type ListFlags = CheckoutFlags & { readonly all?: true; readonly json?: true };
type ShowFlags = CheckoutFlags & { readonly diff?: true; readonly json?: true };

export const worktreesCommand = (io: Io): Command => {
  const command = newCommand("worktrees", io)
    .description("list, show, merge, prune and repair the worktrees that forks work in")
    .helpCommand(false);
  command.addCommand(
    newCommand("list", io)
      .description("list the worktrees of this repository, and what a crash interrupted")
      .option("--all", "also list removed worktrees")
      .option("--json", "print one JSON object per line")
      .option(...CWD_OPTION)
      .action((flags: ListFlags) => withWorktreeErrors(() => list(flags, io))),
    { isDefault: true },
  );
  command.addCommand(
    newCommand("show", io)
      .description("show what a task changed, how it ended, and whether it would merge")
      .argument("<task>", "task id, or its first letters")
      .option("--diff", "also show the changes themselves")
      .option("--json", "print one JSON object")
      .option(...CWD_OPTION)
      .action((task: string, flags: ShowFlags) => withWorktreeErrors(() => show(task, flags, io))),
  );
  command.addCommand(
    newCommand("path", io)
      .description("print the folder of a task's worktree, for cd $(prefork worktrees path …)")
      .argument("<task>", "task id, or its first letters")
      .option(...CWD_OPTION)
      .action((task: string, flags: CheckoutFlags) =>
        withWorktreeErrors(async () => {
          const worktrees = await openWorktrees(flags, io);
          io.out(`${findWorktree(await worktrees.table(), task).path}\n`);
        }),
      ),
  );
  command.addCommand(pruneCommand(io));
  command.addCommand(
    newCommand("repair", io)
      .description("finish or roll back what a crash interrupted; no work is lost")
      .option("--json", "print one JSON object per line")
      .option(...CWD_OPTION)
      .action((flags: ListFlags) => withWorktreeErrors(() => repair(flags, io))),
  );
  return command;
};

const list = async (flags: ListFlags, io: Io): Promise<void> => {
  const worktrees = await openWorktrees(flags, io);
  const [table, left] = [await worktrees.table(), await worktrees.interrupted()];
  const rows = [...table.worktrees.values()].filter(({ state }) => flags.all || state.kind !== "gone");
  const interrupted = new Set(left.worktrees.map(({ task }) => task));
  if (flags.json) {
    for (const row of rows) io.out(jsonLine(worktreeAsObject(row, interrupted)));
    return;
  }
  io.out(
    rows.length === 0
      ? "This repository has no worktrees.\n"
      : worktreeTable(rows, { interrupted, now: Date.now(), colour: io.colour }),
  );
  for (const line of crashLines(left)) io.err(`prefork: ${visible(line)}\n`);
  const unnoted = await worktrees.unrecorded();
  if (unnoted.length > 0)
    io.err(
      `prefork: this repository holds work of ${unnoted.join(", ")}, recorded when the repository was in another folder; move it back there to merge, or use the branches prefork/<task>\n`,
    );
};

const show = async (given: string, flags: ShowFlags, io: Io): Promise<void> => {
  const worktrees = await openWorktrees(flags, io);
  const worktree = findWorktree(await worktrees.table(), given);
  const work = await worktrees.inspect(worktree.task);
  const unfinished = await worktrees.interrupted();
  // A preview repairs first what a crash interrupted; showing must not change anything.
  const isQuiet = unfinished.worktrees.length + unfinished.points.length === 0;
  const [preview] =
    isQuiet && worktree.state.kind === "finished" ? await worktrees.merge([worktree.task], { isPreview: true }) : [];
  const interrupted = new Set(unfinished.worktrees.map(({ task }) => task));
  const diff = flags.diff ? await worktrees.diff(worktree.task) : undefined;
  const shown = { worktree, looked: work, preview, interrupted, isQuiet, diff };
  io.out(flags.json ? worktreeAsJson(shown) : worktreeAsText(shown, { now: Date.now(), colour: io.colour }));
};

const repair = async (flags: ListFlags, io: Io): Promise<void> => {
  const worktrees = await openWorktrees(flags, io);
  const repaired = await worktrees.repair();
  if (!flags.json && repaired.length === 0) io.out("There is nothing to repair.\n");
  for (const one of repaired) io.out(flags.json ? jsonLine(one) : `${visible(one.what)}: ${visible(one.done)}\n`);
};
