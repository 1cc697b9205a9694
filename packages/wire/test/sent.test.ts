import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anthropic, bytesOf, FrozenPrefix, type Head, type Message, nextMarkers, prepare } from "../src/index.ts";
import { anyConversation, grown, head, open, readTurn, text, toolResult, userText } from "./conversations.ts";

/** The prefix put together again from neutral messages and the bytes that were sent, as a journal would. */
const again = (messages: readonly Message[], given: Head = head): readonly [FrozenPrefix, FrozenPrefix] => {
  let live = open(given);
  let replayed = FrozenPrefix.reopen(anthropic.encoder, given, Buffer.from(live.sentHead()));
  for (const message of messages) {
    for (const entering of live.entering(message)) {
      const next = live.appendOpen(entering);
      replayed = replayed.appendOpen(entering, next.sentSince(live).map(Buffer.from));
      live = next;
    }
  }
  return [live, replayed];
};

const facts = (prefix: FrozenPrefix) => {
  const markers = nextMarkers(prefix);
  const closing = { maxTokens: 10, stream: true };
  const segments: object[] = [];
  for (let at = prefix.tip; at; at = at.before) {
    const { before: _before, headEnd, ...plain } = at;
    segments.unshift({ ...plain, headEnd: headEnd?.index });
  }
  return {
    body: bytesOf(prepare({ protocol: anthropic, prefix, markers, closing })).toString("latin1"),
    segments,
    pending: prefix.pending,
    close: prefix.close,
    model: prefix.model,
    betas: prefix.betas,
  };
};

const shapes: Readonly<Record<string, readonly Message[]>> = {
  "numbers, key orders and white space of a call": [
    userText("go"),
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm\n", signature: "c2ln+/=" },
        { type: "redacted_thinking", data: "b3BhcXVl" },
        { type: "tool_use", id: "a", name: "Read", input: '{\n  "z": 1.50e+02,\r\n\t"a": -0, "\\u0061": [ ] }' },
        { type: "tool_use", id: "b", name: "Read", input: "{}", extras: '"caller":{"n":1.0}' },
      ],
    },
    { role: "user", content: [toolResult("a", "one"), toolResult("b", "two")] },
  ],
  "a call that was cut off": [
    userText("go"),
    { role: "assistant", content: [{ type: "tool_use", id: "a", name: "Read", input: '{"path": "x' }] },
    { role: "user", content: [{ ...toolResult("a", "incomplete"), isError: true }] },
  ],
  "empty texts, lone surrogates and letters beyond the first plane": [
    { role: "user", content: [text(""), text("a\ud800b"), text("😀\u2028"), text("")] },
    { role: "assistant", content: [text(""), text("漢\u0000")] },
  ],
  "images, documents and provider blocks": [
    {
      role: "user",
      content: [
        { type: "image", source: { kind: "base64", mediaType: "image/png", data: "aGk=" } },
        { type: "document", source: { kind: "text", text: "t" }, title: 'a "title"' },
        { type: "provider", kind: "thinking", json: ' {"type":"container", "n":1.0}\n' },
      ],
    },
    { role: "assistant", content: [{ type: "text", text: "said", raw: '{ "text":"said", "type":"text" }' }] },
  ],
  "calls nobody answered": [userText("go"), ...readTurn(3).slice(0, 1), userText("never mind")],
};

for (const [name, messages] of Object.entries(shapes)) {
  test(`a prefix rebuilt from what was sent is the same: ${name}`, () => {
    const [live, replayed] = again(messages);
    assert.deepEqual(facts(replayed), facts(live));
  });
}

test("a rebuilt head is the same, with and without tools, system and settings", () => {
  const heads: readonly Head[] = [
    head,
    { ...head, tools: [] },
    { ...head, system: [] },
    { ...head, tools: [], system: [] },
    {
      ...head,
      settings: { effort: "low", betas: ["b-2", "a-1"], stopSequences: ['"tools":['], temperature: 0.5 },
      tools: [...head.tools, { type: "provider", name: "web", json: ' { "type":"web", "n":1.0 } ' }],
    },
  ];
  for (const given of heads) {
    const [live, replayed] = again([userText("go")], given);
    assert.deepEqual(facts(replayed), facts(live));
  }
});

test("any conversation can be rebuilt from what was sent", () => {
  fc.assert(
    fc.property(anyConversation, (messages) => {
      const [live, replayed] = again(messages);
      assert.deepEqual(facts(replayed), facts(live));
    }),
  );
});

test("the blocks that an open message grew by are put back into it", () => {
  const before = grown([userText("one")]);
  const after = before.extend([text(""), text("two"), text("three")]);
  const sent = after.sentSince(before);
  assert.deepEqual(sent.map(String), ['{"type":"text","text":"two"}', '{"type":"text","text":"three"}']);
  assert.deepEqual(facts(before.extend([text(""), text("two"), text("three")], sent)), facts(after));
});

test("what was sent wins over how the message would be encoded today", () => {
  const prefix = open().appendOpen(userText("hello"), [Buffer.from('{"text":"hello","type":"text"}')]);
  assert.ok(Buffer.concat(prefix.chunks()).toString().endsWith('"content":[{"text":"hello","type":"text"}'));
});

test("bytes that cannot belong to a message or a head are refused", () => {
  assert.throws(() => open().appendOpen(userText("a"), []), {
    name: "InputError",
    message: "1 blocks cannot have been sent as 0",
  });
  for (const broken of ['{"model":"x', "[]", ""])
    assert.throws(() => FrozenPrefix.reopen(anthropic.encoder, head, Buffer.from(broken)), { name: "InputError" });
});

test("white space around a provider's own JSON is removed, so that a marker goes inside the block", () => {
  const prefix = grown([{ role: "user", content: [{ type: "provider", kind: "x", json: ' {"type":"x"}\n' }] }]);
  const markers = nextMarkers(prefix);
  const body = bytesOf(prepare({ protocol: anthropic, prefix, markers, closing: { maxTokens: 1, stream: false } }));
  assert.deepEqual(JSON.parse(body.toString()).messages, [
    { role: "user", content: [{ type: "x", cache_control: { type: "ephemeral" } }] },
  ]);
});
