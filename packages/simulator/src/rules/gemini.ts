/** Which cache rules does Gemini apply to this model?
 *  Invariant: data only. Prompts are cached automatically without a promise, and stored by name for a price per hour.
 *  Not documented, so the more expensive reading applies: in which steps, for how long and from when on a prompt is
 *  cached automatically (at the ends of parts, five minutes, once its answer is complete), and which settings are in
 *  the key (all of them).
 *  Elsewhere: what the fields mean (rules.ts), stored prompts (../wires/gemini). */

import { anthropicAccepts, anthropicCache } from "./anthropic.ts";
import { groupDefaults, type ProviderRules } from "./rules.ts";

const cache: ProviderRules["cache"] = {
  ...anthropicCache,
  invalidation: {
    ...anthropicCache.invalidation,
    tool_choice: "tools",
    service_tier: "tools",
    citations: "none",
    images: "none",
  },
  defaults: {},
  webToolsLevel: "tools",
  images: "none",
  markers: "ignored",
  automatic: groupDefaults.automatic,
  ttls: {},
  readable: "complete",
  refreshBelowRead: true,
  serverResultMarker: "none",
};

export const gemini: ProviderRules = {
  cache,
  accepts: { ...anthropicAccepts, prefill: true, samplingParameters: true, callSignatures: true },
  reports: { reasoning: "hidden", usage: [], timings: false, errorCode: "named", errorTypes: {} },
  // Users report that signatures are required from the third generation on.
  rowOf: (id) => (/^gemini-2/.test(id) ? { accepts: { callSignatures: false } } : {}),
  models: /^gemini-/,
  defaultModel: "gemini-3.8-flash",
};

/** The automatic cache promises nothing, so here it keeps nothing, and only stored prompts are read. */
export const geminiExplicit: ProviderRules = { ...gemini, cache: { ...cache, automatic: "none" } };
