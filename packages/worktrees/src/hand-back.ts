/** Conflicts for the agent that knows the work: both sides put together in its copy, markers where they meet.
 *  Invariant: the checkout is only read; the agent's own commits stay; what it resolves is merged against the state of the
 *  checkout that it has seen, and not before every marker is gone.
 *  Elsewhere: waking the agent (../session), merging what it made (merge.ts). */

import { openCopy } from "./copies.ts";
import type { Place } from "./create.ts";
import { WorktreeError } from "./errors.ts";
import { shownPath, toldPath } from "./git.ts";
import { type ConflictedFile, planMerge } from "./merge-plan.ts";
import type { Worktree } from "./records.ts";
import { baseRef, setRefs } from "./refs.ts";
import type { Repository } from "./repository.ts";
import { entriesOf, resolveConflicts } from "./resolve.ts";
import { commitTree } from "./snapshot.ts";
import { keepWork } from "./work.ts";

/** Empty where nothing conflicts: then nothing was done. */
export const handBack = async (place: Place, worktree: Worktree): Promise<readonly ConflictedFile[]> => {
  const { repository, store } = place;
  const { task, path, base } = worktree;
  return store.scratch(async (scratch) => {
    const kept = await keepWork(place, worktree, `Kept before ${task} was given its conflicts\n`);
    const { tip } = kept;
    const plan = await planMerge(place, { ...kept, task, base }, scratch);
    if (plan.conflicts.length === 0) return [];
    const copy = await openCopy(repository, path);
    if (!copy) throw new WorktreeError("unknown-task", `the worktree of ${task} is not there any more: ${path}`);
    const tree = await resolveConflicts(repository, plan, { choice: "markers", task, scratch });
    const now = await commitTree(repository, plan.now.tree, { parent: base, message: "The checkout now\n" });
    // The files first: a copy that does not hold the checkout's changes would seem to take them back.
    await copy.git.out(["read-tree", "--reset", "-u", tree]);
    await setRefs(repository, [{ ref: baseRef(task), to: now }]);
    const conflicted = plan.conflicts.map((conflict) => conflict.path);
    await store.append({ kind: "based", task, base: now, tip, conflicted });
    return plan.conflicts.map(({ path: name, kind }) => ({ path: shownPath(name), kind }));
  });
};

const MARKER = /^(?:<{7}|>{7}) /m;

/** Throws where a conflict that was handed back still stands in what its agent made of it. */
export const mustBeResolved = async (
  { git }: Repository,
  { task, conflicted }: Worktree,
  tree: string,
): Promise<void> => {
  if (conflicted.length === 0) return;
  const entries = await entriesOf(git, tree);
  const left: string[] = [];
  for (const path of conflicted) {
    const entry = entries.get(path);
    if (!entry?.mode.startsWith("100")) continue;
    const content = await git.out(["cat-file", "blob", entry.id]);
    if (MARKER.test(content.toString("latin1"))) left.push(toldPath(path));
  }
  if (left.length > 0)
    throw new WorktreeError("unmerged", `${task} has not resolved its conflicts: ${left.join(", ")} still has markers`);
};
