export type { Held, RevertedBreach } from "./audit.ts";
export { type Comparison, type DatedBreach, Watch, type WatchOptions, watchTrees } from "./audit.ts";
export { findBlockingFile } from "./blocking-files.ts";
export { editText, findOccurrences, type TextEdit } from "./edit-text.ts";
export { checkFileCall, type FileCallAnswer, performFileCall } from "./file-calls.ts";
export { nextTurn, Turns } from "./in-turns.ts";
export type { Keep } from "./keep-copy.ts";
export type { SandboxEntryOptions } from "./read-only-sandbox.ts";
export {
  type OpenedReadOnlySandbox,
  openReadOnlySandbox,
  type ReadOnlySandbox,
  type ReadOnlySandboxOptions,
} from "./read-only-sandbox.ts";
export type { Breach, Reverted } from "./revert.ts";
export { mayRunOutsideSandbox } from "./run-pipe.ts";
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
