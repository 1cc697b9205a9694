/** Engines that people run themselves: blocks that are shared at once, and slots that share nothing. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { say, textOfTokens } from "@prefork/simulator";
import { type Body, chat, figures, paths, rowOf, send, started, system, user } from "./wire-sending.ts";

const ask = chat("any-model");
const assistant = (content: string): Body => ({ role: "assistant", content });

test("vLLM: full blocks of 16 tokens are read, and the last token is always computed", async () => {
  for (const [prompt, read] of [
    [16, 0],
    [17, 16],
    [1_600, 1_584],
    [1_601, 1_600],
    [1_615, 1_600],
  ] as const) {
    await using sim = await started("vllm");
    await rowOf(sim, ask([user(prompt)]));
    const again = await rowOf(sim, ask([user(prompt)]));
    assert.deepEqual([again.read, again.missCause, again.billed], [read, null, { inputUnits: prompt - read, usd: 0 }]);
  }
});

test("vLLM: siblings of the same batch share what the first one has been given", async () => {
  await using sim = await started("vllm");
  sim.fault({ kind: "together", times: 3 });
  await Promise.all([1, 2, 3].map((seed) => rowOf(sim, ask([system(1_600), user(100, seed)]))));
  assert.deepEqual(
    sim.ledger().map(({ read }) => read),
    [0, 1_600, 1_600],
  );
});

test("vLLM: prompts that part inside a text share it up to the last full block", async () => {
  await using sim = await started("vllm");
  const parted = (end: string): readonly Body[] => [{ role: "user", content: textOfTokens(1_000) + end }];
  await rowOf(sim, ask(parted("one end")));
  assert.equal((await rowOf(sim, ask(parted("another")))).read, 992);
});

test("vLLM: what was generated stays, and another salt or model finds nothing", async () => {
  const words = textOfTokens(64, 8);
  await using sim = await started("vllm", { script: () => say(words) });
  const salted = (cache_salt: string) => ask([user(1_600), assistant(words), user(10, 2)], { cache_salt });
  await rowOf(sim, ask([user(1_600)], { cache_salt: "a" }));
  assert.equal((await rowOf(sim, salted("b"))).read, 0);
  assert.equal((await rowOf(sim, salted("a"))).read, 1_664);
  assert.equal((await rowOf(sim, chat("other")([user(1_600)], { cache_salt: "a" }))).read, 0);
});

test("vLLM: another block size is a field to override", async () => {
  await using sim = await started("vllm", { rules: { cache: { automatic: { step: 528 } } } });
  await rowOf(sim, ask([user(1_600)]));
  assert.equal((await rowOf(sim, ask([user(1_600)]))).read, 1_584);
  assert.equal((await rowOf(sim, ask([user(1_500, 4)]))).nextRead, 1_056);
});

test("vLLM: asks for no key, and reports what it read", async () => {
  await using sim = await started("vllm");
  await rowOf(sim, ask([user(1_600)]));
  const { path, body } = ask([user(1_600)]);
  const response = await fetch(`${sim.url}${path}`, { method: "POST", body: JSON.stringify(body) });
  const { usage } = (await response.json()) as { usage: Body };
  assert.deepEqual(usage, {
    prompt_tokens: 1_600,
    completion_tokens: 1,
    total_tokens: 1_601,
    prompt_tokens_details: { cached_tokens: 1_584 },
    completion_tokens_details: { reasoning_tokens: 0 },
  });
});

test("vLLM: its Anthropic endpoint counts what was not read as input", async () => {
  await using sim = await started("vllm");
  const body = { model: "any-model", max_tokens: 64, messages: [user(1_600)], cache_salt: "s" };
  const sent = { path: paths.messages, body };
  await rowOf(sim, sent);
  const { usage } = (await (await send(sim, sent)).json()) as { usage: Body };
  assert.deepEqual([usage.input_tokens, usage.cache_read_input_tokens], [16, 1_584]);
});

test("llama.cpp: the same slot reads to the token what its last prompt and answer have in common with this one", async () => {
  const words = textOfTokens(64, 8);
  await using sim = await started("llamacpp", { script: () => say(words) });
  await rowOf(sim, ask([user(1_000)]));
  const next = await rowOf(sim, ask([user(1_000), assistant(words), user(7, 3)]));
  assert.deepEqual(figures(next), { read: 1_064, written: 0, plain: 7 });
  const edited = await rowOf(sim, ask([{ role: "user", content: `${textOfTokens(501)}and then something else` }]));
  assert.equal(edited.read, 501);
  const same = await rowOf(sim, ask([{ role: "user", content: `${textOfTokens(501)}and then something else` }]));
  assert.equal(same.plain, 1, "the last token is always computed");
});

test("llama.cpp: siblings in other slots share nothing, and wait when all slots are busy", async () => {
  await using sim = await started("llamacpp", { rules: { cache: { slots: { count: 2 } } } });
  sim.fault({ kind: "together", times: 2 });
  await Promise.all([1, 2].map((seed) => rowOf(sim, ask([system(1_000), user(10, seed)]))));
  const [first, second] = sim.ledger();
  assert.deepEqual([first?.read, second?.read], [0, 0]);
  assert.deepEqual(
    await Promise.all([3, 4, 5].map(async (seed) => (await rowOf(sim, ask([system(1_000), user(10, seed)]))).read)),
    [1_000, 1_000, 1_000],
  );
});

test("llama.cpp: a sibling of one that still runs misses, and the ledger says in which slot its prompt is", async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  let answers = 0;
  await using sim = await started("llamacpp", {
    script: () => ({ ...say("fine"), ...(answers++ === 1 ? { hold: held } : {}) }),
  });
  await rowOf(sim, ask([system(1_000), user(10, 1)]));
  const running = await send(sim, ask([system(1_000), user(10, 2)], { stream: true }));
  const sibling = await rowOf(sim, ask([system(1_000), user(10, 3)]));
  assert.deepEqual(
    [sibling.read, sibling.expectedRead, sibling.missCause, sibling.missWords],
    [0, 1_000, "in another slot", "1000 tokens of this prompt are in slot 0, which was busy; slots share nothing"],
  );
  release();
  await running.text();
});

test("llama.cpp: a client that disconnects while waiting for a slot leaves the queue, and the next one is served", async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  let answers = 0;
  await using sim = await started("llamacpp", {
    rules: { cache: { slots: { count: 1 } } },
    script: () => ({ ...say("fine"), ...(answers++ === 0 ? { hold: held } : {}) }),
  });
  const running = await send(sim, ask([user(100, 1)], { stream: true }));
  const leaving = new AbortController();
  const left = fetch(`${sim.url}${paths.chat}`, {
    method: "POST",
    body: JSON.stringify(ask([user(100, 2)]).body),
    signal: leaving.signal,
  });
  while (sim.ledger().length < 2) await new Promise((done) => setImmediate(done));
  const waiting = rowOf(sim, ask([user(100, 1)]));
  leaving.abort();
  await assert.rejects(left);
  while (sim.ledger()[1]?.outcome === "open") await new Promise((done) => setImmediate(done));
  release();
  await running.text();
  await waiting;
  assert.deepEqual(
    sim.ledger().map(({ outcome, read }) => [outcome, read]),
    [
      ["complete", 0],
      ["aborted", 0],
      ["complete", 99],
    ],
  );
});

test("llama.cpp: the least recently used slot is reused unless another one shares more than a tenth of the prompt", async () => {
  await using sim = await started("llamacpp", { rules: { cache: { slots: { count: 2 } } } });
  const opened = (tokens: number, seed: number): Body => user(tokens, seed);
  await rowOf(sim, ask([opened(1_000, 1)]));
  await rowOf(sim, ask([opened(1_000, 2)]));
  const tenth = { role: "user", content: `${textOfTokens(100, 1)}${textOfTokens(900, 77)}` };
  const over = { role: "user", content: `${textOfTokens(101, 2)}${textOfTokens(899, 78)}` };
  assert.equal((await rowOf(sim, ask([over]))).read, 101, "more than a tenth: its own slot");
  assert.equal((await rowOf(sim, ask([tenth]))).read, 100, "the one used longest ago, which happens to hold it");
  assert.equal((await rowOf(sim, ask([opened(1_000, 2)]))).read, 101);
});

test("llama.cpp: a prompt can be put into a slot without an answer, and reports what it computed", async () => {
  await using sim = await started("llamacpp");
  const warm = await rowOf(sim, ask([user(1_000)], { max_tokens: 0, id_slot: 3 }));
  assert.deepEqual([warm.output, warm.outcome], [0, "complete"]);
  const response = await send(sim, ask([user(1_000), assistant("ok"), user(9, 2)], { id_slot: 3 }));
  const { timings } = (await response.json()) as { timings: Body };
  assert.deepEqual(timings, { cache_n: 1_000, prompt_n: 10, predicted_n: 1 });
  const off = await rowOf(sim, ask([user(1_000)], { cache_prompt: false, id_slot: 3 }));
  assert.equal(off.read, 0);
});
