/** Child agents: asked for, placed, opened, run, reported and judged. */

export { Children, type LeftBehind } from "./children.ts";
export { checkClaims, editedIn } from "./claims.ts";
export type { AgentStart, ForkStart, Siblings } from "./family-starts.ts";
export { ForkHandle, type ForkOutcome } from "./handle.ts";
export { ForkHost, type ForkHostOptions, type WakeStart } from "./host.ts";
export { IsolatedWork } from "./isolation.ts";
export { type MergeBackOptions, mergeBack } from "./merge-back.ts";
export { type ReadReport, type Report, readReport } from "./report.ts";
export type { Child, ChildTold } from "./running.ts";
export { Runs } from "./runs.ts";
export { TaskTools, type TaskToolsOptions } from "./task-tools.ts";
