/** One agent, composed: its context, its tools, its guard. */

export { Agent, type AgentParts, type AgentSettings } from "./agent.ts";
export type { Compacted, CompactionCause } from "./compacting.ts";
export { toolEnvironment } from "./environment.ts";
export { Guarding, type GuardingOptions } from "./guarding.ts";
export { type LeftOpen, leftOpenOf, nothingLeftOpen, OpenCalls } from "./open-calls.ts";
export { SurroundingsWatch } from "./surroundings.ts";
export { ToolWorld, type ToolWorldOptions } from "./tool-world.ts";
