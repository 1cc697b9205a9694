/** One agent: its loop from a prompt to the stop, its engine, its guard, its tools and its account. */

export {
  Account,
  estimatePrompt,
  estimateTokens,
  fit,
  fitInTime,
  type Measured,
  worstCase,
} from "./account.ts";
export { Agent, makeAgent, PRODUCT, routed } from "./agent.ts";
export { type Answered, readAnswer, textOf } from "./answer.ts";
export type { Compacted, CompactionCause } from "./compacting.ts";
export {
  type ApprovedCall,
  type Batch,
  type Dispatch,
  runBatch,
} from "./dispatch.ts";
export {
  type AgentEngine,
  ANTHROPIC_URL,
  anthropicEngine,
  type Engine,
  type EngineOptions,
  Engines,
  engineFor,
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
export { type LeftOpen, leftOpenOf, nothingLeftOpen, OpenCalls } from "./open-calls.ts";
export type {
  AgentExtensions,
  AgentHooks,
  AgentOptions,
  AgentParts,
  AgentSettings,
  Beside,
  Bounds,
  Content,
  HookVerdict,
  Moved,
  StartedFamily,
  Tail,
} from "./options.ts";
export {
  CUT_AGAIN,
  type ExchangeResult,
  type Run,
  runExchange,
  spentSince,
} from "./run.ts";
export { type Stop, stopBefore, type TurnLimits } from "./stop.ts";
export { SurroundingsWatch } from "./surroundings.ts";
export { ToolWorld } from "./tool-world.ts";
export { reportRetry, runTurn, type TurnParts, type TurnResult } from "./turn.ts";
