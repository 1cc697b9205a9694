/** Which providers can be simulated, by name, and in which wire formats?
 *  Invariant: a user only needs to know the name; everything else about a provider is in its own file.
 *  Elsewhere: the wire formats (../wires). */

import { knownModels } from "@prefork/wire";
import { anthropic } from "./anthropic.ts";
import { dashscope } from "./dashscope.ts";
import { deepseek } from "./deepseek.ts";
import { llamaCpp, vllm } from "./engines.ts";
import { gemini, geminiExplicit } from "./gemini.ts";
import { minimax } from "./minimax.ts";
import { openai, openaiLegacy } from "./openai.ts";
import { resolveRules } from "./resolve.ts";
import type { ModelRules, ProviderRules, RuleTable, WireName } from "./rules.ts";

export type ProviderName =
  | "anthropic"
  | "openai"
  | "openai-legacy"
  | "gemini"
  | "gemini-explicit"
  | "deepseek"
  | "minimax"
  | "dashscope"
  | "vllm"
  | "llamacpp";

/** What people need to know about a provider to choose it. */
export type ProviderSummary = {
  readonly name: ProviderName;
  /** The first format is also used for errors on paths of no format. */
  readonly wires: readonly [WireName, ...WireName[]];
  /** One line for people. */
  readonly words: string;
  /** The model whose rules are used for models without published figures. */
  readonly defaultModel: string;
  /** Its models with published figures. */
  readonly models: readonly string[];
};

type RuleSet = Omit<ProviderSummary, "defaultModel" | "models"> & { readonly rules: ProviderRules };

const sets: readonly RuleSet[] = [
  {
    name: "anthropic",
    rules: anthropic,
    wires: ["messages"],
    words: "markers, 20 positions of look-back, 5 minutes or an hour",
  },
  {
    name: "openai",
    rules: openai,
    wires: ["responses", "chat"],
    words: "breakpoints and ends of messages from GPT-5.6 on, older models as they are",
  },
  {
    name: "openai-legacy",
    rules: openaiLegacy,
    wires: ["responses", "chat"],
    words: "every model by the older rules: automatic, from 1,024 tokens, in steps of 128",
  },
  {
    name: "gemini",
    rules: gemini,
    wires: ["gemini"],
    words: "automatic, from 2,048 or 4,096 tokens; and stored by name",
  },
  { name: "gemini-explicit", rules: geminiExplicit, wires: ["gemini"], words: "only what is stored by name is read" },
  {
    name: "deepseek",
    rules: deepseek,
    wires: ["chat", "messages"],
    words: "units of 64 tokens at ends of prompts, answers and common prefixes",
  },
  {
    name: "minimax",
    rules: minimax,
    wires: ["messages", "chat"],
    words: "automatic, from 512 tokens; markers on the second generation",
  },
  {
    name: "dashscope",
    rules: dashscope,
    wires: ["chat"],
    words: "markers or automatic, from 1,024 tokens, readable when the answer is complete",
  },
  {
    name: "vllm",
    rules: vllm,
    wires: ["chat", "messages"],
    words: "blocks of 16 tokens, shared at once; no key, no fees",
  },
  {
    name: "llamacpp",
    rules: llamaCpp,
    wires: ["chat", "messages"],
    words: "slots that share nothing; no key, no fees",
  },
];

const byName: ReadonlyMap<string, RuleSet> = new Map(sets.map((set) => [set.name, set]));

export const providers: readonly ProviderSummary[] = sets.map(({ rules, ...summary }) => ({
  ...summary,
  defaultModel: rules.defaultModel,
  models: [...knownModels.keys()].filter((id) => rules.models !== "any" && rules.models.test(id)),
}));

/** Undefined for an unknown name. */
export const rulesOf = (name: string): ProviderRules | undefined => byName.get(name)?.rules;

/** The rules of a provider for a model. */
export const providerRules = (name: ProviderName, model: string, table: RuleTable = {}): ModelRules =>
  resolveRules(rulesOf(name) ?? anthropic, model, table);
