/** @prefork/wire: what goes over the wire. Exact bytes, cache markers, bills and forks of model requests. */

export { type Client, type ClientOptions, createClient } from "./client.ts";
export {
  type Bill,
  type BreakEven,
  type BreakEvenQuestion,
  breakEven,
  childTtl,
  decideKeepAlive,
  decideLaunch,
  decideTtl,
  type FanOut,
  type ForkPlans,
  forkPlans,
  type HeldEntry,
  type InFlight,
  type KeepAliveBudget,
  type KeepAliveDecision,
  type KeepAliveQuestion,
  keepAliveBudget,
  type Launch,
  type LaunchDecision,
  type LaunchPlan,
  type LaunchQuestion,
  type PlanId,
  type Sender,
  type Sent,
  type TtlDecision,
  type TtlQuestion,
} from "./economics/index.ts";
export { InputError, ModelError, type ModelErrorContext, type ModelErrorReason } from "./errors.ts";
export {
  type CacheDiagnosis,
  type Folded,
  type Frame,
  fold,
  foldEvent,
  type ModelEvent,
  type ModelResponse,
  nothingFolded,
  type StopReason,
} from "./events.ts";
export { type FamilyOutcome, type Outcome, type SendFamilyOptions, sendFamily } from "./family.ts";
export {
  branch,
  CHILD_PROTOCOL,
  type ChildProtocol,
  directiveText,
  FORK_BOILERPLATE_TAG,
  FORK_DIRECTIVE_PREFIX,
  type SharedTail,
  shareTail,
  type TailOptions,
} from "./fork-messages.ts";
export {
  type Family,
  type FamilyOptions,
  type ForkOptions,
  forkFamily,
  forkRequests,
  type ParentRequest,
} from "./fork-requests.ts";
export { LaunchGate, type LaunchOrder, type Ticket } from "./launch-gate.ts";
export {
  type FamilyMarkerOptions,
  familyMarkers,
  LOOK_BACK,
  type Marker,
  type MarkerOptions,
  type MarkerPlace,
  type MarkerRole,
  markerPlaces,
  markersAt,
  nextMarkers,
} from "./markers.ts";
export { DEFAULT_MODEL, knownModels, type ModelFacts, modelFacts, type Prices, type PriceTier } from "./models.ts";
export { FORK_PLACEHOLDER_RESULT, placeholderFor } from "./pairing.ts";
export { type Divergence, FrozenPrefix, type Segment, type SegmentKind, type SentBlocks } from "./prefix.ts";
export { assemble, bytesOf, type Prepared, prepare, type RequestParts } from "./prepare.ts";
export {
  type Cost,
  costOf,
  inputUnits,
  type Multipliers,
  multipliersOf,
  type PriceOverride,
  pricesFor,
  type Service,
  USUAL_MULTIPLIERS,
  withPrices,
  writeMultiplier,
} from "./prices.ts";
export {
  anthropic,
  type Credential,
  gemini,
  openaiChat,
  openaiResponses,
  type Profile,
  type Protocol,
  profileAt,
  profiles,
} from "./protocols/index.ts";
export { type RecordedRequest, type Recording, readRecorded } from "./recorded.ts";
export {
  type Block,
  type Closing,
  type DocumentBlock,
  type Head,
  type ImageBlock,
  type Json,
  type JsonObject,
  type KeySettings,
  LIFETIME_MS,
  type MediaSource,
  type Message,
  type ProviderBlock,
  type RawJson,
  type RedactedThinkingBlock,
  type Role,
  type TextBlock,
  type Thinking,
  type ThinkingBlock,
  type ToolChoice,
  type ToolResultBlock,
  type ToolSpec,
  type ToolUseBlock,
  type Ttl,
  text,
  toolResult,
  userText,
} from "./request.ts";
export { Backoff, defaultRetry, type RetryEdge, type RetryPolicy } from "./retry.ts";
export { defaultTimeouts, type Timeouts } from "./transport.ts";
export { addUsage, noUsage, promptTokens, type Usage, writtenTokens } from "./usage.ts";
export {
  type ChainRequest,
  diffRequests,
  type RecordedBody,
  readRequests,
  readStated,
  readUsage,
  type SentFacts,
  type Xray,
  type XrayCause,
  type XrayChain,
  type XrayDivergence,
  type XrayFacts,
  XrayHistory,
  type XrayHistoryOptions,
  type XrayLineage,
  type XrayLoss,
  type XrayOptions,
  type XrayPlace,
  type XrayProtocol,
  type XrayRelation,
  type XraySegment,
  type XrayStep,
  xrayAdvice,
  xrayCauseSentence,
  xrayCauseWords,
  xrayChain,
} from "./xray/index.ts";
