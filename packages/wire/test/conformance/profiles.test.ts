/** Every endpoint that speaks another's format, against the suite that every protocol passes: what it is sent, what is
 *  left out, and how its usage reads. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Head,
  type Message,
  type Profile,
  profileAt,
  profiles,
  text,
  toolResult,
  type Usage,
  userText,
} from "../../src/index.ts";
import { anthropicConformance } from "./anthropic-conformance.ts";
import { type ChatSubject, chatConformance } from "./chat-fixtures.ts";
import { conformanceSuite } from "./protocol-suite.ts";

const profileOf = (name: string): Profile => {
  const profile = profiles.get(name);
  assert.ok(profile, `no profile ${name}`);
  return profile;
};

const headOf = (model: string): Head => ({
  model,
  tools: [{ type: "function", name: "Read", description: "Reads.", inputSchema: { type: "object" } }],
  system: [text("One."), text("Two.")],
  settings: {},
});

/** Everything that can be asked for; each endpoint gets what it knows. */
const everything: Head["settings"] = {
  thinking: { type: "enabled", budgetTokens: 2_048 },
  effort: "high",
  verbosity: "low",
  toolChoice: { type: "any" },
  parallelTools: false,
  temperature: 1,
  topK: 40,
  stopSequences: ["###"],
  speed: "fast",
  serviceTier: "flex",
  cacheKey: "session-1",
};

const talk: readonly Message[] = [
  userText("Hi"),
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "hm", signature: "", raw: `[{"type":"reasoning.text","text":"hm"}]` },
      text("Both."),
      { type: "tool_use", id: "call_1", name: "Read", input: "{}" },
      { type: "tool_use", id: "call_2", name: "Read", input: `{"a": 1}` },
    ],
  },
  { role: "user", content: [toolResult("call_1", "one"), toolResult("call_2", "two"), text("Go on.")] },
  { role: "assistant", content: [{ type: "tool_use", id: "call_3", name: "Read", input: "{}" }] },
  { role: "user", content: [toolResult("call_3", "three")] },
  { role: "system", content: [text("The date has changed.")] },
];

const tools = `"tools":[{"type":"function","function":{"name":"Read","description":"Reads.","parameters":{"type":"object"}}}]`;
const calls = `"tool_calls":[{"id":"call_1","type":"function","function":{"name":"Read","arguments":"{}"}},{"id":"call_2","type":"function","function":{"name":"Read","arguments":"{\\"a\\": 1}"}}]`;
const third = `"tool_calls":[{"id":"call_3","type":"function","function":{"name":"Read","arguments":"{}"}}]`;

/** The conversation where a message is a list of parts, results as given. */
const inParts = (thought: string, result: (id: string, said: string) => string): string =>
  `"messages":[{"role":"system","content":[{"type":"text","text":"One."},{"type":"text","text":"Two."}]},{"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"assistant",${thought}"content":"Both.",${calls}},${result("call_1", "one")},${result("call_2", "two")},{"role":"user","content":[{"type":"text","text":"Go on."}]},{"role":"assistant","content":null,${third}},${result("call_3", "three")},{"role":"user","content":[{"type":"text","text":"The date has changed."}]}]`;
const bareResult = (id: string, said: string): string => `{"role":"tool","tool_call_id":"${id}","content":"${said}"}`;
const listResult = (id: string, said: string): string =>
  `{"role":"tool","tool_call_id":"${id}","content":[{"type":"text","text":"${said}"}]}`;

/** The conversation where a message is one text. */
const inTexts = (none: string): string =>
  `"messages":[{"role":"system","content":"One.\\n\\nTwo."},{"role":"user","content":"Hi"},{"role":"assistant","reasoning_content":"hm","content":"Both.",${calls}},{"role":"tool","tool_call_id":"call_1","content":"one"},{"role":"tool","tool_call_id":"call_2","content":"two"},{"role":"user","content":"Go on."},{"role":"assistant",${none}"content":null,${third}},{"role":"tool","tool_call_id":"call_3","content":"three"},{"role":"user","content":"The date has changed."}]`;

type Row = {
  readonly name: string;
  readonly model: string;
  /** Between the model and the tools, of all that was asked for. */
  readonly key: string;
  /** After the messages of a request that only fills the cache, streamed, for a user. */
  readonly after: string;
  readonly talk: string;
  readonly report: string;
  readonly usage: Usage;
  readonly shown?: ChatSubject["shown"];
  readonly resent?: ChatSubject["resent"];
  readonly readable: Profile["protocol"]["readable"];
  /** The marker that asks for 1h; empty where there are none. */
  readonly marker: string;
};

const counted = (details: string): string =>
  `{"prompt_tokens":1000,"completion_tokens":40,"total_tokens":1040${details && `,${details}`}}`;
const streamedOne = `"max_tokens":1,"stream":true,"stream_options":{"include_usage":true}`;
const thoughtBack = `"reasoning_content":"hm",`;

const rows: readonly Row[] = [
  {
    name: "deepseek",
    model: "deepseek-flash",
    key: `"reasoning_effort":"high","thinking":{"type":"enabled"},"tool_choice":"required","temperature":1,"stop":["###"]`,
    after: streamedOne,
    talk: inTexts(`"reasoning_content":"",`),
    report: counted(`"prompt_cache_hit_tokens":896,"prompt_cache_miss_tokens":104`),
    usage: { plain: 104, read: 896, written: {}, output: 40 },
    shown: "reasoning_content",
    resent: "reasoning_content",
    readable: "complete",
    marker: "",
  },
  {
    name: "dashscope",
    model: "qwen3.7-max",
    key: `"enable_thinking":true,"thinking_budget":2048,"tool_choice":"required","parallel_tool_calls":false,"temperature":1,"top_k":40,"stop":["###"]`,
    after: streamedOne,
    talk: inParts("", listResult),
    report: counted(
      `"prompt_tokens_details":{"cached_tokens":700,"cache_creation_input_tokens":250,"cache_type":"ephemeral"}`,
    ),
    usage: { plain: 50, read: 700, written: { "5m": 250 }, output: 40 },
    shown: "reasoning_content",
    readable: "complete",
    marker: `,"cache_control":{"type":"ephemeral"}`,
  },
  {
    name: "openrouter",
    model: "anthropic/claude-sonnet-5",
    key: `"session_id":"session-1","service_tier":"flex","reasoning":{"enabled":true,"max_tokens":2048},"verbosity":"low","tool_choice":"required","parallel_tool_calls":false,"temperature":1,"top_k":40,"stop":["###"]`,
    after: `${streamedOne},"user":"user-1"`,
    talk: inParts(`"reasoning_details":[{"type":"reasoning.text","text":"hm"}],`, listResult),
    report: counted(`"prompt_tokens_details":{"cached_tokens":700,"cache_write_tokens":250},"cost":0.01`),
    usage: { plain: 50, read: 700, written: { "5m": 250 }, output: 40 },
    shown: "reasoning",
    resent: "reasoning_details",
    readable: "first-event",
    marker: `,"cache_control":{"type":"ephemeral","ttl":"1h"}`,
  },
  {
    name: "kimi",
    model: "kimi-k2.7-code",
    key: `"prompt_cache_key":"session-1","thinking":{"type":"enabled"},"tool_choice":"required","temperature":1,"stop":["###"]`,
    after: streamedOne,
    talk: inParts(thoughtBack, bareResult),
    report: counted(`"cached_tokens":768`),
    usage: { plain: 232, read: 768, written: {}, output: 40 },
    shown: "reasoning_content",
    resent: "reasoning_content",
    readable: "complete",
    marker: "",
  },
  {
    name: "glm",
    model: "glm-5.3",
    key: `"reasoning_effort":"high","thinking":{"type":"enabled","clear_thinking":false},"tool_choice":"required","temperature":1,"stop":["###"]`,
    after: streamedOne,
    talk: inTexts(""),
    report: counted(`"prompt_tokens_details":{"cached_tokens":768}`),
    usage: { plain: 232, read: 768, written: {}, output: 40 },
    shown: "reasoning_content",
    resent: "reasoning_content",
    readable: "complete",
    marker: "",
  },
  {
    name: "vllm",
    model: "Qwen/Qwen3-32B",
    key: `"reasoning_effort":"high","chat_template_kwargs":{"enable_thinking":true},"tool_choice":"required","parallel_tool_calls":false,"temperature":1,"top_k":40,"stop":["###"]`,
    after: streamedOne,
    talk: inParts(`"reasoning":"hm",`, bareResult),
    report: counted(`"prompt_tokens_details":{"cached_tokens":992}`),
    usage: { plain: 8, read: 992, written: {}, output: 40 },
    shown: "reasoning",
    resent: "reasoning",
    readable: "at-once",
    marker: "",
  },
  {
    name: "sglang",
    model: "Qwen/Qwen3-32B",
    key: `"reasoning_effort":"high","chat_template_kwargs":{"enable_thinking":true},"tool_choice":"required","parallel_tool_calls":false,"temperature":1,"top_k":40,"stop":["###"]`,
    after: streamedOne,
    talk: inParts(thoughtBack, bareResult),
    report: counted(`"prompt_tokens_details":{"cached_tokens":999}`),
    usage: { plain: 1, read: 999, written: {}, output: 40 },
    shown: "reasoning_content",
    resent: "reasoning_content",
    readable: "first-event",
    marker: "",
  },
  {
    name: "llama.cpp",
    model: "gpt-oss-20b",
    key: `"reasoning_effort":"high","chat_template_kwargs":{"enable_thinking":true},"tool_choice":"required","parallel_tool_calls":false,"temperature":1,"top_k":40,"stop":["###"]`,
    after: `"max_tokens":0,"stream":true,"stream_options":{"include_usage":true}`,
    talk: inParts(thoughtBack, bareResult),
    report: counted(`"prompt_tokens_details":{"cached_tokens":999}`),
    usage: { plain: 1, read: 999, written: {}, output: 40 },
    shown: "reasoning_content",
    resent: "reasoning_content",
    readable: "complete",
    marker: "",
  },
  {
    name: "ollama",
    model: "qwen3:32b",
    key: `"reasoning_effort":"high","tool_choice":"required","temperature":1,"stop":["###"]`,
    after: streamedOne,
    talk: inParts(`"reasoning":"hm",`, bareResult),
    report: counted(""),
    usage: { plain: 1_000, read: 0, written: {}, output: 40 },
    shown: "reasoning",
    resent: "reasoning",
    readable: "complete",
    marker: "",
  },
];

const subjectOf = (row: Row): ChatSubject => {
  const head = headOf(row.model);
  const isParts = row.talk.includes(`"content":[{"type":"text","text":"One."}`);
  const opening = isParts
    ? `{"role":"system","content":[{"type":"text","text":"One."},{"type":"text","text":"Two."}]},{"role":"user","content":[{"type":"text","text":"Hi"}]}`
    : `{"role":"system","content":"One.\\n\\nTwo."},{"role":"user","content":"Hi"}`;
  const after = JSON.parse(`{${row.after}}`) as object;
  return {
    protocol: profileOf(row.name).protocol,
    head,
    encoded: {
      "all that can be asked for, less what it does not know": {
        head: { ...head, settings: everything },
        messages: [userText("Hi")],
        closing: { maxTokens: 0, stream: true, userId: "user-1", diagnoseAgainst: "resp_01" },
        body: `{"model":"${row.model}",${row.key},${tools},"messages":[${opening}],${row.after}}`,
      },
      "a conversation with calls, reasoning and a note": {
        head: { ...head, tools: [] },
        messages: talk,
        closing: { maxTokens: 64, stream: false },
        body: `{"model":"${row.model}",${row.talk},"max_tokens":64}`,
      },
    },
    outsideKey: {
      closing: { maxTokens: 9, stream: true, userId: "user-1", diagnoseAgainst: "resp_01" },
      fields: ["messages", ...Object.keys(after)],
    },
    parts: { report: row.report, usage: row.usage },
    ...(row.shown ? { shown: row.shown } : {}),
    ...(row.resent ? { resent: row.resent } : {}),
  };
};

for (const row of rows) {
  conformanceSuite(chatConformance(subjectOf(row)));
  test(`${row.name}: when a sibling can read, and what requests an entry of an hour`, () => {
    const { protocol } = profileOf(row.name);
    assert.deepEqual([protocol.readable, protocol.marker("1h", row.model)], [row.readable, row.marker]);
  });
}

// --- MiniMax: Anthropic's format -------------------------------------------------------------------------------------

const { encoded, outsideKey } = anthropicConformance;
const isDiagnosed = (name: string): boolean => name.includes("diagnostics");

conformanceSuite({
  ...anthropicConformance,
  protocol: profileOf("minimax").protocol,
  encoded: Object.fromEntries(Object.entries(encoded).filter(([name]) => !isDiagnosed(name))),
  outsideKey: { ...outsideKey, fields: outsideKey.fields.filter((name) => name !== "diagnostics") },
});

test("minimax: only models that support markers get them, with one lifetime", () => {
  const { marker } = profileOf("minimax").protocol;
  assert.deepEqual(
    [marker("1h", "MiniMax-M2.7"), marker("5m", "MiniMax-M3")],
    [`,"cache_control":{"type":"ephemeral"}`, ""],
  );
});

// --- whose address it is ---------------------------------------------------------------------------------------------

test("openrouter: a marker has the form of the provider behind it", () => {
  const { marker } = profileOf("openrouter").protocol;
  assert.deepEqual(
    ["openai/gpt-6-sol", "openai/gpt-5.5", "deepseek/deepseek-v4", "qwen/qwen3.7-max"].map((model) =>
      marker("5m", model),
    ),
    [`,"prompt_cache_breakpoint":{"mode":"explicit"}`, "", "", `,"cache_control":{"type":"ephemeral"}`],
  );
});

test("an endpoint is recognised by its address, and by its path if it speaks Anthropic's format", () => {
  const named = (url: string): string | undefined => profileAt(url)?.name;
  assert.deepEqual(
    [
      "https://api.openai.com/v1",
      "https://api.deepseek.com",
      "https://api.deepseek.com/anthropic",
      "https://api.minimax.io/anthropic",
      "https://open.bigmodel.cn/api/paas/v4",
      "https://generativelanguage.googleapis.com/v1beta",
      "https://generativelanguage.googleapis.com/v1beta/openai/",
      "http://localhost:8000/v1",
      "https://api.openai.com.example.com/v1",
      "no address",
    ].map(named),
    ["openai", "deepseek", "anthropic", "minimax", "glm", "gemini", undefined, undefined, undefined, undefined],
  );
});

test("every profile has an address and a protocol that can be found by its name", () => {
  const names = [...profiles.values()].map(({ protocol }) => protocol.name);
  assert.equal(new Set(names).size, names.length);
  for (const { baseUrl } of profiles.values()) assert.ok(URL.canParse(baseUrl), baseUrl);
});
