import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { providers } from "@prefork/simulator";
import OpenAI from "openai";
import { run } from "../src/main.ts";
import { captured } from "./captured.ts";

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

/** A script outside the repository imports our modules by URL. */
const simulatorUrl = import.meta.resolve("@prefork/simulator");

/** `prefork sim` in its own process, until the test is over. */
const serve = async (...argv: readonly string[]): Promise<AsyncDisposable & { url: string; child: ChildProcess }> => {
  const child = spawn(process.execPath, [...process.execArgv, main, "sim", "--port", "0", ...argv], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [url] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null) return;
    child.kill("SIGINT");
    await once(child, "exit");
  };
  return { url, child, [Symbol.asyncDispose]: stop };
};

const folder = async (): Promise<AsyncDisposable & { path: (name: string) => string }> => {
  const base = await mkdtemp(join(tmpdir(), "prefork-sim-"));
  return {
    path: (name) => join(base, name),
    [Symbol.asyncDispose]: () => rm(base, { recursive: true, force: true }),
  };
};

const refusal = async (...argv: readonly string[]): Promise<string> => {
  const io = captured();
  assert.equal(await run(["sim", ...argv], io), 2);
  assert.equal(io.text(), "");
  assert.match(io.errors(), /^prefork: [^\n]+\n$/, "one line");
  return io.errors().slice("prefork: ".length, -1);
};

test("the official SDK works against it, streaming with tools and thinking, with usage in its own types", async () => {
  await using files = await folder();
  await writeFile(
    files.path("script.mjs"),
    `export const script = (request) => {
       const asked = request.body.messages.at(-1).content;
       const results = Array.isArray(asked) && asked.some((block) => block.type === "tool_result");
       return results
         ? { content: [{ type: "text", text: "It rains." }], outputTokens: 4 }
         : { content: [{ type: "thinking", thinking: "I must look." }, { type: "tool_use", name: "weather", input: { city: "Ulm" } }], outputTokens: 9 };
     };`,
  );
  await using sim = await serve("--script", files.path("script.mjs"));
  const client = new Anthropic({ baseURL: sim.url, apiKey: "any" });
  const shared = {
    model: "claude-opus-4-6",
    max_tokens: 2_000,
    thinking: { type: "adaptive" as const },
    cache_control: { type: "ephemeral" as const },
    system: "word ".repeat(4_000),
    tools: [{ name: "weather", input_schema: { type: "object" as const, properties: { city: { type: "string" } } } }],
  };
  const question = { role: "user" as const, content: "Do I need an umbrella?" };
  const first = await client.messages.stream({ ...shared, messages: [question] }).finalMessage();
  assert.deepEqual(
    first.content.map((block) =>
      block.type === "tool_use" ? { type: block.type, input: block.input } : { type: block.type },
    ),
    [{ type: "thinking" }, { type: "tool_use", input: { city: "Ulm" } }],
  );
  assert.equal(first.stop_reason, "tool_use");
  const call = first.content.find((block) => block.type === "tool_use");
  assert.ok(call);
  const second = await client.messages.create({
    ...shared,
    messages: [
      question,
      { role: "assistant", content: first.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "rain" }] },
    ],
  });
  assert.deepEqual(second.content, [{ type: "text", text: "It rains.", citations: null }]);
  assert.equal(second.usage.cache_read_input_tokens, first.usage.cache_creation_input_tokens);
  assert.equal(first.usage.cache_read_input_tokens, 0);
  assert.deepEqual([first.usage.output_tokens, second.usage.output_tokens], [9, 4]);
});

type Row = {
  readonly promptTokens: number;
  readonly read: number;
  readonly written: Readonly<Record<string, number>>;
  readonly output: number;
};

const ledgerOf = async (url: string): Promise<readonly Row[]> =>
  ((await (await fetch(`${url}/_sim/ledger`)).json()) as { rows: readonly Row[] }).rows;

/** One script for every wire: it calls a tool, and then repeats the tool's result. */
const weather = `import { callTools, say, think, toolResults } from "@prefork/simulator";
export const script = (request) => {
  const [result] = toolResults(request);
  return result === undefined
    ? think("I must look.", callTools([{ name: "weather", input: { city: "Ulm" } }]))
    : say(\`It says \${result.text}.\`);
};`;

test("OpenAI's SDK works against it on both formats, streamed and whole, with the usage that the ledger has", async () => {
  await using files = await folder();
  await writeFile(files.path("weather.mjs"), weather.replace("@prefork/simulator", simulatorUrl));
  await using sim = await serve("--rules", "openai", "--script", files.path("weather.mjs"));
  const client = new OpenAI({ baseURL: `${sim.url}/v1`, apiKey: "any", maxRetries: 0 });
  const parameters = { type: "object", properties: { city: { type: "string" } } };
  const asked = {
    model: "gpt-6-sol",
    instructions: "word ".repeat(2_000),
    tools: [{ type: "function" as const, name: "weather", parameters, strict: false }],
  };
  const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Do I need an umbrella?" }];
  const first = await client.responses.create({ ...asked, input });
  const call = first.output.find((item) => item.type === "function_call");
  assert.ok(call);
  const answered: OpenAI.Responses.ResponseInput = [
    ...input,
    ...(first.output as OpenAI.Responses.ResponseInput),
    { type: "function_call_output", call_id: call.call_id, output: "rain" },
  ];
  const second = await client.responses.stream({ ...asked, input: answered }).finalResponse();
  assert.equal(second.output_text, "It says rain.");
  const chatted = {
    model: "gpt-5.4",
    tools: [{ type: "function" as const, function: { name: "weather", parameters } }],
    stream_options: { include_usage: true },
  };
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: "developer", content: "word ".repeat(2_000) },
    { role: "user", content: "Do I need an umbrella?" },
  ];
  const third = await client.chat.completions.stream({ ...chatted, messages }).finalChatCompletion();
  const [made] = third.choices[0]?.message.tool_calls ?? [];
  assert.ok(made);
  const fourth = await client.chat.completions.create({
    model: chatted.model,
    tools: chatted.tools,
    messages: [
      ...messages,
      { role: "assistant", content: null, tool_calls: [made] },
      { role: "tool", tool_call_id: made.id, content: "rain" },
    ],
  });
  assert.equal(fourth.choices[0]?.message.content, "It says rain.");
  const rows = await ledgerOf(sim.url);
  assert.deepEqual(
    [first, second].map(({ usage }) => [
      usage?.input_tokens,
      usage?.input_tokens_details.cached_tokens,
      usage?.input_tokens_details.cache_write_tokens,
      usage?.output_tokens,
    ]),
    rows.slice(0, 2).map(({ promptTokens, read, written, output }) => [promptTokens, read, written["30m"], output]),
  );
  assert.deepEqual(
    [third, fourth].map(({ usage }) => [
      usage?.prompt_tokens,
      usage?.prompt_tokens_details?.cached_tokens,
      usage?.completion_tokens,
    ]),
    rows.slice(2).map(({ promptTokens, read, output }) => [promptTokens, read, output]),
  );
  assert.deepEqual(
    rows.map(({ read }) => read),
    [0, rows[0]?.promptTokens, 0, 2_432],
  );
});

test("Google's SDK works against it, streamed and whole, with the usage that the ledger has", async () => {
  await using files = await folder();
  await writeFile(files.path("weather.mjs"), weather.replace("@prefork/simulator", simulatorUrl));
  await using sim = await serve("--rules", "gemini", "--script", files.path("weather.mjs"));
  const ai = new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl: sim.url } });
  const config = {
    systemInstruction: "word ".repeat(4_000),
    tools: [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: { type: "object" } }] }],
  };
  const model = "gemini-3.8-flash";
  const question = { role: "user", parts: [{ text: "Do I need an umbrella?" }] };
  const first = await ai.models.generateContent({ model, contents: [question], config });
  const [call] = first.functionCalls ?? [];
  assert.ok(call?.id && call.name);
  const contents = [
    question,
    { role: "model", parts: first.candidates?.[0]?.content?.parts ?? [] },
    { role: "user", parts: [{ functionResponse: { id: call.id, name: call.name, response: { output: "rain" } } }] },
  ];
  let [last, text] = [first, ""];
  for await (const chunk of await ai.models.generateContentStream({ model, contents, config })) {
    last = chunk;
    text += chunk.text ?? "";
  }
  assert.equal(text, "It says rain.");
  const rows = await ledgerOf(sim.url);
  assert.deepEqual(
    [first, last].map(({ usageMetadata: usage }) => [
      usage?.promptTokenCount,
      usage?.cachedContentTokenCount ?? 0,
      (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0),
    ]),
    rows.map(({ promptTokens, read, output }) => [promptTokens, read, output]),
  );
  assert.equal(rows[1]?.read, rows[0]?.promptTokens);
});

test("every set of rules is in its help, and can be served", async () => {
  const help = captured();
  assert.equal(await run(["sim", "--help"], help), 0);
  for (const { name } of providers) {
    assert.match(help.text(), new RegExp(`^  ${name} +\\S`, "m"));
    const io = captured({ signal: AbortSignal.abort() });
    assert.equal(await run(["sim", "--rules", name, "--json"], io), 0);
    assert.match(io.text(), new RegExp(`^{"url":"http://127\\.0\\.0\\.1:\\d+","rules":"${name}"}\n$`));
    assert.match(io.errors(), new RegExp(`^prefork: simulating ${name} \\(/v1`));
  }
});

test("its ledger and its clock answer over HTTP", async () => {
  await using sim = await serve("--json");
  const { url } = JSON.parse(sim.url) as { url: string };
  const body = { model: "claude-sonnet-5", max_tokens: 10, messages: [{ role: "user", content: "hello" }] };
  const ask = () =>
    fetch(`${url}/v1/messages`, { method: "POST", headers: { "x-api-key": "any" }, body: JSON.stringify(body) });
  assert.equal((await ask()).status, 200);
  const moved = await fetch(`${url}/_sim/clock`, { method: "POST", body: JSON.stringify({ advanceMs: 1_000 }) });
  assert.equal(moved.status, 200);
  const { rows } = (await (await fetch(`${url}/_sim/ledger`)).json()) as { rows: readonly { promptTokens: number }[] };
  assert.deepEqual(
    rows.map(({ promptTokens }) => promptTokens),
    [2],
  );
});

test("Ctrl-C ends it with exit code 0", async () => {
  await using sim = await serve();
  sim.child.kill("SIGINT");
  const [code] = (await once(sim.child, "exit")) as [number];
  assert.equal(code, 0);
});

test("a port in use, unknown rules or models and a broken script are one line each and exit code 2", async () => {
  await using files = await folder();
  const taken = createServer();
  taken.listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as { port: number };
  assert.equal(await refusal("--port", String(port)), `port ${port} is already in use on 127.0.0.1`);
  taken.close();
  assert.match(await refusal("--port", "70000"), /argument '70000' is invalid\. Expected a port from 0 to 65535\.$/);
  assert.equal(
    await refusal("--rules", "acme"),
    "option '--rules': there is no provider \"acme\"; known: anthropic, openai, openai-legacy, gemini, gemini-explicit, deepseek, minimax, dashscope, vllm, llamacpp",
  );
  assert.match(
    await refusal("--rules", "gemini", "--model", "gpt-2"),
    /^option '--model': the prices of "gpt-2" are unknown; known: gemini-4-argon, gemini-3\.8-flash, /,
  );
  assert.match(
    await refusal("--model", "gpt-2"),
    /^option '--model': the prices of "gpt-2" are unknown; known: claude-/,
  );
  assert.match(await refusal("--script", files.path("missing.mjs")), /missing\.mjs/);
  await writeFile(files.path("bad.mjs"), "export const script = 5;");
  assert.match(await refusal("--script", files.path("bad.mjs")), /bad\.mjs/);
  await writeFile(files.path("prices.json"), `{"models": {"claude-sonnet-5": {"input": "two"}}}`);
  assert.match(await refusal("--prices", files.path("prices.json")), /prices\.json: .*input/);
});
