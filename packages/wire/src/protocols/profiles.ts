/** Which endpoint speaks what: the wire format, what is sent and left out, how usage reads, when a sibling can read.
 *  Invariant: data only; what no vendor documents is left at the more careful value and said so beside it.
 *  Elsewhere: formats (anthropic.ts, openai-responses.ts, openai-chat.ts, gemini.ts), prices and minima (../models.ts). */

import { DEFAULT_MODEL } from "../cost/index.ts";
import { anthropic } from "./anthropic.ts";
import { gemini } from "./gemini.ts";
import { chatProtocol, openaiChat, openaiDialect } from "./openai-chat.ts";
import type { ChatDialect } from "./openai-chat-dialect.ts";
import { openaiResponses } from "./openai-responses.ts";
import { chatWords, type UsageWords } from "./openai-usage.ts";
import type { Protocol } from "./protocol.ts";

export type Profile = {
  readonly name: string;
  readonly protocol: Protocol;
  /** Where it is reached unless its user says otherwise; the format's path comes after it. */
  readonly baseUrl: string;
  /** Host names that are its own; a local engine has none. */
  readonly hosts: readonly string[];
  /** Variables that its users keep a key in, the first that is set counts. A local engine needs none. */
  readonly keys: readonly string[];
  /** What it is asked for unless its user says otherwise; absent where only its user can know. */
  readonly model?: string;
};

// --- how usage reads -------------------------------------------------------------------------------------------------

const automaticWords: UsageWords = { ...chatWords, written: [] };

const deepseekWords: UsageWords = {
  ...automaticWords,
  read: [["prompt_cache_hit_tokens"], ["prompt_tokens_details", "cached_tokens"]],
};

const dashscopeWords: UsageWords = {
  ...chatWords,
  written: [["5m", [["prompt_tokens_details", "cache_creation_input_tokens"]]]],
};

/** Which lifetime was written depends on the provider behind it; most of what is marked there is 5m. */
const openrouterWords: UsageWords = {
  ...chatWords,
  written: [["5m", [["prompt_tokens_details", "cache_write_tokens"]]]],
};

const kimiWords: UsageWords = {
  ...automaticWords,
  read: [["cached_tokens"], ["prompt_tokens_details", "cached_tokens"]],
};

// --- dialects --------------------------------------------------------------------------------------------------------

/** What compatible endpoints have in common: caching by themselves, and none of OpenAI's own fields. Notes inside a
 *  conversation are the user's: gateways move a system role to the start, templates refuse it, and either way the cache
 *  is lost. */
const compatible: Omit<ChatDialect, "name"> = {
  ...openaiDialect,
  readable: "complete",
  systemRole: "system",
  noteRole: "user",
  markers: [],
  sends: ["stream_options"],
  maxTokens: "max_tokens",
  cacheKey: "none",
  user: "none",
  thinking: "none",
  reasoning: "reasoning_content",
  pacing: {},
  usage: automaticWords,
};

/** A user id would isolate its cache. What is kept takes seconds to build; how many is not documented. Whole prompts and
 *  answers are kept: what two prompts have in common becomes an entry only after both were sent. */
const deepseek: ChatDialect = {
  ...compatible,
  name: "deepseek",
  pacing: { settleMs: 3_000 },
  sharesTails: false,
  content: "text",
  sends: ["stream_options", "reasoning_effort"],
  thinking: "type",
  emptyReasoning: true,
  usage: deepseekWords,
};

/** Entries exist once the answer is complete; only the last four markers count. */
const dashscope: ChatDialect = {
  ...compatible,
  name: "dashscope",
  markers: [{ models: "", style: "control" }],
  sends: ["stream_options", "parallel_tool_calls", "top_k"],
  thinking: "enable",
  reasoning: "none",
  usage: dashscopeWords,
};

/** A fork stays with its parent's provider by the session id. */
const openrouter: ChatDialect = {
  ...compatible,
  name: "openrouter",
  readable: "first-event",
  markers: [
    { models: "openai/", style: "breakpoint" },
    { models: "anthropic/", style: "control" },
    { models: "google/", style: "control" },
    { models: "qwen/", style: "control" },
  ],
  namedTtls: ["1h"],
  sends: ["stream_options", "parallel_tool_calls", "service_tier", "verbosity", "top_k"],
  cacheKey: "session_id",
  user: "user",
  thinking: "object",
  reasoning: "reasoning_details",
  usage: openrouterWords,
};

/** When an entry can be read is not documented. */
const kimi: ChatDialect = {
  ...compatible,
  name: "kimi",
  cacheKey: "prompt_cache_key",
  thinking: "type",
  usage: kimiWords,
};

/** When an entry can be read is not documented. */
const glm: ChatDialect = {
  ...compatible,
  name: "glm",
  content: "text",
  sends: ["stream_options", "reasoning_effort"],
  thinking: "kept",
};

/** What engines that people run themselves have in common. */
const engine: Omit<ChatDialect, "name"> = {
  ...compatible,
  sends: ["stream_options", "reasoning_effort", "parallel_tool_calls", "top_k"],
  thinking: "kwargs",
};

/** Blocks are shared as soon as they are allocated, by requests of the same batch too. Reasoning that comes back under
 *  its older name is dropped without a word. */
const vllm: ChatDialect = {
  ...engine,
  name: "vllm",
  readable: "at-once",
  reasoning: "reasoning",
  untoldReads: "vLLM tells it only where it was started with --enable-prompt-tokens-details",
};

/** A prompt is shared once it is in the tree: when its answer begins. */
const sglang: ChatDialect = {
  ...engine,
  name: "sglang",
  readable: "first-event",
  untoldReads: "SGLang tells it only where it was started with --enable-cache-report",
};

/** Slots share nothing while they run; the next request in the same one reads what the last left. */
const llamaCpp: ChatDialect = { ...engine, name: "llama.cpp", fewestTokens: 0 };

/** One request at a time, each on what the last left; it never says what it read. */
const ollama: ChatDialect = {
  ...compatible,
  name: "ollama",
  thinking: "effort",
  reasoning: "reasoning",
  usage: { ...automaticWords, read: [] },
  untoldReads: "Ollama never tells it",
};

/** Anybody who speaks the format and of whom nothing else is known: what all take, the most careful moment, and whatever
 *  words usage may be told in. */
export const plainChat: Protocol = chatProtocol({
  ...compatible,
  name: "chat",
  content: "text",
  usage: {
    ...chatWords,
    read: [...deepseekWords.read, ["cached_tokens"]],
    written: [...chatWords.written, ...dashscopeWords.written],
  },
});

// --- endpoints -------------------------------------------------------------------------------------------------------

/** Anthropic's format less its diagnostics. Models of the second generation take markers, all of one lifetime; later ones
 *  cache by themselves. */
const minimax: Protocol = {
  ...anthropic,
  name: "minimax",
  readable: "complete", // not documented
  emptyAnswers: false,
  marker: (_ttl, model) => (/^minimax-m2/i.test(model) ? anthropic.marker("5m", model) : ""),
  closing: ({ diagnoseAgainst: _none, ...closing }, ...about) => anthropic.closing(closing, ...about),
};

type Endpoint = Partial<Pick<Profile, "hosts" | "keys" | "model">> & Pick<Profile, "baseUrl">;

const chat = (dialect: ChatDialect, { hosts = [], keys = [], ...endpoint }: Endpoint): Profile => ({
  name: dialect.name,
  protocol: chatProtocol(dialect),
  hosts,
  keys,
  ...endpoint,
});

const known: readonly Profile[] = [
  {
    name: "anthropic",
    protocol: anthropic,
    baseUrl: "https://api.anthropic.com",
    hosts: ["api.anthropic.com"],
    keys: ["ANTHROPIC_API_KEY"],
    model: DEFAULT_MODEL,
  },
  {
    name: "openai",
    protocol: openaiResponses,
    baseUrl: "https://api.openai.com/v1",
    hosts: ["api.openai.com"],
    keys: ["OPENAI_API_KEY"],
    model: "gpt-6.1-sol",
  },
  {
    name: "openai-chat",
    protocol: openaiChat,
    baseUrl: "https://api.openai.com/v1",
    hosts: [],
    keys: ["OPENAI_API_KEY"],
    model: "gpt-6.1-sol",
  },
  {
    name: "gemini",
    protocol: gemini,
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    hosts: ["generativelanguage.googleapis.com"],
    keys: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    model: "gemini-3.8-flash",
  },
  {
    name: "minimax",
    protocol: minimax,
    baseUrl: "https://api.minimax.io/anthropic",
    hosts: ["api.minimax.io", "api.minimaxi.com"],
    keys: ["MINIMAX_API_KEY"],
  },
  chat(deepseek, {
    baseUrl: "https://api.deepseek.com",
    hosts: ["api.deepseek.com"],
    keys: ["DEEPSEEK_API_KEY"],
  }),
  chat(dashscope, {
    baseUrl: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    hosts: ["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"],
    keys: ["DASHSCOPE_API_KEY"],
  }),
  chat(openrouter, {
    baseUrl: "https://openrouter.ai/api/v1",
    hosts: ["openrouter.ai"],
    keys: ["OPENROUTER_API_KEY"],
  }),
  chat(kimi, {
    baseUrl: "https://api.moonshot.ai/v1",
    hosts: ["api.moonshot.ai", "api.moonshot.cn"],
    keys: ["MOONSHOT_API_KEY"],
  }),
  chat(glm, {
    baseUrl: "https://api.z.ai/api/paas/v4",
    hosts: ["api.z.ai", "open.bigmodel.cn"],
    keys: ["ZAI_API_KEY", "ZHIPUAI_API_KEY"],
  }),
  chat(vllm, { baseUrl: "http://localhost:8000/v1" }),
  chat(sglang, { baseUrl: "http://localhost:30000/v1" }),
  chat(llamaCpp, { baseUrl: "http://localhost:8080/v1" }),
  chat(ollama, { baseUrl: "http://localhost:11434/v1" }),
];

/** Every format that a journal may name. */
export const protocols: readonly Protocol[] = known.map(({ protocol }) => protocol);

export const profiles: ReadonlyMap<string, Profile> = new Map(known.map((profile) => [profile.name, profile]));

/** Whose address this is. Many also speak Anthropic's format, under a path that says so: then nothing else of their
 *  profile holds. Who speaks OpenAI's under such a path is not known by its own: there signatures of calls would be lost. */
export const profileAt = (baseUrl: string): Profile | undefined => {
  const url = URL.parse(baseUrl);
  const found = url ? known.find(({ hosts }) => hosts.includes(url.hostname)) : undefined;
  const way = url?.pathname.split("/") ?? [];
  if (way.includes("openai") && found?.protocol === gemini) return undefined;
  if (!way.includes("anthropic") || found?.protocol.path === anthropic.path) return found;
  return profiles.get("anthropic");
};
