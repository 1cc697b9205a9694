/** After a crash: what was under way, and how it is brought to an end.
 *  Invariant: only what nobody works on any more is touched; unfinished work is committed, a merge that did not come to
 *  its end is taken back, an undo and a removal that were begun are completed. Repairing twice is the same as once.
 *  Elsewhere: the lines it goes by (records.ts). */

import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { livenessOf } from "../journal/index.ts";
import { dropStage } from "./apply.ts";
import { openCopy, removeCopy } from "./copies.ts";
import { type Place, takeAway } from "./create.ts";
import { fieldsOf } from "./git.ts";
import type { MergePoint, Worktree, WorktreeTable } from "./records.ts";
import { dropRefs, savedRef } from "./refs.ts";
import { openRepository, type Repository } from "./repository.ts";
import { putBack, readSaved } from "./save.ts";
import { takeBack } from "./undo.ts";
import { commitWork, dropAll } from "./work.ts";

/** What was found, and what was done about it; one line each. */
export type Repaired = { readonly what: string; readonly done: string };

/** What would be repaired. */
export const leftUnderWay = ({ store }: Place, { worktrees, points }: WorktreeTable): Left => {
  const isDead = (one: { readonly by: MergePoint["by"] }): boolean => livenessOf(one.by, store.self) === "dead";
  return {
    worktrees: [...worktrees.values()].filter(({ state }) => "by" in state && isDead(state)),
    points: points.filter((point) => (point.state === "merging" || point.state === "undoing") && isDead(point)),
  };
};

export type Left = { readonly worktrees: readonly Worktree[]; readonly points: readonly MergePoint[] };

/** Call it alone. */
export const repair = async (place: Place): Promise<readonly Repaired[]> => {
  const table = await place.store.read();
  const { worktrees, points } = leftUnderWay(place, table);
  const repaired: Repaired[] = [];
  // The last first: an earlier one was built upon.
  for (const point of points.toReversed()) repaired.push(await repairPoint(await at(place, point.top), point));
  for (const worktree of worktrees) repaired.push(await repairWorktree(place, worktree));
  repaired.push(...(await dropOrphans(place, table)));
  await dropScratch(place);
  return repaired;
};

/** The same records, in the checkout that something happened in. */
const at = async (place: Place, top: string): Promise<Place> =>
  top === place.repository.top ? place : { ...place, repository: await openRepository(top) };

const repairPoint = async (place: Place, { point, state, task, saved: commit }: MergePoint): Promise<Repaired> => {
  const { store, repository } = place;
  const what = `merge ${point} (${task}) was ${state === "merging" ? "under way" : "being taken back"}`;
  if (commit !== "") {
    const saved = await readSaved(repository, commit);
    if (state === "undoing") {
      const { files } = await takeBack(place, point, saved);
      return { what, done: `taken back to its end, ${files.length} files were left to do` };
    }
    const files = await putBack(repository, saved);
    await dropStage(repository, point);
    await store.append({ kind: "not-merged", point, reason: "it was interrupted" });
    await dropRefs(repository, [{ ref: savedRef(point) }]);
    return { what, done: `taken back, ${files.length} files were changed already; merge it again when you like` };
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
      await removeCopy(repository, path);
      await dropAll(repository, worktree);
      await store.append({ kind: "removed", task });
      return { what, done: "removed to its end" };
    }
    default: {
      const work = await commitWork(place, worktree, `Kept: ${task} was interrupted\n`);
      await store.append({ kind: "finished", task, tip: work.tip, files: work.files.length, end: "interrupted" });
      const done = `what it had is committed on ${worktree.branch}: ${work.files.length} changed files`;
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
