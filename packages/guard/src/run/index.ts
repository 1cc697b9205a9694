export type { Held, PutBack } from "./audit.ts";
export { type Comparison, type DatedBreach, Watch, type WatchOptions, watchTrees } from "./audit.ts";
export { editText, findOccurrences, type TextEdit } from "./edit-text.ts";
export { checkFileCall, type FileCallAnswer, performFileCall } from "./file-calls.ts";
export { Turns } from "./in-turns.ts";
export type { Keep } from "./keep-copy.ts";
export type { AroundCell } from "./plan-cell.ts";
export { type CellOptions, type OpenedCell, openCell, type PlanCell } from "./plan-cell.ts";
export type { Breach, Reverted } from "./revert.ts";
export { leavesCell } from "./run-pipe.ts";
export { type PlanLimits, type PlanResult, type PlanRun, planHazard, runPlan } from "./run-plan.ts";
export type { WritableRoot } from "./sandbox.ts";
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
export type { RecordedTree } from "./tree-record.ts";
export { waitingFile } from "./waiting-files.ts";
