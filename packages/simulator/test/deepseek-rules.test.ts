/** DeepSeek: complete units of a prefix, kept at ends of prompts and answers and where two prompts agree. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, say, textOfTokens } from "@prefork/simulator";
import { type Body, chat, figures, paths, rowOf, send, started, system, user } from "./wire-sending.ts";

const ask = chat("deepseek-flash");
const BUILDING = 2_000;

const assistant = (content: string): Body => ({ role: "assistant", content });

test("a prompt is read again in whole units of 64 tokens, from 64 tokens on", async () => {
  for (const [prompt, read] of [
    [63, 0],
    [64, 64],
    [127, 64],
    [1_000, 960],
  ] as const) {
    await using sim = await started("deepseek");
    await rowOf(sim, ask([user(prompt)]));
    sim.clock.advance(BUILDING);
    assert.deepEqual(figures(await rowOf(sim, ask([user(prompt)]))), { read, written: 0, plain: prompt - read });
  }
});

test("a unit is built for some seconds after the answer is complete", async () => {
  await using sim = await started("deepseek");
  await rowOf(sim, ask([user(1_280)]));
  sim.clock.advance(BUILDING - 1);
  const early = await rowOf(sim, ask([user(1_280)]));
  assert.deepEqual([early.read, early.missCause], [0, "raced"]);
  sim.clock.advance(BUILDING);
  assert.equal((await rowOf(sim, ask([user(1_280)]))).read, 1_280);
});

test("the answer is cached after its prompt, so a fork of it reads the answer too", async () => {
  const words = textOfTokens(640, 8);
  await using sim = await started("deepseek", { script: () => say(words) });
  await rowOf(sim, ask([user(1_280)]));
  sim.clock.advance(BUILDING);
  const fork = await rowOf(sim, ask([user(1_280), assistant(words), user(100, 3)]));
  assert.deepEqual(figures(fork), { read: 1_920, written: 0, plain: 100 });
});

test("A+B and then A+C miss; after that A+D hits A", async () => {
  await using sim = await started("deepseek");
  const reads: number[] = [];
  for (const seed of [1, 2, 3]) {
    reads.push((await rowOf(sim, ask([system(1_280), user(300, seed)]))).read);
    sim.clock.advance(BUILDING);
  }
  assert.deepEqual(reads, [0, 0, 1_280]);
});

test("with units at the intervals of the older note, A+C hits at once", async () => {
  await using sim = await started("deepseek", { rules: { cache: { automatic: { interval: 64 } } } });
  await rowOf(sim, ask([system(1_300), user(300, 1)]));
  sim.clock.advance(BUILDING);
  assert.equal((await rowOf(sim, ask([system(1_300), user(300, 2)]))).read, 1_280);
});

test("another user id finds nothing, nor does another account", async () => {
  await using sim = await started("deepseek");
  const of = (user_id: string) => ask([user(1_280)], { user_id });
  await rowOf(sim, of("one"));
  sim.clock.advance(BUILDING);
  assert.equal((await rowOf(sim, of("two"))).read, 0);
  assert.equal((await rowOf(sim, { ...of("one"), key: "key-b" })).read, 0);
  assert.equal((await rowOf(sim, of("one"))).read, 1_280);
});

test("another model finds nothing, not even of the system prompt", async () => {
  await using sim = await started("deepseek");
  const opening = [system(1_280), user(300, 1)];
  for (const model of ["deepseek-flash", "deepseek-v4-pro", "deepseek-flash"]) {
    await rowOf(sim, chat(model)(opening));
    sim.clock.advance(BUILDING);
  }
  assert.deepEqual(
    sim.ledger().map(({ read }) => read),
    [0, 0, 1_536],
  );
});

test("tools come after the system prompt, so changed tools lose everything but the system prompt", async () => {
  await using sim = await started("deepseek");
  const tool = (name: string): Body => ({ type: "function", function: { name, parameters: { type: "object" } } });
  const of = (name: string, seed: number) => ask([system(1_280), user(300, seed)], { tools: [tool(name)] });
  await rowOf(sim, of("Read", 1));
  sim.clock.advance(BUILDING);
  await rowOf(sim, of("Grep", 2));
  sim.clock.advance(BUILDING);
  assert.equal((await rowOf(sim, of("Glob", 3))).read, 1_280);
});

test("usage reports hits and misses, whose sum is the prompt; hits cost a fiftieth, and peak hours double every price", async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 5, 0, 30)); // a Monday
  await using sim = await started("deepseek", { clock });
  await rowOf(sim, ask([user(1_280)]));
  clock.advance(BUILDING);
  const response = await send(sim, ask([user(1_280), assistant("fine"), user(20, 2)]));
  const { usage } = (await response.json()) as { usage: Body };
  assert.deepEqual(usage, {
    prompt_tokens: 1_301,
    completion_tokens: 1,
    total_tokens: 1_302,
    prompt_cache_hit_tokens: 1_280,
    prompt_cache_miss_tokens: 21,
    prompt_tokens_details: { cached_tokens: 1_280 },
    completion_tokens_details: { reasoning_tokens: 0 },
  });
  assert.deepEqual(sim.ledger().at(-1)?.billed, { inputUnits: 46.6, usd: 0.00000759 });
  clock.set(Date.UTC(2026, 0, 5, 1, 0));
  assert.equal((await rowOf(sim, ask([user(1_280), assistant("fine"), user(20, 2)]))).billed.usd, 0.00001518);
  clock.set(Date.UTC(2026, 0, 10, 1, 0));
  const saturday = await rowOf(sim, ask([user(1_000, 77)]));
  assert.equal(saturday.billed.usd, 0.0001506);
});

test("its Anthropic endpoint passes over markers and caches the same way", async () => {
  await using sim = await started("deepseek");
  const text = { type: "text", text: textOfTokens(1_280), cache_control: { type: "ephemeral" } };
  const body = { model: "deepseek-flash", max_tokens: 64, messages: [{ role: "user", content: [text] }] };
  const sent = { path: `/anthropic${paths.messages}`, body };
  assert.deepEqual(figures(await rowOf(sim, sent)), { read: 0, written: 0, plain: 1_280 });
  sim.clock.advance(BUILDING);
  const response = await send(sim, sent);
  const { usage } = (await response.json()) as { usage: Record<string, unknown> };
  assert.deepEqual(
    [usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens],
    [0, 1_280, 0],
  );
});
