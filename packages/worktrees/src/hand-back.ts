/** Hands conflicts back to the agent that made them: its worktree gets both sides, with conflict markers.
 *  Invariant: the checkout is only read; the agent's own commits stay; its resolution is merged against the state of the
 *  checkout that it saw, and only when every marker is gone.
 *  Elsewhere: resuming the agent (@prefork/runtime), merging the result (merge.ts). */

import type { WorktreeContext } from "./create.ts";
import { WorktreeError } from "./errors.ts";
import { displayPath, messagePath } from "./git.ts";
import { type ConflictedFile, planMerge } from "./merge-plan.ts";
import { openWorktree } from "./open-worktree.ts";
import type { Worktree } from "./records.ts";
import { baseRef, setRefs } from "./refs.ts";
import type { Repository } from "./repository.ts";
import { entriesOf, resolveConflicts } from "./resolve.ts";
import { commitTree } from "./snapshot.ts";
import { keepWork } from "./work.ts";

/** Returns the conflicts. If there are none, nothing was changed. */
export const handBack = async (place: WorktreeContext, worktree: Worktree): Promise<readonly ConflictedFile[]> => {
  const { repository, store } = place;
  const { task, path, base } = worktree;
  return store.scratch(async (scratch) => {
    const kept = await keepWork(place, worktree, `Kept before the conflicts were handed back to ${task}\n`);
    const { tip } = kept;
    const plan = await planMerge(place, { ...kept, task, base }, scratch);
    if (plan.conflicts.length === 0) return [];
    const copy = await openWorktree(repository, path);
    if (!copy) throw new WorktreeError("unknown-task", `the worktree of ${task} no longer exists: ${path}`);
    const tree = await resolveConflicts(repository, plan, { choice: "markers", task, scratch });
    const now = await commitTree(repository, plan.now.tree, { parent: base, message: "The checkout now\n" });
    // The files first: without the checkout's changes, the worktree would seem to revert them.
    await copy.git.out(["read-tree", "--reset", "-u", tree]);
    await setRefs(repository, [{ ref: baseRef(task), to: now }]);
    const conflicted = plan.conflicts.map((conflict) => conflict.path);
    await store.append({ kind: "based", task, base: now, tip, conflicted });
    return plan.conflicts.map(({ path: name, kind }) => ({ path: displayPath(name), kind }));
  });
};

const MARKER = /^(?:<{7}|>{7}) /m;

/** Throws if a conflict that was handed back still has markers. */
export const requireResolved = async (
  { git }: Repository,
  { task, conflicted }: Worktree,
  tree: string,
): Promise<void> => {
  if (conflicted.length === 0) return;
  const entries = await entriesOf(git, tree);
  const unresolved: string[] = [];
  for (const path of conflicted) {
    const entry = entries.get(path);
    if (!entry?.mode.startsWith("100")) continue;
    const content = await git.out(["cat-file", "blob", entry.id]);
    if (MARKER.test(content.toString("latin1"))) unresolved.push(messagePath(path));
  }
  if (unresolved.length > 0)
    throw new WorktreeError(
      "unmerged",
      `${task} has not resolved its conflicts; there are still markers in ${unresolved.join(", ")}`,
    );
};
