/** What each provider does, as data. */

export { anthropicRules } from "./anthropic.ts";
export { resolveRules } from "./resolve.ts";
export type {
  AcceptanceRules,
  AutomaticRules,
  CacheRules,
  EndingRules,
  Groups,
  KeyParameter,
  Level,
  ModelRules,
  ProviderRules,
  ReportRules,
  RoutingRules,
  RuleOverrides,
  RuleTable,
  SlotRules,
  ThinkingType,
  UsageField,
  WireName,
} from "./rules.ts";
export { type ProviderName, type ProviderSummary, providerRules, providers, rulesOf } from "./sets.ts";
