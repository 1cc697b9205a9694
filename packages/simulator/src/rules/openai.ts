/** Which cache rules does OpenAI apply to this model?
 *  Invariant: data only. From GPT-5.6 on, entries end at breakpoints and message ends, and writing costs money; before
 *  that, prefixes are cached automatically in steps, and writing is free.
 *  Not documented, so the more expensive reading applies: when an entry can be read (with the first event, as for
 *  others who write at breakpoints), what a 12-hour write costs (no money is shown then), how long `in_memory` lasts.
 *  The guide and the vendor's types disagree on how many breakpoints are looked up: 2 and 50, or 80; the smaller number
 *  is the default.
 *  Elsewhere: what the fields mean (rules.ts). */

import { anthropicAccepts, anthropicCache } from "./anthropic.ts";
import { groupDefaults, HOUR, MINUTE, type ProviderRules, type RuleOverrides } from "./rules.ts";

const cache: ProviderRules["cache"] = {
  ...anthropicCache,
  invalidation: {
    ...anthropicCache.invalidation,
    verbosity: "tools",
    parallel_tool_calls: "tools",
    service_tier: "tools",
    // The vendor recommends a tool choice as a way to restrict tools without losing the cache.
    tool_choice: "none",
    thinking: "none",
    betas: "none",
    citations: "none",
    images: "none",
  },
  defaults: {},
  webToolsLevel: "tools",
  images: "none",
  markers: "latest",
  endings: groupDefaults.endings,
  routing: groupDefaults.routing,
  ttls: { "30m": 30 * MINUTE, "12h": 12 * HOUR },
  defaultTtl: "30m",
  isolation: "organization",
  apart: "prompt_cache_key",
  serverResultMarker: "none",
};

/** Steps of 128 tokens; GPT-5.5 has longer ones. */
const older: RuleOverrides = {
  cache: {
    markers: "ignored",
    endings: "none",
    automatic: {
      step: 128,
      lifetimeMs: 24 * HOUR,
      retention: { in_memory: 5 * MINUTE, "24h": 24 * HOUR },
    },
    ttls: {},
    minimumPrefix: 1_024,
    refreshBelowRead: true,
    earlierThinking: "last-turn",
  },
  accepts: { cacheOptions: false },
};

const longSteps: RuleOverrides = {
  ...older,
  cache: {
    ...older.cache,
    automatic: { step: 2_048, lifetimeMs: 24 * HOUR, retention: { "24h": 24 * HOUR } },
  },
};

/** Tool calls only on Responses, and never without effort. */
const astra: RuleOverrides = { accepts: { chatTools: false, effortNone: false } };

const isOlder = /^(?:gpt-[1-4]|gpt-5(?:\.[0-5])?(?![.\d])|chatgpt|o\d)/;
const hasLongSteps = /^gpt-5\.5(?![.\d])/;

const accepts: ProviderRules["accepts"] = {
  ...anthropicAccepts,
  systemMessages: "accepted",
  prefill: true,
  samplingParameters: true,
  cacheOptions: true,
};

const reports: ProviderRules["reports"] = {
  reasoning: "hidden",
  usage: [
    ["prompt_tokens_details.cached_tokens", "read"],
    ["prompt_tokens_details.cache_write_tokens", "written"],
  ],
  timings: false,
  errorCode: "named",
  errorTypes: {},
};

/** The provider as it is: each model by its generation. */
export const openai: ProviderRules = {
  cache,
  accepts,
  reports,
  rowOf: (id) => (hasLongSteps.test(id) ? longSteps : isOlder.test(id) ? older : id === "gpt-6-astra" ? astra : {}),
  models: /^(?:gpt-\d|chatgpt|o\d)/,
  defaultModel: "gpt-6-sol",
};

/** Every model with the older rules. */
export const openaiLegacy: ProviderRules = {
  ...openai,
  rowOf: (id) => (hasLongSteps.test(id) ? longSteps : older),
  defaultModel: "gpt-5.4",
};
