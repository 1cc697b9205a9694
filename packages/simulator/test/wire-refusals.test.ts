/** Each provider refuses what it cannot take, with its own status and words. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { callTools, type ProviderName, think } from "@prefork/simulator";
import { type Body, chat, geminiPath, refusalOf, responses, type Sent, send, started, user } from "./wire-sending.ts";

type Case = readonly [what: string, sent: Sent, message: string | RegExp, more?: Body];

const checkAll = (provider: ProviderName, cases: readonly Case[]): void => {
  for (const [what, sent, message, more = {}] of cases)
    test(`${provider}: ${what}`, async () => {
      await using sim = await started(provider);
      const { status, error } = await refusalOf(sim, sent);
      const { message: said, ...rest } = error as { message: string } & Body;
      assert.equal(status, 400, said);
      if (typeof message === "string") assert.equal(said, message);
      else assert.match(said, message);
      for (const [name, value] of Object.entries(more)) assert.equal(rest[name], value, name);
      assert.deepEqual(
        sim.ledger().map(({ outcome, billed, promptTokens }) => [outcome, billed.usd, promptTokens]),
        [["refused", 0, 0]],
      );
    });
};

const ask = responses("gpt-6-sol");
const call: Body = { type: "function_call", call_id: "call_1", name: "Read", arguments: "{}" };
const output: Body = { type: "function_call_output", call_id: "call_1", output: "ok" };
const reasoning: Body = { type: "reasoning", id: "rs_1", summary: [] };

checkAll("openai", [
  [
    "an unknown parameter",
    ask([user(1)], { foo: 1 }),
    "Unknown parameter: 'foo'.",
    { code: "unknown_parameter", param: "foo" },
  ],
  [
    "an unknown parameter of an item",
    ask([{ ...user(1), foo: 1 }]),
    "Unknown parameter: 'input[0].foo'.",
    { code: "unknown_parameter" },
  ],
  ["no model", { path: "/v1/responses", body: { input: "x" } }, "Missing required parameter: 'model'."],
  [
    "a wrong type",
    ask([{ role: "user", content: 5 }]),
    "Invalid type for 'input[0].content': expected an array, but got an integer instead.",
    { code: "invalid_type" },
  ],
  [
    "too few output tokens",
    ask([user(1)], { max_output_tokens: 5 }),
    "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 5 instead.",
    { code: "integer_below_min_value", param: "max_output_tokens" },
  ],
  ["nothing to answer", ask([]), /^One of 'input'/],
  ["a call without its output", ask([user(1), call]), "No tool output found for function call call_1."],
  [
    "an output without its call",
    ask([user(1), output]),
    "No tool call found for function call output with call_id call_1.",
  ],
  ["an output before its call", ask([user(1), output, call]), /^No tool call found/],
  [
    "reasoning at the end",
    ask([user(1), reasoning]),
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
  ],
  ["reasoning before the user's words", ask([reasoning, user(1)]), /without its required following item/],
  [
    "reasoning that was not stored",
    ask([user(1), { ...reasoning, id: "rs_sim1_0" }, call, output]),
    /^Item with id 'rs_sim1_0' not found\. Items are not persisted/,
  ],
  [
    "a response that is not known",
    ask([user(1)], { previous_response_id: "resp_x" }),
    "Previous response with id 'resp_x' not found.",
    { code: "previous_response_not_found" },
  ],
  ["an item that is not known", ask([{ type: "item_reference", id: "msg_x" }]), "Item with id 'msg_x' not found."],
  [
    "a cache key of 65 letters",
    ask([user(1)], { prompt_cache_key: "k".repeat(65) }),
    /maximum length 64, but got a string with length 65/,
  ],
  [
    "a breakpoint on a model without any",
    responses("gpt-5.4")([
      { role: "user", content: [{ type: "input_text", text: "x", prompt_cache_breakpoint: { mode: "explicit" } }] },
    ]),
    "Unsupported parameter: 'input[0].content[0].prompt_cache_breakpoint' is not supported with this model.",
  ],
  [
    "effort none where there is always some",
    responses("gpt-6-astra")([user(1)], { reasoning: { effort: "none" } }),
    "Unsupported value: 'reasoning.effort' does not support 'none' with this model.",
  ],
]);

const talk = chat("gpt-6-sol");
const toolCalls: Body = {
  role: "assistant",
  content: null,
  tool_calls: [{ id: "call_1", type: "function", function: { name: "Read", arguments: "{}" } }],
};
const result: Body = { role: "tool", tool_call_id: "call_1", content: "ok" };
const tools = [{ type: "function", function: { name: "Read" } }];

checkAll("openai", [
  ["chat: no messages", talk([]), /^Invalid 'messages': empty array/],
  [
    "chat: an unknown role",
    talk([{ role: "robot", content: "x" }]),
    /^Invalid value: "robot"\. Supported values are: 'developer'/,
  ],
  [
    "chat: calls without results",
    talk([user(1), toolCalls, user(1)]),
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
  ],
  ["chat: a result without a call", talk([user(1), result]), /^messages with role 'tool' must be a response/],
  [
    "chat: a result for another call",
    talk([user(1), toolCalls, result, { ...result, tool_call_id: "call_2" }]),
    "Invalid parameter: 'tool_call_id' of 'call_2' not found in 'tool_calls' of previous message.",
  ],
  ["chat: a result twice", talk([user(1), toolCalls, result, result]), /duplicate 'tool_call_id' of 'call_1'/],
  [
    "chat: an empty assistant message",
    talk([user(1), { role: "assistant", content: null }]),
    /needs content or tool_calls/,
  ],
  ["chat: a choice without tools", talk([user(1)], { tool_choice: "auto" }), /only allowed when 'tools' are specified/],
  [
    "chat: a tool that is not there",
    talk([user(1)], { tools, tool_choice: { type: "function", function: { name: "X" } } }),
    /tool 'X' was not found/,
  ],
  [
    "chat: reasoning under a name of others",
    talk([user(1), { role: "assistant", content: "a", reasoning_content: "b" }]),
    /^Unknown parameter: 'messages\[1\]\.reasoning_content'/,
  ],
  [
    "chat: tools to a model that has them on Responses only",
    chat("gpt-6-astra")([user(1)], { tools }),
    /only supports tools in the Responses API/,
  ],
  ["chat: no output at all", talk([user(1)], { max_tokens: 0 }), /^Invalid 'max_tokens': integer below minimum value/],
]);

checkAll("deepseek", [
  [
    "reasoning of a turn with calls that does not come back",
    chat("deepseek-flash")([user(1), toolCalls, result]),
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
    { code: "invalid_request_error" },
  ],
]);

test("deepseek: empty reasoning comes back too, and without thinking none is asked for", async () => {
  await using sim = await started("deepseek");
  const ask = chat("deepseek-flash");
  const empty = await send(sim, ask([user(1), { ...toolCalls, reasoning_content: "" }, result]));
  const off = await send(sim, ask([user(1), toolCalls, result], { thinking: { type: "disabled" }, unknown: 1 }));
  assert.deepEqual([empty.status, off.status], [200, 200]);
});

checkAll("vllm", [
  [
    "calls without results",
    chat("m")([user(1), toolCalls, user(1)]),
    /must be followed by tool messages/,
    { type: "BadRequestError", code: 400 },
  ],
]);

const gemini = (contents: readonly Body[], more: Body = {}): Sent => ({
  path: geminiPath("gemini-3.8-flash"),
  body: { contents, ...more },
});
const says = (role: string, ...parts: readonly Body[]): Body => ({ role, parts });
const functionCall: Body = { functionCall: { name: "Read", args: {} }, thoughtSignature: "c2lnbmVk" };
const functionResponse: Body = { functionResponse: { name: "Read", response: { output: "ok" } } };
const question = says("user", { text: "x" });

checkAll("gemini", [
  [
    "nothing to answer",
    gemini([]),
    "* GenerateContentRequest.contents: contents is not specified",
    { status: "INVALID_ARGUMENT", code: 400 },
  ],
  [
    "no parts",
    gemini([{ role: "user", parts: [] }]),
    "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.",
  ],
  [
    "an unknown field",
    gemini([question], { foo: 1 }),
    'Invalid JSON payload received. Unknown name "foo": Cannot find field.',
  ],
  [
    "an unknown field of a part",
    gemini([says("user", { text: "x", foo: 1 })]),
    `Invalid JSON payload received. Unknown name "foo" at 'contents[0].parts[0]': Cannot find field.`,
  ],
  [
    "a part that is nothing",
    gemini([says("user", { thought: true })]),
    /required oneof field 'data' must have one initialized field/,
  ],
  ["an unknown role", gemini([says("robot", { text: "x" })]), "Please use a valid role: user, model."],
  [
    "fewer responses than calls",
    gemini([question, says("model", functionCall, functionCall), says("user", functionResponse)]),
    "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
  ],
  ["a call at the end", gemini([question, says("model", functionCall)]), /number of function response parts/],
  [
    "a response without a call",
    gemini([question, says("user", functionResponse)]),
    /comes immediately after a function call turn/,
  ],
  [
    "a call without its signature",
    gemini([question, says("model", { functionCall: { name: "Read", args: {} } }), says("user", functionResponse)]),
    /^Function call is missing a thought_signature in functionCall parts\..* function call `Read` , position 2\.$/,
  ],
]);

test("gemini: only the first of calls made together needs a signature, and the second generation asks for none", async () => {
  await using sim = await started("gemini");
  const unsigned: Body = { functionCall: { name: "Read", args: {} } };
  const two = [question, says("model", functionCall, unsigned), says("user", functionResponse, functionResponse)];
  const none = [question, says("model", unsigned), says("user", functionResponse)];
  assert.equal((await send(sim, gemini(two))).status, 200);
  assert.equal((await send(sim, { ...gemini(none), path: geminiPath("gemini-2.5-flash") })).status, 200);
});

test("gemini: both field name styles are read, and a signature of another model is refused", async () => {
  await using sim = await started("gemini", { script: () => think("hm", callTools([{ name: "Read" }])) });
  const first = (await (await send(sim, gemini([question]))).json()) as {
    candidates: readonly { content: { parts: readonly { functionCall?: Body; thoughtSignature?: string }[] } }[];
  };
  const [part] = first.candidates[0]?.content.parts ?? [];
  const snake = { function_call: part?.functionCall, thought_signature: part?.thoughtSignature };
  const turns = [
    question,
    says("model", snake),
    says("user", { function_response: { id: part?.functionCall?.id, name: "Read", response: {} } }),
  ];
  const more = { system_instruction: { parts: [{ text: "be brief" }] } };
  assert.equal((await send(sim, gemini(turns, more))).status, 200);
  const other = await refusalOf(sim, { ...gemini(turns, more), path: geminiPath("gemini-4-argon") });
  assert.deepEqual(other.error, { code: 400, message: "Thought signature is not valid.", status: "INVALID_ARGUMENT" });
});

test("gemini: a stream is one of server-sent events", async () => {
  await using sim = await started("gemini");
  const sent = { ...gemini([question]), path: geminiPath("gemini-3.8-flash", "streamGenerateContent") };
  const { status, error } = await refusalOf(sim, sent);
  assert.equal(status, 400);
  assert.match(JSON.stringify(error), /add \?alt=sse/);
  assert.deepEqual(sim.ledger(), []);
});

test("openai: what was made with reasoning comes back with it, unchanged and to the same family of models", async () => {
  await using sim = await started("openai", { script: () => think("hm", callTools([{ name: "Read" }])) });
  const made = (await (await send(sim, ask([user(1)], { store: false }))).json()) as { output: readonly Body[] };
  const [thought, made1] = made.output;
  assert.ok(thought !== undefined && made1 !== undefined);
  const results = [{ type: "function_call_output", call_id: made1.call_id, output: "ok" }];
  const refusal = async (items: readonly Body[], model = "gpt-6-sol") =>
    ((await refusalOf(sim, responses(model)([user(1), ...items, ...results]))).error as { message: string } | undefined)
      ?.message;
  assert.equal(await refusal([thought, made1]), undefined);
  assert.equal(await refusal([thought, made1], "gpt-6.1-sol"), undefined);
  assert.match((await refusal([made1])) ?? "", /was provided without its required 'reasoning' item: 'rs_sim1_/);
  const changed = { ...thought, encrypted_content: `${thought.encrypted_content}x` };
  assert.match(
    (await refusal([changed, made1])) ?? "",
    /^The encrypted content for item rs_sim1_\S+ could not be verified\.$/,
  );
  assert.match((await refusal([thought, made1], "gpt-5.6-sol")) ?? "", /could not be verified/);
});
