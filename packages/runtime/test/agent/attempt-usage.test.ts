/** The cost of attempts, computed from what was received of them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type ModelFacts, modelFacts, type Usage } from "@prefork/wire";
import { AttemptUsage } from "../../src/agent/index.ts";

const begun = (usage: Usage) => ({ type: "response_started", id: "msg", model: "any", usage }) as const;

const HALF: Usage = { plain: 150_000, read: 0, written: {}, output: 1 };

/** A dollar a million, and ten where a prompt is longer than 200,000 tokens. */
const tiered = (): ModelFacts => {
  const facts = modelFacts("claude-sonnet-4-6");
  assert.ok(facts);
  const prices = { ...facts.prices, input: 1, output: 0 };
  return { ...facts, prices, tiers: [{ above: 200_000, prices: { ...prices, input: 10 } }] };
};

test("nothing is billed before an answer begins", () => {
  const heard = new AttemptUsage(1_000);
  assert.deepEqual([heard.ofFailedAttempts(tiered()), heard.ofAllAttempts(tiered())], [undefined, undefined]);
});

test("each attempt is priced by its own length, and everything received of its answer counts", () => {
  const heard = new AttemptUsage(1_000);
  heard.observe(begun(HALF));
  heard.observe({ type: "text_grew", index: 0, text: "x".repeat(300) });
  heard.observe(begun(HALF));
  heard.observe({ type: "input_grew", index: 0, json: "y".repeat(30) });
  assert.deepEqual(heard.ofFailedAttempts(tiered()), { usage: { ...HALF, output: 100 }, usd: 0.15 });
  assert.deepEqual(heard.ofAllAttempts(tiered()), { usage: { ...HALF, plain: 300_000, output: 110 }, usd: 0.3 });
  assert.deepEqual(heard.ofAllAttempts(undefined), { usage: { ...HALF, plain: 300_000, output: 110 } });
});

test("if the provider reports cache reads only at the end, the prompt of an answer that broke off is billed by estimate", () => {
  const heard = new AttemptUsage(1_000);
  const none: Usage = { plain: 0, read: 0, written: {}, output: 0 };
  heard.observe(begun(none));
  heard.observe({ type: "text_grew", index: 0, text: "x".repeat(30) });
  assert.deepEqual(heard.ofAllAttempts(undefined), { usage: { ...none, plain: 1_000, output: 10, estimated: 1_000 } });
});
