/** Which cache rules does MiniMax apply to this model?
 *  Invariant: data only. Prompts are cached automatically without a fee; models of the second generation accept
 *  markers.
 *  Not documented, so the more expensive reading applies: in which steps and from when on an entry can be read (at the
 *  ends of blocks, once the answer is complete), and how long an automatic entry lives ("varies with load"; five
 *  minutes here).
 *  Elsewhere: what the fields mean (rules.ts). */

import { anthropicAccepts, anthropicCache } from "./anthropic.ts";
import { groupDefaults, MINUTE, type ProviderRules } from "./rules.ts";

export const minimax: ProviderRules = {
  cache: {
    ...anthropicCache,
    defaults: {},
    markers: "ignored",
    lookback: "singly",
    automatic: groupDefaults.automatic,
    ttls: { "5m": 5 * MINUTE },
    readable: "complete",
    serverResultMarker: "none",
  },
  accepts: {
    ...anthropicAccepts,
    thinkingTypes: ["enabled", "disabled", "adaptive"],
    prefill: true,
    samplingParameters: true,
  },
  reports: {
    reasoning: "reasoning_content",
    usage: [["prompt_tokens_details.cached_tokens", "read"]],
    timings: false,
    errorCode: "typed",
    errorTypes: {},
  },
  rowOf: (id) => (/^minimax-m2/i.test(id) ? { cache: { markers: "strict" } } : {}),
  models: /^minimax-/i,
  defaultModel: "MiniMax-M3",
};
