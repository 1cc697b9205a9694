import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, type RuleOverrides, startSimulator, textOfTokens } from "@prefork/simulator";
import { type Body, marked, request, row, textBlock } from "./sending.ts";

/** 2,000 tokens of tools, 2,000 of system, 2,000 of messages: each level ends in a marker. */
const tool = (description: string): Body => ({ name: "Read", description, input_schema: { type: "object" } });
const empty = JSON.stringify(tool("")).length;
const base = request({
  model: "claude-opus-4-8",
  tools: [{ ...tool("x".repeat(8_000 - empty)), ...marked }],
  system: [textBlock(2_000, 1, marked)],
  messages: [{ role: "user", content: [textBlock(2_000, 2, marked)] }],
});

const readAfter = async (
  changes: Body,
  { rules, headers }: { rules?: RuleOverrides; headers?: Record<string, string> } = {},
): Promise<number> => {
  await using sim = await startSimulator({ clock: new ManualClock(), ...(rules ? { rules } : {}) });
  assert.equal((await row(sim, base)).written["5m"], 6_000);
  return (await row(sim, { ...base, ...changes }, headers ? { headers } : {})).read;
};

const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } };
const webSearch = { type: "web_search_20250305", name: "web_search" };
const baseTools = base.tools as Body[];

const rows: readonly (readonly [string, Body, number])[] = [
  ["nothing", {}, 6_000],
  [
    "stream, max_tokens, metadata, diagnostics, stop_sequences",
    {
      stream: true,
      max_tokens: 9,
      metadata: { user_id: "u" },
      diagnostics: { previous_message_id: null },
      stop_sequences: ["x"],
    },
    6_000,
  ],
  ["the explicit default effort", { output_config: { effort: "high" } }, 6_000],
  ["the explicit default thinking", { thinking: { type: "disabled" } }, 6_000],
  ["the explicit default speed", { speed: "standard" }, 6_000],
  ["a tool's description", { tools: [{ ...tool("y".repeat(8_000 - empty)), ...marked }] }, 0],
  ["a tool added", { tools: [...baseTools, { name: "Z", input_schema: { type: "object" } }] }, 2_000],
  [
    "a deferred tool added",
    { tools: [...baseTools, { name: "Z", input_schema: { type: "object" }, defer_loading: true }] },
    6_000,
  ],
  ["model", { model: "claude-opus-5" }, 0],
  ["speed", { speed: "fast" }, 0],
  ["web search switched on", { tools: [webSearch, ...baseTools] }, 2_000],
  ["system text", { system: [textBlock(2_000, 3, marked)] }, 2_000],
  ["tool_choice", { tool_choice: { type: "any" } }, 4_000],
  ["disable_parallel_tool_use", { tool_choice: { type: "auto", disable_parallel_tool_use: true } }, 4_000],
  ["an image at the end", { messages: [{ role: "user", content: [textBlock(2_000, 2, marked), image] }] }, 4_000],
  ["thinking", { thinking: { type: "adaptive" } }, 0],
  ["effort", { output_config: { effort: "low" } }, 0],
  ["output format", { output_config: { format: { type: "json_schema", schema: {} } } }, 0],
  ["context_management", { context_management: { edits: [] } }, 0],
  [
    "citations switched on",
    {
      messages: [
        {
          role: "user",
          content: [
            textBlock(2_000, 2, marked),
            {
              type: "document",
              source: { type: "text", media_type: "text/plain", data: "d" },
              citations: { enabled: true },
            },
          ],
        },
      ],
    },
    2_000,
  ],
  ["message text", { messages: [{ role: "user", content: [textBlock(2_000, 3, marked)] }] }, 4_000],
  [
    "a mid-conversation system message",
    { messages: [...(base.messages as Body[]), { role: "system", content: "Be brief." }] },
    6_000,
  ],
];

for (const [change, body, read] of rows)
  test(`after a change of ${change} a request still reads ${read} of 6,000`, async () => {
    assert.equal(await readAfter(body), read);
  });

test("thinking and effort lose messages only, where the model's row says so", async () => {
  const rules: RuleOverrides = { cache: { invalidation: { thinking: "messages", effort: "messages" } } };
  assert.equal(await readAfter({ thinking: { type: "adaptive" } }, { rules }), 4_000);
  assert.equal(await readAfter({ output_config: { effort: "low" } }, { rules }), 4_000);
});

/** 2,000 of system, an image and 400 of text, all marked; then the same conversation grown by another image. */
const readAfterGrowth = async (images?: "count" | "presence" | "none"): Promise<number> => {
  await using sim = await startSimulator({
    clock: new ManualClock(),
    ...(images ? { rules: { cache: { images } } } : {}),
  });
  const opening = { role: "user", content: [image, textBlock(400, 2, marked)] };
  const grown = [opening, { role: "assistant", content: "yes" }, { role: "user", content: [image] }];
  const system = [textBlock(2_000, 1, marked)];
  assert.equal((await row(sim, request({ system, messages: [opening] }))).written["5m"], 4_000);
  return (await row(sim, request({ system, messages: grown }))).read;
};

test("a further image, even in a new turn, loses the messages; two switches say otherwise", async () => {
  assert.equal(await readAfterGrowth(), 2_000);
  assert.equal(await readAfterGrowth("presence"), 4_000);
  assert.equal(await readAfterGrowth("none"), 4_000);
});

test("the first image loses the messages unless images are not in the key at all", async () => {
  const messages = [{ role: "user", content: [textBlock(2_000, 2, marked), image] }];
  assert.equal(await readAfter({ messages }, { rules: { cache: { images: "presence" } } }), 4_000);
  assert.equal(await readAfter({ messages }, { rules: { cache: { images: "none" } } }), 6_000);
});

test("the set of betas is in the key, their order is not", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const beta = (names: string) => ({ headers: { "anthropic-beta": names } });
  await row(sim, base, beta("a-1,b-2"));
  assert.equal((await row(sim, base, beta("b-2, a-1"))).read, 6_000);
  assert.equal((await row(sim, base, beta("a-1"))).read, 0);
});

const conversation = (content: unknown, answer: unknown): Body =>
  request({
    messages: [
      { role: "user", content },
      { role: "assistant", content: answer },
      { role: "user", content: [{ type: "text", text: "go on", ...marked }] },
    ],
  });

test("a string and one text block are the same prompt, and so are split and joined turns of one role", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const words = textOfTokens(1_500, 1);
  await row(sim, conversation(words, "yes"));
  assert.equal(
    (await row(sim, conversation([{ type: "text", text: words }], [{ text: "yes", type: "text" }]))).read,
    1_503,
  );
  const split = request({
    messages: [
      { role: "user", content: [textBlock(1_500, 1), { type: "text", text: "and" }] },
      { role: "assistant", content: "yes" },
      { role: "user", content: [{ type: "text", text: "go on", ...marked }] },
    ],
  });
  const joined = request({
    messages: [
      { role: "user", content: words },
      { role: "user", content: "and" },
      { role: "assistant", content: "yes" },
      { role: "user", content: [{ type: "text", text: "go on", ...marked }] },
    ],
  });
  const written = (await row(sim, split)).written["5m"];
  assert.equal((await row(sim, joined)).read, written);
});

test("the role of a message is part of the key", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const words = textOfTokens(1_500, 1);
  await row(sim, conversation(words, "yes"));
  const monologue = request({
    messages: [
      {
        role: "user",
        content: [textBlock(1_500, 1), { type: "text", text: "yes" }, { type: "text", text: "go on", ...marked }],
      },
    ],
  });
  assert.equal((await row(sim, monologue)).read, 0);
});

test("key order inside a tool input is in the key, also of keys that look like numbers; outside it is not", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const body = (block: string): string => `{"model":"claude-sonnet-5","max_tokens":5,"messages":[
    {"role":"user","content":${JSON.stringify(textOfTokens(1_500, 1))}},
    {"role":"assistant","content":[${block}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok","cache_control":{"type":"ephemeral"}}]}]}`;
  const send = async (block: string): Promise<number> => (await row(sim, body(block))).read;
  await send(`{"type":"tool_use","id":"t1","name":"R","input":{"b":1,"2":2,"1":3}}`);
  assert.equal(await send(`{"name":"R","input":{"b":1,"2":2,"1":3},"id":"t1","type":"tool_use"}`), 1_506);
  assert.equal(await send(`{"type":"tool_use","id":"t1","name":"R","input":{"1":3,"2":2,"b":1}}`), 0);
  assert.equal(await send(`{"type":"tool_use","id":"t1","name":"R","input":{"b":1,"1":3,"2":2}}`), 0);
});

test("a server-tool result is an automatic five-minute breakpoint once the request has a marker", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const body = (marker: object): Body =>
    request({
      system: [textBlock(2_000, 1, marker)],
      tools: [webSearch],
      messages: [
        { role: "user", content: "look it up" },
        {
          role: "assistant",
          content: [
            { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
            { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
          ],
        },
        { role: "user", content: "thanks" },
      ],
    });
  const oneHour = { cache_control: { type: "ephemeral", ttl: "1h" } };
  const with1h = await row(sim, body(oneHour));
  assert.ok(with1h.written["5m"] > 0);
  assert.equal(with1h.plain, 2);
  const unmarked = await row(sim, body({}));
  assert.deepEqual([unmarked.read, unmarked.written["5m"]], [0, 0]);
});
