/** `prefork merge`: merges the work of forks in worktrees into the checkout, previews that, or undoes it.
 *  Invariant: the exit code is 0 if everything was done, 1 if something was not merged or not undone, 2 for a usage error
 *  (nothing is touched), 5 if all is merged but conflicts are left in files. A preview touches nothing and exits with the
 *  same code as the merge would.
 *  Elsewhere: merging (@prefork/worktrees), texts about the outcome (merge-report.ts), the list (worktrees.ts). */

import type { Policy } from "@prefork/guard";
import { type CheckResult, familyOf, type MergeOutcome, type Worktrees } from "@prefork/worktrees";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { parseCount } from "../numbers.ts";
import { type EngineFlags, PROVIDERS, planSession, type SessionFlags, type SessionPlan } from "../print/index.ts";
import { addSessionOptions } from "../session-options.ts";
import { visible } from "../visible.ts";
import { mergeWithForks } from "./merge-hand-back.ts";
import { adviceFor, outcomeText, previewAdvice, undoneText } from "./merge-report.ts";
import { CWD_OPTION, findWorktree, openWorktrees, undoablePoints, withWorktreeErrors } from "./worktrees-store.ts";

const ON_CONFLICT = ["stop", "markers", "mine", "theirs", "skip", "hand-back"] as const;
export type OnConflictFlag = (typeof ON_CONFLICT)[number];

export type MergeFlags = Pick<SessionFlags, "cwd" | "permissionMode" | "allow" | "deny" | "maxBudgetUsd"> &
  EngineFlags & {
    readonly family?: string | true;
    readonly preview?: true;
    readonly check?: string | false;
    readonly keepFailed?: true;
    readonly onConflict?: OnConflictFlag;
    readonly undo?: number | true;
    readonly force?: true;
    readonly json?: true;
  };

const parseUndoCount = (text: string): number => {
  const count = parseCount(text);
  if (count === undefined || count < 1) throw new InvalidArgumentError("Expected a whole number above 0.");
  return count;
};

export const mergeCommand = (io: Io): Command =>
  addSessionOptions(commandWithOptions(io), { about: "for hand-back: ", providers: PROVIDERS });

const commandWithOptions = (io: Io): Command =>
  newCommand("merge", io)
    .description("merge the work of forks in worktrees into this checkout, or undo merges")
    .argument("[task...]", "task ids, or their first letters (prefork worktrees lists them)")
    .option("--family [task]", "all tasks that started together with this one, or with the last one")
    .option("--preview", "show what the merge would do, file by file, and touch nothing")
    .option("--check <command>", "run this after each merge, and undo the merge if it fails (default: settings)")
    .option("--no-check", "run no check, whatever the settings say")
    .option("--keep-failed", "keep a merge whose check failed; the queue still stops there")
    .addOption(
      new Option("--on-conflict <what>", "what to do with conflicts (default: settings, else stop)").choices([
        ...ON_CONFLICT,
      ]),
    )
    .addOption(new Option("--undo [n]", "undo the last merge, or the last n").argParser(parseUndoCount))
    .option("--force", "with --undo: also undo files that changed since; their content is kept on a ref")
    .option("--json", "print one JSON object per line")
    .option(...CWD_OPTION)
    .action((tasks: readonly string[], flags: MergeFlags) =>
      withWorktreeErrors(async () =>
        io.exitWith(await (flags.undo === undefined ? merge(tasks, flags, io) : undo(tasks, flags, io))),
      ),
    );

const merge = async (given: readonly string[], flags: MergeFlags, io: Io): Promise<number> => {
  if (flags.force) throw new UsageError("--force works only with --undo; for conflicts use --on-conflict");
  const worktrees = await openWorktrees(flags, io);
  const tasks = await selectTasks(given, flags, worktrees);
  const plan = await planSession(flags, io);
  const { check, onConflict = "stop" } = mergeRules(flags, plan);
  const printer = outcomePrinter(flags, io);
  if (flags.preview) return preview(tasks, { worktrees, onConflict, flags, io });
  const how = {
    ...(check === undefined ? {} : { check: announcedCheck(check, worktrees, io) }),
    ...(flags.keepFailed ? { keepsFailed: true } : {}),
    signal: io.signal,
  };
  const outcomes =
    onConflict === "hand-back"
      ? await mergeWithForks(tasks, { worktrees, plan, flags, options: how, onOutcome: printer }, io)
      : await worktrees.merge(tasks, { ...how, onConflict, onOutcome: printer });
  if (!flags.json) for (const line of adviceFor(tasks, outcomes)) io.err(`prefork: ${visible(line)}\n`);
  if (io.signal.aborted) return 130;
  return exitCodeFor(tasks, outcomes);
};

const exitCodeFor = (tasks: readonly string[], outcomes: readonly MergeOutcome[]): number => {
  if (outcomes.length < tasks.length || !outcomes.every(isMerged)) return 1;
  return outcomes.some(({ unresolved }) => unresolved) ? UNRESOLVED : 0;
};

const UNRESOLVED = 5;

const MERGED: readonly MergeOutcome["kind"][] = ["merged", "nothing-new", "would-merge"];

const isMerged = ({ kind }: MergeOutcome): boolean => MERGED.includes(kind);

const selectTasks = async (
  given: readonly string[],
  { family }: MergeFlags,
  worktrees: Worktrees,
): Promise<readonly string[]> => {
  const table = await worktrees.table();
  if (family === undefined) {
    if (given.length === 0)
      throw new UsageError(
        "no task given: name the tasks to merge, or use --family for all that started together (prefork worktrees lists them)",
      );
    return [...new Set(given.map((task) => findWorktree(table, task).task))];
  }
  if (given.length > 0) throw new UsageError("--family takes at most one task, directly after it, and no other tasks");
  const tasks = await familyOf(worktrees, family === true ? undefined : findWorktree(table, family).task);
  if (tasks.length === 0)
    throw new UsageError("there is nothing left to merge (prefork worktrees lists all worktrees)");
  return tasks;
};

/** The command line overrides the settings. */
const mergeRules = ({ check, onConflict }: MergeFlags, { policy }: SessionPlan): Policy["worktrees"] => {
  const { check: usual, onConflict: chosen, ...rest } = policy.worktrees;
  const command = check === false ? undefined : (check ?? usual);
  const what = onConflict ?? chosen;
  return {
    ...rest,
    ...(command === undefined ? {} : { check: command }),
    ...(what === undefined ? {} : { onConflict: what }),
  };
};

const outcomePrinter =
  ({ json }: MergeFlags, io: Io) =>
  (outcome: MergeOutcome): void =>
    io.out(json ? jsonLine(outcome) : outcomeText(outcome, io.colour));

/** Prints which check is running, since it may take long. */
const announcedCheck = (command: string, worktrees: Worktrees, io: Io): (() => Promise<CheckResult>) => {
  const check = worktrees.check(command, io.signal);
  return async () => {
    io.err(`· ${visible(command)} …\n`);
    const startedAt = performance.now();
    const checked = await check();
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
    io.err(`· ${visible(command)}: ${checked.ok ? "ok" : "failed"} after ${seconds} s\n`);
    return checked;
  };
};

type PreviewOptions = {
  readonly worktrees: Worktrees;
  readonly onConflict: OnConflictFlag;
  readonly flags: MergeFlags;
  readonly io: Io;
};

const preview = async (
  tasks: readonly string[],
  { worktrees, onConflict, flags, io }: PreviewOptions,
): Promise<number> => {
  const choice = onConflict === "hand-back" ? "stop" : onConflict;
  const how = { isPreview: true, onConflict: choice, signal: io.signal, onOutcome: outcomePrinter(flags, io) };
  const outcomes = await worktrees.merge(tasks, how);
  if (!flags.json) for (const line of previewAdvice(tasks, outcomes)) io.err(`prefork: ${visible(line)}\n`);
  return io.signal.aborted ? 130 : exitCodeFor(tasks, outcomes);
};

const undo = async (given: readonly string[], flags: MergeFlags, io: Io): Promise<number> => {
  const { undo: asked, family, force, json } = flags;
  if (given.length > 0)
    throw new UsageError("--undo undoes the last merges and takes no tasks; give their number directly after it");
  if (flags.preview || flags.keepFailed || flags.onConflict !== undefined || typeof flags.check === "string")
    throw new UsageError("--undo can be combined only with --family, --force and --json");
  if (family !== undefined && (family !== true || asked !== true))
    throw new UsageError("--undo --family undoes all merges of the last command; leave out the number and the task");
  const worktrees = await openWorktrees(flags, io);
  const points = undoablePoints(await worktrees.table(), worktrees.top);
  const last = points.at(-1)?.group;
  const wanted = family ? points.filter(({ group }) => group === last).length : asked === true ? 1 : (asked ?? 1);
  if (points.length === 0) throw new UsageError("there is no merge to undo in this checkout");
  if (wanted > points.length) throw new UsageError(`there are only ${points.length} merges to undo in this checkout`);
  // One at a time, so that each finished undo is printed even if the next one fails.
  for (let left = wanted; left > 0; left -= 1)
    for (const undone of await worktrees.undo(1, force ? { isForced: true } : {}))
      io.out(json ? jsonLine(undone) : undoneText(undone));
  return 0;
};
