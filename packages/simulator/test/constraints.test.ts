import assert from "node:assert/strict";
import { test } from "node:test";
import { startSimulator } from "@prefork/simulator";
import { type Body, post, refusal, request } from "./sending.ts";

const user = (content: unknown): Body => ({ role: "user", content });
const assistant = (content: unknown): Body => ({ role: "assistant", content });
const system = (content: unknown): Body => ({ role: "system", content });
const call = (id: string): Body => ({ type: "tool_use", id, name: "R", input: {} });
const result = (id: string): Body => ({ type: "tool_result", tool_use_id: id, content: "ok" });
const words = { type: "text", text: "hello" };
const says = (...messages: Body[]): Body => request({ messages });
const on = (model: string, body: Body): Body => ({ ...body, model });
const tools = [{ name: "R", input_schema: { type: "object" } }];

const refused: readonly (readonly [string, Body | string, RegExp])[] = [
  ["malformed JSON", '{"model":', /^The request body is not valid JSON: /],
  ["a body that is no object", "[]", /^body: Input should be a valid dictionary$/],
  ["no model", { max_tokens: 1, messages: [user("x")] }, /^model: Field required$/],
  ["no max_tokens", { model: "m", messages: [user("x")] }, /^max_tokens: Field required$/],
  ["no messages", { model: "m", max_tokens: 1 }, /^messages: Field required$/],
  ["an unknown field", { ...says(user("x")), foo: 1 }, /^foo: Extra inputs are not permitted$/],
  [
    "an unknown field in a block",
    says(user([{ ...words, foo: 1 }])),
    /^messages\.0\.content\.0\.foo: Extra inputs are not permitted$/,
  ],
  ["a wrong type", { ...says(user("x")), max_tokens: "many" }, /^max_tokens: Input should be a valid integer$/],
  [
    "negative max_tokens",
    { ...says(user("x")), max_tokens: -1 },
    /^max_tokens: Input should be greater than or equal to 0$/,
  ],
  ["messages that are no list", { ...says(), messages: {} }, /^messages: Input should be a valid list$/],
  ["content of a wrong type", says(user(7)), /^messages\.0\.content: Input should be a valid list$/],
  ["an unknown block", says(user([{ type: "song" }])), /^messages\.0\.content\.0: Input tag 'song' found using 'type'/],
  ["no messages at all", says(), /^messages: at least one message is required$/],
  [
    "empty content",
    says(user("")),
    /^messages\.0: all messages must have non-empty content except for the optional final assistant message$/,
  ],
  [
    "empty content later",
    says(user("a"), assistant([]), user("b")),
    /^messages\.1: all messages must have non-empty content/,
  ],
  ["empty text", says(user([{ type: "text", text: "" }])), /^messages: text content blocks must be non-empty$/],
  ["an unknown role", says({ role: "robot", content: "x" }), /^messages: Unexpected role "robot"/],
  ["an assistant first", says(assistant("x"), user("y")), /^messages: first message must use the "user" role$/],
  [
    "a dangling call",
    says(user("a"), assistant([call("t1"), call("t2")]), user([result("t1")])),
    /^messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: t2\./,
  ],
  [
    "a call answered a turn late",
    says(user("a"), assistant([call("t1")]), user("b"), assistant("c"), user([result("t1")])),
    /^messages\.1: `tool_use` ids were found without/,
  ],
  [
    "words before results",
    says(user("a"), assistant([call("t1")]), user([words, result("t1")])),
    /^messages\.2: `tool_result` blocks must come first/,
  ],
  [
    "a result nobody asked for",
    says(user("a"), assistant([call("t1")]), user([result("t1"), result("t9")])),
    /^messages\.2: unexpected `tool_use_id` found in `tool_result` blocks: t9\./,
  ],
  [
    "two results of one call",
    says(user("a"), assistant([call("t1")]), user([result("t1"), result("t1")])),
    /^messages\.2: each tool_use must have a single result\./,
  ],
  [
    "two calls of one id",
    says(user("a"), assistant([call("t1"), call("t1")]), user([result("t1")])),
    /^messages\.1: `tool_use` ids must be unique$/,
  ],
  [
    "a call by the user",
    says(user([call("t1")])),
    /^messages\.0\.content\.0: `tool_use` blocks can only be in `assistant` messages$/,
  ],
  [
    "words beside results while a server call is open",
    says(
      user("a"),
      assistant([{ type: "server_tool_use", id: "s1", name: "web_search", input: {} }, call("t1")]),
      user([result("t1"), words]),
    ),
    /^messages\.2: while a `server_tool_use` is unresolved/,
  ],
  [
    "prefill on a newer model",
    says(user("a"), assistant("b")),
    /^This model does not support assistant message prefill\./,
  ],
  ["twice the same tool", { ...says(user("x")), tools: [...tools, ...tools] }, /^tools: Tool names must be unique\.$/],
  [
    "a tool name with spaces",
    { ...says(user("x")), tools: [{ name: "a b", input_schema: {} }] },
    /^tools\.0\.custom\.name: String should match pattern/,
  ],
  [
    "a choice without tools",
    { ...says(user("x")), tool_choice: { type: "auto" } },
    /^tool_choice: may only be specified while providing tools$/,
  ],
  [
    "a choice of an unknown tool",
    { ...says(user("x")), tools, tool_choice: { type: "tool", name: "Z" } },
    /^tool_choice: tool 'Z' not found in provided tools$/,
  ],
  [
    "a small thinking budget",
    on("claude-sonnet-4-5", {
      ...says(user("x")),
      max_tokens: 4_000,
      thinking: { type: "enabled", budget_tokens: 100 },
    }),
    /^thinking\.enabled\.budget_tokens: Input should be greater than or equal to 1024$/,
  ],
  [
    "a thinking budget over max_tokens",
    on("claude-sonnet-4-5", {
      ...says(user("x")),
      max_tokens: 2_000,
      thinking: { type: "enabled", budget_tokens: 2_000 },
    }),
    /^`max_tokens` must be greater than `thinking\.budget_tokens`$/,
  ],
  [
    "adaptive thinking on an older model",
    on("claude-sonnet-4-5", { ...says(user("x")), thinking: { type: "adaptive" } }),
    /^thinking\.type: `adaptive` is not supported/,
  ],
  [
    "budgeted thinking on Opus 4.8",
    on("claude-opus-4-8", { ...says(user("x")), thinking: { type: "enabled", budget_tokens: 2_000 } }),
    /^thinking\.type: `enabled` is not supported/,
  ],
  [
    "disabled thinking on Opus 5.5",
    on("claude-opus-5-5", { ...says(user("x")), thinking: { type: "disabled" } }),
    /^thinking\.type: `disabled` is not supported/,
  ],
  [
    "disabled thinking on Opus 5 at effort max",
    on("claude-opus-5", { ...says(user("x")), thinking: { type: "disabled" }, output_config: { effort: "max" } }),
    /^thinking\.type: `disabled` is only supported up to effort `high`/,
  ],
  [
    "a forced tool on Sonnet 5.5",
    on("claude-sonnet-5-5", { ...says(user("x")), tools, tool_choice: { type: "any" } }),
    /^tool_choice\.type: `any` is not supported/,
  ],
  [
    "temperature on Opus 4.7",
    on("claude-opus-4-7", { ...says(user("x")), temperature: 0.2 }),
    /^temperature: non-default sampling parameters are not supported/,
  ],
  [
    "a system message on Haiku 4.5",
    on("claude-haiku-4-5", says(user("a"), system("b"))),
    /^messages: Unexpected role "system"\./,
  ],
  [
    "a system message on Opus 4.7",
    on("claude-opus-4-7", says(user("a"), system("b"))),
    /^role 'system' is not supported on this model$/,
  ],
  [
    "a system message first",
    on("claude-opus-5", says(system("b"), user("a"))),
    /^messages\.0: use the top-level 'system' parameter/,
  ],
  ["two system messages in a row", on("claude-opus-5", says(user("a"), system("b"), system("c"))), /^messages\.\d: /],
  [
    "a system message after an answer",
    on("claude-opus-5", says(user("a"), assistant("b"), system("c"), assistant("d"), user("e"))),
    /^messages\.2: a system message must follow a user message/,
  ],
  [
    "a system message before a user",
    on("claude-opus-5", says(user("a"), system("b"), user("c"))),
    /^messages\.1: a system message must be last or be followed by an assistant message$/,
  ],
  [
    "a picture in a system message",
    on("claude-opus-5", says(user("a"), system([{ type: "image", source: { type: "url", url: "x" } }]))),
    /^messages\.1\.content\.0: system messages may only contain text$/,
  ],
];

for (const [what, body, message] of refused)
  test(`${what} is refused with a message naming the location`, async () => {
    await using sim = await startSimulator();
    const line = await refusal(sim, body);
    assert.ok(line.startsWith("400 invalid_request_error: "), line);
    assert.match(line.slice("400 invalid_request_error: ".length), message);
    const [row] = sim.ledger();
    assert.deepEqual([row?.status, row?.outcome, row?.promptTokens, row?.billed.usd], [400, "refused", 0, 0]);
  });

const accepted: readonly (readonly [string, Body])[] = [
  [
    "a system message between tool results and the answer",
    on("claude-opus-5", says(user("a"), assistant([call("t1")]), user([result("t1")]), system("b"))),
  ],
  [
    "parallel results with words after them",
    says(user("a"), assistant([call("t1"), call("t2")]), user([result("t2"), result("t1"), words])),
  ],
  [
    "results split over two user messages",
    says(user("a"), assistant([call("t1"), call("t2")]), user([result("t1")]), user([result("t2")])),
  ],
  ["prefill on an older model", on("claude-sonnet-4-5", says(user("a"), assistant("b")))],
  ["temperature on an older model", on("claude-sonnet-4-6", { ...says(user("x")), temperature: 0.2 })],
  ["a model nobody has heard of", on("my-own-model", says(user("x")))],
  [
    "null for absent",
    { ...says(user([{ ...words, cache_control: null, citations: null }])), system: null, tools: null },
  ],
];

for (const [what, body] of accepted)
  test(`${what} is accepted`, async () => {
    await using sim = await startSimulator();
    const response = await post(sim, body);
    assert.equal(response.status, 200, await response.text());
  });

test("without a key: 401; an unknown path: 404; a wrong method: 405; a body over 32 MB: 413", async () => {
  await using sim = await startSimulator();
  assert.equal(
    await refusal(sim, says(user("x")), { key: "" }),
    "401 authentication_error: x-api-key header is required",
  );
  const lost = await fetch(`${sim.url}/v1/complete`, { method: "POST", body: "{}" });
  assert.equal(lost.status, 404);
  const answer = (await lost.json()) as { error: { type: string }; request_id: string };
  assert.equal(answer.error.type, "not_found_error");
  assert.equal(answer.request_id, lost.headers.get("request-id"));
  assert.equal((await fetch(`${sim.url}/v1/messages`)).status, 405);
  const big = await post(sim, `{"model":"m","x":"${"a".repeat(33 * 1024 * 1024)}"}`);
  assert.equal(big.status, 413);
  assert.equal(((await big.json()) as { error: { type: string } }).error.type, "request_too_large");
});
