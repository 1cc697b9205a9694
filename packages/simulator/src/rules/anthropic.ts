/** Which cache rules does Anthropic apply to this model?
 *  Invariant: everything here is data; no rule depends on a model name anywhere else.
 *  Elsewhere: what the fields mean (rules.ts), prices (@prefork/wire). */

import { DEFAULT_MODEL } from "@prefork/wire";
import { ownEntry } from "../body.ts";
import { resolveRules } from "./resolve.ts";
import type { AcceptanceRules, ModelRules, ProviderRules, RuleOverrides, RuleTable } from "./rules.ts";

const MINUTE = 60_000;

/** Also the starting point for endpoints that speak this format and say nothing else. */
export const anthropicCache: ProviderRules["cache"] = {
  order: ["tools", "system", "messages"],
  invalidation: {
    model: "tools",
    speed: "tools",
    thinking: "tools",
    effort: "tools",
    output_format: "tools",
    context_management: "tools",
    mcp_servers: "tools",
    betas: "tools",
    citations: "system",
    tool_choice: "messages",
    images: "messages",
    verbosity: "none",
    parallel_tool_calls: "none",
    service_tier: "none",
  },
  defaults: { effort: "high", speed: "standard", tool_choice: { type: "auto" }, thinking: { type: "disabled" } },
  webToolsLevel: "system",
  images: "count",
  markers: "strict",
  maxMarkers: 4,
  lookbackPositions: 20,
  lookback: "runs",
  headCountsAsPositions: true,
  endings: "none",
  automatic: "none",
  slots: "none",
  routing: "none",
  ttls: { "5m": 5 * MINUTE, "1h": 60 * MINUTE },
  defaultTtl: "5m",
  readable: "first-event",
  settleMs: 0,
  mixedRefresh: "shorter",
  refreshBelowRead: false,
  isolation: "workspace",
  apart: "none",
  serverResultMarker: "5m",
};

export const anthropicAccepts: AcceptanceRules = {
  thinkingTypes: ["enabled", "disabled", "adaptive"],
  systemMessages: "unexpected-role",
  prefill: false,
  samplingParameters: false,
  forcedToolChoice: true,
  boundThinking: false,
  unknownFields: "refused",
  cacheOptions: false,
  reasoningBack: false,
  callSignatures: false,
  chatTools: true,
  effortNone: true,
};

const alwaysThinking: RuleOverrides = {
  cache: {
    defaults: { effort: "high", speed: "standard", tool_choice: { type: "auto" }, thinking: { type: "adaptive" } },
  },
  accepts: { thinkingTypes: ["adaptive"], systemMessages: "accepted" },
};

/** The default of thinking is not published for these, so no explicit value counts as absent. */
const unstatedThinking: RuleOverrides = {
  cache: { defaults: { effort: "high", speed: "standard", tool_choice: { type: "auto" } } },
};

const older: RuleOverrides = {
  accepts: { thinkingTypes: ["enabled", "disabled"], prefill: true, samplingParameters: true },
};

const mergeOverrides = (a: RuleOverrides, b: RuleOverrides): RuleOverrides => ({
  cache: { ...a.cache, ...b.cache },
  accepts: { ...a.accepts, ...b.accepts },
});

/** One row per model that differs from the provider's common rules. */
const anthropicModels: Readonly<Record<string, RuleOverrides>> = {
  "claude-fable-5": alwaysThinking,
  "claude-mythos-5": alwaysThinking,
  "claude-fable-5-1": mergeOverrides(alwaysThinking, { accepts: { forcedToolChoice: false, boundThinking: true } }),
  "claude-mythos-5-1": mergeOverrides(alwaysThinking, { accepts: { forcedToolChoice: false } }),
  "claude-opus-5-5": mergeOverrides(alwaysThinking, {
    cache: {
      defaults: { effort: "medium", speed: "standard", tool_choice: { type: "auto" }, thinking: { type: "adaptive" } },
    },
    accepts: { forcedToolChoice: false, boundThinking: true },
  }),
  "claude-opus-5": mergeOverrides(unstatedThinking, {
    accepts: { thinkingTypes: ["adaptive", "disabled"], disabledThinkingUpTo: "high", systemMessages: "accepted" },
  }),
  "claude-opus-4-8": { accepts: { thinkingTypes: ["adaptive", "disabled"], systemMessages: "accepted" } },
  "claude-opus-4-7": { accepts: { thinkingTypes: ["adaptive", "disabled"], systemMessages: "unsupported-role" } },
  "claude-opus-4-6": { accepts: { samplingParameters: true } },
  "claude-sonnet-4-6": { accepts: { samplingParameters: true } },
  "claude-sonnet-5-5": mergeOverrides(unstatedThinking, {
    accepts: {
      thinkingTypes: ["adaptive", "between_tools"],
      systemMessages: "accepted",
      forcedToolChoice: false,
      boundThinking: true,
    },
  }),
  "claude-sonnet-5": unstatedThinking,
  "claude-haiku-5-5": mergeOverrides(unstatedThinking, {
    accepts: { systemMessages: "accepted", boundThinking: true },
  }),
  "claude-opus-4-5": older,
  "claude-opus-4-1": older,
  "claude-opus-4": older,
  "claude-sonnet-4-5": older,
  "claude-sonnet-4": older,
  "claude-haiku-4-5": older,
  "claude-haiku-3-5": older,
};

export const anthropic: ProviderRules = {
  cache: anthropicCache,
  accepts: anthropicAccepts,
  reports: { reasoning: "hidden", usage: [], timings: false, errorCode: "named", errorTypes: {} },
  rowOf: (id) => ownEntry(anthropicModels, id) ?? {},
  models: /^claude-/,
  defaultModel: DEFAULT_MODEL,
};

/** The rules of Anthropic's Messages API for a model. */
export const anthropicRules = (model: string, table: RuleTable = {}): ModelRules =>
  resolveRules(anthropic, model, table);
