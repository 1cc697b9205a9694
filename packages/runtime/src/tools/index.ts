/** What tools are, the ones that every session has, and what they need from it. */

export { withWaitingAgent } from "./agent.ts";
export { builtInTools } from "./built-in.ts";
export { outputOf } from "./delegated.ts";
export { hasForkAbove } from "./fork-ancestry.ts";
export { type Keeping, type KeepStream, type KeptFile, keepIn } from "./keep.ts";
export { ProcessGroup } from "./process-group.ts";
export { type Freshness, type LineRange, ReadState, type SeenFile } from "./read-state.ts";
export { type Checked, createRegistry, type NamedCall, type Registry, touchesOf } from "./registry.ts";
export {
  type ShellEnded,
  type ShellFacts,
  type ShellLook,
  type ShellStart,
  type ShellStarted,
  type ShellState,
  Shells,
  type ShellsOptions,
  type ShellWork,
  type StartedShell,
} from "./shells.ts";
export { defineTool, failed, type TodoSlot, type Tool, type ToolContext, type ToolOutput } from "./tool.ts";
export { type Located, openToolFiles, ToolFiles, type ToolFilesOptions } from "./tool-files.ts";
