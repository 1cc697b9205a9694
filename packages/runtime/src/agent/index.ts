/** One agent: its loop from a prompt to the stop, its engine, its guard, its tools and its account. */

export {
  Account,
  estimatePrompt,
  estimateTokens,
  fit,
  fitInTime,
  type Hold,
  type Measured,
  type Shortage,
  type SpendLimits,
  type Spent,
  worstCase,
} from "./account.ts";
export { Agent, type AgentParts, type AgentSettings } from "./agent.ts";
export { type Answered, readAnswer, textOf } from "./answer.ts";
export { Clients } from "./clients.ts";
export type { Compacted, CompactionCause } from "./compacting.ts";
export {
  type ApprovedCall,
  type Batch,
  type Beside,
  type Bounds,
  type Dispatch,
  type Moved,
  runBatch,
} from "./dispatch.ts";
export {
  ANTHROPIC_URL,
  anthropicEngine,
  type Engine,
  type EngineOptions,
  engineFor,
  findEngine,
  missingEngine,
} from "./engine.ts";
export { toolEnvironment } from "./environment.ts";
export { Guarding, type GuardingOptions } from "./guarding.ts";
export { Heard } from "./heard.ts";
export { mustBeAmounts, mustBeCounts, mustBeTimes } from "./limits.ts";
export {
  type Beginning,
  beginLineage,
  Lineage,
  type LineageJournal,
  type LineageState,
  type NextRequest,
  resumeLineage,
} from "./lineage.ts";
export { type Making, makeAgent, PRODUCT, routed } from "./make-agent.ts";
export { type LeftOpen, leftOpenOf, nothingLeftOpen, OpenCalls } from "./open-calls.ts";
export type { AgentExtensions, AgentHooks, AgentOptions, HookVerdict } from "./options.ts";
export type { Content } from "./output.ts";
export {
  CUT_AGAIN,
  type ExchangeResult,
  type Run,
  runExchange,
  type StartedFamily,
  spentSince,
  type Tail,
} from "./run.ts";
export { type Stop, stopBefore, type TurnLimits } from "./stop.ts";
export { SurroundingsWatch } from "./surroundings.ts";
export { ToolWorld, type ToolWorldOptions } from "./tool-world.ts";
export { runTurn, type TurnAround, type TurnResult } from "./turn.ts";
