/** Undoes merges: restores the checkout to its state before them.
 *  Invariant: later changes are never overwritten unless the user asks for it, and then they are kept on a ref first. The
 *  index belongs to the user: neither a merge nor an undo touches it.
 *  Elsewhere: what was saved (save.ts), the order of merges (records.ts). */

import type { WorktreeContext } from "./create.ts";
import { WorktreeError } from "./errors.ts";
import { displayPath, messagePath } from "./git.ts";
import type { TreeEntry } from "./merge-plan.ts";
import type { MergePoint } from "./records.ts";
import { baseRef, branchRef, setRefs, tipRef } from "./refs.ts";
import type { Repository } from "./repository.ts";
import { entriesOf } from "./resolve.ts";
import {
  findChangedFiles,
  type PreparedRestore,
  prepareRestore,
  readSaved,
  restoreFiles,
  type SavedState,
} from "./save.ts";
import { commitTree, EVERYTHING, readTree } from "./snapshot.ts";
import { dropStage } from "./stage.ts";

export type UndoOptions = {
  /** Also restore files that changed since, and keep those changes on a ref. Default: refuse. */
  readonly isForced?: boolean;
};

export type UndoResult = {
  readonly point: number;
  readonly task: string;
  readonly files: readonly string[];
  /** The ref that keeps overwritten changes, if there were any. */
  readonly kept?: string;
};

/** The merges that can be undone, the last one first. */
export const undoablePoints = (points: readonly MergePoint[]): readonly MergePoint[] =>
  points.filter(({ state }) => state === "merged").toReversed();

export const undoPoint = async (
  place: WorktreeContext,
  number: number,
  { isForced = false }: UndoOptions,
): Promise<UndoResult> => {
  const { store, repository } = place;
  const point = (await store.read()).points.find((one) => one.point === number && one.state === "merged");
  if (!point) throw new WorktreeError("unknown-task", `there is no merge ${number} to undo`);
  if (point.saved === "") {
    await store.append({ kind: "undoing", point: number, by: store.self });
    await store.append({ kind: "undone", point: number });
    return { point: number, task: point.task, files: [] };
  }
  const saved = await readSaved(repository, point.saved);
  const kept = await store.scratch((scratch) => protectLaterChanges(place, { saved, number, isForced, scratch }));
  await keepRemovedWork(place, point);
  const restoring = await prepareRestore(repository, saved, number);
  await store.append({ kind: "undoing", point: number, by: store.self });
  const files = await restoreAndRecord(place, { point: number, saved, restoring });
  return { point: number, task: point.task, files, ...kept };
};

/** If the worktree was removed after its merge, the undo would lose the work, so its refs are set again. */
const keepRemovedWork = async ({ repository, store }: WorktreeContext, { task, tip }: MergePoint): Promise<void> => {
  const worktree = (await store.read()).worktrees.get(task);
  if (worktree?.state.kind !== "gone") return;
  await setRefs(repository, [
    { ref: branchRef(task), to: tip },
    { ref: tipRef(task), to: tip },
    { ref: baseRef(task), to: worktree.base },
  ]);
};

type RestoreInput = { readonly point: number; readonly saved: SavedState; readonly restoring: PreparedRestore };

const restoreAndRecord = async (
  { repository, store }: WorktreeContext,
  { point, saved, restoring }: RestoreInput,
): Promise<readonly string[]> => {
  const files = await restoreFiles(repository, saved, restoring);
  await dropStage(repository, point);
  await store.append({ kind: "undone", point });
  return files.map(displayPath);
};

/** Finishes an undo that was interrupted; files that are already restored stay. */
export const finishUndo = async (
  place: WorktreeContext,
  point: number,
  saved: SavedState,
): Promise<readonly string[]> => {
  const restoring = await prepareRestore(place.repository, saved, point);
  return restoreAndRecord(place, { point, saved, restoring });
};

type LaterChanges = {
  readonly saved: SavedState;
  readonly number: number;
  readonly isForced: boolean;
  readonly scratch: string;
};

/** Refuses if files changed since the merge, or keeps their changes on a ref. */
const protectLaterChanges = async (
  { repository }: WorktreeContext,
  { saved, number, isForced, scratch }: LaterChanges,
): Promise<{ readonly kept?: string }> => {
  const also = saved.files.map(({ path }) => path);
  const { tree } = await readTree(repository, `${scratch}/now`, { ...EVERYTHING, also });
  const now = await entriesOf(repository.git, tree);
  const changed = saved.files.filter(({ path, after }) => !isSameEntry(now.get(path), after));
  if (changed.length === 0) return {};
  const names = changed.map(({ path }) => messagePath(path));
  if (!isForced)
    throw new WorktreeError(
      "changed-meanwhile",
      `changed since the merge: ${names.slice(0, 5).join(", ")}${names.length > 5 ? ` and ${names.length - 5} more` : ""}; nothing was undone. --force restores them too, and keeps the changes on a ref`,
    );
  return { kept: await keepTree(repository, tree, number) };
};

const keepTree = async (repository: Repository, tree: string, point: number): Promise<string> => {
  const ref = `refs/prefork/kept/${point}`;
  const message = `The checkout before merge ${point} was undone\n`;
  const to = await commitTree(repository, tree, { parent: repository.head, message });
  await setRefs(repository, [{ ref, to }]);
  return ref;
};

/** After a crash: content that is neither from before the merge nor from the merge is somebody's work, and is kept on a
 *  ref. */
export const keepForeignChanges = async (
  { repository, store }: WorktreeContext,
  point: number,
  saved: SavedState,
): Promise<string | undefined> => {
  const unlike = await findChangedFiles(repository, saved);
  if (unlike.length === 0) return undefined;
  const how = { ...EVERYTHING, also: saved.files.map(({ path }) => path) };
  const { tree } = await store.scratch((scratch) => readTree(repository, `${scratch}/now`, how));
  const now = await entriesOf(repository.git, tree);
  const isForeign = unlike.some(({ path, after }) => !isSameEntry(now.get(path), after));
  return isForeign ? keepTree(repository, tree, point) : undefined;
};

const isSameEntry = (one: TreeEntry | undefined, other: TreeEntry | undefined): boolean =>
  one?.id === other?.id && one?.mode === other?.mode;
