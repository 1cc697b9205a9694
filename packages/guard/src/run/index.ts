export { type Comparison, type DatedBreach, Watch, type WatchOptions, watchTrees } from "./audit.ts";
export { editText, type TextEdit } from "./edit-text.ts";
export { cleanEnvironment } from "./environment.ts";
export { checkFileCall, type FileCallAnswer, performFileCall } from "./file-calls.ts";
export { GitViews } from "./git-view.ts";
export { placesOf } from "./path-judge.ts";
export { pinnedRipgrep } from "./pinned-ripgrep.ts";
export { type CellOptions, type OpenedCell, openCell, type PlanCell } from "./plan-cell.ts";
export { findProgram, findRipgrep, whyMissing } from "./programs.ts";
export { eraseKeysFromBlock, isProviderKey, withoutProviderKeys } from "./provider-keys.ts";
export type { Breach, Reverted } from "./revert.ts";
export { leavesCell } from "./run-pipe.ts";
export { type PlanLimits, type PlanResult, type PlanRun, planHazard, runPlan } from "./run-plan.ts";
export {
  type Entered,
  type OpenedSandbox,
  openSandbox,
  probeSandbox,
  Sandbox,
  type SandboxOptions,
  type SandboxProbe,
} from "./sandbox.ts";
export { type SandboxMounts, sandboxArgv } from "./sandbox-argv.ts";
export { endStragglers, MARK, newMark } from "./stragglers.ts";
export { waitingFile } from "./waiting-files.ts";
