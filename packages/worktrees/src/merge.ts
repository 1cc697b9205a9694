/** Merges the work of tasks into the checkout, one after another.
 *  Invariant: nothing is touched before git has merged the trees and everything to be replaced is saved; a merge is applied
 *  completely or not at all; changes made in the checkout since are kept. Outcomes state what really happened, whatever
 *  stops the queue.
 *  Elsewhere: the merged tree (merge-plan.ts, resolve.ts), writing it (apply.ts), undoing it (undo.ts), what would happen
 *  (preview.ts). */

import { shownName } from "@prefork/guard/internal";
import { applyChanges } from "./apply.ts";
import type { CheckResult } from "./check.ts";
import type { WorktreeContext } from "./create.ts";
import { toWorktreeError, WorktreeError } from "./errors.ts";
import { displayPath, fieldsOf, messagePath, type StepCallback, type TreePath } from "./git.ts";
import { requireResolved } from "./hand-back.ts";
import { type ConflictedFile, changesBetween, type FileChange, type MergePlan, planMerge } from "./merge-plan.ts";
import type { Worktree, WorktreeTable } from "./records.ts";
import { dropRefs, requireBase, savedRef } from "./refs.ts";
import { requireReady } from "./repository.ts";
import { type ConflictChoice, resolveConflicts } from "./resolve.ts";
import { saveReplaced } from "./save.ts";
import type { TreeReading } from "./snapshot.ts";
import { undoPoint } from "./undo.ts";
import { type KeptWork, keepWork } from "./work.ts";

/** `stop`: do not merge this task, and stop the queue. `skip`: do not merge it, and continue with the next. */
export type OnConflict = "stop" | "skip" | ConflictChoice;

export type MergeOptions = {
  readonly onConflict?: OnConflict; // default: stop
  /** Runs after each merge. If it fails, that merge is undone and the queue stops. */
  readonly check?: () => Promise<CheckResult>;
  /** Keep a merge whose check failed. Default: false. */
  readonly keepsFailed?: boolean;
  /** Only return what the queue would do: nothing is written, and no check runs. Default: false. */
  readonly isPreview?: boolean;
  /** Merges of one group can be undone together. Default: a new group for this call. */
  readonly group?: number;
  readonly onOutcome?: (outcome: MergeOutcome) => void;
  readonly signal?: AbortSignal;
};

export type MergeOutcome = {
  readonly task: string;
  readonly label: string;
  /** Files of the checkout that were, or would be, changed. */
  readonly files: readonly string[];
  readonly conflicts: readonly ConflictedFile[];
  /** Conflicts that are left in the checkout to be resolved; absent if there are none. */
  readonly unresolved?: readonly string[];
} & (
  | { readonly kind: "merged"; readonly point: number; readonly checked?: CheckResult }
  | { readonly kind: "would-merge" }
  | { readonly kind: "nothing-new" }
  | { readonly kind: "conflicts"; readonly isSkipped: boolean }
  | { readonly kind: "check-failed"; readonly point: number; readonly output: string; readonly isKept: boolean }
  | { readonly kind: "failed"; readonly reason: string }
);

export type MergeContext = WorktreeContext & { readonly step: StepCallback };

/** Stops at the first task that could not be merged. */
export const mergeQueue = async (
  merging: MergeContext,
  tasks: readonly string[],
  options: MergeOptions,
): Promise<readonly MergeOutcome[]> => {
  const { store } = merging;
  const group = options.group ?? nextGroup(await store.read());
  return runInOrder(tasks, options, (task) => mergeTask(merging, task, { ...options, group }));
};

/** One task after another, up to the first whose outcome stops the queue. */
export const runInOrder = async (
  tasks: readonly string[],
  { signal, onOutcome }: Pick<MergeOptions, "signal" | "onOutcome">,
  act: (task: string) => Promise<MergeOutcome>,
): Promise<readonly MergeOutcome[]> => {
  const outcomes: MergeOutcome[] = [];
  for (const task of tasks) {
    if (signal?.aborted) break;
    const outcome = await act(task);
    outcomes.push(outcome);
    onOutcome?.(outcome);
    if (endsQueue(outcome)) break;
  }
  return outcomes;
};

export const nextGroup = ({ points }: WorktreeTable): number => Math.max(0, ...points.map(({ group }) => group)) + 1;

const endsQueue = (outcome: MergeOutcome): boolean =>
  outcome.kind === "failed" || outcome.kind === "check-failed" || (outcome.kind === "conflicts" && !outcome.isSkipped);

type GroupedOptions = MergeOptions & { readonly group: number };

const mergeTask = (merging: MergeContext, task: string, options: GroupedOptions): Promise<MergeOutcome> =>
  catchFailure(task, async () => {
    const worktree = await requireMergeable(merging, (await merging.store.read()).worktrees.get(task), task);
    return merging.store.scratch((scratch) => mergeWorktree(merging, worktree, { ...options, scratch }));
  });

export const catchFailure = async (task: string, act: () => Promise<MergeOutcome>): Promise<MergeOutcome> => {
  try {
    return await act();
  } catch (error) {
    const about = { task, label: "", files: [], conflicts: [] };
    return { ...about, kind: "failed", reason: toWorktreeError(error, task).message };
  }
};

/** The worktree; throws if its work cannot be merged here and now. */
export const requireMergeable = async (
  place: WorktreeContext,
  worktree: Worktree | undefined,
  task: string,
): Promise<Worktree> => {
  if (!worktree) throw new WorktreeError("unknown-task", `${task} has no worktree here`);
  requireMergeableState(worktree, place);
  await requireBase(place.repository, worktree);
  await requireReady(place.repository);
  return worktree;
};

const requireMergeableState = ({ task, state, top }: Worktree, { repository }: WorktreeContext): void => {
  if (state.kind === "working" || state.kind === "creating")
    throw new WorktreeError(
      "busy",
      `${task} is still working; wait until it ends, or stop it (prefork tasks stop ${task})`,
    );
  if (state.kind === "gone") throw new WorktreeError("unknown-task", `the worktree of ${task} was removed`);
  if (top !== repository.top)
    throw new WorktreeError("not-ready", `${task} started from ${top}; merge it there (--cwd ${top})`);
};

type ScratchOptions = GroupedOptions & { readonly scratch: string };

const mergeWorktree = async (
  merging: MergeContext,
  worktree: Worktree,
  options: ScratchOptions,
): Promise<MergeOutcome> => {
  const kept = await keepWork(merging, worktree, `Kept before ${worktree.task} was merged\n`);
  const { tip } = kept;
  const { about, plan, changes, isOpen } = await planWork(merging, { worktree, kept }, options);
  if (isOpen) return { ...about, kind: "conflicts", isSkipped: options.onConflict === "skip" };
  if (changes.length === 0) {
    await recordNothingNew(merging, { worktree, tip, ...options });
    return { ...about, kind: "nothing-new" };
  }
  const point = await applyMerge(merging, { worktree, tip, plan, changes, ...options });
  return runMergeCheck(merging, { ...about, kind: "merged", point }, options);
};

export type PlannedWork = {
  readonly about: Pick<MergeOutcome, "task" | "label" | "conflicts" | "files" | "unresolved">;
  readonly plan: MergePlan;
  /** The checkout's tree after the merge. */
  readonly tree: string;
  readonly changes: readonly FileChange[];
  /** There are conflicts, and the caller did not choose how to resolve them. */
  readonly isOpen: boolean;
};

type WorkInput = {
  readonly worktree: Worktree;
  readonly kept: Pick<KeptWork, "tip" | "tree" | "baseTree" | "isOnBase">;
  /** The checkout, if it should not be read again. */
  readonly now?: TreeReading | undefined;
};

/** What the checkout would be after merging this work, with conflicts resolved as chosen. Writes only git objects. */
export const planWork = async (
  { repository }: Pick<WorktreeContext, "repository">,
  { worktree, kept, now }: WorkInput,
  { onConflict = "stop", scratch }: Pick<MergeOptions, "onConflict"> & { readonly scratch: string },
): Promise<PlannedWork> => {
  const { task, label, base } = worktree;
  await requireResolved(repository, worktree, kept.tree);
  const plan = await planMerge({ repository }, { ...kept, task, base, now }, scratch);
  const conflicts = plan.conflicts.map(({ path, kind }) => ({ path: displayPath(path), kind }));
  const choice = onConflict === "stop" || onConflict === "skip" ? undefined : onConflict;
  const hasConflicts = conflicts.length > 0;
  const tree = hasConflicts && choice ? await resolveConflicts(repository, plan, { choice, task, scratch }) : plan.tree;
  const changes = await changesBetween(repository, plan.now.tree, tree);
  const unresolved = choice === "markers" && hasConflicts ? { unresolved: conflicts.map(({ path }) => path) } : {};
  const about = { task, label, conflicts, files: changes.map(({ path }) => displayPath(path)), ...unresolved };
  return { about, plan, tree, changes, isOpen: hasConflicts && !choice };
};

type ApplyInput = ScratchOptions & {
  readonly worktree: Worktree;
  readonly tip: string;
  readonly plan: MergePlan;
  readonly changes: readonly FileChange[];
};

const nextPoint = async ({ store }: WorktreeContext): Promise<number> =>
  Math.max(0, ...(await store.read()).points.map(({ point }) => point)) + 1;

const applyMerge = async (merging: MergeContext, bringing: ApplyInput): Promise<number> => {
  const { repository, store, step } = merging;
  const { worktree, tip, plan, changes, group, scratch } = bringing;
  const point = await nextPoint(merging);
  const saved = await saveReplaced(repository, changes, { point, tip, absent: plan.now.absent });
  await requireUnchanged(merging, plan, changes);
  const { task, top } = worktree;
  await store.append({
    ...{ kind: "merging", point, by: store.self, task, group, top, tip },
    ...{ files: changes.length, saved: saved.commit },
  });
  const conflicts = plan.conflicts.map(({ path }) => displayPath(path));
  const record = (): Promise<void> => store.append({ kind: "merged", point, conflicts });
  try {
    await applyChanges(repository, { point, changes, saved, scratch, step, record });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    // If this record fails, too, the next repair finds that nothing changed.
    await store
      .append({ kind: "not-merged", point, reason })
      .then(() => dropRefs(repository, [{ ref: savedRef(point) }]))
      .catch(() => undefined);
    throw error;
  }
  return point;
};

/** Throws if a file to be replaced has changed since the trees were merged. */
const requireUnchanged = async (
  { repository }: WorktreeContext,
  { now }: MergePlan,
  changes: readonly FileChange[],
): Promise<void> => {
  const git = repository.git.indexed(now.index);
  const changed = new Set<TreePath>(fieldsOf(await git.out(["ls-files", "-z", "--modified", "--deleted"])));
  const [path] = changes.flatMap((change) => (changed.has(change.path) ? [change.path] : []));
  if (path !== undefined)
    throw new WorktreeError("changed-meanwhile", `${messagePath(path)} changed during the merge; nothing was merged`);
};

/** The checkout already has all of it, so there is nothing to save and nothing to undo. */
const recordNothingNew = async (
  merging: MergeContext,
  { worktree: { task, top }, tip, group }: GroupedOptions & { readonly worktree: Worktree; readonly tip: string },
): Promise<void> => {
  const { store } = merging;
  const point = await nextPoint(merging);
  await store.append({ kind: "merging", point, by: store.self, task, group, top, tip, files: 0, saved: "" });
  await store.append({ kind: "merged", point, conflicts: [] });
};

const runMergeCheck = async (
  merging: MergeContext,
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
      () => true, // the check changed merged files: the merge is kept, and undo names the files
    ));
  return { ...outcome, kind: "check-failed", output, isKept };
};

/** Files with conflicts in them never pass a check. */
const unresolvedCheck = (files: readonly string[]): CheckResult => ({
  ok: false,
  output: `the check was not run: conflicts are left in ${files.map(shownName).join(", ")}`,
});
