/** @prefork/worktrees/internal: names for our other packages. They may change at any time. */

export { runCheck } from "./check.ts";
export type { CreatedWorktree } from "./create.ts";
export type { PointState, WorktreeState } from "./records.ts";
export type { Snapshot, UntrackedLimit } from "./snapshot.ts";
export type { Work } from "./work.ts";
