/** What can be said of how a provider caches, what it accepts and how it reports?
 *  Invariant: everything here is data, and can be overridden field by field. Where a vendor is silent there is a switch,
 *  and the dearer reading is the default.
 *  Elsewhere: what each provider says (the other files of this folder), applying it (../prompt, ../cache, ../wires). */

import type { Json, ModelFacts, Ttl } from "@prefork/wire";

/** The formats a provider can be spoken to in: Anthropic's Messages, OpenAI's Responses and Chat Completions, Gemini's. */
export type WireName = "messages" | "responses" | "chat" | "gemini";

/** The levels of a prompt. Losing one loses all that are rendered after it. */
export type Level = "tools" | "system" | "messages";

/** Request parameters outside the three levels that can change the render. */
export type KeyParameter =
  | "model"
  | "speed"
  | "thinking"
  | "effort"
  | "verbosity"
  | "tool_choice"
  | "parallel_tool_calls"
  | "service_tier"
  | "output_format"
  | "context_management"
  | "mcp_servers"
  | "betas"
  | "citations"
  | "images";

export type ThinkingType = "enabled" | "disabled" | "adaptive" | "between_tools";

/** Where entries end by themselves, at the ends of messages, and how far back they are looked for. */
export type EndingRules = {
  /** Places one request writes at most; in implicit mode one of them is the last ending. */
  readonly maxWrites: number;
  /** Of the client's own markers only the first so many and the latest so many are looked up. */
  readonly firstMarkers: number;
  readonly latestMarkers: number;
  /** Earlier endings that are looked up beside the last one. */
  readonly earlierEndings: number;
};

/** What is kept without being asked for. */
export type AutomaticRules = {
  /** Entries end at every so many tokens; `block`: at the end of a block, where the vendor names no step. */
  readonly step: number | "block";
  /** all: every such place. units: the end of the prompt, the end of the answer and prefixes that were seen twice, each
   *  rounded down to a step; the rest only at every `interval` tokens. */
  readonly keeps: "all" | "units";
  readonly interval: number | "none";
  readonly lifetimeMs: number;
  /** Lifetimes that a request can ask for by name. */
  readonly retention: Readonly<Record<string, number>>;
  /** The last token of a prompt is always computed, so that no prompt is read whole. */
  readonly lastTokenComputed: boolean;
  /** The answer is kept too, behind its prompt. */
  readonly keepsOutput: boolean;
};

/** A prompt is kept where it was computed, and found there alone. */
export type SlotRules = {
  readonly count: number;
  /** A slot is chosen if more than this share of the prompt is in it, else the one that was used longest ago. */
  readonly similarity: number;
};

/** Entries live on single machines; above this rate requests of one prefix and key go to another one. */
export type RoutingRules = { readonly perMinute: number };

/** How the cache of one model behaves. */
export type CacheRules = {
  /** Render order. */
  readonly order: readonly Level[];
  /** The first level that a change of this parameter loses; "none" keeps all. */
  readonly invalidation: Readonly<Record<KeyParameter, Level | "none">>;
  /** Values that render like an absent parameter. */
  readonly defaults: Readonly<Partial<Record<KeyParameter, Json>>>;
  /** Where web-search and web-fetch tools enter the render: toggling them keeps the tools before that level. */
  readonly webToolsLevel: Level;
  /** What of the images is in the key of the messages. count: how many, so that adding one anywhere, also in a new
   *  turn, loses them all, as the vendor's table says; presence: whether there is any; none: nothing but their blocks. */
  readonly images: "count" | "presence" | "none";
  /** strict: too many are refused. latest: only the last `maxMarkers` take effect. ignored: none does. */
  readonly markers: "strict" | "latest" | "ignored";
  readonly maxMarkers: number;
  readonly lookbackPositions: number;
  /** runs: consecutive tool_use blocks are one position, and so are tool_result blocks; singly: each block is one. */
  readonly lookback: "runs" | "singly";
  readonly headCountsAsPositions: boolean;
  /** Present where entries are found at markers and endings instead of by looking back. */
  readonly endings: EndingRules | "none";
  /** For requests without a marker, where both exist. */
  readonly automatic: AutomaticRules | "none";
  readonly slots: SlotRules | "none";
  readonly routing: RoutingRules | "none";
  readonly minimumPrefix: number;
  readonly ttls: Readonly<Partial<Record<Ttl, number>>>;
  readonly defaultTtl: Ttl;
  readonly readable: "at-once" | "first-event" | "complete";
  /** How long after that moment an entry is being built. */
  readonly settleMs: number;
  /** A read through a marker of another lifetime extends the entry by the shorter of the two, or by the entry's own. */
  readonly mixedRefresh: "shorter" | "entry";
  readonly refreshBelowRead: boolean;
  readonly isolation: "workspace" | "organization";
  /** The field of a request whose value keeps entries apart: they are found under the same value only. */
  readonly apart: "prompt_cache_key" | "user_id" | "cache_salt" | "none";
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
  readonly unknownFields: "refused" | "ignored";
  /** Breakpoints and cache options of OpenAI's formats. */
  readonly cacheOptions: boolean;
  /** In thinking mode the reasoning of turns with calls must come back. */
  readonly reasoningBack: boolean;
  /** Calls must come back with the signature they were made with. */
  readonly callSignatures: boolean;
  /** Tools can be declared on Chat Completions too. */
  readonly chatTools: boolean;
  /** `none` is an effort. */
  readonly effortNone: boolean;
};

/** A figure of the usage that a wire reports: where it stands, and which part of the bill it is. */
export type UsageField = readonly [path: string, part: "read" | "written" | "missed" | "marked"];

/** How it reports, where those who share a wire differ. */
export type ReportRules = {
  /** Under which name thinking is shown and comes back on Chat Completions. */
  readonly reasoning: "hidden" | "reasoning_content" | "reasoning";
  readonly usage: readonly UsageField[];
  /** Reports what was computed and what was not, beside the usage. */
  readonly timings: boolean;
  /** On OpenAI's formats. named: errors have a name, if any; typed: the type again; status: the number of the status. */
  readonly errorCode: "named" | "typed" | "status";
  /** Types of errors by status, where they are not OpenAI's. */
  readonly errorTypes: Readonly<Record<number, string>>;
};

export type ModelRules = {
  readonly model: string;
  readonly cache: CacheRules;
  readonly accepts: AcceptanceRules;
  readonly reports: ReportRules;
  /** Absent for a model without published prices: tokens are counted, money is not. */
  readonly facts?: ModelFacts;
  /** Nobody is billed: what counts is what must be computed. */
  readonly free?: true;
};

/** Groups of fields that make sense together. */
type Groups = {
  readonly endings: EndingRules;
  readonly automatic: AutomaticRules;
  readonly slots: SlotRules;
  readonly routing: RoutingRules;
};

/** Field by field, also inside a group; a group that was "none" gets the rest from `groupDefaults`. */
export type RuleOverrides = {
  readonly cache?: Partial<Omit<CacheRules, "invalidation" | keyof Groups>> & {
    readonly invalidation?: Partial<CacheRules["invalidation"]>;
  } & { readonly [G in keyof Groups]?: Partial<Groups[G]> | "none" };
  readonly accepts?: Partial<AcceptanceRules>;
  readonly reports?: Partial<ReportRules>;
};

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

/** What holds of a group of fields where nobody says otherwise. */
export const groupDefaults: Groups = {
  endings: { maxWrites: 4, firstMarkers: 2, latestMarkers: 50, earlierEndings: 20 },
  automatic: {
    step: "block",
    keeps: "all",
    interval: "none",
    lifetimeMs: 5 * MINUTE,
    retention: {},
    lastTokenComputed: false,
    keepsOutput: false,
  },
  slots: { count: 4, similarity: 0.1 },
  routing: { perMinute: 15 },
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

/** What a provider says of its models. */
export type ProviderRules = {
  readonly cache: Omit<CacheRules, "minimumPrefix" | "earlierThinking">;
  readonly accepts: AcceptanceRules;
  readonly reports: ReportRules;
  /** What differs for a model, by its id. */
  readonly rowOf: (id: string) => RuleOverrides;
  /** Ids of its models: they say by themselves which row is theirs, also where no figures are known. */
  readonly models: RegExp | "any";
  readonly defaultModel: string;
  readonly free?: true;
};
