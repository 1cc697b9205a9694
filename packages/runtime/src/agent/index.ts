/** One agent: its loop from a prompt to the stop, its engine, its guard, its tools and its account. */

export {
  Account,
  checkAmounts,
  checkCounts,
  checkDurations,
  estimatePrompt,
  estimateTokens,
  fitOrWait,
  fitRequest,
  type Measured,
  worstCase,
} from "./account.ts";
export { Agent, makeAgent, PRODUCT, promptIn, withRoutingKey } from "./agent.ts";
export { type AcceptedAnswer, AttemptUsage, readAnswer, textOf } from "./answer.ts";
export type { CompactionCause, CompactionResult } from "./compacting.ts";
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
export { AgentGuard, type AgentGuardOptions } from "./guard.ts";
export {
  beginLineage,
  Lineage,
  type LineageJournal,
  type LineageStart,
  type LineageState,
  type NextRequest,
  resumeLineage,
} from "./lineage.ts";
export { type LeftOpen, nothingLeftOpen, OpenCalls, readLeftOpen } from "./open-calls.ts";
export type {
  AgentExtensions,
  AgentHooks,
  AgentOptions,
  AgentParts,
  AgentSettings,
  Content,
  Effects,
  HookVerdict,
  MovedCall,
  SlowCallPolicy,
  StartedFamily,
  TailNotes,
  WorkBounds,
} from "./options.ts";
export {
  type AgentRun,
  CUT_AGAIN,
  type ExchangeResult,
  type ExchangeStop,
  runExchange,
  spentSince,
  stopBeforeTurn,
  type TurnLimits,
} from "./run.ts";
export { SurroundingsWatch } from "./surroundings.ts";
export { ToolWorld, toolEnvironment } from "./tool-world.ts";
export { reportRetry, runTurn, type TurnParts, type TurnResult } from "./turn.ts";
