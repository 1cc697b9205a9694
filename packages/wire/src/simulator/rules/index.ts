/** What each provider does, as data. */

export { anthropicRules } from "./anthropic.ts";
export type {
  AcceptanceRules,
  CacheRules,
  KeyParameter,
  Level,
  ModelRules,
  RuleOverrides,
  RuleTable,
  ThinkingType,
} from "./rules.ts";
export { levels } from "./rules.ts";
