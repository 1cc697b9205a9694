/** Which cache rules does DashScope (Model Studio, Qwen) apply to this model?
 *  Invariant: data only. A request with markers uses the explicit cache, one without the implicit one; an entry of either
 *  exists once the answer is complete.
 *  Not documented, and read as the dearer: in which steps and for how long the implicit cache keeps (at ends of blocks,
 *  five minutes), and which settings are in the key (all). The price tiers at 256K tokens are left out: their figures are not in our lists.
 *  Elsewhere: what the fields mean (rules.ts). */

import { anthropicAccepts, anthropicCache } from "./anthropic.ts";
import { figures, MINUTE } from "./figures.ts";
import type { ProviderRules } from "./rules.ts";
import { groupDefaults } from "./rules.ts";

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
    // What is kept by itself is read at the listed price.
    markedRead: 0.1,
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
  models: figures([
    { id: "qwen3.7-max", input: 1.475, write: ["5m", 1.844], read: 0.295, output: 4.425, minimum: 1_024 },
    { id: "qwen3.7-plus", input: 0.32, write: ["5m", 0.4], read: 0.064, output: 1.28, minimum: 1_024 },
    // Its list has no write price; the documented one is a quarter above the input's.
    { id: "qwen3.8-max", input: 2, write: ["5m", 2.5], read: 0.25, output: 6, minimum: 1_024 },
  ]),
  defaultModel: "qwen3.7-max",
};
