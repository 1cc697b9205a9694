/** Providers to test against: they bill, cache, expire, race and stream like the real ones, over real HTTP. This is the
 *  public entry `@prefork/simulator`; docs/simulator.md shows how to use it. */

export type { Billed } from "./bill.ts";
export type { MissCause } from "./cache/index.ts";
export { ManualClock, RunningClock, type SimClock } from "./clock.ts";
export { SimulatorError } from "./errors.ts";
export type { AnswerEncoding, Fault, FaultKind, NoAnswerForm, RetryAfterForm, UsageForm } from "./faults.ts";
export type { LedgerRow, Outcome } from "./ledger.ts";
export { loadScript } from "./load-script.ts";
export type { Groups as RuleGroups } from "./rules/index.ts";
export {
  type AcceptanceRules,
  type AutomaticRules,
  anthropicRules,
  type CacheRules,
  type EndingRules,
  type KeyParameter,
  type Level,
  type ModelRules,
  type ProviderName,
  type ProviderSummary,
  providerRules,
  providers,
  type ReportRules,
  type RoutingRules,
  type RuleOverrides,
  type RuleTable,
  type SlotRules,
  type ThinkingType,
  type UsageField,
  type WireName,
} from "./rules/index.ts";
export {
  type AnswerBlock,
  callTools,
  defaultScript,
  echo,
  lastUserText,
  type SeenToolResult,
  type SimAnswer,
  type SimBlock,
  type SimBody,
  type SimMessage,
  type SimRequest,
  type SimScript,
  type StopReason,
  say,
  type ToolCall,
  think,
  toolNames,
  toolResults,
} from "./script.ts";
export type { KeptRequest } from "./server.ts";
export { type Simulator, type SimulatorOptions, startSimulator } from "./simulator.ts";
export {
  BYTES_PER_TOKEN,
  type CountedBlock,
  contentTokens,
  TOKENS_PER_DOCUMENT,
  TOKENS_PER_IMAGE,
  type TokenRule,
  textOfTokens,
} from "./tokens.ts";
