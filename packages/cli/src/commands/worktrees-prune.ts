/** `prefork worktrees prune`: removes what is merged or empty, and what somebody gives up by name.
 *  Invariant: work that stands nowhere else goes only where its task is named, after every file of it was, and with a yes:
 *  typed on a terminal, or --yes.
 *  Elsewhere: removing (@prefork/runtime). */

import { isUnmerged, type Looked, type Worktree, type Worktrees } from "@prefork/worktrees";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { inLine } from "./tasks-store.ts";
import { CWD, counted, namedWorktree, openWorktrees, type PlaceFlags, told } from "./worktrees-store.ts";

type PruneFlags = PlaceFlags & { readonly force?: readonly string[]; readonly yes?: true; readonly json?: true };

export const pruneCommand = (io: Io): Command =>
  newCommand("prune", io)
    .description("remove worktrees whose work is merged, or that hold none")
    .option("--force <task...>", "these too, with work that is not merged; it is named first, and asked about")
    .option("--yes", "with --force: do not ask")
    .option("--json", "one JSON object a line")
    .option(...CWD)
    .action((flags: PruneFlags) => told(() => prune(flags, io)));

const prune = async (flags: PruneFlags, io: Io): Promise<void> => {
  if (flags.yes && !flags.force) throw new UsageError("--yes belongs to --force, which names what is given up");
  const worktrees = await openWorktrees(flags, io);
  const table = await worktrees.table();
  const forced = [...new Set((flags.force ?? []).map((given) => namedWorktree(table, given)))];
  const losses = await lossesOf(worktrees, forced);
  if (losses.length > 0) {
    for (const { worktree, looked } of losses) io.err(lossText(worktree, looked));
    if (!flags.yes && !(await isSure(losses.length, io))) {
      io.err("prefork: nothing was removed\n");
      return io.exitWith(1);
    }
  }
  const pruned = await worktrees.prune({ forced: forced.map(({ task }) => task) });
  const isKeptAgainstWill = pruned.some((one) => one.kind === "kept" && forced.some(({ task }) => task === one.task));
  for (const one of pruned) {
    const words =
      one.kind === "removed" ? `removed ${inLine(one.task)}` : `kept ${inLine(one.task)}: ${inLine(one.reason)}`;
    io.out(flags.json ? jsonLine(one) : `${words}\n`);
  }
  if (pruned.length === 0 && !flags.json) io.out("There are no worktrees of this repository.\n");
  if (isKeptAgainstWill) io.exitWith(1);
};

type Loss = { readonly worktree: Worktree; readonly looked: Looked };

/** Also what was put into a copy since its agent ended. */
const lossesOf = async (worktrees: Worktrees, forced: readonly Worktree[]): Promise<readonly Loss[]> => {
  const losses: Loss[] = [];
  for (const worktree of forced) {
    const looked = await worktrees.look(worktree.task);
    const isHolding = looked.files.length > 0 && (isUnmerged(worktree) || (await hasMore(worktrees, worktree)));
    if (isHolding || looked.leftOut.length > 0) losses.push({ worktree, looked });
  }
  return losses;
};

const hasMore = async (worktrees: Worktrees, { task }: Worktree): Promise<boolean> => {
  const [preview] = await worktrees.merge([task], { isPreview: true });
  return preview?.kind !== "would-merge" || preview.files.length > 0;
};

const lossText = ({ task, label }: Worktree, { files, leftOut, ignored }: Looked): string => {
  const names = [
    ...files.map(({ path, how, added, removed }) => {
      const size = added === undefined ? "" : `, +${added} −${removed}`;
      return `  ${inLine(path)} (${how}${size})`;
    }),
    ...leftOut.map((path) => `  ${inLine(path)} (not committed)`),
    ...(ignored.length === 0 ? [] : [`  and ignored: ${ignored.map((path) => inLine(path)).join(", ")}`]),
  ];
  return [`${inLine(task)} (${inLine(label, 60)}) holds what is merged nowhere:`, ...names]
    .map((line) => `${line}\n`)
    .join("");
};

const isSure = async (count: number, io: Io): Promise<boolean> => {
  if (!io.inputIsTerminal || !io.isTerminal)
    throw new UsageError("nothing was removed: without a terminal to ask on, --force needs --yes");
  io.err(`Remove the work of ${counted(count, "task")} for good? Type yes: `);
  for await (const line of io.input()) return line.trim().toLowerCase() === "yes";
  return false;
};
