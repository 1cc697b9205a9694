/** What would a queue of merges do, one after another?
 *  Invariant: nothing is written that stays: no ref, no record, no repair, no object of the repository; each merge builds
 *  on what those before it would have made of the checkout, and the preview ends where the queue would.
 *  Elsewhere: merging for real (merge.ts). */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { livenessOf } from "@prefork/guard/internal";
import type { Place } from "./create.ts";
import { WorktreeError } from "./errors.ts";
import { inOrder, type MergeOptions, type MergeOutcome, mergeable, orFailed, planWork } from "./merge.ts";
import type { Worktree, WorktreeTable } from "./records.ts";
import type { TreeReading } from "./snapshot.ts";
import type { WorktreeStore } from "./store.ts";
import { readWork } from "./work.ts";

export const previewQueue = async (
  { repository, store }: Place,
  tasks: readonly string[],
  options: MergeOptions,
): Promise<readonly MergeOutcome[]> => {
  const table = await store.read();
  mustBeWhole(table, { repository, store });
  return store.scratch(async (scratch) => {
    const objects = join(scratch, "objects");
    await mkdir(objects, { mode: 0o700 });
    const git = repository.git.writingTo(objects, join(repository.commonDir, "objects"));
    const place: Place = { store, repository: { ...repository, git } };
    let now: TreeReading | undefined;
    return inOrder(tasks, options, (task) =>
      orFailed(task, async () => {
        const folder = join(scratch, `merge-${task}`);
        const worktree = await mergeable(place, afterRepair(table.worktrees.get(task), store), task);
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

/** A merge that is half done stands between the files as they are and as they will be. */
const mustBeWhole = ({ points }: WorktreeTable, { repository, store }: Place): void => {
  const halfDone = points.find(
    ({ state, top }) => (state === "merging" || state === "undoing") && top === repository.top,
  );
  if (!halfDone) return;
  const { point, task, by } = halfDone;
  if (livenessOf(by, store.self) !== "dead")
    throw new WorktreeError("busy", `merge ${point} (${task}) is under way in this checkout; try again`);
  throw new WorktreeError(
    "not-ready",
    `merge ${point} (${task}) was interrupted in this checkout; prefork worktrees repair takes it back first`,
  );
};

/** As a repair would leave it: a merge repairs before it begins. */
const afterRepair = (worktree: Worktree | undefined, store: WorktreeStore): Worktree | undefined => {
  if (!worktree || !store.isAbandoned(worktree)) return worktree;
  const isKept = worktree.state.kind === "working";
  return { ...worktree, state: isKept ? { kind: "finished", end: "interrupted" } : { kind: "gone" } };
};
