import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  anthropic,
  assemble,
  bytesOf,
  forkRequests,
  nextMarkers,
  type Prepared,
  prepare,
  readRecorded,
} from "../src/index.ts";
import { anyConversation, grown, userText } from "./conversations.ts";

const again = (body: string | Buffer): Buffer =>
  bytesOf(assemble({ protocol: anthropic, ...readRecorded(body), stream: false }));

const placesOf = (body: string) =>
  readRecorded(body).markers.map(({ at, ttl }) => `${anthropic.encoder.pathOf(at)} ${ttl}`);

test("a recorded request is put together again letter for letter", () => {
  const bodies = [
    `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hello"}]}`,
    `{ "model" : "m",\n "messages" : [ {"content" : [ {"text":"a","type":"text"} ], "role" : "user"} ] , "max_tokens" : 5.0e0 }\n`,
    `{"model":"m","system":"be brief","tools":[{"name":"t","cache_control":{"type":"ephemeral","ttl":"1h"},"input_schema":{}}],"messages":[{"role":"user","content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":"\\u00e9 \\" ] }"}]}],"max_tokens":1}`,
    `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"r","cache_control": {"type": "ephemeral"} }]}]}],"model":"m"}`,
    `{"model":"m","tools":[],"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`,
  ];
  for (const body of bodies) assert.equal(again(body).toString(), body);
});

test("our own requests come back with their hash and their markers", () => {
  fc.assert(
    fc.property(anyConversation, (messages) => {
      const prefix = grown(messages);
      const markers = nextMarkers(prefix);
      const sent = prepare({ protocol: anthropic, prefix, markers, closing: { maxTokens: 10, stream: true } });
      const recorded = readRecorded(bytesOf(sent));
      assert.equal(recorded.prefix.hash, prefix.hash);
      assert.deepEqual(
        recorded.markers.map(({ at, ttl }) => ({ index: at.index, ttl })),
        markers.map(({ at, ttl }) => ({ index: at.index, ttl })),
      );
      assert.deepEqual(again(bytesOf(sent)), bytesOf(sent));
    }),
  );
});

test("markers are found wherever a request may carry them", () => {
  const marker = `"cache_control":{"type":"ephemeral"}`;
  assert.deepEqual(
    placesOf(
      `{"model":"m","tools":[{"name":"a"},{"name":"b",${marker}}],"system":[{"type":"text","text":"s",${marker}}],` +
        `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"r",${marker}}]},` +
        `{"type":"text","text":"t","cache_control":{"ttl":"5m","type":"ephemeral"}}]}]}`,
    ),
    ["tools[1] 5m", "system[0] 5m", "messages[0].content[0] 5m", "messages[0].content[1] 5m"],
  );
});

test("automatic caching becomes a marker where the provider would have put it", () => {
  const automatic = `"cache_control":{"type":"ephemeral","ttl":"1h"}`;
  const messages = `"messages":[{"role":"user","content":"first"},{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":"last"}]`;
  const marked = `{"model":"m",${messages.replace(`"last"`, `[{"type":"text","text":"last","cache_control":{"type":"ephemeral","ttl":"1h"}}]`)}}`;
  for (const body of [
    `{${automatic},"model":"m",${messages}}`,
    `{"model":"m",${automatic},${messages}}`,
    `{"model":"m",${messages},${automatic}}`,
  ]) {
    assert.deepEqual(placesOf(body), ["messages[2].content[0] 1h"]);
    assert.equal(again(body).toString(), marked);
  }
});

test("tools and system written after the messages are moved before them, and that is said", () => {
  const { prefix, notes } = readRecorded(
    `{"messages":[{"role":"user","content":"x"}],"model":"m","system":"s","tools":[{"name":"t"}],"max_tokens":3}`,
  );
  assert.deepEqual(notes, ["moved before messages: system, tools"]);
  assert.equal(
    again(
      `{"messages":[{"role":"user","content":"x"}],"model":"m","system":"s","tools":[{"name":"t"}],"max_tokens":3}`,
    ).toString(),
    `{"system":"s","tools":[{"name":"t"}],"messages":[{"role":"user","content":"x"}],"model":"m","max_tokens":3}`,
  );
  assert.equal(prefix.messages, 1);
});

test("an object is taken too, with a note that its spelling may have changed", () => {
  const { notes } = readRecorded({ model: "m", messages: [{ role: "user", content: "x" }] });
  assert.deepEqual(notes, ["given as an object: number and key forms may differ from the bytes that were sent"]);
});

test("what is no request is refused in one line that names the place", () => {
  const refusals: readonly (readonly [string, RegExp])[] = [
    ["{", /^the recorded request is not valid JSON: /],
    ["[]", /^the recorded request must be a JSON object$/],
    [`{"messages":[]}`, /^the recorded request has no `model`$/],
    [`{"model":"m"}`, /^the recorded request has no `messages` array$/],
    [`{"model":"m","messages":[]}`, /^the recorded request's `messages` is empty$/],
    [`{"model":"m","messages":[1]}`, /^messages\[0\] is not an object$/],
    [
      `{"model":"m","messages":[{"role":"tool","content":"x"}]}`,
      /^messages\[0\]\.role must be user, assistant or system$/,
    ],
    [`{"model":"m","messages":[{"role":"user"}]}`, /^messages\[0\]\.content must be a string or an array$/],
    [`{"model":"m","messages":[{"role":"user","content":[]}]}`, /^messages\[0\]\.content is empty$/],
  ];
  for (const [body, message] of refusals) {
    assert.throws(() => readRecorded(body), { name: "InputError", message }, body);
  }
});

const parentBody = (() => {
  const prefix = grown([userText("split this")]);
  return bytesOf(
    prepare({ protocol: anthropic, prefix, markers: nextMarkers(prefix), closing: { maxTokens: 10, stream: true } }),
  );
})();

const answer = `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s=="},{"type":"tool_use","id":"a","name":"Agent","input":{"n": 1.0}},{"type":"tool_use","id":"b","name":"Read","input":{}}]}`;
const known = [{ type: "tool_result" as const, toolUseId: "b", content: [{ type: "text" as const, text: "file" }] }];

const commonPrefix = (a: Buffer, b: Buffer): number => {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
};

test("forks of a recorded request begin with its bytes and differ only in their last block", () => {
  const family = forkRequests(parentBody, ["one", "two"], { answer, results: known, parentNote: "launched" });
  const bodies = [...family.members, family.parentNext as Prepared].map(bytesOf);
  const lastMessageEnd = parentBody.lastIndexOf(`],"max_tokens"`);
  for (const body of bodies) {
    assert.equal(Buffer.compare(body.subarray(0, lastMessageEnd), parentBody.subarray(0, lastMessageEnd)), 0);
    assert.deepEqual(body.subarray(-28), parentBody.subarray(-28), "what followed the messages still does");
  }
  const [first, second] = bodies as [Buffer, Buffer];
  const shared = first.subarray(0, commonPrefix(first, second)).toString();
  assert.ok(shared.includes(`"input":{"n": 1.0}}`), "the parent's call, as its provider wrote it");
  assert.ok(shared.includes(`"text":"file"`), "the real result of the other tool");
  assert.ok(shared.endsWith("fork-directive: "));
  const { messages } = JSON.parse(first.toString());
  assert.deepEqual(
    messages[2].content.map((block: { type: string; tool_use_id?: string; cache_control?: unknown }) => [
      block.type,
      block.tool_use_id,
      block.cache_control !== undefined,
    ]),
    [
      ["tool_result", "a", false],
      ["tool_result", "b", true],
      ["text", undefined, true],
    ],
  );
});

test("a recording that ends with the parent's answer needs no other", () => {
  const withAnswer = parentBody
    .toString()
    .replace(
      `],"max_tokens"`,
      `,${JSON.stringify({ role: "assistant", content: JSON.parse(answer).content })}],"max_tokens"`,
    );
  const given = forkRequests(parentBody, ["one"], { answer }).members.map(bytesOf);
  const ended = forkRequests(withAnswer, ["one"]).members.map(bytesOf);
  assert.deepEqual(JSON.parse(String(ended[0])), JSON.parse(String(given[0])));
});

test("placeholders for all leaves no result in the tail", () => {
  const [member] = forkRequests(parentBody, ["one"], { answer, results: known, placeholders: "all" }).members;
  assert.ok(!bytesOf(member as Prepared).includes(`"text":"file"`));
});

test("a trimmed family follows the parent's last request directly; the parent keeps its turn", () => {
  const family = forkRequests(parentBody, ["one"], {
    answer,
    inFlight: "trim",
    protocol: "none",
    parentNote: "launched",
  });
  const { messages } = JSON.parse(bytesOf(family.members[0] as Prepared).toString());
  assert.deepEqual(
    messages.map(({ role }: { role: string }) => role),
    ["user", "user"],
  );
  assert.equal(messages[1].content[0].text, "one");
  assert.equal(JSON.parse(bytesOf(family.parentNext as Prepared).toString()).messages.length, 3);
});

test("on a model that strips thinking the directive goes inside the last result, and trimming its loop is refused", () => {
  const strip = parentBody.toString().replace("claude-sonnet-5", "claude-sonnet-4-5");
  const { messages } = JSON.parse(
    bytesOf(forkRequests(strip, ["one"], { answer, protocol: "none" }).members[0] as Prepared).toString(),
  );
  assert.deepEqual(
    messages[2].content.map((block: { type: string; content: readonly { text: string }[] }) => [
      block.type,
      block.content.map((part) => part.text),
    ]),
    [
      ["tool_result", ["No result stands here: this call is handled in the background."]],
      ["tool_result", ["No result stands here: this call is handled in the background.", "one"]],
    ],
  );
  const inLoop = strip.replace(
    `],"max_tokens"`,
    `,{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"c","name":"Read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}],"max_tokens"`,
  );
  assert.throws(
    () => forkRequests(inLoop, ["one"], { inFlight: "trim" }),
    /^InputError: cannot trim: claude-sonnet-4-5 drops earlier thinking/,
  );
  assert.equal(forkRequests(inLoop, ["one"]).members.length, 1);
});

test("an answer that is no assistant message, or no directive, is refused", () => {
  assert.throws(() => forkRequests(parentBody, []), /a family needs at least one directive/);
  assert.throws(() => forkRequests(parentBody, ["x"], { answer: "{" }), /the parent's answer is not valid JSON/);
  assert.throws(
    () => forkRequests(parentBody, ["x"], { answer: { role: "user", content: [] } }),
    /must be an assistant message/,
  );
});
