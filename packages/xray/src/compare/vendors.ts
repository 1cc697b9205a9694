/** Which cache rules apply to a body, by its format and its model?
 *  Invariant: everything here is data from what vendors publish; if they are silent, the more expensive reading
 *  applies, so that nothing is called readable that may not be. A gateway passes on a model's own rules, so the model's
 *  name decides and not the format.
 *  Elsewhere: what the fields mean (rules.ts), what they mean for a prompt (entries.ts), prices (@prefork/wire). */

import { LOOK_BACK, type ModelFacts, modelFacts } from "@prefork/wire";
import { gptVersion, hasBreakpoints } from "@prefork/wire/internal";
import type { XrayProtocol } from "./body.ts";
import type { Keeping, Level, Rules } from "./rules.ts";

export type RuleOptions = {
  /** Use this model's rules and prices if the body's own model is unknown. */
  readonly model?: string;
  readonly models?: ReadonlyMap<string, ModelFacts>;
  /** The body contains `cache_control`, whatever its format. */
  readonly marked: boolean;
};

type Vendor = "anthropic" | "openai" | "gemini" | "deepseek" | "minimax" | "dashscope" | "silent" | "other";

type VendorTerms = {
  readonly protocol: XrayProtocol;
  readonly model: string;
  readonly marked: boolean;
  readonly facts: ModelFacts | undefined;
};

const LEVELS: readonly Level[] = ["tools", "system", "messages"];
/** One vendor renders its tools after the system content. */
const SYSTEM_FIRST: readonly Level[] = ["system", "tools", "messages"];

const MARKERS: Keeping = { kind: "markers", lookBack: LOOK_BACK, most: 4 };
const MARKERS_SINGLY: Keeping = { ...MARKERS, singly: true };
const BY_PIECE: Keeping = { kind: "everything", step: "piece" };

/** What most models have. */
const UNKNOWN_MINIMUM = 1_024;

// --- Anthropic -------------------------------------------------------------------------------------------------------

/** The last two are for gateways, which use them to choose a server. */
const anthropicLoses: Rules["loses"] = {
  model: "tools",
  speed: "tools",
  thinking: "tools",
  effort: "tools",
  verbosity: "tools",
  output_format: "tools",
  context_management: "tools",
  mcp_servers: "tools",
  betas: "tools",
  cache_key: "tools",
  session_id: "tools",
  citations: "system",
  tool_choice: "messages",
  parallel_tool_calls: "messages",
  images: "messages",
};

const ADAPTIVE = '{"type":"adaptive"}';
const DISABLED = '{"type":"disabled"}';

/** What a model does without a `thinking` parameter; undefined if that is not published. */
const thinkingDefault = (id: string): string | undefined => {
  if (/^claude-(?:fable|mythos)-5|^claude-opus-5-5$/.test(id)) return ADAPTIVE;
  return /^claude-(?:opus-5|sonnet-5|haiku-5)/.test(id) || id === "" ? undefined : DISABLED;
};

const anthropicRules = ({ facts }: VendorTerms): Omit<Rules, "protocol"> => {
  const id = facts?.id ?? "";
  const thinking = thinkingDefault(id);
  return {
    levels: LEVELS,
    loses: anthropicLoses,
    defaults: {
      effort: id === "claude-opus-5-5" ? "medium" : "high",
      speed: "standard",
      tool_choice: "auto",
      parallel_tool_calls: "true",
      output_format: '{"type":"text"}',
      ...(thinking === undefined ? {} : { thinking }),
    },
    keeping: MARKERS,
    defaultTtl: "5m",
    longerTtl: "1h",
    readable: "first-event",
    settleMs: 0,
    statesWrites: true,
    minimum: facts?.minimumPrefix ?? UNKNOWN_MINIMUM,
    isMinimumKnown: facts !== undefined,
    stripsThinking: facts?.earlierThinking === "last-turn",
    facts,
  };
};

// --- OpenAI ----------------------------------------------------------------------------------------------------------

const openaiLoses: Rules["loses"] = {
  model: "tools",
  service_tier: "tools",
  cache_key: "tools",
  session_id: "tools",
  cache_salt: "tools",
  thinking: "tools",
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
  tool_choice: "auto",
};

const openaiRules = ({ model, facts }: VendorTerms): Omit<Rules, "protocol"> => {
  const marks = hasBreakpoints(model);
  return {
    levels: LEVELS,
    loses: openaiLoses,
    defaults: openaiDefaults,
    keeping: marks
      ? { kind: "endings", lookBack: LOOK_BACK }
      : { kind: "everything", step: gptVersion(model) === 505 ? 2_048 : 128 },
    defaultTtl: marks ? "30m" : undefined,
    readable: "first-event",
    settleMs: 0,
    statesWrites: true,
    minimum: facts?.minimumPrefix ?? UNKNOWN_MINIMUM,
    isMinimumKnown: facts !== undefined || /(?:^|\/)gpt-\d/.test(model),
    stripsThinking: false,
    facts,
  };
};

// --- those who cache by themselves -----------------------------------------------------------------------------------

/** An endpoint that accepts markers uses either those or its automatic cache. */
const automaticRules = (
  { marked, facts }: VendorTerms,
  own: Partial<Omit<Rules, "protocol">>,
): Omit<Rules, "protocol"> => ({
  levels: LEVELS,
  loses: openaiLoses,
  defaults: openaiDefaults,
  keeping: marked ? MARKERS : { kind: "everything", step: 1 },
  defaultTtl: marked ? "5m" : undefined,
  readable: "complete",
  settleMs: 0,
  statesWrites: true,
  stripsThinking: false,
  facts,
  ...own,
  minimum: facts?.minimumPrefix ?? own.minimum ?? UNKNOWN_MINIMUM,
  isMinimumKnown: (facts?.minimumPrefix ?? own.minimum) !== undefined,
});

const UNIT = 64;

/** It is not published which settings are in the key, so all of them count. Building a unit takes "seconds". */
const deepseekRules = (terms: VendorTerms): Omit<Rules, "protocol"> =>
  automaticRules(terms, {
    levels: SYSTEM_FIRST,
    loses: {
      model: "system",
      user_id: "system",
      thinking: "system",
      effort: "system",
      tool_choice: "system",
      output_format: "system",
    },
    keeping: { kind: "units", step: UNIT },
    defaultTtl: undefined,
    settleMs: 2_000,
    minimum: UNIT,
  });

const minimaxRules = (terms: VendorTerms): Omit<Rules, "protocol"> => {
  const takesMarkers = terms.marked && /minimax-m2/i.test(terms.model);
  return automaticRules(terms, {
    loses: anthropicLoses,
    defaults: { tool_choice: "auto" },
    keeping: takesMarkers ? MARKERS_SINGLY : BY_PIECE,
    defaultTtl: takesMarkers ? "5m" : undefined,
    // Users report that it reports 0 for what it writes.
    statesWrites: false,
    minimum: 512,
  });
};

const dashscopeRules = (terms: VendorTerms): Omit<Rules, "protocol"> =>
  automaticRules(terms, {
    loses: { ...openaiLoses, tool_choice: "messages" },
    keeping: terms.marked ? MARKERS_SINGLY : BY_PIECE,
    minimum: 1_024,
  });

/** It is not published in which steps and from when on its automatic cache works. */
const geminiRules = (terms: VendorTerms): Omit<Rules, "protocol"> =>
  automaticRules(terms, {
    loses: { ...openaiLoses, cached_content: "tools", tool_choice: "tools" },
    keeping: terms.marked ? MARKERS : BY_PIECE,
    minimum: /gemini-2/i.test(terms.model) ? 2_048 : 4_096,
  });

// --- who is asked ----------------------------------------------------------------------------------------------------

const NAMES: readonly (readonly [RegExp, Vendor])[] = [
  [/claude/i, "anthropic"],
  [/deepseek/i, "deepseek"],
  [/minimax/i, "minimax"],
  [/qwen|qwq/i, "dashscope"],
  [/gemini/i, "gemini"],
  [/(?:^|\/)(?:gpt-\d|chatgpt|codex-|o\d)/i, "openai"],
  [/glm|kimi|moonshot/i, "silent"],
];

const FORMATS: Readonly<Record<XrayProtocol, Vendor>> = {
  "anthropic-messages": "anthropic",
  "openai-responses": "other",
  "openai-chat": "other",
  gemini: "gemini",
};

/** By the name of the model, also behind a gateway; otherwise by the format. */
const vendorOf = (protocol: XrayProtocol, model: string): Vendor =>
  NAMES.find(([pattern]) => pattern.test(model))?.[1] ?? FORMATS[protocol];

const RULES: Readonly<Record<Vendor, (terms: VendorTerms) => Omit<Rules, "protocol">>> = {
  anthropic: anthropicRules,
  openai: openaiRules,
  gemini: geminiRules,
  deepseek: deepseekRules,
  minimax: minimaxRules,
  dashscope: dashscopeRules,
  // They say that they cache, and nothing more.
  silent: (terms) => automaticRules(terms, {}),
  // Mostly self-hosted engines: what was computed is available.
  other: (terms) => automaticRules(terms, { readable: "first-event" }),
};

export const rulesFor = (
  body: { readonly protocol: XrayProtocol; readonly model: string },
  options: RuleOptions,
): Rules => {
  const { protocol } = body;
  const { model: fallback, models, marked } = options;
  const facts = modelFacts(body.model, models) ?? (fallback ? modelFacts(fallback, models) : undefined);
  const known = NAMES.some(([pattern]) => pattern.test(body.model));
  const model = !known && fallback !== undefined ? fallback : body.model;
  return { protocol, ...RULES[vendorOf(protocol, model)]({ protocol, model, marked, facts }) };
};
