/** Copies of a checkout for tasks: made, finished, merged, taken back and repaired. */

export { type Checked, runCheck } from "./check.ts";
export type { Created } from "./create.ts";
export { WorktreeError, type WorktreeFault } from "./errors.ts";
export { familyOf } from "./family.ts";
export type { ChangedFile, Looked } from "./look.ts";
export type { MergeOptions, MergeOutcome, OnConflict } from "./merge.ts";
export type { ConflictedFile } from "./merge-plan.ts";
export {
  isUnmerged,
  type MergePoint,
  type PointState,
  type Worktree,
  type WorktreeState,
  type WorktreeTable,
} from "./records.ts";
export type { Repaired } from "./repair.ts";
export type { Snapshot, UntrackedLimit } from "./snapshot.ts";
export type { Undone } from "./undo.ts";
export type { Work } from "./work.ts";
export { type Pruned, Worktrees, type WorktreesOptions } from "./worktrees.ts";
