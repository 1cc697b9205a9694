/** What would a queue of merges do?
 *  Invariant: nothing permanent is written: no ref, no record, no repair, no object in the repository. Each merge builds on
 *  the result of those before it, and the preview stops where the queue would.
 *  Elsewhere: real merges (merge.ts). */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { livenessOf } from "@prefork/guard/internal";
import type { WorktreeContext } from "./create.ts";
import { WorktreeError } from "./errors.ts";
import { catchFailure, type MergeOptions, type MergeOutcome, planWork, requireMergeable, runInOrder } from "./merge.ts";
import type { Worktree, WorktreeTable } from "./records.ts";
import type { TreeReading } from "./snapshot.ts";
import type { WorktreeStore } from "./store.ts";
import { readWork } from "./work.ts";

export const previewQueue = async (
  { repository, store }: WorktreeContext,
  tasks: readonly string[],
  options: MergeOptions,
): Promise<readonly MergeOutcome[]> => {
  const table = await store.read();
  requireNoHalfMerge(table, { repository, store });
  return store.scratch(async (scratch) => {
    const objects = join(scratch, "objects");
    await mkdir(objects, { mode: 0o700 });
    const git = repository.git.writingTo(objects, join(repository.commonDir, "objects"));
    const place: WorktreeContext = { store, repository: { ...repository, git } };
    let now: TreeReading | undefined;
    return runInOrder(tasks, options, (task) =>
      catchFailure(task, async () => {
        const folder = join(scratch, `merge-${task}`);
        const worktree = await requireMergeable(place, afterRepair(table.worktrees.get(task), store), task);
        await mkdir(folder, { mode: 0o700 });
        const kept = await readWork(place, worktree, folder);
        const planned = await planWork(place, { worktree, kept, now }, { ...options, scratch: folder });
        const { about, plan, tree, isOpen } = planned;
        now = isOpen ? plan.now : { ...plan.now, tree };
        const isSkipped = isOpen && options.onConflict === "skip";
        return { ...about, kind: isOpen ? "conflicts" : "would-merge", isSkipped };
      }),
    );
  });
};

/** While a merge is half done, the files are neither in the old nor in the new state. */
const requireNoHalfMerge = ({ points }: WorktreeTable, { repository, store }: WorktreeContext): void => {
  const halfDone = points.find(
    ({ state, top }) => (state === "merging" || state === "undoing") && top === repository.top,
  );
  if (!halfDone) return;
  const { point, task, by } = halfDone;
  if (livenessOf(by, store.self) !== "dead")
    throw new WorktreeError("busy", `merge ${point} (${task}) is in progress in this checkout; try again`);
  throw new WorktreeError(
    "not-ready",
    `merge ${point} (${task}) was interrupted in this checkout; run prefork worktrees repair first`,
  );
};

/** The worktree after a repair, because a real merge repairs first. */
const afterRepair = (worktree: Worktree | undefined, store: WorktreeStore): Worktree | undefined => {
  if (!worktree || !store.isAbandoned(worktree)) return worktree;
  const isKept = worktree.state.kind === "working";
  return { ...worktree, state: isKept ? { kind: "finished", end: "interrupted" } : { kind: "gone" } };
};
