/** Which cache rules does this provider apply to this model?
 *  Invariant: everything here is data; no rule is coded by model name anywhere else.
 *  Elsewhere: applying them (render.ts, breakpoints.ts, cache.ts, validate*.ts), prices (models.ts of the package). */

import type { ModelFacts } from "../models.ts";
import { DEFAULT_MODEL, knownModels, modelFacts } from "../models.ts";
import type { Json, Ttl } from "../request.ts";
import { own } from "./body.ts";

/** The levels of a prompt, in render order. Losing one loses all after it. */
export const levels = ["tools", "system", "messages"] as const;
export type Level = (typeof levels)[number];

/** Request parameters outside the three levels that can change the render. */
export type KeyParameter =
  | "model"
  | "speed"
  | "thinking"
  | "effort"
  | "tool_choice"
  | "output_format"
  | "context_management"
  | "mcp_servers"
  | "betas"
  | "citations"
  | "images";

export type ThinkingType = "enabled" | "disabled" | "adaptive" | "between_tools";

/** How the cache of one model behaves. A switch where the vendor is silent; the first value is the dearer, the default. */
export type CacheRules = {
  /** The first level that a change of this parameter loses; "none" keeps all. */
  readonly invalidation: Readonly<Record<KeyParameter, Level | "none">>;
  /** Values that render like an absent parameter. */
  readonly defaults: Readonly<Partial<Record<KeyParameter, Json>>>;
  /** Where web-search and web-fetch tools enter the render: toggling them keeps the tools before that level. */
  readonly webToolsLevel: Level;
  /** What of the images is in the key of the messages. count: how many, so that adding one anywhere, also in a new
   *  turn, loses them all, as the vendor's table says; presence: whether there is any; none: nothing but their blocks. */
  readonly images: "count" | "presence" | "none";
  readonly maxMarkers: number;
  readonly lookbackPositions: number;
  /** runs: consecutive tool_use blocks are one position, and so are tool_result blocks; singly: each block is one. */
  readonly lookback: "runs" | "singly";
  readonly headCountsAsPositions: boolean;
  readonly minimumPrefix: number;
  readonly ttls: Readonly<Partial<Record<Ttl, number>>>;
  readonly defaultTtl: Ttl;
  readonly readable: "first-event" | "complete";
  /** A read through a marker of another lifetime extends the entry by the shorter of the two, or by the entry's own. */
  readonly mixedRefresh: "shorter" | "entry";
  readonly refreshBelowRead: boolean;
  readonly isolation: "workspace" | "organization";
  readonly earlierThinking: "keep-all" | "last-turn";
  /** Server-tool results act as a marker of this lifetime once the request has any marker. */
  readonly serverResultMarker: Ttl | "none";
};

/** What requests the model accepts, apart from caching. */
export type AcceptanceRules = {
  readonly thinkingTypes: readonly ThinkingType[];
  readonly systemMessages: "accepted" | "unsupported-role" | "unexpected-role";
  readonly prefill: boolean;
  readonly samplingParameters: boolean;
  readonly forcedToolChoice: boolean;
  /** Efforts above this refuse `thinking: disabled`. */
  readonly disabledThinkingUpTo?: string;
  /** Thinking blocks are valid only behind the conversation they were made in. */
  readonly boundThinking: boolean;
};

export type ModelRules = {
  readonly model: string;
  readonly cache: CacheRules;
  readonly accepts: AcceptanceRules;
  /** Absent for a model without published prices: tokens are counted, money is not. */
  readonly facts?: ModelFacts;
};

export type RuleOverrides = {
  readonly cache?: Partial<Omit<CacheRules, "invalidation">> & {
    readonly invalidation?: Partial<CacheRules["invalidation"]>;
  };
  readonly accepts?: Partial<AcceptanceRules>;
};

const MINUTE = 60_000;

const anthropicCache: Omit<CacheRules, "minimumPrefix" | "earlierThinking"> = {
  invalidation: {
    model: "tools",
    speed: "tools",
    thinking: "tools",
    effort: "tools",
    output_format: "tools",
    context_management: "tools",
    mcp_servers: "tools",
    betas: "tools",
    citations: "system",
    tool_choice: "messages",
    images: "messages",
  },
  defaults: { effort: "high", speed: "standard", thinking: { type: "disabled" } },
  webToolsLevel: "system",
  images: "count",
  maxMarkers: 4,
  lookbackPositions: 20,
  lookback: "runs",
  headCountsAsPositions: true,
  ttls: { "5m": 5 * MINUTE, "1h": 60 * MINUTE },
  defaultTtl: "5m",
  readable: "first-event",
  mixedRefresh: "shorter",
  refreshBelowRead: false,
  isolation: "workspace",
  serverResultMarker: "5m",
};

const anthropicAccepts: AcceptanceRules = {
  thinkingTypes: ["enabled", "disabled", "adaptive"],
  systemMessages: "unexpected-role",
  prefill: false,
  samplingParameters: false,
  forcedToolChoice: true,
  boundThinking: false,
};

const alwaysThinking: RuleOverrides = {
  cache: { defaults: { effort: "high", speed: "standard", thinking: { type: "adaptive" } } },
  accepts: { thinkingTypes: ["adaptive"], systemMessages: "accepted" },
};

/** Thinking's own default is not published for these, so no explicit value counts as absent. */
const unstatedThinking: RuleOverrides = {
  cache: { defaults: { effort: "high", speed: "standard" } },
};

const older: RuleOverrides = {
  accepts: { thinkingTypes: ["enabled", "disabled"], prefill: true, samplingParameters: true },
};

const joined = (a: RuleOverrides, b: RuleOverrides): RuleOverrides => ({
  cache: { ...a.cache, ...b.cache },
  accepts: { ...a.accepts, ...b.accepts },
});

/** One row a model that differs from the provider's common rules. */
const anthropicModels: Readonly<Record<string, RuleOverrides>> = {
  "claude-fable-5": alwaysThinking,
  "claude-mythos-5": alwaysThinking,
  "claude-fable-5-1": joined(alwaysThinking, { accepts: { forcedToolChoice: false, boundThinking: true } }),
  "claude-mythos-5-1": joined(alwaysThinking, { accepts: { forcedToolChoice: false } }),
  "claude-opus-5-5": joined(alwaysThinking, {
    cache: { defaults: { effort: "medium", speed: "standard", thinking: { type: "adaptive" } } },
    accepts: { forcedToolChoice: false, boundThinking: true },
  }),
  "claude-opus-5": joined(unstatedThinking, {
    accepts: { thinkingTypes: ["adaptive", "disabled"], disabledThinkingUpTo: "high", systemMessages: "accepted" },
  }),
  "claude-opus-4-8": { accepts: { thinkingTypes: ["adaptive", "disabled"], systemMessages: "accepted" } },
  "claude-opus-4-7": { accepts: { thinkingTypes: ["adaptive", "disabled"], systemMessages: "unsupported-role" } },
  "claude-opus-4-6": { accepts: { samplingParameters: true } },
  "claude-sonnet-4-6": { accepts: { samplingParameters: true } },
  "claude-sonnet-5-5": joined(unstatedThinking, {
    accepts: {
      thinkingTypes: ["adaptive", "between_tools"],
      systemMessages: "accepted",
      forcedToolChoice: false,
      boundThinking: true,
    },
  }),
  "claude-sonnet-5": unstatedThinking,
  "claude-haiku-5-5": joined(unstatedThinking, { accepts: { systemMessages: "accepted", boundThinking: true } }),
  "claude-opus-4-5": older,
  "claude-opus-4-1": older,
  "claude-opus-4": older,
  "claude-sonnet-4-5": older,
  "claude-sonnet-4": older,
  "claude-haiku-4-5": older,
  "claude-haiku-3-5": older,
};

export type RuleTable = {
  /** Applied to every model, after its own row. */
  readonly overrides?: RuleOverrides;
  /** Applied to one model, last. */
  readonly byModel?: Readonly<Record<string, RuleOverrides>>;
  readonly models?: ReadonlyMap<string, ModelFacts>;
  /** The model whose rules and figures serve ids that are in no table. */
  readonly unknownAs?: string;
};

/** The rules of Anthropic's Messages API for a model. Without figures for it, and no stand-in named, it gets the
 *  default model's rules and no prices: a price nobody published is not made up. */
export const anthropicRules = (model: string, table: RuleTable = {}): ModelRules => {
  const models = table.models ?? knownModels;
  const standIn = table.unknownAs === undefined ? undefined : modelFacts(table.unknownAs, models);
  const facts = modelFacts(model, models) ?? standIn;
  const base = facts ?? modelFacts(DEFAULT_MODEL, knownModels);
  const row = own(anthropicModels, base?.id ?? model) ?? {};
  const all = table.overrides ?? {};
  const single = own(table.byModel ?? {}, model) ?? {};
  return {
    model,
    cache: {
      ...anthropicCache,
      minimumPrefix: base?.minimumPrefix ?? 0,
      earlierThinking: base?.earlierThinking ?? "keep-all",
      ...row.cache,
      ...all.cache,
      ...single.cache,
      invalidation: {
        ...anthropicCache.invalidation,
        ...row.cache?.invalidation,
        ...all.cache?.invalidation,
        ...single.cache?.invalidation,
      },
    },
    accepts: { ...anthropicAccepts, ...row.accepts, ...all.accepts, ...single.accepts },
    ...(facts ? { facts } : {}),
  };
};
