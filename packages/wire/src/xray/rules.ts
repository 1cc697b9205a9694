/** Which cache rules hold for a body, by its format and its model?
 *  Invariant: everything here is data from what vendors publish; where they are silent the dearer reading stands, so that
 *  nothing is called readable that may not be.
 *  Elsewhere: what they do to a prompt (entries.ts), prices and minimums (../models.ts). */

import { type ModelFacts, modelFacts } from "../models.ts";
import type { Ttl } from "../request.ts";
import type { Body, XrayProtocol } from "./body.ts";

/** The parts of a prompt, each lost with any part before it. */
export type Level = "tools" | "system" | "messages";

/** Parameters outside the three levels that are in the key. */
export type Parameter =
  | "model"
  | "speed"
  | "service_tier"
  | "cache_key"
  | "session_id"
  | "cache_salt"
  | "thinking"
  | "effort"
  | "verbosity"
  | "parallel_tool_calls"
  | "output_format"
  | "context_management"
  | "mcp_servers"
  | "betas"
  | "citations"
  | "tool_choice"
  | "images";

/** How a provider keeps what it was sent.
 *  markers: up to each marker, found from a marker within so many positions. endings: up to explicit markers and the end
 *  of the last message, found from the ends of messages. everything: the whole prompt, found in steps of so many tokens. */
export type Keeping =
  | { readonly kind: "markers"; readonly lookBack: number; readonly most: number }
  | { readonly kind: "endings"; readonly lookBack: number }
  | { readonly kind: "everything"; readonly step: number };

export type Rules = {
  readonly protocol: XrayProtocol;
  /** In the order in which the provider renders them. */
  readonly levels: readonly Level[];
  /** The first level that a change of a parameter loses. */
  readonly loses: Readonly<Partial<Record<Parameter, Level>>>;
  /** Texts of values that say no more than their absence. */
  readonly defaults: Readonly<Partial<Record<Parameter, string>>>;
  readonly keeping: Keeping;
  readonly defaultTtl: Ttl | undefined; // undefined: not published
  readonly minimum: number;
  readonly stripsThinking: boolean;
  readonly facts: ModelFacts | undefined;
};

export type RuleOptions = {
  /** Whose rules and prices, where the body's own model is in no table. */
  readonly model?: string;
  readonly models?: ReadonlyMap<string, ModelFacts>;
  /** The body carries `cache_control`, whatever its format. */
  readonly marked: boolean;
};

const LEVELS: readonly Level[] = ["tools", "system", "messages"];
/** One vendor renders its tools after the system content. */
const SYSTEM_FIRST: readonly Level[] = ["system", "tools", "messages"];

const MARKERS: Keeping = { kind: "markers", lookBack: 20, most: 4 };

const anthropicLoses: Rules["loses"] = {
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
};

const ADAPTIVE = '{"type":"adaptive"}';
const DISABLED = '{"type":"disabled"}';

/** What a model does without a `thinking` of its own; absent where that is not published. */
const thinkingDefault = (id: string): string | undefined => {
  if (/^claude-(?:fable|mythos)-5|^claude-opus-5-5$/.test(id)) return ADAPTIVE;
  return /^claude-(?:opus-5|sonnet-5|haiku-5)/.test(id) || id === "" ? undefined : DISABLED;
};

const anthropicRules = (facts: ModelFacts | undefined): Omit<Rules, "protocol"> => {
  const id = facts?.id ?? "";
  const thinking = thinkingDefault(id);
  return {
    levels: LEVELS,
    loses: anthropicLoses,
    defaults: {
      effort: id === "claude-opus-5-5" ? "medium" : "high",
      speed: "standard",
      ...(thinking === undefined ? {} : { thinking }),
    },
    keeping: MARKERS,
    defaultTtl: "5m",
    minimum: facts?.minimumPrefix ?? UNKNOWN_MINIMUM,
    stripsThinking: facts?.earlierThinking === "last-turn",
    facts,
  };
};

/** What most models have. */
const UNKNOWN_MINIMUM = 1_024;

const openaiLoses: Rules["loses"] = {
  model: "tools",
  service_tier: "tools",
  cache_key: "tools",
  session_id: "tools",
  cache_salt: "tools",
  effort: "tools",
  verbosity: "tools",
  parallel_tool_calls: "tools",
  output_format: "tools",
  context_management: "tools",
};

const openaiDefaults: Rules["defaults"] = {
  service_tier: "auto",
  verbosity: "medium",
  parallel_tool_calls: "true",
  output_format: '{"type":"text"}',
};

/** 5.6 → [5, 6]; undefined for models of others. */
const generation = (model: string): number | undefined => {
  const [, major, minor = "0"] = /(?:^|\/)gpt-(\d+)(?:\.(\d+))?/.exec(model) ?? [];
  return major === undefined ? undefined : Number(major) + Number(minor) / 100;
};

const openaiRules = (model: string, { marked }: RuleOptions, facts?: ModelFacts): Omit<Rules, "protocol"> => {
  const number = generation(model);
  const isDeepSeek = /deepseek/i.test(model);
  const hasBreakpoints = number !== undefined && number >= 5.06;
  const step = number === undefined && !/(?:^|\/)o\d/.test(model) ? 1 : number === 5.05 ? 2_048 : 128;
  return {
    levels: isDeepSeek ? SYSTEM_FIRST : LEVELS,
    loses: openaiLoses,
    defaults: openaiDefaults,
    keeping: hasBreakpoints ? { kind: "endings", lookBack: 20 } : marked ? MARKERS : { kind: "everything", step },
    defaultTtl: hasBreakpoints ? "30m" : marked ? "5m" : undefined,
    minimum: facts?.minimumPrefix ?? (isDeepSeek ? 64 : UNKNOWN_MINIMUM),
    stripsThinking: false,
    facts,
  };
};

export const rulesFor = ({ protocol, model }: Pick<Body, "protocol" | "model">, options: RuleOptions): Rules => {
  const facts =
    modelFacts(model, options.models) ?? (options.model ? modelFacts(options.model, options.models) : undefined);
  const named = facts === undefined && options.model !== undefined ? options.model : model;
  return {
    protocol,
    ...(protocol === "anthropic-messages" ? anthropicRules(facts) : openaiRules(named, options, facts)),
  };
};
