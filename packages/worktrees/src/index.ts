/** @prefork/worktrees: copies of a checkout for tasks: made, finished, merged one after another, taken back and repaired. */

export type { Checked } from "./check.ts";
export { WorktreeError, type WorktreeFault } from "./errors.ts";
export { familyOf } from "./family.ts";
export type { ChangedFile, Looked } from "./look.ts";
export type { MergeOptions, MergeOutcome, OnConflict } from "./merge.ts";
export type { ConflictedFile } from "./merge-plan.ts";
export { isUnmerged, type MergePoint, type Worktree, type WorktreeTable } from "./records.ts";
export type { Repaired } from "./repair.ts";
export type { Undone } from "./undo.ts";
export { type Pruned, Worktrees, type WorktreesOptions } from "./worktrees.ts";
