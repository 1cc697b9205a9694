/** After a crash: what was under way, and how it is brought to an end.
 *  Invariant: only what nobody works on any more is touched; unfinished work is committed, a merge that did not come to
 *  its end is taken back, an undo and a removal that were begun are completed. Repairing twice is the same as once.
 *  Elsewhere: the lines it goes by (records.ts). */

import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { livenessOf } from "@prefork/guard/internal";
import { openCopy, removeCopy } from "./copies.ts";
import { type Place, takeAway } from "./create.ts";
import { filesOf } from "./errors.ts";
import { fieldsOf } from "./git.ts";
import type { MergePoint, Worktree, WorktreeTable } from "./records.ts";
import { dropRefs, savedRef } from "./refs.ts";
import { openRepository, type Repository } from "./repository.ts";
import { prepareBack, putBack, readSaved } from "./save.ts";
import { dropStage, dropStages } from "./stage.ts";
import { keepForeign, takeBack } from "./undo.ts";
import { commitWork, dropAll } from "./work.ts";

/** What was found, and what was done about it; one line each. */
export type Repaired = { readonly what: string; readonly done: string };

/** What would be repaired. */
export const leftUnderWay = ({ store }: Place, { worktrees, points }: WorktreeTable): Left => {
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

const tellUnchecked = async ({ store }: Place, { point, task }: MergePoint): Promise<Repaired> => {
  await store.append({ kind: "checked", point, said: "nothing" });
  return {
    what: `merge ${point} (${task}) was being checked, and its check came to no end`,
    done: "nothing: it stands in your checkout unchecked; prefork merge --undo takes it back",
  };
};

export type Left = { readonly worktrees: readonly Worktree[]; readonly points: readonly MergePoint[] };

/** All that a crash can leave. Call it alone. */
export const repair = async (place: Place): Promise<readonly Repaired[]> => {
  const mended = await mend(place);
  return [...mended, ...(await dropOrphans(place, await place.store.read()))];
};

/** What others would build upon. Call it alone: then whatever merge is not at its end was given up, even by this very
 *  process. */
export const mend = async (place: Place): Promise<readonly Repaired[]> => {
  const table = await place.store.read();
  const { worktrees } = leftUnderWay(place, table);
  const repaired: Repaired[] = [];
  // The last first: an earlier one was built upon.
  for (const point of unfinished(table.points).toReversed()) repaired.push(await repairIn(place, point));
  for (const worktree of worktrees) repaired.push(await repairWorktree(place, worktree));
  for (const point of unchecked(table.points)) repaired.push(await tellUnchecked(place, point));
  await dropScratch(place);
  await dropStages(place.repository);
  return repaired;
};

/** In the checkout that it happened in. Another that cannot be reached keeps nobody from working in this one. */
const repairIn = async (place: Place, point: MergePoint): Promise<Repaired> => {
  if (point.top === place.repository.top) return repairPoint(place, point);
  try {
    return await repairPoint({ ...place, repository: await openRepository(point.top) }, point);
  } catch (error) {
    const what = `merge ${point.point} (${point.task}) came to no end in ${point.top}`;
    return { what, done: `nothing: ${error instanceof Error ? error.message : String(error)}` };
  }
};

const repairPoint = async (place: Place, { point, state, task, saved: commit }: MergePoint): Promise<Repaired> => {
  const { store, repository } = place;
  const what = `merge ${point} (${task}) was ${state === "merging" ? "under way" : "being taken back"}`;
  if (commit !== "") {
    const saved = await readSaved(repository, commit);
    const kept = await keepForeign(place, point, saved);
    const also = kept === undefined ? "" : `; what was changed since is on ${kept}`;
    if (state === "undoing") {
      const files = await takeBack(place, point, saved);
      return { what, done: `taken back to its end, ${files.length} files were left to do${also}` };
    }
    const files = await putBack(repository, saved, await prepareBack(repository, saved, point));
    await dropStage(repository, point);
    await store.append({ kind: "not-merged", point, reason: "it was interrupted" });
    await dropRefs(repository, [{ ref: savedRef(point) }]);
    return {
      what,
      done: `taken back, ${files.length} files were changed already; merge it again when you like${also}`,
    };
  }
  await store.append(state === "undoing" ? { kind: "undone", point } : { kind: "merged", point, conflicts: [] });
  return { what, done: "nothing had to be changed" };
};

const repairWorktree = async (place: Place, worktree: Worktree): Promise<Repaired> => {
  const { store, repository } = place;
  const { task, path, base, state } = worktree;
  switch (state.kind) {
    case "creating":
      await takeAway(place, { task, path, base });
      await store.append({ kind: "not-created", task, reason: "it was interrupted" });
      return { what: `the worktree of ${task} was being made`, done: "taken away; nobody had worked in it" };
    case "removing": {
      const what = `the worktree of ${task} was being removed`;
      if (await holdsMore(repository, worktree)) {
        const work = await commitWork(place, worktree, `Kept: ${task} was being removed, and held more\n`);
        await store.append({ kind: "finished", task, tip: work.tip, files: work.files.length, end: "interrupted" });
        return { what, done: "kept: something was put into it since" };
      }
      await store.listing(() => removeCopy(repository, path));
      await dropAll(repository, worktree);
      await store.append({ kind: "removed", task });
      return { what, done: "removed to its end" };
    }
    default: {
      const work = await commitWork(place, worktree, `Kept: ${task} was interrupted\n`);
      await store.append({ kind: "finished", task, tip: work.tip, files: work.files.length, end: "interrupted" });
      const done = `what it had is committed on ${worktree.branch}: ${filesOf(work.files.length)}`;
      return { what: `${task} was at work when its session ended`, done };
    }
  }
};

/** A removal takes files away; anything else in the folder is somebody's. */
const holdsMore = async (repository: Repository, { path }: Worktree): Promise<boolean> => {
  const copy = await openCopy(repository, path);
  if (!copy) return false;
  const words = ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all"];
  const { code, out } = await copy.git.ask(words, { may: [0, 128] });
  return code === 0 && fieldsOf(out).some((line) => !/^( D|D |DD)/.test(line));
};

/** Saved for a merge that never began. */
const dropOrphans = async ({ repository }: Place, { points }: WorktreeTable): Promise<readonly Repaired[]> => {
  const known = new Set(points.filter(({ state }) => state !== "not-merged").map(({ point }) => savedRef(point)));
  const listed = await repository.git.line(["for-each-ref", "--format=%(refname)", "refs/prefork/saved/"]);
  const orphans = listed.split("\n").filter((ref) => ref !== "" && !known.has(ref));
  if (orphans.length > 0)
    await dropRefs(
      repository,
      orphans.map((ref) => ({ ref })),
    );
  return orphans.map((ref) => ({ what: `${ref} was saved for a merge that did not begin`, done: "dropped" }));
};

const dropScratch = async ({ store }: Place): Promise<void> => {
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
