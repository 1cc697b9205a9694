/** The proxy before providers of other formats: what it reads of their answers, and who raced whom. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, startSimulator } from "@prefork/simulator";
import { startProxy } from "@prefork/xray/proxy";
import { words } from "../compare/corpus/conversation.ts";

const post = async (url: string, body: unknown, headers: Readonly<Record<string, string>>): Promise<string> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return text;
};

test("Gemini's requests are compared too, with the model of their address and the usage of their answers", async () => {
  const clock = new ManualClock();
  await using sim = await startSimulator({ provider: "gemini", clock });
  await using proxy = await startProxy({ upstream: sim.url, now: () => clock.now() });
  const turn = (role: string, text: string) => ({ role, parts: [{ text }] });
  const first = { contents: [turn("user", words(5_000, 1))] };
  const next = { contents: [...first.contents, turn("model", "Yes."), turn("user", "Why?")] };
  const send = async (model: string, how: string, body: unknown): Promise<void> => {
    await post(`${proxy.url}/v1beta/models/${model}:${how}`, body, { "x-goog-api-key": "key-one" });
    clock.advance(1_000);
  };
  await send("gemini-3.8-flash", "generateContent", first);
  await send("gemini-3.8-flash", "streamGenerateContent?alt=sse", next);
  await send("gemini-3.6-flash", "generateContent", next);
  const { answered, all, lineages, misses, errors } = await proxy.close();
  assert.deepEqual(
    { answered, read: all.usage.read, wires: lineages.map(({ wire, model }) => [wire, model]), errors },
    { answered: 3, read: 5_000, wires: [["gemini", "gemini-3.6-flash"]], errors: [] },
  );
  assert.deepEqual(
    misses.map(({ request, cause, lost }) => [request, cause, lost.tokens]),
    [[3, { kind: "model", from: "gemini-3.8-flash", to: "gemini-3.6-flash" }, 5_002]],
  );
});

test("where an entry becomes readable once an answer is complete, a request sent before that raced it", async () => {
  const clock = new ManualClock();
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  let asked = 0;
  await using sim = await startSimulator({
    provider: "dashscope",
    clock,
    script: () => {
      asked += 1;
      clock.advance(500);
      return { content: [{ type: "text", text: "Done." }], outputTokens: 7, ...(asked === 1 ? { hold: held } : {}) };
    },
  });
  await using proxy = await startProxy({ upstream: sim.url, now: () => clock.now() });
  const marker = { cache_control: { type: "ephemeral" } };
  const body = (question: string) => ({
    model: "qwen3.7-max",
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: "system", content: [{ type: "text", text: words(1_300, 1), ...marker }] },
      { role: "user", content: question },
    ],
  });
  const url = `${proxy.url}/compatible-mode/v1/chat/completions`;
  const send = (question: string): Promise<string> => post(url, body(question), { authorization: "Bearer key-one" });
  const first = send("Which?");
  while (sim.ledger().length === 0) await new Promise(setImmediate);
  clock.advance(1_000);
  await send("And what?");
  release();
  await first;
  clock.advance(1_000);
  await send("And why?");
  const { misses } = await proxy.close();
  assert.deepEqual(
    misses.map(({ request, cause, lost }) => [request, cause.kind, "until" in cause ? cause.until : "", lost.tokens]),
    [[2, "raced", "complete", 1_300]],
  );
});
