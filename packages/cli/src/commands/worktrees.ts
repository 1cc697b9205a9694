/** `prefork worktrees`: the copies of this repository that forks work in: what they hold, whether it would merge, where
 *  they are; and what a crash left of them, brought to an end.
 *  Invariant: list, show and path change nothing of the checkout, and take nothing away.
 *  Elsewhere: merging (merge.ts), removing (worktrees-prune.ts), layout (worktrees-report.ts). */

import type { Command } from "commander";
import { type Io, newCommand } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { visible } from "../visible.ts";
import { pruneCommand } from "./worktrees-prune.ts";
import { leftLines, shownAsJson, shownAsText, worktreeAsObject, worktreeTable } from "./worktrees-report.ts";
import { CWD, namedWorktree, openWorktrees, type PlaceFlags, told } from "./worktrees-store.ts";

type ListFlags = PlaceFlags & { readonly all?: true; readonly json?: true };
type ShowFlags = PlaceFlags & { readonly diff?: true; readonly json?: true };

export const worktreesCommand = (io: Io): Command => {
  const command = newCommand("worktrees", io)
    .description("the worktrees that forks work in: list, show, prune and repair them")
    .helpCommand(false)
    .addHelpText("after", "\nWithout a command: list. Their work is brought back by prefork merge.");
  command.addCommand(
    newCommand("list", io)
      .description("the worktrees of this repository, and what a crash left under way")
      .option("--all", "also those that were removed")
      .option("--json", "one JSON object a line")
      .option(...CWD)
      .action((flags: ListFlags) => told(() => list(flags, io))),
    { isDefault: true },
  );
  command.addCommand(
    newCommand("show", io)
      .description("what a task has changed, how it ended, and whether it would merge")
      .argument("<task>", "its id, or the first letters of it")
      .option("--diff", "the changes themselves")
      .option("--json", "as one JSON object")
      .option(...CWD)
      .action((task: string, flags: ShowFlags) => told(() => show(task, flags, io))),
  );
  command.addCommand(
    newCommand("path", io)
      .description("the folder of a task's worktree, for cd $(prefork worktrees path …)")
      .argument("<task>", "its id, or the first letters of it")
      .option(...CWD)
      .action((task: string, flags: PlaceFlags) =>
        told(async () => {
          const worktrees = await openWorktrees(flags, io);
          io.out(`${namedWorktree(await worktrees.table(), task).path}\n`);
        }),
      ),
  );
  command.addCommand(pruneCommand(io));
  command.addCommand(
    newCommand("repair", io)
      .description("bring what a crash left under way to an end; nothing is lost by it")
      .option("--json", "one JSON object a line")
      .option(...CWD)
      .action((flags: ListFlags) => told(() => repair(flags, io))),
  );
  return command;
};

const list = async (flags: ListFlags, io: Io): Promise<void> => {
  const worktrees = await openWorktrees(flags, io);
  const [table, left] = [await worktrees.table(), await worktrees.underWay()];
  const rows = [...table.worktrees.values()].filter(({ state }) => flags.all || state.kind !== "gone");
  const interrupted = new Set(left.worktrees.map(({ task }) => task));
  if (flags.json) {
    for (const row of rows) io.out(jsonLine(worktreeAsObject(row, interrupted)));
    return;
  }
  io.out(
    rows.length === 0
      ? "There are no worktrees of this repository.\n"
      : worktreeTable(rows, { interrupted, now: Date.now(), colour: io.colour }),
  );
  for (const line of leftLines(left)) io.err(`prefork: ${visible(line)}\n`);
  const unnoted = await worktrees.unnoted();
  if (unnoted.length > 0)
    io.err(
      `prefork: git keeps work of ${unnoted.join(", ")} here, which was noted for another place of this repository; move it back to merge it, or look at the branches prefork/<task>\n`,
    );
};

const show = async (given: string, flags: ShowFlags, io: Io): Promise<void> => {
  const worktrees = await openWorktrees(flags, io);
  const worktree = namedWorktree(await worktrees.table(), given);
  const looked = await worktrees.look(worktree.task);
  const left = await worktrees.underWay();
  // A preview sees to what a crash left first, and looking must not.
  const isQuiet = left.worktrees.length + left.points.length === 0;
  const [preview] =
    isQuiet && worktree.state.kind === "finished" ? await worktrees.merge([worktree.task], { isPreview: true }) : [];
  const interrupted = new Set(left.worktrees.map(({ task }) => task));
  const diff = flags.diff ? await worktrees.diff(worktree.task) : undefined;
  const shown = { worktree, looked, preview, interrupted, isQuiet, diff };
  io.out(flags.json ? shownAsJson(shown) : shownAsText(shown, { now: Date.now(), colour: io.colour }));
};

const repair = async (flags: ListFlags, io: Io): Promise<void> => {
  const worktrees = await openWorktrees(flags, io);
  const repaired = await worktrees.repair();
  if (!flags.json && repaired.length === 0) io.out("Nothing was left under way.\n");
  for (const one of repaired) io.out(flags.json ? jsonLine(one) : `${visible(one.what)}: ${visible(one.done)}\n`);
};
