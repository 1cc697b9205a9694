/** Which endpoint speaks what: the wire format, what is sent and left out, how usage is reported, when a sibling can
 *  read.
 *  Invariant: data only; what no vendor documents has the more careful value, with a comment that says so.
 *  Elsewhere: formats (anthropic.ts, openai-responses.ts, openai-chat.ts, gemini.ts), prices and minimums
 *  (../cost/models.ts). */

import { DEFAULT_MODEL } from "../cost/index.ts";
import { anthropic } from "./anthropic.ts";
import { gemini } from "./gemini.ts";
import { chatProtocol, openaiChat, openaiDialect } from "./openai-chat.ts";
import type { ChatDialect } from "./openai-chat-dialect.ts";
import { openaiResponses } from "./openai-responses.ts";
import { chatUsage, type UsagePaths } from "./openai-usage.ts";
import type { Protocol } from "./protocol.ts";

export type Profile = {
  readonly name: string;
  readonly protocol: Protocol;
  /** Its address unless the user sets another one; the format's path comes after it. */
  readonly baseUrl: string;
  /** Its own host names; a local engine has none. */
  readonly hosts: readonly string[];
  /** Environment variables with its key; the first that is set counts. A local engine needs none. */
  readonly keys: readonly string[];
  /** The default model; absent if only the user can know it. */
  readonly model?: string;
};

// --- how usage reads -------------------------------------------------------------------------------------------------

const automaticUsage: UsagePaths = { ...chatUsage, written: [] };

const deepseekUsage: UsagePaths = {
  ...automaticUsage,
  read: [["prompt_cache_hit_tokens"], ["prompt_tokens_details", "cached_tokens"]],
};

const dashscopeUsage: UsagePaths = {
  ...chatUsage,
  written: [["5m", [["prompt_tokens_details", "cache_creation_input_tokens"]]]],
};

/** The lifetime of a write depends on the provider behind the gateway; most markers there are 5m. */
const openrouterUsage: UsagePaths = {
  ...chatUsage,
  written: [["5m", [["prompt_tokens_details", "cache_write_tokens"]]]],
};

const kimiUsage: UsagePaths = {
  ...automaticUsage,
  read: [["cached_tokens"], ["prompt_tokens_details", "cached_tokens"]],
};

// --- dialects --------------------------------------------------------------------------------------------------------

/** What compatible endpoints have in common: they cache automatically and have none of OpenAI's own fields. Notes
 *  inside a conversation have the user role: gateways move a system role to the start and templates refuse it, and both
 *  lose the cache. */
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
  usage: automaticUsage,
};

/** A user id would isolate its cache. Building an entry takes seconds; how many is not documented. Whole prompts and
 *  answers are kept, and the common part of two prompts becomes an entry only after both were sent. */
const deepseek: ChatDialect = {
  ...compatible,
  name: "deepseek",
  pacing: { settleMs: 3_000 },
  sharesTails: false,
  content: "text",
  sends: ["stream_options", "reasoning_effort"],
  thinking: "type",
  emptyReasoning: true,
  usage: deepseekUsage,
};

/** Entries exist once the answer is complete; only the last four markers count. */
const dashscope: ChatDialect = {
  ...compatible,
  name: "dashscope",
  markers: [{ models: "", style: "control" }],
  sends: ["stream_options", "parallel_tool_calls", "top_k"],
  thinking: "enable",
  reasoning: "none",
  usage: dashscopeUsage,
};

/** The session id keeps a fork with its parent's provider. */
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
  usage: openrouterUsage,
};

/** When an entry can be read is not documented. */
const kimi: ChatDialect = {
  ...compatible,
  name: "kimi",
  cacheKey: "prompt_cache_key",
  thinking: "type",
  usage: kimiUsage,
};

/** When an entry can be read is not documented. */
const glm: ChatDialect = {
  ...compatible,
  name: "glm",
  content: "text",
  sends: ["stream_options", "reasoning_effort"],
  thinking: "kept",
};

/** What self-hosted engines have in common. */
const engine: Omit<ChatDialect, "name"> = {
  ...compatible,
  sends: ["stream_options", "reasoning_effort", "parallel_tool_calls", "top_k"],
  thinking: "kwargs",
};

/** Blocks are shared as soon as they are allocated, even by requests of the same batch. Reasoning that comes back under
 *  its older name is silently dropped. */
const vllm: ChatDialect = {
  ...engine,
  name: "vllm",
  readable: "at-once",
  reasoning: "reasoning",
  unreportedReads: "vLLM reports it only if it was started with --enable-prompt-tokens-details",
};

/** A prompt is shared once it is in the tree, which is when its answer begins. */
const sglang: ChatDialect = {
  ...engine,
  name: "sglang",
  readable: "first-event",
  unreportedReads: "SGLang reports it only if it was started with --enable-cache-report",
};

/** Slots share nothing while they run; the next request in the same slot reads what the last one left. */
const llamaCpp: ChatDialect = { ...engine, name: "llama.cpp", minMaxTokens: 0 };

/** One request at a time, each on top of what the last one left; cache reads are never reported. */
const ollama: ChatDialect = {
  ...compatible,
  name: "ollama",
  thinking: "effort",
  reasoning: "reasoning",
  usage: { ...automaticUsage, read: [] },
  unreportedReads: "Ollama never reports it",
};

/** An endpoint that speaks the format, with nothing else known about it: the fields that all accept, the most careful
 *  readable moment, and every known way to report usage. */
export const plainChat: Protocol = chatProtocol({
  ...compatible,
  name: "chat",
  content: "text",
  usage: {
    ...chatUsage,
    read: [...deepseekUsage.read, ["cached_tokens"]],
    written: [...chatUsage.written, ...dashscopeUsage.written],
  },
});

// --- endpoints -------------------------------------------------------------------------------------------------------

/** Anthropic's format without its diagnostics. Models of the second generation accept markers with one lifetime; later
 *  ones cache automatically. */
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

/** The endpoint at this address. Many also speak Anthropic's format under a path that says so, and then nothing else of
 *  their profile applies. Gemini under an OpenAI path is unknown to us, because the signatures of calls would be lost
 *  there. */
export const profileAt = (baseUrl: string): Profile | undefined => {
  const url = URL.parse(baseUrl);
  const profile = url ? known.find(({ hosts }) => hosts.includes(url.hostname)) : undefined;
  const segments = url?.pathname.split("/") ?? [];
  if (segments.includes("openai") && profile?.protocol === gemini) return undefined;
  if (!segments.includes("anthropic") || profile?.protocol.path === anthropic.path) return profile;
  return profiles.get("anthropic");
};
