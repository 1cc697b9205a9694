/** `prefork merge`: brings the work of forks in worktrees back into the checkout, shows what would come of it, or takes it
 *  back again.
 *  Invariant: exit code 0 when everything that was asked for is done, 1 when something was not merged or not taken back,
 *  2 for a wrong call with nothing touched, 5 when all is merged and conflicts are left in files; a preview touches nothing
 *  and ends as the merge would.
 *  Elsewhere: merging (@prefork/runtime), words for what came of it (merge-report.ts), the list (worktrees.ts). */

import type { Policy } from "@prefork/guard";
import { type Checked, familyOf, type MergeOutcome, type Worktrees } from "@prefork/worktrees";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { parseCount } from "../numbers.ts";
import { type EngineFlags, PROVIDERS, planSession, type SessionFlags, type SessionPlan } from "../print/index.ts";
import { visible } from "../visible.ts";
import { mergeWithForks } from "./merge-hand-back.ts";
import { adviceFor, outcomeText, previewAdvice, undoneText } from "./merge-report.ts";
import { CWD, namedWorktree, openWorktrees, told, undoablePoints } from "./worktrees-store.ts";

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

const gather = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value];

const howMany = (text: string): number => {
  const count = parseCount(text);
  if (count === undefined || count < 1) throw new InvalidArgumentError("Expected a whole number above 0.");
  return count;
};

export const mergeCommand = (io: Io): Command =>
  newCommand("merge", io)
    .description("bring the work of forks in worktrees back into this checkout, or take merges back")
    .argument("[task...]", "their ids, or the first letters of them (prefork worktrees lists them)")
    .option("--family [task]", "all that started together with this task, or with the last one")
    .option("--preview", "say what the whole merge would do, file by file, and touch nothing")
    .option("--check <command>", "run this after each merge; one that it says no to is taken back (default: settings)")
    .option("--no-check", "run none, whatever the settings say")
    .option("--keep-failed", "a merge that the check says no to stays; the queue ends all the same")
    .addOption(
      new Option("--on-conflict <what>", "what becomes of conflicts (default: settings, else stop)").choices([
        ...ON_CONFLICT,
      ]),
    )
    .addOption(new Option("--undo [n]", "take back the last merge, or the last n").argParser(howMany))
    .option("--force", "with --undo: also what was changed since; that is kept on a ref")
    .option("--json", "one JSON object a line")
    .option(...CWD)
    .option("--model <id>", "for hand-back: model to ask for")
    .addOption(new Option("--provider <name>", "for hand-back: who answers").choices([...PROVIDERS]))
    .option("--base-url <url>", "for hand-back: another endpoint that speaks the provider's format")
    .option("--permission-mode <mode>", "for hand-back: default, accept-edits, plan or bypass")
    .option("--allow <rule>", "for hand-back: allow calls under this rule; may be given again", gather)
    .option("--deny <rule>", "for hand-back: deny calls under this rule; may be given again", gather)
    .option("--max-budget-usd <amount>", "for hand-back: stop before a request could cost more than this in all")
    .addHelpText(
      "after",
      `
On conflict: stop (nothing of this task, and the queue ends), skip (the same, and the queue goes on), markers (both
sides between markers in the files), mine or theirs (your checkout's or the fork's side where they meet), hand-back
(the fork goes on in its worktree, resolves them, and is merged then).
Undo: --undo takes back the last merge, --undo 3 the last three, --undo --family all of the last command.
A check does not pass while conflicts are left in files: with markers and a check the merge is taken back.
Exit codes: 0 all merged, 1 something was not merged or not taken back, 2 called wrongly, 5 all merged but conflicts are
left in files (markers), 130 interrupted.`,
    )
    .action((tasks: readonly string[], flags: MergeFlags) =>
      told(async () =>
        io.exitWith(await (flags.undo === undefined ? merge(tasks, flags, io) : undo(tasks, flags, io))),
      ),
    );

const merge = async (given: readonly string[], flags: MergeFlags, io: Io): Promise<number> => {
  if (flags.force) throw new UsageError("--force belongs to --undo; conflicts have --on-conflict");
  const worktrees = await openWorktrees(flags, io);
  const tasks = await tasksOf(given, flags, worktrees);
  const plan = await planSession(flags, io);
  const { check, onConflict = "stop" } = rulesOf(flags, plan);
  const printer = printerOf(flags, io);
  if (flags.preview) return preview(tasks, { worktrees, onConflict, flags, io });
  const how = {
    ...(check === undefined ? {} : { check: tellingCheck(check, worktrees, io) }),
    ...(flags.keepFailed ? { keepsFailed: true } : {}),
    signal: io.signal,
  };
  const outcomes =
    onConflict === "hand-back"
      ? await mergeWithForks(tasks, { worktrees, plan, flags, how, told: printer }, io)
      : await worktrees.merge(tasks, { ...how, onConflict, told: printer });
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

const tasksOf = async (
  given: readonly string[],
  { family }: MergeFlags,
  worktrees: Worktrees,
): Promise<readonly string[]> => {
  const table = await worktrees.table();
  if (family === undefined) {
    if (given.length === 0)
      throw new UsageError("name the tasks to merge, or --family for all that started together (prefork worktrees)");
    return [...new Set(given.map((task) => namedWorktree(table, task).task))];
  }
  if (given.length > 0)
    throw new UsageError("--family takes one task at most, right behind it, and no further ones beside it");
  const tasks = await familyOf(worktrees, family === true ? undefined : namedWorktree(table, family).task);
  if (tasks.length === 0) throw new UsageError("nothing is left to merge there; prefork worktrees lists what there is");
  return tasks;
};

/** The command line over the settings. */
const rulesOf = ({ check, onConflict }: MergeFlags, { policy }: SessionPlan): Policy["worktrees"] => {
  const { check: usual, onConflict: chosen, ...rest } = policy.worktrees;
  const command = check === false ? undefined : (check ?? usual);
  const what = onConflict ?? chosen;
  return {
    ...rest,
    ...(command === undefined ? {} : { check: command }),
    ...(what === undefined ? {} : { onConflict: what }),
  };
};

const printerOf =
  ({ json }: MergeFlags, io: Io) =>
  (outcome: MergeOutcome): void =>
    io.out(json ? jsonLine(outcome) : outcomeText(outcome, io.colour));

/** Who waits is told for what. */
const tellingCheck = (command: string, worktrees: Worktrees, io: Io): (() => Promise<Checked>) => {
  const check = worktrees.check(command, io.signal);
  return async () => {
    io.err(`· ${visible(command)} …\n`);
    const begun = performance.now();
    const checked = await check();
    const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
    io.err(`· ${visible(command)}: ${checked.ok ? "ok" : "failed"} after ${seconds} s\n`);
    return checked;
  };
};

type Previewing = {
  readonly worktrees: Worktrees;
  readonly onConflict: OnConflictFlag;
  readonly flags: MergeFlags;
  readonly io: Io;
};

const preview = async (tasks: readonly string[], { worktrees, onConflict, flags, io }: Previewing): Promise<number> => {
  const choice = onConflict === "hand-back" ? "stop" : onConflict;
  const how = { isPreview: true, onConflict: choice, signal: io.signal, told: printerOf(flags, io) };
  const outcomes = await worktrees.merge(tasks, how);
  if (!flags.json) for (const line of previewAdvice(tasks, outcomes)) io.err(`prefork: ${visible(line)}\n`);
  return io.signal.aborted ? 130 : exitCodeFor(tasks, outcomes);
};

const undo = async (given: readonly string[], flags: MergeFlags, io: Io): Promise<number> => {
  const { undo: asked, family, force, json } = flags;
  if (given.length > 0) throw new UsageError("--undo takes back the last merges; how many is said right behind it");
  if (flags.preview || flags.keepFailed || flags.onConflict !== undefined || typeof flags.check === "string")
    throw new UsageError("--undo goes with --family, --force and --json alone");
  if (family !== undefined && (family !== true || asked !== true))
    throw new UsageError(
      "--undo --family takes back all merges of the last command; leave the number and the task out",
    );
  const worktrees = await openWorktrees(flags, io);
  const points = undoablePoints(await worktrees.table(), worktrees.top);
  const last = points.at(-1)?.group;
  const wanted = family ? points.filter(({ group }) => group === last).length : asked === true ? 1 : (asked ?? 1);
  if (points.length === 0) throw new UsageError("there is no merge to take back in this checkout");
  if (wanted > points.length)
    throw new UsageError(`there are only ${points.length} merges to take back in this checkout`);
  // One at a time, so that what was done is told also where the next one cannot be.
  for (let left = wanted; left > 0; left -= 1)
    for (const undone of await worktrees.undo(1, force ? { isForced: true } : {}))
      io.out(json ? jsonLine(undone) : undoneText(undone));
  return 0;
};
