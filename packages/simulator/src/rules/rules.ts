/** How a provider caches, what it accepts and how it reports, as data.
 *  Invariant: everything can be overridden field by field. If a vendor is silent there is a switch, and the more
 *  expensive reading is the default.
 *  Elsewhere: the rules of each provider (the other files of this folder), applying them (../prompt, ../cache,
 *  ../wires). */

import type { Json, ModelFacts, Ttl } from "@prefork/wire";

/** The wire formats: Anthropic's Messages, OpenAI's Responses and Chat Completions, Gemini's. */
export type WireName = "messages" | "responses" | "chat" | "gemini";

/** The levels of a prompt. Losing one loses everything that is rendered after it. */
export type Level = "tools" | "system" | "messages";

/** Request parameters outside the three levels that can change the rendered prompt. */
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

/** Where automatic entries end, at message ends, and how far back they are looked for. */
export type EndingRules = {
  /** How many entries one request writes at most; in implicit mode one of them is at the last message end. */
  readonly maxWrites: number;
  /** Only this many of the client's first markers, and this many of its latest, are looked up. */
  readonly firstMarkers: number;
  readonly latestMarkers: number;
  /** Earlier message ends that are looked up besides the last one. */
  readonly earlierEndings: number;
};

/** What is cached without being asked for. */
export type AutomaticRules = {
  /** Entries end at every multiple of this many tokens; `block`: at the end of a block, if the vendor names no step. */
  readonly step: number | "block";
  /** all: every such position. units: the end of the prompt, the end of the answer and prefixes that were seen twice,
   *  each rounded down to a step; otherwise only every `interval` tokens. */
  readonly keeps: "all" | "units";
  readonly interval: number | "none";
  readonly lifetimeMs: number;
  /** Lifetimes that a request can ask for by name. */
  readonly retention: Readonly<Record<string, number>>;
  /** The last token of a prompt is always computed, so no prompt is read completely. */
  readonly lastTokenComputed: boolean;
  /** The answer is cached too, after its prompt. */
  readonly keepsOutput: boolean;
};

/** A prompt is cached where it was computed, and found only there. */
export type SlotRules = {
  readonly count: number;
  /** A slot is chosen if it contains more than this share of the prompt; otherwise the least recently used one. */
  readonly similarity: number;
};

/** Entries are on single machines; above this rate, requests with the same prefix and key go to another machine. */
export type RoutingRules = { readonly perMinute: number };

/** How the cache of one model behaves. */
export type CacheRules = {
  /** Render order. */
  readonly order: readonly Level[];
  /** The first level that a change of this parameter loses; "none" keeps all. */
  readonly invalidation: Readonly<Record<KeyParameter, Level | "none">>;
  /** Values that render like an absent parameter. */
  readonly defaults: Readonly<Partial<Record<KeyParameter, Json>>>;
  /** The level at which web-search and web-fetch tools are rendered: toggling them keeps the tools before that
   *  level. */
  readonly webToolsLevel: Level;
  /** What the key of the messages contains about images. count: their number, so that adding one anywhere, even in a
   *  new turn, loses all messages, as the vendor's table says; presence: whether there are any; none: only their
   *  blocks. */
  readonly images: "count" | "presence" | "none";
  /** strict: too many are refused. latest: only the last `maxMarkers` take effect. ignored: none do. */
  readonly markers: "strict" | "latest" | "ignored";
  readonly maxMarkers: number;
  readonly lookbackPositions: number;
  /** runs: consecutive tool_use blocks are one position, and so are tool_result blocks; singly: each block is one. */
  readonly lookback: "runs" | "singly";
  readonly headCountsAsPositions: boolean;
  /** Present if entries are found at markers and message ends instead of by looking back. */
  readonly endings: EndingRules | "none";
  /** For requests without a marker, if the provider has both. */
  readonly automatic: AutomaticRules | "none";
  readonly slots: SlotRules | "none";
  readonly routing: RoutingRules | "none";
  readonly minimumPrefix: number;
  readonly ttls: Readonly<Partial<Record<Ttl, number>>>;
  readonly defaultTtl: Ttl;
  readonly readable: "at-once" | "first-event" | "complete";
  /** How long an entry is still being built after that moment. */
  readonly settleMs: number;
  /** A read through a marker with another lifetime extends the entry by the shorter of the two, or by the entry's
   *  own. */
  readonly mixedRefresh: "shorter" | "entry";
  readonly refreshBelowRead: boolean;
  readonly isolation: "workspace" | "organization";
  /** The request field whose value separates entries: they are found only under the same value. */
  readonly apart: "prompt_cache_key" | "user_id" | "cache_salt" | "none";
  readonly earlierThinking: "keep-all" | "last-turn";
  /** Server-tool results act as a marker of this lifetime once the request has any marker. */
  readonly serverResultMarker: Ttl | "none";
};

/** Which requests the model accepts, apart from caching. */
export type AcceptanceRules = {
  readonly thinkingTypes: readonly ThinkingType[];
  readonly systemMessages: "accepted" | "unsupported-role" | "unexpected-role";
  readonly prefill: boolean;
  readonly samplingParameters: boolean;
  readonly forcedToolChoice: boolean;
  /** With efforts above this, `thinking: disabled` is refused. */
  readonly disabledThinkingUpTo?: string;
  /** Thinking blocks are valid only after the conversation they were made in. */
  readonly boundThinking: boolean;
  readonly unknownFields: "refused" | "ignored";
  /** Breakpoints and cache options of OpenAI's formats. */
  readonly cacheOptions: boolean;
  /** In thinking mode the reasoning of turns with calls must be sent back. */
  readonly reasoningBack: boolean;
  /** Calls must be sent back with their signature. */
  readonly callSignatures: boolean;
  /** Tools can also be declared on Chat Completions. */
  readonly chatTools: boolean;
  /** `none` is a valid effort. */
  readonly effortNone: boolean;
};

/** A figure of the reported usage: its path, and which part of the bill it is. */
export type UsageField = readonly [path: string, part: "read" | "written" | "missed" | "marked"];

/** How it reports, for providers that share a wire format but differ. */
export type ReportRules = {
  /** The name under which thinking is shown and sent back on Chat Completions. */
  readonly reasoning: "hidden" | "reasoning_content" | "reasoning";
  readonly usage: readonly UsageField[];
  /** Also reports what was computed and what was not. */
  readonly timings: boolean;
  /** For OpenAI's formats. named: the error's name, if it has one; typed: the type again; status: the status number. */
  readonly errorCode: "named" | "typed" | "status";
  /** Error types by status, if they are not OpenAI's. */
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

/** Groups of fields that belong together. */
export type Groups = {
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

/** The default values of each group. */
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
  /** The model whose rules and figures are used for unknown ids. */
  readonly unknownAs?: string;
};

/** The rules of a provider. */
export type ProviderRules = {
  readonly cache: Omit<CacheRules, "minimumPrefix" | "earlierThinking">;
  readonly accepts: AcceptanceRules;
  readonly reports: ReportRules;
  /** What differs for a model, by its id. */
  readonly rowOf: (id: string) => RuleOverrides;
  /** Recognises ids of its models, so that they get their own row even without published figures. */
  readonly models: RegExp | "any";
  readonly defaultModel: string;
  readonly free?: true;
};
