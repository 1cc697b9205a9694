/** Anthropic Messages against the suite that every protocol passes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { anthropic } from "../../src/index.ts";
import { blockStart, blockStop, delta, frame, started } from "./anthropic-answers.ts";
import { anthropicConformance } from "./anthropic-conformance.ts";
import { conformanceSuite } from "./protocol-suite.ts";

conformanceSuite(anthropicConformance);

test("anthropic: unknown frames and deltas are ignored", () => {
  const { step, initial } = anthropic;
  const [begun] = step(initial, started());
  const [opened] = step(begun, blockStart(0, `{"type":"text","text":"a"}`));
  assert.deepEqual(step(opened, frame("news", `"index":0`)), [opened, []]);
  assert.deepEqual(step(opened, delta(0, `"type":"glow_delta","glow":1`)), [opened, []]);
});

test("anthropic: a server tool's input may also arrive with the start of its block", () => {
  const json = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "x"}}`;
  const [opened] = anthropic.step(anthropic.initial, blockStart(0, json));
  const [, events] = anthropic.step(opened, blockStop(0));
  assert.deepEqual(events, [
    { type: "block_stopped", index: 0, block: { type: "provider", kind: "server_tool_use", json } },
  ]);
});
