/** @prefork/worktrees/internal: names for our other packages. They may change at any time. */

export { runCheck } from "./check.ts";
export { Checkout } from "./checkout.ts";
export type { CreatedWorktree, CreateOptions } from "./create.ts";
export type { StepCallback, TreePath } from "./git.ts";
export type { CheckAnswer, Creating, PointState, WorktreeRecord, WorktreeState } from "./records.ts";
export type { ConflictChoice } from "./resolve.ts";
export type { Snapshot, UntrackedLimit } from "./snapshot.ts";
export type { UndoOptions } from "./undo.ts";
export type { Work } from "./work.ts";
