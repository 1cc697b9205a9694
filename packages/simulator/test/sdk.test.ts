import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import {
  callTools,
  ManualClock,
  type Simulator,
  type SimulatorOptions,
  say,
  startSimulator,
  textOfTokens,
  think,
  toolResults,
} from "@prefork/simulator";

const start = (options: SimulatorOptions = {}) => startSimulator({ clock: new ManualClock(), ...options });
const clientOf = (sim: Simulator, maxRetries = 0) =>
  new Anthropic({ baseURL: sim.url, apiKey: "test-key", maxRetries });

const prompt = {
  model: "claude-sonnet-5",
  max_tokens: 1_000,
  system: [{ type: "text" as const, text: textOfTokens(3_000, 1), cache_control: { type: "ephemeral" as const } }],
  messages: [{ role: "user" as const, content: "hello" }],
};

test("messages.create gives the answer and usage in the SDK's own types", async () => {
  await using sim = await start({ script: () => say("hi there") });
  const client = clientOf(sim);
  const first = await client.messages.create(prompt);
  assert.deepEqual(first.content, [{ type: "text", text: "hi there", citations: null }]);
  assert.deepEqual([first.stop_reason, first.role, first.model], ["end_turn", "assistant", "claude-sonnet-5"]);
  assert.deepEqual(first.usage.cache_creation, { ephemeral_5m_input_tokens: 3_000, ephemeral_1h_input_tokens: 0 });
  assert.equal(first.usage.cache_creation_input_tokens, 3_000);
  const { usage } = await client.messages.create(prompt);
  assert.deepEqual(
    [usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.input_tokens, usage.output_tokens],
    [3_000, 0, 2, 2],
  );
});

test("messages.stream folds text, thinking and parallel calls, and keeps usage", async () => {
  const answer = think(
    "let me see 🌲🌲",
    callTools(
      [
        { name: "Read", input: { path: "a/ü.ts" } },
        { name: "Grep", input: { deep: { list: [1, 2] } } },
      ],
      "I look.",
    ),
  );
  await using sim = await start({ script: () => answer });
  const stream = clientOf(sim).messages.stream(prompt);
  const seen: string[] = [];
  stream.on("text", (delta) => seen.push(delta));
  const message = await stream.finalMessage();
  assert.equal(seen.join(""), "I look.");
  assert.deepEqual(
    message.content.map((block) => block.type),
    ["thinking", "text", "tool_use", "tool_use"],
  );
  const [thinking, , read, grep] = message.content;
  assert.ok(thinking?.type === "thinking" && read?.type === "tool_use" && grep?.type === "tool_use");
  assert.equal(thinking.thinking, "let me see 🌲🌲");
  assert.ok(thinking.signature.length > 10);
  assert.deepEqual([read.input, grep.input], [{ path: "a/ü.ts" }, { deep: { list: [1, 2] } }]);
  assert.notEqual(read.id, grep.id);
  assert.equal(message.stop_reason, "tool_use");
  assert.equal(message.usage.cache_creation_input_tokens, 3_000);
  assert.deepEqual(message.usage.cache_creation, { ephemeral_5m_input_tokens: 3_000, ephemeral_1h_input_tokens: 0 });
});

test("a tool loop with thinking runs to its end and reads the cache on the way", async () => {
  await using sim = await start({
    script: (request) => {
      const [result] = toolResults(request);
      return result === undefined
        ? think("which file?", callTools([{ name: "Read", input: { path: "x" } }]))
        : say(`it says ${result.text}`);
    },
  });
  const client = clientOf(sim);
  const tools = [{ name: "Read", input_schema: { type: "object" as const } }];
  const opening = {
    ...prompt,
    tools,
    thinking: { type: "adaptive" as const },
    cache_control: { type: "ephemeral" as const },
  };
  const first = await client.messages.create(opening);
  const call = first.content.find((block) => block.type === "tool_use");
  assert.ok(call);
  const second = await client.messages.create({
    ...opening,
    messages: [
      ...prompt.messages,
      { role: "assistant", content: first.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "42" }] },
    ],
  });
  assert.deepEqual(second.content, [{ type: "text", text: "it says 42", citations: null }]);
  const whole = (first.usage.cache_creation_input_tokens ?? 0) + first.usage.input_tokens;
  assert.equal(second.usage.cache_read_input_tokens, whole);
});

test("stream: true yields the raw events in the provider's order", async () => {
  await using sim = await start({ script: () => say("ok") });
  const types: string[] = [];
  for await (const event of await clientOf(sim).messages.create({ ...prompt, stream: true })) types.push(event.type);
  assert.deepEqual(types, [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
});

test("countTokens counts the prompt and writes no row", async () => {
  await using sim = await start();
  const { model, system, messages } = prompt;
  assert.deepEqual(await clientOf(sim).messages.countTokens({ model, system, messages }), { input_tokens: 3_002 });
  assert.deepEqual(sim.ledger(), []);
});

test("errors arrive as the SDK's own classes", async () => {
  await using sim = await start();
  const client = clientOf(sim);
  sim.fault({ kind: "status", status: 429 });
  await assert.rejects(client.messages.create(prompt), Anthropic.RateLimitError);
  sim.fault({ kind: "status", status: 500 });
  await assert.rejects(client.messages.create(prompt), Anthropic.InternalServerError);
  sim.fault({ kind: "reset" });
  await assert.rejects(client.messages.create(prompt), Anthropic.APIConnectionError);
  await assert.rejects(
    client.messages.create({ ...prompt, messages: [] }),
    (error: unknown) =>
      error instanceof Anthropic.BadRequestError &&
      error.message.includes("at least one message is required") &&
      (error.requestID ?? "").startsWith("req_sim"),
  );
  sim.fault({ kind: "error-mid-stream", moment: "before-content" });
  await assert.rejects(client.messages.stream(prompt).finalMessage(), Anthropic.APIError);
});

test("the SDK's own retries meet retry-after and succeed", async () => {
  await using sim = await start();
  sim.fault({ kind: "status", status: 529, retryAfterMs: 1, retryAfterForm: "milliseconds", times: 2 });
  const message = await clientOf(sim, 2).messages.create(prompt);
  assert.equal(message.type, "message");
  assert.deepEqual(
    sim.ledger().map(({ status }) => status),
    [529, 529, 200],
  );
});

test("the beta client, a bearer token and diagnostics work too", async () => {
  await using sim = await start();
  const client = new Anthropic({ baseURL: sim.url, authToken: "token", apiKey: null, maxRetries: 0 });
  const first = await client.messages.create(prompt);
  const second = await client.messages.create({
    ...prompt,
    system: "another",
    diagnostics: { previous_message_id: first.id },
  });
  assert.deepEqual(second.diagnostics, {
    cache_miss_reason: { type: "system_changed", cache_missed_input_tokens: 3_000 },
  });
  const beta = await client.beta.messages.create({
    ...prompt,
    betas: ["context-management-2025-06-27"],
    context_management: { edits: [] },
  });
  assert.equal(beta.usage.cache_read_input_tokens, 0);
});
