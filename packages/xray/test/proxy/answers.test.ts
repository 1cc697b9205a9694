/** What providers count is read from whatever they answer with, and what cannot be read is named, not quoted. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { type ProxyOptions, type ProxyReport, startProxy } from "@prefork/xray/proxy";
import { a, KEPT } from "../compare/corpus/conversation.ts";
import { startProvider } from "./ends.ts";

type Exchange = {
  readonly path: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly answer: string | Buffer;
  readonly answerHeaders?: Readonly<Record<string, string>>;
};

const STREAM = { "content-type": "text/event-stream" };
const JSON_TYPE = { "content-type": "application/json" };

/** One request after the other through a proxy of their own. */
const reported = async (exchanges: readonly Exchange[], options: ProxyOptions = {}): Promise<ProxyReport> => {
  const answers = exchanges.values();
  await using provider = await startProvider((response) => {
    const { answer = "", answerHeaders = JSON_TYPE } = answers.next().value ?? {};
    response.writeHead(200, answerHeaders);
    response.end(answer);
  });
  await using proxy = await startProxy({ upstream: provider.url, ...options });
  for (const { path, body, headers = {}, answer } of exchanges) {
    const response = await fetch(`${proxy.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "accept-encoding": "identity", ...headers },
      body: typeof body === "string" ? body : new Uint8Array(body),
    });
    await response.arrayBuffer().catch(() => answer);
  }
  return proxy.close();
};

const frames = (...list: readonly object[]): string =>
  list
    .map((frame) => `event: ${(frame as { type?: string }).type ?? "message"}\ndata: ${JSON.stringify(frame)}\n\n`)
    .join("");

const anthropicAnswer = frames(
  {
    type: "message_start",
    message: {
      usage: {
        input_tokens: 3,
        cache_read_input_tokens: 20,
        cache_creation_input_tokens: 100,
        cache_creation: { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 60 },
        output_tokens: 1,
      },
    },
  },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: 'it says "usage": 5' } },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } },
  { type: "message_stop" },
);
const anthropicUsage = { plain: 3, read: 20, written: { "5m": 40, "1h": 60 }, output: 9 };
const question = JSON.stringify(a);

const responsesBody = JSON.stringify({ model: "gpt-6-sol", instructions: "Be brief.", input: "Who?" });
const chatBody = JSON.stringify({ model: "gpt-6-sol", messages: [{ role: "system", content: "Be brief." }] });
const responsesUsage = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 70, cache_write_tokens: 20 },
  output_tokens: 4,
};
const chatUsage = {
  prompt_tokens: 100,
  completion_tokens: 4,
  prompt_tokens_details: { cached_tokens: 70, cache_write_tokens: 20 },
};
const openaiUsage = { plain: 10, read: 70, written: { "30m": 20 }, output: 4 };

test("usage is read from streams and whole answers of all three formats", async () => {
  const exchanges: readonly Exchange[] = [
    { path: "/v1/messages", body: question, answer: anthropicAnswer, answerHeaders: STREAM },
    {
      path: "/anthropic/v1/messages?beta=true",
      body: question,
      answer: JSON.stringify({
        usage: {
          input_tokens: 3,
          cache_read_input_tokens: 20,
          cache_creation_input_tokens: 100,
          output_tokens: 9,
          cache_creation: { ephemeral_1h_input_tokens: 60, ephemeral_5m_input_tokens: 40 },
        },
      }),
    },
    {
      path: "/v1/responses",
      body: responsesBody,
      answer: frames(
        { type: "response.created", response: { usage: null } },
        { type: "response.completed", response: { usage: responsesUsage } },
      ),
      answerHeaders: STREAM,
    },
    { path: "/v1/responses", body: responsesBody, answer: JSON.stringify({ output: [], usage: responsesUsage }) },
    {
      path: "/v1/chat/completions",
      body: chatBody,
      answer: `${frames({ choices: [{}], usage: null }, { choices: [], usage: chatUsage })}data: [DONE]\n\n`,
      answerHeaders: STREAM,
    },
    { path: "/api/chat/completions", body: chatBody, answer: JSON.stringify({ choices: [], usage: chatUsage }) },
  ];
  for (const [index, exchange] of exchanges.entries()) {
    const { all, errors, unstated } = await reported([exchange]);
    assert.deepEqual(
      { usage: all.usage, errors, unstated },
      { usage: index < 2 ? anthropicUsage : openaiUsage, errors: [], unstated: 0 },
      exchange.path,
    );
  }
});

test("compressed answers are decoded on the side, and compressed requests too", async () => {
  const codecs: Readonly<Record<string, (bytes: string | Buffer) => Buffer>> = {
    gzip: (bytes) => gzipSync(bytes),
    deflate: (bytes) => deflateSync(bytes),
    br: (bytes) => brotliCompressSync(bytes),
    zstd: (bytes) => zstdCompressSync(bytes),
    "gzip, br": (bytes) => brotliCompressSync(gzipSync(bytes)),
  };
  for (const [name, compress] of Object.entries(codecs)) {
    const { all, errors, lineages } = await reported([
      {
        path: "/v1/messages",
        body: compress(question),
        headers: { "content-encoding": name },
        answer: compress(anthropicAnswer),
        answerHeaders: { ...STREAM, "content-encoding": name },
      },
    ]);
    assert.deepEqual([all.usage, errors, lineages[0]?.model], [anthropicUsage, [], "claude-sonnet-5"], name);
  }
});

test("answers that state no usage are counted as such, and are in no sum", async () => {
  const silent = { path: "/v1/chat/completions", body: chatBody, answer: "data: [DONE]\n\n", answerHeaders: STREAM };
  const { unstated, answered, all } = await reported([silent, silent]);
  assert.deepEqual([unstated, answered, all.requests, all.readShare], [2, 2, 0, null]);
});

test("unreadable answers are counted by what is wrong with them, without any of their text", async () => {
  const bomb = gzipSync(Buffer.alloc(5_000_000));
  const report = await reported(
    [
      { path: "/v1/messages", body: "sesame, open", answer: anthropicAnswer, answerHeaders: STREAM },
      { path: "/v1/messages", body: '["sesame"]', answer: "{}" },
      { path: "/v1/messages", body: '{"sesame":1}', answer: "{}" },
      { path: "/v1/messages", body: question, headers: { "content-encoding": "sesame" }, answer: "{}" },
      { path: "/v1/messages", body: "sesame", headers: { "content-encoding": "gzip" }, answer: "{}" },
      { path: "/v1/messages", body: bomb, headers: { "content-encoding": "gzip" }, answer: "{}" },
      {
        path: "/v1/messages",
        body: question,
        answer: "sesame",
        answerHeaders: { ...STREAM, "content-encoding": "sesame" },
      },
      { path: "/v1/messages", body: question, answer: '{"usage": sesame}' },
      { path: "/v1/messages", body: "[".repeat(100_000), answer: "{}" },
      { path: "/v1/messages", body: "x".repeat(2_000_000), answer: "{}" },
    ],
    { bodyLimit: 1_000_000 },
  );
  assert.deepEqual([...report.errors, ...report.notLookedAt].map(({ name, times }) => `${times} × ${name}`).sort(), [
    "1 × a body in an unknown encoding",
    "1 × a body that cannot be decoded",
    "1 × a body that is too long once it is decoded",
    "1 × an answer in an unknown encoding",
    "1 × an answer that makes no sense",
    "1 × too long",
    "2 × a body that is not a request",
    "2 × a body that is not valid JSON",
  ]);
  assert.doesNotMatch(JSON.stringify(report), /sesame/);
  assert.deepEqual([report.answered, report.all.usage], [10, anthropicUsage]);
});

test("a conversation that the provider stores is not mistaken for a new one", async () => {
  const { notLookedAt, lineages, all } = await reported([
    {
      path: "/v1/responses",
      body: JSON.stringify({ model: "gpt-6-sol", previous_response_id: "resp_1", input: "And?" }),
      answer: JSON.stringify({ usage: responsesUsage }),
    },
  ]);
  assert.deepEqual(
    [notLookedAt, lineages, all.usage],
    [[{ name: "a conversation that the provider stores", times: 1 }], [], openaiUsage],
  );
});

test("forks that name one entry are a family, and the report says that no sum includes the entry's creation", async () => {
  const fork = (question: string): Exchange => ({
    path: "/v1beta/models/gemini-3.8-flash:generateContent",
    body: JSON.stringify({
      cachedContent: "cachedContents/abc",
      contents: [{ role: "user", parts: [{ text: question }] }],
    }),
    answer: JSON.stringify({
      usageMetadata: { promptTokenCount: 9_060, cachedContentTokenCount: 9_000, candidatesTokenCount: 5 },
    }),
  });
  const { passed, families, misses, lineages } = await reported([
    { path: "/v1beta/cachedContents", body: "{}", answer: '{"usageMetadata":{"totalTokenCount":9000}}' },
    fork("Which tests fail?"),
    fork("Who wrote this?"),
  ]);
  assert.deepEqual([passed.others, passed.created, lineages.length, misses], [1, 1, 2, []]);
  assert.deepEqual(
    families.map(({ from, members, prefix, usage }) => ({ from, members, prefix, read: usage.read })),
    [{ from: 1, members: [1, 2], prefix: 9_000, read: 18_000 }],
  );
});

test("a miss of a few tokens is in every sum, but is not reported as an event", async () => {
  const tail = { role: "user", content: [{ type: "text", text: "Twelve bytes" }] };
  const next = { role: "user", content: [{ type: "text", text: "And?", cache_control: { type: "ephemeral" } }] };
  const answer = (read: number, written: number): string =>
    JSON.stringify({
      usage: {
        input_tokens: 3,
        cache_read_input_tokens: read,
        cache_creation_input_tokens: written,
        output_tokens: 1,
      },
    });
  const told: string[] = [];
  const { misses, causes, lineages, all } = await reported(
    [
      {
        path: "/v1/messages",
        body: JSON.stringify({ ...a, messages: [...a.messages, tail] }),
        answer: answer(0, KEPT),
      },
      {
        path: "/v1/messages",
        body: JSON.stringify({ ...a, messages: [...a.messages, tail, next] }),
        answer: answer(KEPT, 4),
      },
    ],
    { onEvent: ({ type }) => told.push(type) },
  );
  assert.deepEqual([misses, lineages[0]?.misses, told.includes("request_missed")], [[], 0, false]);
  assert.deepEqual(
    [all.lost.tokens, causes.map(({ kind, times, tokens }) => [kind, times, tokens])],
    [3, [["marker-missing", 1, 3]]],
  );
});

test("an agent on Chat Completions that changes its tools gets a report of it", async () => {
  const words = "word ".repeat(6_000);
  const ask = (tools: readonly string[], ...more: readonly object[]): Exchange => ({
    path: "/v1/chat/completions",
    body: JSON.stringify({
      model: "gpt-6-sol",
      tools: tools.map((name) => ({ type: "function", function: { name, parameters: {} } })),
      messages: [{ role: "system", content: words }, { role: "user", content: "Who?" }, ...more],
    }),
    answer: JSON.stringify({
      usage: {
        prompt_tokens: 6_010,
        completion_tokens: 1,
        prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 6_000 },
      },
    }),
  });
  const turn = [
    { role: "assistant", content: "I." },
    { role: "user", content: "Why?" },
  ];
  const { misses, lineages } = await reported([ask(["read"]), ask(["read", "edit"], ...turn)]);
  assert.deepEqual(
    [lineages.length, misses.map(({ cause, path }) => [cause, path])],
    [1, [[{ kind: "tools-added", tools: ["edit"] }, "tools[1]"]]],
  );
});
