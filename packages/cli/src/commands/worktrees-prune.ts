/** `prefork worktrees prune`: removes worktrees that are merged or empty, and others that the user names.
 *  Invariant: unmerged work is removed only if the user names its task, after all its files were listed, and with a yes:
 *  typed on a terminal, or given by --yes.
 *  Elsewhere: removing (@prefork/worktrees). */

import { isUnmerged, type Worktree, type WorktreeInspection, type Worktrees } from "@prefork/worktrees";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { inLine } from "./tasks-store.ts";
import {
  type CheckoutFlags,
  CWD_OPTION,
  counted,
  findWorktree,
  openWorktrees,
  withWorktreeErrors,
} from "./worktrees-store.ts";

type PruneFlags = CheckoutFlags & { readonly force?: readonly string[]; readonly yes?: true; readonly json?: true };

export const pruneCommand = (io: Io): Command =>
  newCommand("prune", io)
    .description("remove worktrees whose work is merged, or that are empty")
    .option("--force <task...>", "also remove these, with unmerged work; lists the files and asks first")
    .option("--yes", "with --force: do not ask")
    .option("--json", "print one JSON object per line")
    .option(...CWD_OPTION)
    .action((flags: PruneFlags) => withWorktreeErrors(() => prune(flags, io)));

const prune = async (flags: PruneFlags, io: Io): Promise<void> => {
  if (flags.yes && !flags.force) throw new UsageError("--yes works only with --force, which names the worktrees");
  const worktrees = await openWorktrees(flags, io);
  const table = await worktrees.table();
  const forced = [...new Set((flags.force ?? []).map((given) => findWorktree(table, given)))];
  const losses = await lossesOf(worktrees, forced);
  if (losses.length > 0) {
    for (const { worktree, looked } of losses) io.err(lossText(worktree, looked));
    if (!flags.yes && !(await isSure(losses.length, io))) {
      io.err("prefork: nothing was removed\n");
      return io.exitWith(1);
    }
  }
  const pruned = await worktrees.prune({ forced: forced.map(({ task }) => task) });
  const isForcedButKept = pruned.some((one) => one.kind === "kept" && forced.some(({ task }) => task === one.task));
  for (const one of pruned) {
    const words =
      one.kind === "removed" ? `removed ${inLine(one.task)}` : `kept ${inLine(one.task)}: ${inLine(one.reason)}`;
    io.out(flags.json ? jsonLine(one) : `${words}\n`);
  }
  if (pruned.length === 0 && !flags.json) io.out("This repository has no worktrees.\n");
  if (isForcedButKept) io.exitWith(1);
};

type Loss = { readonly worktree: Worktree; readonly looked: WorktreeInspection };

/** Includes what was put into a worktree after its agent ended. */
const lossesOf = async (worktrees: Worktrees, forced: readonly Worktree[]): Promise<readonly Loss[]> => {
  const losses: Loss[] = [];
  for (const worktree of forced) {
    const looked = await worktrees.inspect(worktree.task);
    const hasUnmergedWork = looked.files.length > 0 && (isUnmerged(worktree) || (await hasMore(worktrees, worktree)));
    if (hasUnmergedWork || looked.leftOut.length > 0) losses.push({ worktree, looked });
  }
  return losses;
};

const hasMore = async (worktrees: Worktrees, { task }: Worktree): Promise<boolean> => {
  const [preview] = await worktrees.merge([task], { isPreview: true });
  return preview?.kind !== "would-merge" || preview.files.length > 0;
};

const lossText = ({ task, label }: Worktree, { files, leftOut, ignored }: WorktreeInspection): string => {
  const names = [
    ...files.map(({ path, how, added, removed }) => {
      const size = added === undefined ? "" : `, +${added} −${removed}`;
      return `  ${inLine(path)} (${how}${size})`;
    }),
    ...leftOut.map((path) => `  ${inLine(path)} (not committed)`),
    ...(ignored.length === 0 ? [] : [`  and ignored: ${ignored.map((path) => inLine(path)).join(", ")}`]),
  ];
  return [`${inLine(task)} (${inLine(label, 60)}) has unmerged work:`, ...names].map((line) => `${line}\n`).join("");
};

const isSure = async (count: number, io: Io): Promise<boolean> => {
  if (!io.inputIsTerminal || !io.isTerminal)
    throw new UsageError("nothing was removed: there is no terminal to ask on, so --force needs --yes");
  io.err(`Delete the work of ${counted(count, "task")} permanently? Type yes: `);
  for await (const line of io.input()) return line.trim().toLowerCase() === "yes";
  return false;
};
