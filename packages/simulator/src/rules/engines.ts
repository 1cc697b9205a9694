/** Which cache rules do engines have that people run themselves?
 *  Invariant: data only; nobody is billed, so what counts is what must be computed. Both always compute the last token.
 *  Left out: what is given up when memory is short, and what a server is told by its options (another block size, the
 *  state of slots kept in main memory); these are fields to override, or not simulated.
 *  Elsewhere: what the fields mean (rules.ts). */

import { anthropicAccepts, anthropicCache } from "./anthropic.ts";
import { groupDefaults, type ProviderRules } from "./rules.ts";

const cache: ProviderRules["cache"] = {
  ...anthropicCache,
  // Tokens alone are in the key; a template may write how much to think into them.
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

/** Full blocks of 16 tokens, which siblings of the same batch share as soon as they are allocated. */
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

/** Each slot has what it computed last, and shares it with no other. How many there are is the server's option. */
export const llamaCpp: ProviderRules = {
  ...anyModel,
  cache: { ...cache, slots: groupDefaults.slots, readable: "complete" },
  accepts,
  reports: { reasoning: "reasoning_content", usage, timings: true, errorCode: "status", errorTypes: {} },
};
