/** Which cache rules does DashScope (Model Studio, Qwen) apply to this model?
 *  Invariant: data only. A request with markers uses the explicit cache, one without markers the implicit one; an entry
 *  of either exists once the answer is complete.
 *  Not documented, so the more expensive reading applies: in which steps and for how long the implicit cache keeps
 *  prompts (at the ends of blocks, five minutes), and which settings are in the key (all).
 *  Elsewhere: what the fields mean (rules.ts). */

import { anthropicAccepts, anthropicCache } from "./anthropic.ts";
import { groupDefaults, MINUTE, type ProviderRules } from "./rules.ts";

export const dashscope: ProviderRules = {
  cache: {
    ...anthropicCache,
    invalidation: { ...anthropicCache.invalidation, parallel_tool_calls: "tools", images: "none" },
    defaults: {},
    markers: "latest",
    lookback: "singly",
    automatic: groupDefaults.automatic,
    ttls: { "5m": 5 * MINUTE },
    readable: "complete",
    serverResultMarker: "none",
  },
  accepts: {
    ...anthropicAccepts,
    systemMessages: "accepted",
    prefill: true,
    samplingParameters: true,
    unknownFields: "ignored",
  },
  reports: {
    reasoning: "reasoning_content",
    usage: [
      ["prompt_tokens_details.cached_tokens", "read"],
      ["prompt_tokens_details.cache_creation_input_tokens", "written"],
      ["prompt_tokens_details.cache_type", "marked"],
    ],
    timings: false,
    errorCode: "typed",
    errorTypes: {},
  },
  rowOf: () => ({}),
  models: /^qwen/,
  defaultModel: "qwen3.7-max",
};
