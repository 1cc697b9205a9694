/** Which cache rules does MiniMax apply to this model?
 *  Invariant: data only. Prompts are kept by themselves without a fee; models of the second generation take markers.
 *  Not documented, and read as the dearer: in which steps and from when on an entry can be read (at ends of blocks, once
 *  the answer is complete), how long one lives that was kept by itself ("varies with load": five minutes here). The
 *  documented read price of a marked prefix is a tenth, the listed one a fifth: the listed one holds.
 *  Elsewhere: what the fields mean (rules.ts). */

import { anthropicAccepts, anthropicCache } from "./anthropic.ts";
import { figures, MINUTE, prices } from "./figures.ts";
import type { ProviderRules } from "./rules.ts";
import { groupDefaults } from "./rules.ts";

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
  recognised: /^minimax-/i,
  models: figures([
    {
      id: "MiniMax-M3",
      input: 0.3,
      read: 0.06,
      output: 1.2,
      minimum: 512,
      tiers: [{ above: 512_000, prices: prices({ input: 0.6, read: 0.12, output: 2.4 }) }],
    },
    { id: "MiniMax-M3.1-Flash", input: 0.15, read: 0.015, output: 0.6, minimum: 512 },
    { id: "MiniMax-M2.7", input: 0.3, write: ["5m", 0.375], read: 0.06, output: 1.2, minimum: 512 },
  ]),
  defaultModel: "MiniMax-M3",
};
