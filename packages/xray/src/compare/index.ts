/** Why did this request not read what that one wrote? For recorded bodies of any agent, in four formats. */

export type { XrayProtocol } from "./body.ts";
export type { Changed } from "./cause.ts";
export { type XrayCause, xrayAdvice, xrayCauseSentence, xrayCauseWords } from "./cause.ts";
export {
  type ChainRequest,
  type XrayChain,
  XrayHistory,
  type XrayHistoryOptions,
  type XrayLineage,
  xrayChain,
} from "./chain.ts";
export {
  diffRequests,
  type Xray,
  type XrayDivergence,
  type XrayFacts,
  type XrayOptions,
  type XraySegment,
} from "./diff.ts";
export type { Reading } from "./entries.ts";
export type { XrayLocation } from "./location.ts";
export { isNegligibleLoss, type XrayLoss } from "./money.ts";
export { modelAt, type RecordedBody, readRequests, readStated } from "./recording.ts";
export type { Level, Parameter } from "./rules.ts";
export { readUsage, type SentFacts } from "./sent.ts";
export { Trail, type TrailOptions, type XrayRelation, type XrayStep } from "./trail.ts";
export type { Volatile } from "./volatile.ts";
