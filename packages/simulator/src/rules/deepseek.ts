/** Which cache rules does DeepSeek apply to this model?
 *  Invariant: data only. Complete units of a prefix are kept on disk: at the end of a prompt, of an answer, and of the
 *  common part of two prompts.
 *  Not documented: how long building a unit takes (seconds; two here), how long one lives (hours to days; two hours
 *  here), and at which intervals units end inside a long prompt (none here; the note of 2024 says 64).
 *  Elsewhere: what the fields mean (rules.ts). */

import { anthropicAccepts, anthropicCache } from "./anthropic.ts";
import { groupDefaults, HOUR, type Level, type ProviderRules } from "./rules.ts";

const UNIT = 64;

/** It is not published which settings are in the key, so all of them are, and a change loses everything. */
const everythingFrom = (level: Level): ProviderRules["cache"]["invalidation"] => ({
  model: level,
  speed: level,
  thinking: level,
  effort: level,
  verbosity: level,
  tool_choice: level,
  parallel_tool_calls: level,
  service_tier: level,
  output_format: level,
  context_management: level,
  mcp_servers: level,
  betas: level,
  citations: "none",
  images: "none",
});

export const deepseek: ProviderRules = {
  cache: {
    ...anthropicCache,
    order: ["system", "tools", "messages"],
    invalidation: everythingFrom("system"),
    defaults: {},
    webToolsLevel: "tools",
    images: "none",
    markers: "ignored",
    automatic: {
      ...groupDefaults.automatic,
      step: UNIT,
      keeps: "units",
      lifetimeMs: 2 * HOUR,
      keepsOutput: true,
    },
    ttls: {},
    readable: "complete",
    settleMs: 2_000,
    refreshBelowRead: true,
    apart: "user_id",
    serverResultMarker: "none",
  },
  accepts: {
    ...anthropicAccepts,
    thinkingTypes: ["enabled", "disabled", "adaptive"],
    systemMessages: "accepted",
    prefill: true,
    samplingParameters: true,
    unknownFields: "ignored",
    reasoningBack: true,
  },
  reports: {
    reasoning: "reasoning_content",
    usage: [
      ["prompt_cache_hit_tokens", "read"],
      ["prompt_cache_miss_tokens", "missed"],
      ["prompt_tokens_details.cached_tokens", "read"],
    ],
    timings: false,
    errorCode: "typed",
    errorTypes: {},
  },
  rowOf: () => ({}),
  models: /^deepseek-/,
  defaultModel: "deepseek-flash",
};
