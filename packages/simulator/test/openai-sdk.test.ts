import assert from "node:assert/strict";
import { test } from "node:test";
import {
  callTools,
  type LedgerRow,
  lastUserText,
  type Simulator,
  say,
  textOfTokens,
  think,
  toolResults,
} from "@prefork/simulator";
import OpenAI from "openai";
import type { ResponseInput, ResponseStreamEvent, ResponseUsage } from "openai/resources/responses/responses";
import { started } from "./wire-sending.ts";

const model = "gpt-6-sol";
const clientOf = (sim: Simulator) => new OpenAI({ baseURL: `${sim.url}/v1`, apiKey: "any", maxRetries: 0 });

type Figures = { readonly prompt: number; readonly read: number; readonly written: number; readonly output: number };

const ofResponse = (usage: ResponseUsage | undefined): Figures => ({
  prompt: usage?.input_tokens ?? -1,
  read: usage?.input_tokens_details.cached_tokens ?? -1,
  written: usage?.input_tokens_details.cache_write_tokens ?? -1,
  output: usage?.output_tokens ?? -1,
});
const ofChat = (usage: OpenAI.CompletionUsage | undefined | null): Figures => ({
  prompt: usage?.prompt_tokens ?? -1,
  read: usage?.prompt_tokens_details?.cached_tokens ?? -1,
  written: usage?.prompt_tokens_details?.cache_write_tokens ?? -1,
  output: usage?.completion_tokens ?? -1,
});
const inLedger = ({ promptTokens, read, written, output }: LedgerRow): Figures => ({
  prompt: promptTokens,
  read,
  written: (written["30m"] ?? 0) + (written["12h"] ?? 0),
  output,
});

const script = (request: Parameters<typeof toolResults>[0]) => {
  const results = toolResults(request);
  if (results.length > 0) return say(`they say ${results.map(({ text }) => text).join(" and ")}`);
  return lastUserText(request) === "look"
    ? think("which file? 🌲", callTools([{ name: "Read", input: { path: "a/ü.ts" } }, { name: "Grep" }], "I look."))
    : say(`you said: ${lastUserText(request)}`);
};

const functionTool = (name: string) => ({
  type: "function" as const,
  name,
  description: name,
  parameters: { type: "object", properties: {} },
  strict: false,
});
const tools = [functionTool("Read"), functionTool("Grep")];

test("responses.create and its stream give text and usage as the ledger has them", async () => {
  await using sim = await started("openai", { script });
  const client = clientOf(sim);
  const asked = {
    model,
    instructions: textOfTokens(2_000, 1),
    input: "hello",
    reasoning: { summary: "auto" as const },
  };
  const first = await client.responses.create(asked);
  assert.deepEqual([first.output_text, first.status, first.object], ["you said: hello", "completed", "response"]);
  const stream = client.responses.stream(asked);
  const texts: string[] = [];
  stream.on("response.output_text.delta", ({ delta }) => texts.push(delta));
  const second = await stream.finalResponse();
  assert.equal(texts.join(""), "you said: hello");
  assert.deepEqual([ofResponse(first.usage), ofResponse(second.usage)], sim.ledger().map(inLedger));
  assert.deepEqual(
    sim.ledger().map(({ read }) => read),
    [0, 2_002],
  );
});

/** What a stream ends with. The SDK's own folding adds fields that the API refuses when they come back. */
const completed = async (stream: AsyncIterable<ResponseStreamEvent>): Promise<OpenAI.Responses.Response> => {
  for await (const event of stream) if (event.type === "response.completed") return event.response;
  throw new Error("the stream ended without a response");
};

test("a tool loop on Responses with reasoning runs by replaying items, and by the id of the response before", async () => {
  await using sim = await started("openai", { script });
  const client = clientOf(sim);
  const asked = { model, instructions: textOfTokens(2_000, 1), tools, reasoning: { summary: "auto" as const } };
  const question: ResponseInput = [{ role: "user", content: "look" }];
  const first = await completed(await client.responses.create({ ...asked, input: question, stream: true }));
  assert.deepEqual(
    first.output.map(({ type }) => type),
    ["reasoning", "message", "function_call", "function_call"],
  );
  const calls = first.output.filter((item) => item.type === "function_call");
  assert.deepEqual(
    calls.map((call) => [call.name, JSON.parse(call.arguments)]),
    [
      ["Read", { path: "a/ü.ts" }],
      ["Grep", {}],
    ],
  );
  const outputs: ResponseInput = calls.map(({ call_id }, index) => ({
    type: "function_call_output",
    call_id,
    output: `result ${index}`,
  }));
  const replayed = await client.responses.create({
    ...asked,
    input: [...question, ...(first.output as ResponseInput), ...outputs],
  });
  const chained = await client.responses.create({ ...asked, previous_response_id: first.id, input: outputs });
  assert.deepEqual([replayed.output_text, chained.output_text], Array(2).fill("they say result 0 and result 1"));
  assert.deepEqual(
    [first, replayed, chained].map(({ usage }) => ofResponse(usage)),
    sim.ledger().map(inLedger),
  );
  const [, second, third] = sim.ledger();
  assert.equal(second?.read, sim.ledger()[0]?.promptTokens);
  assert.equal(third?.read, second?.promptTokens, "the same prompt, however it was put together");
});

test("chat.completions.create and its stream give text and usage as the ledger has them", async () => {
  await using sim = await started("openai", { script });
  const client = clientOf(sim);
  const messages = [
    { role: "developer" as const, content: textOfTokens(2_000, 1) },
    { role: "user" as const, content: "hello" },
  ];
  const first = await client.chat.completions.create({ model, messages });
  assert.deepEqual([first.choices[0]?.message.content, first.choices[0]?.finish_reason], ["you said: hello", "stop"]);
  const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
  const second = await stream.finalChatCompletion();
  assert.equal(second.choices[0]?.message.content, "you said: hello");
  assert.deepEqual([ofChat(first.usage), ofChat(second.usage)], sim.ledger().map(inLedger));
  assert.deepEqual(
    sim.ledger().map(({ read }) => read),
    [0, 2_002],
  );
});

test("a tool loop on Chat Completions runs to its end", async () => {
  await using sim = await started("openai", { script });
  const client = clientOf(sim);
  const chatTools = tools.map(({ type, strict: _strict, ...rest }) => ({ type, function: rest }));
  const question = { role: "user" as const, content: "look" };
  const asked = { model, tools: chatTools };
  const first = await client.chat.completions
    .stream({ ...asked, messages: [question], stream_options: { include_usage: true } })
    .finalChatCompletion();
  const message = first.choices[0]?.message;
  assert.ok(message);
  assert.deepEqual(
    message.tool_calls?.map((call) => (call.type === "function" ? call.function.arguments : "")),
    ['{"path":"a/ü.ts"}', "{}"],
  );
  const second = await client.chat.completions.create({
    ...asked,
    messages: [
      question,
      { role: "assistant", content: message.content, tool_calls: message.tool_calls ?? [] },
      ...(message.tool_calls ?? []).map(({ id }, index) => ({
        role: "tool" as const,
        tool_call_id: id,
        content: `result ${index}`,
      })),
    ],
  });
  assert.equal(second.choices[0]?.message.content, "they say result 0 and result 1");
  assert.deepEqual([ofChat(first.usage), ofChat(second.usage)], sim.ledger().map(inLedger));
});

test("the provider's own account of a miss names what changed", async () => {
  await using sim = await started("openai");
  const client = clientOf(sim);
  const asked = { model, input: textOfTokens(2_000) };
  const first = await client.responses.create(asked);
  const compare = (id: string) => ({ prompt_cache_options: { comparison_response_id: id } });
  const diagnosed = async (more: object) =>
    (await client.responses.create({ ...asked, ...compare(first.id), ...more })).prompt_cache_diagnostics;
  assert.deepEqual(await diagnosed({}), { type: "cache_hit" });
  const missed = (reason: string) => ({
    type: "cache_miss",
    reason,
    cache_missed_tokens: 2_000,
    comparison_reusable_tokens: 2_000,
  });
  assert.deepEqual(await diagnosed({ reasoning: { effort: "low" } }), missed("reasoning_effort_changed"));
  assert.deepEqual(await diagnosed({ tools }), missed("tools_changed"));
  assert.deepEqual(await diagnosed({ prompt_cache_key: "k" }), missed("prompt_cache_key_changed"));
  assert.deepEqual(await diagnosed({ input: "else" }), missed("input_changed"));
  assert.deepEqual(await diagnosed(compare("resp_gone")), { type: "comparison_response_not_found" });
});

test("errors arrive as the SDK's own classes, and its retries meet retry-after", async () => {
  await using sim = await started("openai");
  const client = clientOf(sim);
  const ask = () => client.responses.create({ model, input: "x" });
  sim.fault({ kind: "status", status: 429 });
  await assert.rejects(ask(), OpenAI.RateLimitError);
  sim.fault({ kind: "status", status: 500 });
  await assert.rejects(ask(), OpenAI.InternalServerError);
  sim.fault({ kind: "reset" });
  await assert.rejects(ask(), OpenAI.APIConnectionError);
  await assert.rejects(
    client.responses.create({ model, input: [] }),
    (error: unknown) =>
      error instanceof OpenAI.BadRequestError &&
      error.code === "missing_required_parameter" &&
      (error.requestID ?? "").startsWith("req_sim"),
  );
  sim.fault({ kind: "error-mid-stream", moment: "before-content" });
  await assert.rejects(client.responses.stream({ model, input: "x" }).finalResponse());
  sim.fault({ kind: "status", status: 503, retryAfterMs: 1, retryAfterForm: "milliseconds" });
  const patient = new OpenAI({ baseURL: `${sim.url}/v1`, apiKey: "any", maxRetries: 1 });
  assert.equal((await patient.responses.create({ model, input: "x" })).output_text, "fine");
});
