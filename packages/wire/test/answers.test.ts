import assert from "node:assert/strict";
import { test } from "node:test";
import { anthropic, FrozenPrefix, fold, type ModelEvent, prepare, userText } from "../src/index.ts";

test("blocks that stop in a different order are put into the provider's order", () => {
  const stopped = (index: number, words: string): ModelEvent => ({
    ...{ type: "block_stopped", index, block: { type: "text", text: words } },
  });
  const { response } = fold([stopped(1, "second"), stopped(0, "first"), stopped(2, "third")]);
  assert.deepEqual(
    response.message.content.map((block) => block.type === "text" && block.text),
    ["first", "second", "third"],
  );
});

test("a stop reason named like an object's built-in member is an ordinary word", () => {
  const [, events] = anthropic.step(
    { ...anthropic.initial, drafts: new Map() },
    { event: "", data: `{"type":"message_delta","delta":{"stop_reason":"constructor"},"usage":{}}` },
  );
  assert.deepEqual(events, []);
  const [state] = anthropic.step(anthropic.initial, {
    event: "",
    data: `{"type":"message_delta","delta":{"stop_reason":"constructor"},"usage":{"cache_read_input_tokens":-5}}`,
  });
  assert.deepEqual([state.stop, state.stopDetail, state.usage.read], ["other", "constructor", 0]);
});

test("a request without a message, or with an invalid limit, is refused before it is encoded", () => {
  const empty = FrozenPrefix.open(anthropic.encoder, { model: "m", tools: [], system: [], settings: {} });
  const parts = { protocol: anthropic, markers: [] };
  const closing = { maxTokens: 1, stream: false };
  assert.throws(() => prepare({ ...parts, prefix: empty, closing }), {
    message: "a request needs at least one message",
  });
  for (const maxTokens of [Number.NaN, Number.POSITIVE_INFINITY, -1, 1.5]) {
    const prefix = empty.append(userText("x"));
    assert.throws(
      () => prepare({ ...parts, prefix, closing: { ...closing, maxTokens } }),
      /^InputError: maxTokens must be/,
    );
  }
});

test("a call keeps the provider's bytes from its start, however they are spaced", () => {
  const begun = (block: string) => {
    const data = `{"type":"content_block_start","index":0,"content_block":${block}}`;
    const [state] = anthropic.step(anthropic.initial, { event: "", data });
    return state.drafts.get(0)?.start;
  };
  const call = { type: "tool_use", id: "c1", name: "Read" };
  const start = `"type":"tool_use","id":"c1","name":"Read"`;
  assert.deepEqual(begun(`{${start},"input":{}}`), { ...call, input: "{}" });
  assert.deepEqual(begun(`{${start},"input":{"a":1},"caller":{"type":"direct"}}`), {
    ...{ ...call, input: `{"a":1}`, extras: `"caller":{"type":"direct"}` },
  });
  assert.deepEqual(begun(`{${start}, "input": {"a":1.0, "a":2}, "caller": { "type":"direct"},"b":1e2}`), {
    ...{ ...call, input: `{"a":1.0, "a":2}`, extras: `"caller": { "type":"direct"},"b":1e2` },
  });
});
