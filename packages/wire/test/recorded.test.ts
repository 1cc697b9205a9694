import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  anthropic,
  assemble,
  bytesOf,
  type ForkRequestsOptions,
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

test("a recorded request is rebuilt byte for byte", () => {
  const bodies = [
    `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hello"}]}`,
    `{ "model" : "m",\n "messages" : [ {"content" : [ {"text":"a","type":"text"} ], "role" : "user"} ] , "max_tokens" : 5.0e0 }\n`,
    `{"model":"m","system":"be brief","tools":[{"name":"t","cache_control":{"type":"ephemeral","ttl":"1h"},"input_schema":{}}],"messages":[{"role":"user","content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":"\\u00e9 \\" ] }"}]}],"max_tokens":1}`,
    `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"r","cache_control": {"type": "ephemeral"} }]}]}],"model":"m"}`,
    `{"model":"m","tools":[],"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`,
    `{"model":"m","system":null,"tools":null,"cache_control":null,"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":null}]}]}`,
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

test("tools and system written after the messages are moved before them, with a note", () => {
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

test("an object is accepted too, with a note that its formatting may have changed", () => {
  const { notes } = readRecorded({ model: "m", messages: [{ role: "user", content: "x" }] });
  assert.deepEqual(notes, ["given as an object: number and key forms may differ from the bytes that were sent"]);
});

test("what is not a request is refused in one line that names the location", () => {
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
    [
      `{"model":"m","messages":[{"role":"user","content":[1]}]}`,
      /^messages\[0\]\.content\[0\] is not a block with a type$/,
    ],
    [
      `{"model":"m","system":5,"messages":[{"role":"user","content":"x"}]}`,
      /^system must be a string or an array of objects$/,
    ],
    [`{"model":"m","tools":{"a":1},"messages":[{"role":"user","content":"x"}]}`, /^tools must be an array of objects$/],
    [
      `{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"x"}]}`,
      /only fills the cache: max_tokens is 0$/,
    ],
    [
      `{"model":"m","messages":[{"role":"user","content":"x"}],"messages":[{"role":"user","content":"y"}]}`,
      /^the recorded request has "messages" twice$/,
    ],
    [`{"model":"m","messages":[{"role":"user","content":"x","role":"assistant"}]}`, /^messages\[0\] has "role" twice$/],
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

test("an answer that is not an assistant message, or a missing directive, is refused", () => {
  assert.throws(() => forkRequests(parentBody, []), /a family needs at least one directive/);
  assert.throws(() => forkRequests(parentBody, ["x"], { answer: "{" }), /the parent's answer is not valid JSON/);
  assert.throws(
    () => forkRequests(parentBody, ["x"], { answer: { role: "user", content: [] } }),
    /must be an assistant message/,
  );
});

const small = (head: string, content: string): string =>
  `{"model":"claude-sonnet-5",${head}"messages":[{"role":"user","content":${content}}],"max_tokens":9}`;
const calling = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Agent","input":{}}]}`;
const firstChild = (body: string, options: ForkRequestsOptions = {}) =>
  forkRequests(body, ["one"], { answer: calling, protocol: "none", ...options }).members[0] as Prepared;

test("null instead of system, tools or a marker does not break the request", () => {
  const child = firstChild(small(`"system":null,"tools":null,`, `[{"type":"text","text":"a","cache_control":null}]`));
  assert.equal(JSON.parse(bytesOf(child).toString()).system, null);
  assert.deepEqual(
    child.markers.map(({ role }) => role),
    ["shared", "tail"],
  );
});

test("a parent that marked its messages but not its system gets no new marker in its own bytes", () => {
  const body = small(`"system":"be brief",`, `[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]`);
  const shared = body.indexOf(`],"max_tokens"`);
  assert.equal(Buffer.compare(bytesOf(firstChild(body)).subarray(0, shared), Buffer.from(body).subarray(0, shared)), 0);
});

test("a system that was written before the tools is still the end of the head", () => {
  const hour = `"cache_control":{"type":"ephemeral","ttl":"1h"}`;
  const body = small(
    `"system":[{"type":"text","text":"s",${hour}}],"tools":[{"name":"t",${hour}}],`,
    `[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]`,
  );
  const places = (cold: boolean) =>
    firstChild(body, { cold }).markers.map(({ at, ttl }) => `${anthropic.encoder.pathOf(at)} ${ttl}`);
  const rest = ["messages[0].content[0] 5m", "messages[2].content[0] 5m", "messages[2].content[1] 5m"];
  assert.deepEqual(places(false), ["system[0] 1h", ...rest]);
  assert.deepEqual(places(true), ["system[0] 5m", ...rest], "a cold family writes five minutes");
  const cold = bytesOf(firstChild(body, { cold: true })).toString();
  assert.ok(!cold.includes("1h"), "the recorded hour is not put back");
});

test("thinking of either kind and empty strings never carry a marker", () => {
  const parent = `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"t"},{"type":"redacted_thinking","data":"d"}]},{"role":"user","content":""}],"cache_control":{"type":"ephemeral"}}`;
  assert.throws(() => readRecorded(parent), /messages\[2\]\.content is empty/);
  const ended = parent.replace(`,{"role":"user","content":""}`, "");
  assert.deepEqual(placesOf(ended), ["messages[1].content[0] 5m"]);
});

test("an answer is sent with its provider's bytes, including unknown members and escapes", () => {
  const block = `{"type":"thinking","thinking":"caf\\u00e9 \\/","signature":"S","extra":1}`;
  const turn = `{"role":"assistant","content":[${block},{"type":"tool_use","id":"a","name":"Agent","input":{}}]}`;
  assert.ok(bytesOf(firstChild(small("", `"x"`), { answer: turn })).includes(block));
});

test("a trimmed fork of a recording that already contains the answer is refused", () => {
  const held = small("", `"x"`).replace(`],"max_tokens"`, `,${calling}],"max_tokens"`);
  assert.throws(() => forkRequests(held, ["one"], { inFlight: "trim" }), /already end with the in-flight turn/);
});

test("on a model that strips thinking a turn without calls is kept with a note, redacted thinking included", () => {
  const loop = (thought: string) =>
    `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"x"},{"role":"assistant","content":[${thought},{"type":"tool_use","id":"c","name":"Read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}],"max_tokens":9}`;
  for (const thought of [
    `{"type":"thinking","thinking":"t","signature":"s"}`,
    `{"type":"redacted_thinking","data":"d"}`,
  ]) {
    const { notes } = forkRequests(loop(thought), ["one"], {
      answer: `{"role":"assistant","content":[{"type":"text","text":"t"}]}`,
    });
    assert.deepEqual(notes, [
      "claude-sonnet-4-5 drops earlier thinking when the directive arrives, and the cache ends there",
    ]);
    assert.throws(() => forkRequests(loop(thought), ["one"], { inFlight: "trim" }), /cannot trim/);
  }
});

test("thousands of marked blocks and deep results are read in one pass", () => {
  const marked = Array.from({ length: 8_000 }, () => `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`);
  assert.equal(readRecorded(small("", `[${marked.join(",")}]`)).markers.length, 8_000);
  const deep = `${'{"type":"tool_result","tool_use_id":"x","content":['.repeat(5_000)}${"]}".repeat(5_000)}`;
  assert.equal(readRecorded(small("", `[${deep}]`)).prefix.messages, 1);
});
