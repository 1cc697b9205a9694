/** @prefork/worktrees: worktrees for tasks: created, finished, merged one after another, undone and repaired. */

export type { CheckResult } from "./check.ts";
export { WorktreeError, type WorktreeFault } from "./errors.ts";
export {
  FileHistory,
  type FileHistoryOptions,
  type FileRestoration,
  type FileSnapshot,
  type RestoredFile,
} from "./file-history.ts";
export type { ChangedFile, WorktreeInspection } from "./inspect.ts";
export type { MergeOptions, MergeOutcome, OnConflict } from "./merge.ts";
export type { ConflictedFile } from "./merge-plan.ts";
export { isUnmerged, type MergePoint, type Worktree, type WorktreeTable } from "./records.ts";
export type { RepairReport } from "./repair.ts";
export type { UndoResult } from "./undo.ts";
export { familyOf, type PruneResult, Worktrees, type WorktreesOptions } from "./worktrees.ts";
