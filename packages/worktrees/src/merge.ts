/** Brings the work of tasks back into the checkout, one after another.
 *  Invariant: nothing is touched before git has merged the trees and all that will be replaced is saved; a merge is there
 *  whole or not at all; what the checkout changed meanwhile is kept. Whatever stops the queue, what is told is how it is.
 *  Elsewhere: the merged tree (merge-plan.ts, resolve.ts), writing it (apply.ts), the way back (undo.ts), what would
 *  happen (preview.ts). */

import { shownName } from "@prefork/guard/internal";
import { applyChanges } from "./apply.ts";
import type { Checked } from "./check.ts";
import type { Place } from "./create.ts";
import { WorktreeError, worktreeErrorOf } from "./errors.ts";
import { fieldsOf, type Steps, shownPath, type TreePath, toldPath } from "./git.ts";
import { mustBeResolved } from "./hand-back.ts";
import { type Change, type ConflictedFile, changesBetween, type MergePlan, planMerge } from "./merge-plan.ts";
import type { Worktree, WorktreeTable } from "./records.ts";
import { dropRefs, mustBeHere, savedRef } from "./refs.ts";
import { mustBeReady } from "./repository.ts";
import { type Choice, resolveConflicts } from "./resolve.ts";
import { save } from "./save.ts";
import type { TreeReading } from "./snapshot.ts";
import { undoPoint } from "./undo.ts";
import { type Kept, keepWork } from "./work.ts";

/** `stop`: the queue ends and nothing of this task is merged. `skip`: the same, and the queue goes on. */
export type OnConflict = "stop" | "skip" | Choice;

export type MergeOptions = {
  readonly onConflict?: OnConflict; // default: stop
  /** Asked after each merge; a no takes that merge back and ends the queue. */
  readonly check?: () => Promise<Checked>;
  /** A merge that the check says no to stays. Default: false. */
  readonly keepsFailed?: boolean;
  /** Only tell what the whole queue would do; nothing is written, and no check runs. Default: false. */
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
  /** Those of them that are left in the checkout for somebody to resolve; absent where there are none. */
  readonly unresolved?: readonly string[];
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
  const group = options.group ?? nextGroup(await store.read());
  return inOrder(tasks, options, (task) => mergeTask(merging, task, { ...options, group }));
};

/** One after another, up to the first that ends the queue. */
export const inOrder = async (
  tasks: readonly string[],
  { signal, told }: Pick<MergeOptions, "signal" | "told">,
  act: (task: string) => Promise<MergeOutcome>,
): Promise<readonly MergeOutcome[]> => {
  const outcomes: MergeOutcome[] = [];
  for (const task of tasks) {
    if (signal?.aborted) break;
    const outcome = await act(task);
    outcomes.push(outcome);
    told?.(outcome);
    if (endsQueue(outcome)) break;
  }
  return outcomes;
};

export const nextGroup = ({ points }: WorktreeTable): number => Math.max(0, ...points.map(({ group }) => group)) + 1;

const endsQueue = (outcome: MergeOutcome): boolean =>
  outcome.kind === "failed" || outcome.kind === "check-failed" || (outcome.kind === "conflicts" && !outcome.isSkipped);

type Grouped = MergeOptions & { readonly group: number };

const mergeTask = (merging: Merging, task: string, options: Grouped): Promise<MergeOutcome> =>
  orFailed(task, async () => {
    const worktree = await mergeable(merging, (await merging.store.read()).worktrees.get(task), task);
    return merging.store.scratch((scratch) => mergeWorktree(merging, worktree, { ...options, scratch }));
  });

export const orFailed = async (task: string, act: () => Promise<MergeOutcome>): Promise<MergeOutcome> => {
  try {
    return await act();
  } catch (error) {
    const about = { task, label: "", files: [], conflicts: [] };
    return { ...about, kind: "failed", reason: worktreeErrorOf(error, task).message };
  }
};

/** The worktree, where its work can be merged here and now. */
export const mergeable = async (place: Place, worktree: Worktree | undefined, task: string): Promise<Worktree> => {
  if (!worktree) throw new WorktreeError("unknown-task", `there is no worktree of ${task} here`);
  mustBeMergeable(worktree, place);
  await mustBeHere(place.repository, worktree);
  await mustBeReady(place.repository);
  return worktree;
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
  const kept = await keepWork(merging, worktree, `Kept before ${worktree.task} was merged\n`);
  const { tip } = kept;
  const { about, plan, changes, isOpen } = await planWork(merging, { worktree, kept }, options);
  if (isOpen) return { ...about, kind: "conflicts", isSkipped: options.onConflict === "skip" };
  if (changes.length === 0) {
    await noteMerged(merging, { worktree, tip, ...options });
    return { ...about, kind: "nothing-new" };
  }
  const point = await bringIn(merging, { worktree, tip, plan, changes, ...options });
  return checked(merging, { ...about, kind: "merged", point }, options);
};

export type PlannedWork = {
  readonly about: Pick<MergeOutcome, "task" | "label" | "conflicts" | "files" | "unresolved">;
  readonly plan: MergePlan;
  /** The checkout's tree after the merge. */
  readonly tree: string;
  readonly changes: readonly Change[];
  /** There are conflicts, and none are to come into the checkout. */
  readonly isOpen: boolean;
};

type Planning = {
  readonly worktree: Worktree;
  readonly kept: Pick<Kept, "tip" | "tree" | "baseTree" | "isOnBase">;
  /** The checkout, where it is not to be read. */
  readonly now?: TreeReading | undefined;
};

/** What a merge of this work makes of the checkout, with conflicts resolved as chosen. Only objects are written. */
export const planWork = async (
  { repository }: Pick<Place, "repository">,
  { worktree, kept, now }: Planning,
  { onConflict = "stop", scratch }: Pick<MergeOptions, "onConflict"> & { readonly scratch: string },
): Promise<PlannedWork> => {
  const { task, label, base } = worktree;
  await mustBeResolved(repository, worktree, kept.tree);
  const plan = await planMerge({ repository }, { ...kept, task, base, now }, scratch);
  const conflicts = plan.conflicts.map(({ path, kind }) => ({ path: shownPath(path), kind }));
  const choice = onConflict === "stop" || onConflict === "skip" ? undefined : onConflict;
  const hasConflicts = conflicts.length > 0;
  const tree = hasConflicts && choice ? await resolveConflicts(repository, plan, { choice, task, scratch }) : plan.tree;
  const changes = await changesBetween(repository, plan.now.tree, tree);
  const unresolved = choice === "markers" && hasConflicts ? { unresolved: conflicts.map(({ path }) => path) } : {};
  const about = { task, label, conflicts, files: changes.map(({ path }) => shownPath(path)), ...unresolved };
  return { about, plan, tree, changes, isOpen: hasConflicts && !choice };
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
    throw new WorktreeError("changed-meanwhile", `${toldPath(path)} was changed meanwhile; nothing was merged`);
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
  const { point, unresolved = [] } = outcome;
  await store.append({ kind: "checking", point, by: store.self });
  const result = unresolved.length > 0 ? unresolvedCheck(unresolved) : await check();
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

/** Whatever a command says of them: files with conflicts in them are not checked work. */
const unresolvedCheck = (files: readonly string[]): Checked => ({
  ok: false,
  output: `the check was not run: conflicts are left in ${files.map(shownName).join(", ")}`,
});
