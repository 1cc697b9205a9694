/** Child agents: how they are requested, given a workspace, opened, run, reported and checked. */

export { checkReport, readEditedFiles } from "./check-report.ts";
export type { HandleParts } from "./handle.ts";
export { ForkHandle, type ForkOutcome } from "./handle.ts";
export { ChildLauncher, type ChildLauncherOptions } from "./launcher.ts";
export { type ChildOrigin, LocalHost } from "./local-host.ts";
export { type MergeBackOptions, mergeBack } from "./merge-back.ts";
export { type ReadReport, readReport } from "./report.ts";
export { Runs } from "./runs.ts";
export { TaskTools, type TaskToolsOptions } from "./task-tools.ts";
export { ChildWorktrees } from "./worktrees.ts";
