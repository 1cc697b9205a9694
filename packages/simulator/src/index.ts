/** Providers to test against: they bill, cache, expire, race and stream like the real ones, over real HTTP.
 *  This is the public entry `@prefork/simulator`; docs/simulator.md shows how to use it. */

export type { Billed } from "./bill.ts";
export type { MissCause } from "./cache/index.ts";
export type { SimClock } from "./clock.ts";
export { ManualClock, RunningClock } from "./clock.ts";
export { SimulatorError } from "./errors.ts";
export type { Fault } from "./faults.ts";
export type { LedgerRow, Outcome } from "./ledger.ts";
export { loadScript } from "./load-script.ts";
export type {
  AcceptanceRules,
  AutomaticRules,
  CacheRules,
  EndingRules,
  KeyParameter,
  Level,
  ModelRules,
  ProviderName,
  ProviderSummary,
  ReportRules,
  RoutingRules,
  RuleOverrides,
  RuleTable,
  SlotRules,
  ThinkingType,
  UsageField,
  WireName,
} from "./rules/index.ts";
export { anthropicRules, providerRules, providers } from "./rules/index.ts";
export type {
  AnswerBlock,
  SeenToolResult,
  SimAnswer,
  SimBlock,
  SimBody,
  SimMessage,
  SimRequest,
  SimScript,
  StopReason,
  ToolCall,
} from "./script.ts";
export { callTools, defaultScript, echo, lastUserText, say, think, toolNames, toolResults } from "./script.ts";
export type { KeptRequest } from "./server.ts";
export type { Simulator, SimulatorOptions } from "./simulator.ts";
export { startSimulator } from "./simulator.ts";
export type { CountedBlock, TokenRule } from "./tokens.ts";
export { BYTES_PER_TOKEN, contentTokens, TOKENS_PER_DOCUMENT, TOKENS_PER_IMAGE, textOfTokens } from "./tokens.ts";
