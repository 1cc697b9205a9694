/** Takes merges back: the checkout is as it was before them.
 *  Invariant: what was changed since is never overwritten unasked, and where it is asked for it is kept on a ref first.
 *  The index is the user's: no merge touches it, and so no undo does.
 *  Elsewhere: what was saved (save.ts), the order of merges (records.ts). */

import type { Place } from "./create.ts";
import { WorktreeError } from "./errors.ts";
import { shownPath, toldPath } from "./git.ts";
import type { TreeEntry } from "./merge-plan.ts";
import type { MergePoint } from "./records.ts";
import { baseRef, branchRef, setRefs, tipRef } from "./refs.ts";
import type { Repository } from "./repository.ts";
import { entriesOf } from "./resolve.ts";
import { prepareBack, putBack, type Restoring, readSaved, type Saved, unlikeBefore } from "./save.ts";
import { commitTree, EVERYTHING, readTree } from "./snapshot.ts";
import { dropStage } from "./stage.ts";

export type UndoOptions = {
  /** Put back also what was changed since; that is kept on a ref. Default: refuse. */
  readonly isForced?: boolean;
};

export type Undone = {
  readonly point: number;
  readonly task: string;
  readonly files: readonly string[];
  /** The ref that holds what stood there, where something was overwritten. */
  readonly kept?: string;
};

/** Those that can be taken back, the last first. */
export const undoable = (points: readonly MergePoint[]): readonly MergePoint[] =>
  points.filter(({ state }) => state === "merged").toReversed();

export const undoPoint = async (place: Place, number: number, { isForced = false }: UndoOptions): Promise<Undone> => {
  const { store, repository } = place;
  const point = (await store.read()).points.find((one) => one.point === number && one.state === "merged");
  if (!point) throw new WorktreeError("unknown-task", `there is no merge ${number} to take back`);
  if (point.saved === "") {
    await store.append({ kind: "undoing", point: number, by: store.self });
    await store.append({ kind: "undone", point: number });
    return { point: number, task: point.task, files: [] };
  }
  const saved = await readSaved(repository, point.saved);
  const kept = await store.scratch((scratch) => sinceMerge(place, { saved, number, isForced, scratch }));
  await keepWork(place, point);
  const restoring = await prepareBack(repository, saved, number);
  await store.append({ kind: "undoing", point: number, by: store.self });
  const files = await putFilesBack(place, { point: number, saved, restoring });
  return { point: number, task: point.task, files, ...kept };
};

/** Work whose worktree was removed because it was merged stands nowhere else once the merge is gone. */
const keepWork = async ({ repository, store }: Place, { task, tip }: MergePoint): Promise<void> => {
  const worktree = (await store.read()).worktrees.get(task);
  if (worktree?.state.kind !== "gone") return;
  await setRefs(repository, [
    { ref: branchRef(task), to: tip },
    { ref: tipRef(task), to: tip },
    { ref: baseRef(task), to: worktree.base },
  ]);
};

type FilesBack = { readonly point: number; readonly saved: Saved; readonly restoring: Restoring };

const putFilesBack = async (
  { repository, store }: Place,
  { point, saved, restoring }: FilesBack,
): Promise<readonly string[]> => {
  const files = await putBack(repository, saved, restoring);
  await dropStage(repository, point);
  await store.append({ kind: "undone", point });
  return files.map(shownPath);
};

/** Brings an undo to its end that came to none: what is back already stays. */
export const takeBack = async (place: Place, point: number, saved: Saved): Promise<readonly string[]> => {
  const restoring = await prepareBack(place.repository, saved, point);
  return putFilesBack(place, { point, saved, restoring });
};

type Since = {
  readonly saved: Saved;
  readonly number: number;
  readonly isForced: boolean;
  readonly scratch: string;
};

/** Refuses, or keeps, what was written since the merge. */
const sinceMerge = async (
  { repository }: Place,
  { saved, number, isForced, scratch }: Since,
): Promise<{ readonly kept?: string }> => {
  const also = saved.files.map(({ path }) => path);
  const { tree } = await readTree(repository, `${scratch}/now`, { ...EVERYTHING, also });
  const now = await entriesOf(repository.git, tree);
  const changed = saved.files.filter(({ path, after }) => !isSameEntry(now.get(path), after));
  if (changed.length === 0) return {};
  const names = changed.map(({ path }) => toldPath(path));
  if (!isForced)
    throw new WorktreeError(
      "changed-meanwhile",
      `changed since the merge: ${names.slice(0, 5).join(", ")}${names.length > 5 ? ` and ${names.length - 5} more` : ""}; nothing was taken back. With --force they are put back too, and kept on a ref`,
    );
  return { kept: await keepTree(repository, tree, number) };
};

const keepTree = async (repository: Repository, tree: string, point: number): Promise<string> => {
  const ref = `refs/prefork/kept/${point}`;
  const message = `The checkout before merge ${point} was taken back\n`;
  const to = await commitTree(repository, tree, { parent: repository.head, message });
  await setRefs(repository, [{ ref, to }]);
  return ref;
};

/** After a crash: what neither stood there before the merge nor was brought by it is somebody's, and is kept on a ref. */
export const keepForeign = async (
  { repository, store }: Place,
  point: number,
  saved: Saved,
): Promise<string | undefined> => {
  const unlike = await unlikeBefore(repository, saved);
  if (unlike.length === 0) return undefined;
  const how = { ...EVERYTHING, also: saved.files.map(({ path }) => path) };
  const { tree } = await store.scratch((scratch) => readTree(repository, `${scratch}/now`, how));
  const now = await entriesOf(repository.git, tree);
  const isForeign = unlike.some(({ path, after }) => !isSameEntry(now.get(path), after));
  return isForeign ? keepTree(repository, tree, point) : undefined;
};

const isSameEntry = (one: TreeEntry | undefined, other: TreeEntry | undefined): boolean =>
  one?.id === other?.id && one?.mode === other?.mode;
