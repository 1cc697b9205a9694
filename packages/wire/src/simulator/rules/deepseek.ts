/** Which cache rules does DeepSeek apply to this model?
 *  Invariant: data only. Complete units of a prefix are kept on disk: at the end of a prompt, of an answer, and of what
 *  two prompts were seen to have in common.
 *  Not documented: how long building a unit takes (seconds: two here), how long one lives (hours to days: two hours
 *  here), and at which intervals units end inside a long prompt (none here; the note of 2024 has 64).
 *  Elsewhere: what the fields mean (rules.ts). */

import { anthropicAccepts, anthropicCache } from "./anthropic.ts";
import { figures, HOUR, prices } from "./figures.ts";
import type { Level, PeakPrices, ProviderRules } from "./rules.ts";
import { groupDefaults } from "./rules.ts";

const UNIT = 64;

/** 01–04 and 06–10 UTC, Monday to Friday. */
const peak = (listed: Parameters<typeof prices>[0]): PeakPrices => ({
  prices: prices(listed),
  hours: [
    [1, 4],
    [6, 10],
  ],
  days: [1, 2, 3, 4, 5],
});

/** Nobody has published which settings are in the key: here all of them, and they lose everything. */
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
  models: figures([
    {
      id: "deepseek-flash",
      input: 0.15,
      read: 0.003,
      output: 0.6,
      minimum: UNIT,
      peak: peak({ input: 0.3, read: 0.006, output: 1.2 }),
    },
    {
      id: "deepseek-v4-pro",
      input: 0.66,
      read: 0.022,
      output: 1.98,
      minimum: UNIT,
      peak: peak({ input: 1.32, read: 0.044, output: 3.96 }),
    },
  ]),
  defaultModel: "deepseek-flash",
};
