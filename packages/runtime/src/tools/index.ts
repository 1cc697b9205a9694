/** What tools are, the ones that every session has, and what they need from it. */

export { builtInTools } from "./built-in.ts";
export { toToolOutput, withBlockingAgent } from "./delegated.ts";
export { hasForkAncestor } from "./fork-ancestry.ts";
export type { KeepStream } from "./long-output.ts";
export { createOutputStore, type OutputStore } from "./long-output.ts";
export { ProcessGroup } from "./process-group.ts";
export { ReadState } from "./read-state.ts";
export { createRegistry, type NamedCall, type Registry, touchesOf } from "./registry.ts";
export { type ShellEnded, type ShellProcess, type ShellStarted, Shells, type ShellsOptions } from "./shells.ts";
export type { TodoSlot } from "./tool.ts";
export { defineTool, failed, type Tool, type ToolContext, type ToolOutput } from "./tool.ts";
export { openToolFiles, ToolFiles, type ToolFilesOptions } from "./tool-files.ts";
