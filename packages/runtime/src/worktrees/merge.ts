/** Brings the work of tasks back into the checkout, one after another.
 *  Invariant: nothing is touched before git has merged the trees and all that will be replaced is saved; a merge is there
 *  whole or not at all; what the checkout changed meanwhile is kept. Whatever stops the queue, what is told is how it is.
 *  Elsewhere: the merged tree (merge-plan.ts, resolve.ts), writing it (apply.ts), the way back (undo.ts). */

import { applyChanges } from "./apply.ts";
import type { Checked } from "./check.ts";
import type { Place } from "./create.ts";
import { WorktreeError, worktreeErrorOf } from "./errors.ts";
import { fieldsOf, type Steps, shownPath, type TreePath } from "./git.ts";
import { mustBeResolved } from "./hand-back.ts";
import { type Change, type ConflictedFile, changesBetween, type MergePlan, planMerge } from "./merge-plan.ts";
import type { Worktree, WorktreeTable } from "./records.ts";
import { dropRefs, mustBeHere, savedRef } from "./refs.ts";
import { mustBeReady } from "./repository.ts";
import { type Choice, resolveConflicts } from "./resolve.ts";
import { save } from "./save.ts";
import { undoPoint } from "./undo.ts";
import { keepWork } from "./work.ts";

/** `stop`: the queue ends and nothing of this task is merged. `skip`: the same, and the queue goes on. */
export type OnConflict = "stop" | "skip" | Choice;

export type MergeOptions = {
  readonly onConflict?: OnConflict; // default: stop
  /** Asked after each merge; a no takes that merge back and ends the queue. */
  readonly check?: () => Promise<Checked>;
  /** A merge that the check says no to stays. Default: false. */
  readonly keepsFailed?: boolean;
  /** Only tell what would happen. Default: false. */
  readonly isPreview?: boolean;
  /** What an undo of the whole counts as one. Default: all tasks of this call. */
  readonly group?: number;
  readonly told?: (outcome: MergeOutcome) => void;
  readonly signal?: AbortSignal;
};

export type MergeOutcome = {
  readonly task: string;
  readonly label: string;
  /** Files of the checkout that were, or would be, changed. */
  readonly files: readonly string[];
  readonly conflicts: readonly ConflictedFile[];
} & (
  | { readonly kind: "merged"; readonly point: number; readonly checked?: Checked }
  | { readonly kind: "would-merge" }
  | { readonly kind: "nothing-new" }
  | { readonly kind: "conflicts"; readonly isSkipped: boolean }
  | { readonly kind: "check-failed"; readonly point: number; readonly output: string; readonly isKept: boolean }
  | { readonly kind: "failed"; readonly reason: string }
);

export type Merging = Place & { readonly step: Steps };

/** Stops at the first that could not be merged as chosen. */
export const mergeQueue = async (
  merging: Merging,
  tasks: readonly string[],
  options: MergeOptions,
): Promise<readonly MergeOutcome[]> => {
  const { store } = merging;
  const outcomes: MergeOutcome[] = [];
  const group = options.group ?? nextGroup(await store.read());
  for (const task of tasks) {
    if (options.signal?.aborted) break;
    const outcome = await mergeTask(merging, task, { ...options, group });
    outcomes.push(outcome);
    options.told?.(outcome);
    if (endsQueue(outcome)) break;
  }
  return outcomes;
};

export const nextGroup = ({ points }: WorktreeTable): number => Math.max(0, ...points.map(({ group }) => group)) + 1;

const endsQueue = (outcome: MergeOutcome): boolean =>
  outcome.kind === "failed" || outcome.kind === "check-failed" || (outcome.kind === "conflicts" && !outcome.isSkipped);

type Grouped = MergeOptions & { readonly group: number };

const mergeTask = async (merging: Merging, task: string, options: Grouped): Promise<MergeOutcome> => {
  const about = { task, label: "", files: [], conflicts: [] };
  try {
    const worktree = (await merging.store.read()).worktrees.get(task);
    if (!worktree) throw new WorktreeError("unknown-task", `there is no worktree of ${task} here`);
    mustBeMergeable(worktree, merging);
    await mustBeHere(merging.repository, worktree);
    await mustBeReady(merging.repository);
    return await merging.store.scratch((scratch) => mergeWorktree(merging, worktree, { ...options, scratch }));
  } catch (error) {
    return { ...about, kind: "failed", reason: worktreeErrorOf(error, task).message };
  }
};

const mustBeMergeable = ({ task, state, top }: Worktree, { repository }: Place): void => {
  if (state.kind === "working" || state.kind === "creating")
    throw new WorktreeError("busy", `${task} is still at work; wait until it has ended, or stop it`);
  if (state.kind === "gone") throw new WorktreeError("unknown-task", `the worktree of ${task} was removed`);
  if (top !== repository.top)
    throw new WorktreeError("not-ready", `${task} branched off from ${top}; merge it there (--cwd ${top})`);
};

type Here = Grouped & { readonly scratch: string };

const mergeWorktree = async (merging: Merging, worktree: Worktree, options: Here): Promise<MergeOutcome> => {
  const { repository } = merging;
  const { task, label } = worktree;
  const kept = await keepWork(merging, worktree, `Kept before ${task} was merged\n`);
  const { tip } = kept;
  await mustBeResolved(repository, worktree, tip);
  const plan = await planMerge(merging, { ...kept, task, base: worktree.base }, options.scratch);
  const conflicts = plan.conflicts.map(({ path, kind }) => ({ path: shownPath(path), kind }));
  const { onConflict = "stop", isPreview = false, scratch } = options;
  const isOpen = conflicts.length > 0 && (onConflict === "stop" || onConflict === "skip");
  const tree =
    conflicts.length > 0 && onConflict !== "stop" && onConflict !== "skip"
      ? await resolveConflicts(repository, plan, { choice: onConflict, task, scratch })
      : plan.tree;
  const changes = await changesBetween(repository, plan.now.tree, tree);
  const about = { task, label, conflicts, files: changes.map(({ path }) => shownPath(path)) };
  if (isOpen && !isPreview) return { ...about, kind: "conflicts", isSkipped: onConflict === "skip" };
  if (isPreview) return { ...about, kind: isOpen ? "conflicts" : "would-merge", isSkipped: false };
  if (changes.length === 0) {
    await noteMerged(merging, { worktree, tip, ...options });
    return { ...about, kind: "nothing-new" };
  }
  const point = await bringIn(merging, { worktree, tip, plan, changes, ...options });
  return checked(merging, { ...about, kind: "merged", point }, options);
};

type Bringing = Here & {
  readonly worktree: Worktree;
  readonly tip: string;
  readonly plan: MergePlan;
  readonly changes: readonly Change[];
};

const nextPoint = async ({ store }: Place): Promise<number> =>
  Math.max(0, ...(await store.read()).points.map(({ point }) => point)) + 1;

const bringIn = async (merging: Merging, bringing: Bringing): Promise<number> => {
  const { repository, store, step } = merging;
  const { worktree, tip, plan, changes, group, scratch } = bringing;
  const point = await nextPoint(merging);
  const saved = await save(repository, changes, { point, tip, absent: plan.now.absent });
  await mustBeUnchanged(merging, plan, changes);
  const { task, top } = worktree;
  await store.append({
    ...{ kind: "merging", point, by: store.self, task, group, top, tip },
    ...{ files: changes.length, saved: saved.commit },
  });
  const conflicts = plan.conflicts.map(({ path }) => shownPath(path));
  const noted = (): Promise<void> => store.append({ kind: "merged", point, conflicts });
  try {
    await applyChanges(repository, { point, changes, saved, scratch, step, noted });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    // Where this cannot be noted either, whoever comes next finds that all is as it was.
    await store
      .append({ kind: "not-merged", point, reason })
      .then(() => dropRefs(repository, [{ ref: savedRef(point) }]))
      .catch(() => undefined);
    throw error;
  }
  return point;
};

/** Since the trees were merged, and up to here, nobody has written to what will be replaced. */
const mustBeUnchanged = async (
  { repository }: Place,
  { now }: MergePlan,
  changes: readonly Change[],
): Promise<void> => {
  const git = repository.git.indexed(now.index);
  const changed = new Set<TreePath>(fieldsOf(await git.out(["ls-files", "-z", "--modified", "--deleted"])));
  const [path] = changes.flatMap((change) => (changed.has(change.path) ? [change.path] : []));
  if (path !== undefined)
    throw new WorktreeError("changed-meanwhile", `${shownPath(path)} was changed meanwhile; nothing was merged`);
};

/** All of it stands in the checkout already: there is nothing to save, and nothing to take back. */
const noteMerged = async (
  merging: Merging,
  { worktree: { task, top }, tip, group }: Grouped & { readonly worktree: Worktree; readonly tip: string },
): Promise<void> => {
  const { store } = merging;
  const point = await nextPoint(merging);
  await store.append({ kind: "merging", point, by: store.self, task, group, top, tip, files: 0, saved: "" });
  await store.append({ kind: "merged", point, conflicts: [] });
};

const checked = async (
  merging: Merging,
  outcome: Extract<MergeOutcome, { kind: "merged" }>,
  { check, keepsFailed = false }: MergeOptions,
): Promise<MergeOutcome> => {
  if (!check) return outcome;
  const { store } = merging;
  const { point } = outcome;
  await store.append({ kind: "checking", point, by: store.self });
  const result = await check();
  await store.append({ kind: "checked", point, said: result.ok ? "yes" : "no" });
  if (result.ok) return { ...outcome, checked: result };
  const { output } = result;
  const isKept =
    keepsFailed ||
    (await undoPoint(merging, outcome.point, {}).then(
      () => false,
      () => true, // the check changed what was merged: it stays, and undo tells which files
    ));
  return { ...outcome, kind: "check-failed", output, isKept };
};
