/** @prefork/worktrees/internal: what our other packages share with this one. No promise is made about these names. */

export { runCheck } from "./check.ts";
export type { Created } from "./create.ts";
export type { PointState, WorktreeState } from "./records.ts";
export type { Snapshot, UntrackedLimit } from "./snapshot.ts";
export type { Work } from "./work.ts";
