/** Which cache rules does Gemini apply to this model?
 *  Invariant: data only. Prompts are kept by themselves without a promise, and held by name for a price an hour.
 *  Not documented, and read as the dearer: in which steps, for how long and from when on a prompt is kept by itself (at
 *  ends of parts, five minutes, once its answer is complete), and which settings are in the key (all of them).
 *  Elsewhere: what the fields mean (rules.ts), prompts that are held by name (../wires/gemini). */

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
  // Users report that signatures are asked for from the third generation on.
  rowOf: (id) => (/^gemini-2/.test(id) ? { accepts: { callSignatures: false } } : {}),
  models: /^gemini-/,
  defaultModel: "gemini-3.8-flash",
};

/** Nothing is promised of what is kept by itself: here nothing is, and only what is held by name is read. */
export const geminiExplicit: ProviderRules = { ...gemini, cache: { ...cache, automatic: "none" } };
