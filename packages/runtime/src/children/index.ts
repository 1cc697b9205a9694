/** Child agents: asked for, placed, opened, run, reported and judged. */

export { checkClaims, editedIn } from "./claims.ts";
export { ForkHandle, type ForkOutcome } from "./handle.ts";
export { ForkHost, type ForkHostOptions } from "./host.ts";
export { IsolatedWork } from "./isolation.ts";
export { type ChildOrigin, LocalHost } from "./local-host.ts";
export { type MergeBackOptions, mergeBack } from "./merge-back.ts";
export { type ReadReport, readReport } from "./report.ts";
export { Runs } from "./runs.ts";
export { TaskTools, type TaskToolsOptions } from "./task-tools.ts";
