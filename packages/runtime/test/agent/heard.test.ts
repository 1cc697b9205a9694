/** What attempts took, by what was heard of them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type ModelFacts, modelFacts, type Usage } from "@prefork/wire";
import { Heard } from "../../src/agent/index.ts";

const begun = (usage: Usage) => ({ type: "response_started", id: "msg", model: "any", usage }) as const;

const HALF: Usage = { plain: 150_000, read: 0, written: {}, output: 1 };

/** A dollar a million, and ten where a prompt is longer than 200,000 tokens. */
const tiered = (): ModelFacts => {
  const facts = modelFacts("claude-sonnet-4-6");
  assert.ok(facts);
  const prices = { ...facts.prices, input: 1, output: 0 };
  return { ...facts, prices, tiers: [{ above: 200_000, prices: { ...prices, input: 10 } }] };
};

test("nothing was billed before an answer began", () => {
  const heard = new Heard(1_000);
  assert.deepEqual([heard.lost(tiered()), heard.all(tiered())], [undefined, undefined]);
});

test("each attempt has the price of its own length, and all that was seen of its answer counts", () => {
  const heard = new Heard(1_000);
  heard.hear(begun(HALF));
  heard.hear({ type: "text_grew", index: 0, text: "x".repeat(300) });
  heard.hear(begun(HALF));
  heard.hear({ type: "input_grew", index: 0, json: "y".repeat(30) });
  assert.deepEqual(heard.lost(tiered()), { usage: { ...HALF, output: 100 }, usd: 0.15 });
  assert.deepEqual(heard.all(tiered()), { usage: { ...HALF, plain: 300_000, output: 110 }, usd: 0.3 });
  assert.deepEqual(heard.all(undefined), { usage: { ...HALF, plain: 300_000, output: 110 } });
});

test("where the provider tells what it read only at the end, an answer that broke off is billed for the prompt by estimate", () => {
  const heard = new Heard(1_000);
  const none: Usage = { plain: 0, read: 0, written: {}, output: 0 };
  heard.hear(begun(none));
  heard.hear({ type: "text_grew", index: 0, text: "x".repeat(30) });
  assert.deepEqual(heard.all(undefined), { usage: { ...none, plain: 1_000, output: 10, estimated: 1_000 } });
});
