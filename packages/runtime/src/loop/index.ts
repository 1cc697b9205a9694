/** From a prompt to the stop: one agent's turns, its tool batches and its account. */

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
export { type Answered, readAnswer, textOf } from "./answer.ts";
export {
  type ApprovedCall,
  type Batch,
  type Beside,
  type Bounds,
  type Dispatch,
  type Moved,
  runBatch,
} from "./dispatch.ts";
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
export { runTurn, type TurnAround, type TurnResult } from "./turn.ts";
