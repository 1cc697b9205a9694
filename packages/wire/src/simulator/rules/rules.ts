/** What can be said of how a provider caches and what it accepts?
 *  Invariant: everything here is data, and can be overridden field by field.
 *  Elsewhere: what each provider says (anthropic.ts), applying it (../prompt, ../cache, ../wires). */

import type { ModelFacts } from "../../models.ts";
import type { Json, Ttl } from "../../request.ts";

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

export type RuleTable = {
  /** Applied to every model, after its own row. */
  readonly overrides?: RuleOverrides;
  /** Applied to one model, last. */
  readonly byModel?: Readonly<Record<string, RuleOverrides>>;
  readonly models?: ReadonlyMap<string, ModelFacts>;
  /** The model whose rules and figures serve ids that are in no table. */
  readonly unknownAs?: string;
};
