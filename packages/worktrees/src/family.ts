/** Which worktrees belong together? Those that were made from one snapshot of the checkout.
 *  Elsewhere: merging them (merge.ts). */

import { isUnmerged, type Worktree } from "./records.ts";
import type { Worktrees } from "./worktrees.ts";

/** Those that started together with a task, or with the last one, and are not merged: in the order they were asked for. */
export const familyOf = async (worktrees: Worktrees, task?: string): Promise<readonly string[]> => {
  const all = [...(await worktrees.table()).worktrees.values()].filter(({ state }) => state.kind !== "gone");
  const first = task === undefined ? all.findLast(isUnmerged) : all.find((one) => one.task === task);
  return all
    .filter((one) => first && startedTogether(one, first) && isUnmerged(one))
    .toSorted((one, other) => (one.order ?? 0) - (other.order ?? 0))
    .map((one) => one.task);
};

/** Those of the same snapshot. Lists of earlier versions know only its commit, which two snapshots may share. */
const startedTogether = (one: Worktree, other: Worktree): boolean =>
  one.family === other.family && one.origin === other.origin;
