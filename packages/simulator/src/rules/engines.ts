/** Which cache rules do self-hosted engines have?
 *  Invariant: data only; nobody is billed, so what counts is what must be computed. Both always compute the last token.
 *  Left out: eviction when memory is short, and server options (another block size, slot state kept in main memory);
 *  these are fields to override, or not simulated.
 *  Elsewhere: what the fields mean (rules.ts). */

import { anthropicAccepts, anthropicCache } from "./anthropic.ts";
import { groupDefaults, type ProviderRules } from "./rules.ts";

const cache: ProviderRules["cache"] = {
  ...anthropicCache,
  // Only tokens are in the key, and a template may write the thinking level into them.
  invalidation: {
    ...anthropicCache.invalidation,
    speed: "none",
    output_format: "none",
    context_management: "none",
    betas: "none",
    citations: "none",
    tool_choice: "none",
    images: "none",
  },
  defaults: {},
  webToolsLevel: "tools",
  images: "none",
  markers: "ignored",
  ttls: {},
  refreshBelowRead: true,
  isolation: "organization",
  serverResultMarker: "none",
};

const accepts: ProviderRules["accepts"] = {
  ...anthropicAccepts,
  systemMessages: "accepted",
  prefill: true,
  samplingParameters: true,
  unknownFields: "ignored",
};

const usage: ProviderRules["reports"]["usage"] = [["prompt_tokens_details.cached_tokens", "read"]];

const anyModel = { rowOf: () => ({}), models: "any", defaultModel: "local", free: true } as const;

/** Full blocks of 16 tokens, which siblings in the same batch share as soon as they are allocated. */
export const vllm: ProviderRules = {
  ...anyModel,
  cache: {
    ...cache,
    automatic: {
      ...groupDefaults.automatic,
      step: 16,
      lifetimeMs: Number.POSITIVE_INFINITY,
      lastTokenComputed: true,
      keepsOutput: true,
    },
    readable: "at-once",
    apart: "cache_salt",
  },
  accepts,
  reports: {
    reasoning: "reasoning",
    usage,
    timings: false,
    errorCode: "status",
    errorTypes: { 400: "BadRequestError", 404: "NotFoundError", 500: "InternalServerError" },
  },
};

/** Each slot keeps what it computed last and shares it with no other. The number of slots is a server option. */
export const llamaCpp: ProviderRules = {
  ...anyModel,
  cache: { ...cache, slots: groupDefaults.slots, readable: "complete" },
  accepts,
  reports: { reasoning: "reasoning_content", usage, timings: true, errorCode: "status", errorTypes: {} },
};
