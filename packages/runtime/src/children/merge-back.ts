/** Merges the work of children in worktrees while their session is open, so that a conflict can go back to the child
 *  that made it.
 *  The merge is the same as without a session. A child that resolves its conflicts continues from its own journal, and
 *  its work is then merged or reported, never dropped.
 *  Elsewhere: merging (@prefork/worktrees), resuming a child (launcher.ts). */

import { InputError } from "@prefork/wire";
import type { MergeOptions, MergeOutcome, OnConflict, Worktrees } from "@prefork/worktrees";
import type { ChildLauncher } from "./launcher.ts";
import type { Runs } from "./runs.ts";
import { handBackText } from "./worktrees.ts";

export type MergeBackOptions = Omit<MergeOptions, "onConflict" | "check"> & {
  /** "hand-back": the child that made a conflict resolves it in its worktree. Default: stop. */
  readonly onConflict?: OnConflict | "hand-back";
  /** Runs after each merge: a command, or a function. A merge that fails the check is undone, and the queue ends. */
  readonly check?: string | NonNullable<MergeOptions["check"]>;
};

type Waking = { readonly host: Pick<ChildLauncher, "resume">; readonly runs: Pick<Runs, "whenEnded"> };

/** How often one child gets its conflicts back. */
const MOST_TRIES = 2;

export const mergeBack = async (
  worktrees: Worktrees,
  tasks: readonly string[],
  { check, onConflict = "stop", waking, ...options }: MergeBackOptions & { readonly waking: Waking },
): Promise<readonly MergeOutcome[]> => {
  if (tasks.length === 0) throw new InputError("no tasks to merge were given");
  const how: MergeOptions = {
    ...options,
    ...(check === undefined
      ? {}
      : { check: typeof check === "string" ? worktrees.check(check, options.signal) : check }),
  };
  if (onConflict !== "hand-back") return worktrees.merge(tasks, { ...how, onConflict });
  if (options.isPreview) return worktrees.merge(tasks, { ...how, onConflict: "stop" });
  const group = options.group ?? (await worktrees.newGroup());
  const outcomes: MergeOutcome[] = [];
  for (const task of tasks) {
    const outcome = await mergeOrHandBack(worktrees, task, { ...how, group, waking });
    outcomes.push(outcome);
    if (outcome.kind !== "merged" && outcome.kind !== "nothing-new") break;
  }
  return outcomes;
};

const mergeOrHandBack = async (
  worktrees: Worktrees,
  task: string,
  { waking, ...how }: MergeOptions & { readonly waking: Waking },
): Promise<MergeOutcome> => {
  for (let tried = 0; ; tried += 1) {
    const [outcome] = await worktrees.merge([task], { ...how, onConflict: "stop" });
    if (!outcome) throw new InputError(`${task} was not merged`);
    if (outcome.kind !== "conflicts" || tried === MOST_TRIES) return outcome;
    const conflicts = await worktrees.handBack(task);
    const message = handBackText(conflicts.map(({ path }) => path));
    const problem = await waking.host.resume(task, { message, by: "user" });
    if (problem !== undefined)
      return { ...outcome, kind: "failed", reason: `${task} could not be woken to resolve its conflicts: ${problem}` };
    await waking.runs.whenEnded([task], "all");
  }
};
