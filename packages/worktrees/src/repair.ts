/** After a crash: finds what was interrupted, and finishes it or rolls it back.
 *  Invariant: only work without a live process is touched; unfinished work is committed, an interrupted merge is rolled
 *  back, an interrupted undo or removal is finished. Repairing is idempotent.
 *  Elsewhere: the records that it follows (records.ts). */

import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { livenessOf } from "@prefork/guard/internal";
import { removeUnused, type WorktreeContext } from "./create.ts";
import { changedFilesText } from "./errors.ts";
import { fieldsOf } from "./git.ts";
import { openWorktree, removeWorktreeFolder } from "./open-worktree.ts";
import type { MergePoint, Worktree, WorktreeTable } from "./records.ts";
import { dropRefs, savedRef } from "./refs.ts";
import { openRepository, type Repository } from "./repository.ts";
import { prepareRestore, readSaved, restoreFiles } from "./save.ts";
import { dropStage, dropStages } from "./stage.ts";
import { finishUndo, keepForeignChanges } from "./undo.ts";
import { commitWork, dropTaskRefs } from "./work.ts";

/** What was found, and what was done about it; one line each. */
export type RepairReport = { readonly what: string; readonly done: string };

/** What a repair would handle. */
export const findInterrupted = ({ store }: WorktreeContext, { worktrees, points }: WorktreeTable): InterruptedWork => {
  const isDead = (one: { readonly by: MergePoint["by"] }): boolean => livenessOf(one.by, store.self) === "dead";
  return {
    worktrees: [...worktrees.values()].filter((one) => store.isAbandoned(one)),
    points: [...unfinished(points), ...unchecked(points)].filter(isDead),
  };
};

const unfinished = (points: readonly MergePoint[]): readonly MergePoint[] =>
  points.filter(({ state }) => state === "merging" || state === "undoing");

const unchecked = (points: readonly MergePoint[]): readonly MergePoint[] =>
  points.filter(({ state, check }) => state === "merged" && check === "running");

const reportUnchecked = async ({ store }: WorktreeContext, { point, task }: MergePoint): Promise<RepairReport> => {
  await store.append({ kind: "checked", point, said: "nothing" });
  return {
    what: `the check of merge ${point} (${task}) was interrupted`,
    done: "nothing: it stays in your checkout, unchecked. To undo it: prefork merge --undo",
  };
};

export type InterruptedWork = { readonly worktrees: readonly Worktree[]; readonly points: readonly MergePoint[] };

/** Repairs everything that a crash can leave. Call it with the lock. */
export const repair = async (place: WorktreeContext): Promise<readonly RepairReport[]> => {
  const repaired = await repairUnfinished(place);
  return [...repaired, ...(await dropOrphans(place, await place.store.read()))];
};

/** Repairs what later work would build on. Call it with the lock: then every unfinished merge was abandoned, even by this
 *  process. */
export const repairUnfinished = async (place: WorktreeContext): Promise<readonly RepairReport[]> => {
  const table = await place.store.read();
  const { worktrees } = findInterrupted(place, table);
  const repaired: RepairReport[] = [];
  // The last one first, because it was built on the earlier ones.
  for (const point of unfinished(table.points).toReversed()) repaired.push(await repairIn(place, point));
  for (const worktree of worktrees) repaired.push(await repairWorktree(place, worktree));
  for (const point of unchecked(table.points)) repaired.push(await reportUnchecked(place, point));
  await dropScratch(place);
  await dropStages(place.repository);
  return repaired;
};

/** Repairs a merge in its own checkout. If another checkout cannot be reached, work in this one continues. */
const repairIn = async (place: WorktreeContext, point: MergePoint): Promise<RepairReport> => {
  if (point.top === place.repository.top) return repairPoint(place, point);
  try {
    return await repairPoint({ ...place, repository: await openRepository(point.top) }, point);
  } catch (error) {
    const what = `merge ${point.point} (${point.task}) was interrupted in ${point.top}`;
    return { what, done: `nothing: ${error instanceof Error ? error.message : String(error)}` };
  }
};

const repairPoint = async (
  place: WorktreeContext,
  { point, state, task, saved: commit }: MergePoint,
): Promise<RepairReport> => {
  const { store, repository } = place;
  const what = `merge ${point} (${task}) was ${state === "merging" ? "in progress" : "being undone"}`;
  if (commit !== "") {
    const saved = await readSaved(repository, commit);
    const kept = await keepForeignChanges(place, point, saved);
    const also = kept === undefined ? "" : `; later changes are kept on ${kept}`;
    if (state === "undoing") {
      const files = await finishUndo(place, point, saved);
      return { what, done: `undo finished, ${files.length} files were left to restore${also}` };
    }
    const files = await restoreFiles(repository, saved, await prepareRestore(repository, saved, point));
    await dropStage(repository, point);
    await store.append({ kind: "not-merged", point, reason: "it was interrupted" });
    await dropRefs(repository, [{ ref: savedRef(point) }]);
    return {
      what,
      done: `rolled back, ${files.length} files had already changed; you can merge it again${also}`,
    };
  }
  await store.append(state === "undoing" ? { kind: "undone", point } : { kind: "merged", point, conflicts: [] });
  return { what, done: "nothing had to change" };
};

const repairWorktree = async (place: WorktreeContext, worktree: Worktree): Promise<RepairReport> => {
  const { store, repository } = place;
  const { task, path, base, state } = worktree;
  switch (state.kind) {
    case "creating":
      await removeUnused(place, { task, path, base });
      await store.append({ kind: "not-created", task, reason: "it was interrupted" });
      return { what: `the worktree of ${task} was being created`, done: "removed; no task had used it" };
    case "removing": {
      const what = `the worktree of ${task} was being removed`;
      if (await hasNewFiles(repository, worktree)) {
        const work = await commitWork(place, worktree, `Kept: ${task} was being removed, but had new files\n`);
        await store.append({ kind: "finished", task, tip: work.tip, files: work.files.length, end: "interrupted" });
        return { what, done: "kept: new files were added to it" };
      }
      await store.lockGitList(() => removeWorktreeFolder(repository, path));
      await dropTaskRefs(repository, worktree);
      await store.append({ kind: "removed", task });
      return { what, done: "removed" };
    }
    default: {
      const work = await commitWork(place, worktree, `Kept: ${task} was interrupted\n`);
      await store.append({ kind: "finished", task, tip: work.tip, files: work.files.length, end: "interrupted" });
      const done = `its work is committed on ${worktree.branch}: ${changedFilesText(work.files.length)}`;
      return { what: `${task} was working when its session ended`, done };
    }
  }
};

/** A removal only deletes files, so any other change in the folder is somebody's work. */
const hasNewFiles = async (repository: Repository, { path }: Worktree): Promise<boolean> => {
  const copy = await openWorktree(repository, path);
  if (!copy) return false;
  const words = ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all"];
  const { code, out } = await copy.git.ask(words, { okCodes: [0, 128] });
  return code === 0 && fieldsOf(out).some((line) => !/^( D|D |DD)/.test(line));
};

/** Drops what was saved for a merge that never started. */
const dropOrphans = async (
  { repository }: WorktreeContext,
  { points }: WorktreeTable,
): Promise<readonly RepairReport[]> => {
  const known = new Set(points.filter(({ state }) => state !== "not-merged").map(({ point }) => savedRef(point)));
  const listed = await repository.git.line(["for-each-ref", "--format=%(refname)", "refs/prefork/saved/"]);
  const orphans = listed.split("\n").filter((ref) => ref !== "" && !known.has(ref));
  if (orphans.length > 0)
    await dropRefs(
      repository,
      orphans.map((ref) => ({ ref })),
    );
  return orphans.map((ref) => ({ what: `${ref} was saved for a merge that never started`, done: "dropped" }));
};

const dropScratch = async ({ store }: WorktreeContext): Promise<void> => {
  for (const name of await readdir(store.path)) {
    const pid = /^scratch-(\d+)-[0-9a-f]{8}$/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(store.path, name), { recursive: true, force: true });
  }
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
};
