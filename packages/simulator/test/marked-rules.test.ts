/** DashScope and MiniMax: markers if a request has them, otherwise automatic caching. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { say, textOfTokens } from "@prefork/simulator";
import { type Body, chat, figures, paths, refusalOf, rowOf, send, started, system, user } from "./wire-sending.ts";

const MINUTE = 60_000;
const qwen = chat("qwen3.7-max");

const mark = { cache_control: { type: "ephemeral" } } as const;
const marked = (tokens: number, seed = 0, marker: Body = mark): Body => ({
  role: "user",
  content: [{ type: "text", text: textOfTokens(tokens, seed), ...marker }],
});

test("DashScope: an entry exists once the answer is complete, not with its first event", async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  let answers = 0;
  await using sim = await started("dashscope", {
    script: () => ({ ...say("fine"), ...(answers++ === 0 ? { hold: held } : {}) }),
  });
  const stream = { stream: true };
  const first = await send(sim, qwen([marked(2_000)], stream));
  const reader = first.body?.getReader();
  await reader?.read();
  const meanwhile = await rowOf(sim, qwen([marked(2_000)]));
  assert.deepEqual([meanwhile.read, meanwhile.missCause], [0, "raced"]);
  release();
  while (!(await reader?.read())?.done);
  assert.equal((await rowOf(sim, qwen([marked(2_000)]))).read, 2_000);
});

test("DashScope: a marked prefix from 1,024 tokens on is written at 1.25 and read at a tenth for five minutes", async () => {
  await using sim = await started("dashscope");
  assert.equal((await rowOf(sim, qwen([marked(1_023, 9)]))).missCause, "below minimum");
  const first = await rowOf(sim, qwen([marked(2_000)]));
  assert.deepEqual(first.written, { "5m": 2_000, "1h": 0 });
  assert.equal(first.billed.usd, 0.003692425);
  sim.clock.advance(4 * MINUTE);
  const second = await rowOf(sim, qwen([marked(2_000)]));
  assert.deepEqual([figures(second), second.billed.usd], [{ read: 2_000, written: 0, plain: 0 }, 0.000299425]);
  sim.clock.advance(5 * MINUTE);
  assert.equal((await rowOf(sim, qwen([marked(2_000)]))).missCause, "expired");
});

test("DashScope: without a marker what was sent before is read at a fifth, and writing is free", async () => {
  await using sim = await started("dashscope");
  const first = await rowOf(sim, qwen([user(2_000)]));
  assert.deepEqual([figures(first), first.billed.usd], [{ read: 0, written: 0, plain: 2_000 }, 0.002954425]);
  const second = await rowOf(sim, qwen([user(2_000)]));
  assert.deepEqual([second.read, second.billed.usd], [2_000, 0.000594425]);
});

test("DashScope: of six markers the last four take effect, each twenty blocks back", async () => {
  await using sim = await started("dashscope");
  const content = (count: number): readonly Body[] => [
    {
      role: "user",
      content: Array.from({ length: count }, (_, index) => ({
        type: "text",
        text: textOfTokens(1_024, index),
        ...mark,
      })),
    },
  ];
  await rowOf(sim, qwen(content(6)));
  assert.deepEqual([(await rowOf(sim, qwen(content(2)))).read], [0]);
  const blocks = (count: number): Body => ({
    role: "user",
    content: [
      ...Array.from({ length: count }, (_, index) => ({ type: "text", text: textOfTokens(1, index) })),
      { type: "text", text: "end", ...mark },
    ],
  });
  const opening = { role: "system", content: [{ type: "text", text: textOfTokens(2_000, 50), ...mark }] };
  await rowOf(sim, qwen([opening, user(1)]));
  const plain = { role: "system", content: [{ type: "text", text: textOfTokens(2_000, 50) }] };
  assert.equal((await rowOf(sim, qwen([plain, blocks(18)]))).read, 2_000);
  sim.reset();
  await rowOf(sim, qwen([opening, user(1)]));
  assert.equal((await rowOf(sim, qwen([plain, blocks(19)]))).missCause, "look-back exceeded");
});

test("DashScope: usage counts reads and writes inside the prompt, and unknown fields are ignored", async () => {
  await using sim = await started("dashscope");
  await rowOf(sim, qwen([system(500), marked(2_000)], { nobody_knows: 1 }));
  const response = await send(
    sim,
    qwen([system(500), marked(2_000, 0, {}), { role: "assistant", content: "fine" }, marked(300, 4)]),
  );
  const { usage } = (await response.json()) as { usage: Body };
  assert.deepEqual(usage, {
    prompt_tokens: 2_801,
    completion_tokens: 1,
    total_tokens: 2_802,
    prompt_tokens_details: { cached_tokens: 2_500, cache_creation_input_tokens: 301, cache_type: "ephemeral" },
    completion_tokens_details: { reasoning_tokens: 0 },
  });
});

const minimax = (model: string, blocks: readonly Body[], more: Body = {}) => ({
  path: paths.messages,
  body: { model, max_tokens: 64, messages: [{ role: "user", content: blocks }], ...more },
});
const block = (tokens: number, seed = 0, marker: Body = {}): Body => ({
  type: "text",
  text: textOfTokens(tokens, seed),
  ...marker,
});

test("MiniMax: what was sent before is read by itself from 512 tokens on, once its answer is complete", async () => {
  await using sim = await started("minimax");
  await rowOf(sim, minimax("MiniMax-M3", [block(511, 9)]));
  assert.equal((await rowOf(sim, minimax("MiniMax-M3", [block(511, 9)]))).missCause, "below minimum");
  const first = await rowOf(sim, minimax("MiniMax-M3", [block(512, 1, mark)]));
  assert.deepEqual(figures(first), { read: 0, written: 0, plain: 512 }, "a marker means nothing to this generation");
  const second = await rowOf(sim, minimax("MiniMax-M3", [block(512, 1), block(100, 2)]));
  assert.deepEqual([figures(second), second.billed.usd], [{ read: 512, written: 0, plain: 100 }, 0.00006192]);
});

test("MiniMax: the second generation takes markers, at most four, without a lifetime of an hour", async () => {
  await using sim = await started("minimax");
  const first = await rowOf(sim, minimax("MiniMax-M2.7", [block(2_000, 1, mark), block(100, 2)]));
  assert.deepEqual([figures(first), first.billed.usd], [{ read: 0, written: 2_000, plain: 100 }, 0.0007812]);
  const second = await rowOf(sim, minimax("MiniMax-M2.7", [block(2_000, 1, mark), block(100, 3)]));
  assert.deepEqual([figures(second), second.billed.usd], [{ read: 2_000, written: 0, plain: 100 }, 0.0001512]);
  sim.clock.advance(5 * MINUTE);
  assert.equal((await rowOf(sim, minimax("MiniMax-M2.7", [block(2_000, 1, mark)]))).missCause, "expired");
  const hour = { cache_control: { type: "ephemeral", ttl: "1h" } };
  assert.deepEqual((await refusalOf(sim, minimax("MiniMax-M2.7", [block(2_000, 1, hour)]))).error, {
    type: "invalid_request_error",
    message: "cache_control.ttl: 1h is not supported here; supported: 5m",
  });
});

test("MiniMax: above 512,000 tokens the whole request costs twice as much", async () => {
  await using sim = await started("minimax");
  assert.equal((await rowOf(sim, minimax("MiniMax-M3", [block(512_001)]))).billed.usd, 0.307203);
});
