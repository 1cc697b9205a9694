/** Which cache rules does Gemini apply to this model?
 *  Invariant: data only. Prompts are kept by themselves without a promise, and held by name for a price an hour.
 *  Not documented, and read as the dearer: in which steps, for how long and from when on a prompt is kept by itself (at
 *  ends of parts, five minutes, once its answer is complete), and which settings are in the key (all of them).
 *  Elsewhere: what the fields mean (rules.ts), prompts that are held by name (../wires/gemini). */

import { anthropicAccepts, anthropicCache } from "./anthropic.ts";
import { figures, prices } from "./figures.ts";
import type { ProviderRules } from "./rules.ts";
import { groupDefaults } from "./rules.ts";

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

const models = figures([
  { id: "gemini-4-argon", input: 2, read: 0.1, output: 10, minimum: 4_096 },
  { id: "gemini-3.8-flash", input: 0.75, read: 0.075, output: 3.75, minimum: 4_096, storage: 0.5 },
  { id: "gemini-3.7-flash", input: 0.75, read: 0.075, output: 3.75, minimum: 4_096 },
  { id: "gemini-3.6-flash", input: 0.75, read: 0.075, output: 3.75, minimum: 4_096 },
  { id: "gemini-3.5-flash", input: 1.5, read: 0.15, output: 9, minimum: 4_096 },
  {
    id: "gemini-3.1-pro",
    input: 2,
    read: 0.2,
    output: 12,
    minimum: 4_096,
    storage: 4.5,
    tiers: [{ above: 200_000, prices: prices({ input: 4, read: 0.4, output: 18 }) }],
  },
  { id: "gemini-2.5-pro", input: 1.25, read: 0.125, output: 10, minimum: 2_048 },
  { id: "gemini-2.5-flash", input: 0.3, read: 0.03, output: 2.5, minimum: 2_048 },
]);

export const gemini: ProviderRules = {
  cache,
  accepts: { ...anthropicAccepts, prefill: true, samplingParameters: true, callSignatures: true },
  reports: { reasoning: "hidden", usage: [], timings: false, errorCode: "named", errorTypes: {} },
  // Users report that signatures are asked for from the third generation on.
  rowOf: (id) => (/^gemini-2/.test(id) ? { accepts: { callSignatures: false } } : {}),
  recognised: /^gemini-/,
  models,
  defaultModel: "gemini-3.8-flash",
};

/** Nothing is promised of what is kept by itself: here nothing is, and only what is held by name is read. */
export const geminiExplicit: ProviderRules = { ...gemini, cache: { ...cache, automatic: "none" } };
