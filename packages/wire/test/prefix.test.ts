import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anthropic, bytesOf, type FrozenPrefix, type Message, prepare } from "../src/index.ts";
import { readBlock } from "../src/protocols/index.ts";
import { anyConversation, grown, open, readTurn, text, toolResult, userText } from "./conversations.ts";

const bodyOf = (prefix: FrozenPrefix): Buffer =>
  bytesOf(prepare({ protocol: anthropic, prefix, markers: [], closing: { maxTokens: 10, stream: false } }));

const bytes = (prefix: FrozenPrefix): Buffer => Buffer.concat(prefix.chunks());

test("a grown prefix begins with the bytes of the one it grew from", () => {
  fc.assert(
    fc.property(anyConversation, anyConversation, (first, more) => {
      const before = grown(first);
      const kept = Buffer.from(bytes(before));
      const after = grown(more, before);
      assert.ok(after.startsWith(before));
      assert.deepEqual(bytes(after).subarray(0, kept.length), kept);
      assert.deepEqual(bytes(before), kept, "the older prefix did not change");
      assert.equal(after.agreement(before), (before.tip?.index ?? -1) + 1);
    }),
  );
});

test("equal content gives equal hashes, and different content different ones", () => {
  fc.assert(
    fc.property(anyConversation, anyConversation, (a, b) => {
      const [one, other] = [grown(a), grown(b)];
      assert.equal(one.hash === other.hash, bytes(one).equals(bytes(other)));
      assert.equal(one.hash, grown(a).hash);
    }),
  );
});

test("a message added block by block has the same bytes and hash as one added whole", () => {
  fc.assert(
    fc.property(anyConversation, fc.nat(), (messages, cut) => {
      const last = messages.at(-1) as Message;
      if (last.role !== "user") return;
      const before = grown(messages.slice(0, -1));
      const at = 1 + (cut % last.content.length);
      const open = before.appendOpen({ role: "user", content: last.content.slice(0, at) });
      const inParts = open.extend(last.content.slice(at));
      assert.deepEqual(bodyOf(inParts), bodyOf(before.append(last)));
      assert.equal(inParts.hash, before.append(last).hash);
    }),
  );
});

test("siblings that grow from one prefix do not overwrite each other", () => {
  fc.assert(
    fc.property(anyConversation, fc.array(fc.string(), { minLength: 2, maxLength: 6 }), (messages, words) => {
      const parent = grown(messages);
      const added = (word: string): Message => userText(`: ${word}`);
      const siblings = words.map((word) => parent.append(added(word)));
      const later = siblings.map((sibling) => sibling.append(added("second turn")));
      siblings.forEach((sibling, index) => {
        assert.deepEqual(bytes(sibling), bytes(grown([...messages, added(words[index] as string)])));
      });
      later.forEach((line, index) => {
        assert.ok(line.startsWith(siblings[index] as FrozenPrefix));
      });
    }),
  );
});

test("a request contains what the messages said", () => {
  const messages: readonly Message[] = [
    userText('nul \u0000, quote ", line\nend, wide 漢, lone \ud800 surrogate'),
    {
      role: "assistant",
      content: [{ type: "tool_use", id: "toolu_1", name: "Read", input: '{ "n":1.50, "a":"\\u00e9"}' }],
    },
    { role: "user", content: [{ ...toolResult("toolu_1", "gone"), isError: true }] },
  ];
  assert.deepEqual(JSON.parse(bodyOf(grown(messages)).toString()), {
    model: "claude-sonnet-5",
    tools: [
      { name: "Read", description: "Reads a file.", input_schema: { type: "object", properties: {} } },
      { name: "Agent", description: "Starts a fork.", input_schema: { type: "object", properties: {} } },
    ],
    system: [{ type: "text", text: "You are a test." }],
    messages: [
      {
        role: "user",
        content: [{ type: "text", text: 'nul \u0000, quote ", line\nend, wide 漢, lone \ufffd surrogate' }],
      },
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "Read", input: { n: 1.5, a: "é" } }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "gone" }], is_error: true },
        ],
      },
    ],
    max_tokens: 10,
  });
});

test("a tool input keeps its provider's bytes", () => {
  const input = '{ "n":1.50,  "a":"\\u00e9" }';
  const prefix = grown([
    userText("go"),
    { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "Read", input }] },
  ]);
  assert.ok(bytes(prefix).includes(`"input":${input}}`));
});

test("a tool input that was cut off enters as an empty object", () => {
  for (const input of ['{"path": "a', "", "[1]", '"text"']) {
    const prefix = grown([
      userText("go"),
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "Read", input }] },
    ]);
    assert.ok(bytes(prefix).includes(`"input":{}}`), input);
  }
});

test("a result of 10 MB is accepted, and the next turns stay small chunks next to it", () => {
  const big = "x".repeat(10_000_000);
  const [call] = readTurn(1);
  const prefix = grown([userText("go"), call as Message, { role: "user", content: [toolResult("toolu_0", big)] }]);
  const later = prefix.append({ role: "assistant", content: [text("seen")] }).append(userText("more"));
  const { messages } = JSON.parse(bodyOf(later).toString());
  assert.equal(messages[2].content[0].content[0].text.length, 10_000_000);
  assert.ok(later.chunks().length < 10);
});

test("empty texts are skipped, and a message of nothing else is refused", () => {
  assert.deepEqual(
    bodyOf(grown([{ role: "user", content: [text(""), text("a"), text("")] }])),
    bodyOf(grown([userText("a")])),
  );
  assert.throws(() => grown([userText("")]), {
    name: "InputError",
    message: "a user message needs a block that is not empty",
  });
});

test("a thousand turns are a handful of chunks, and a long chain of abandoned branches is too", () => {
  let prefix = grown([userText("start")]);
  for (let turn = 0; turn < 1_000; turn += 1) prefix = grown(readTurn(1, turn), prefix);
  assert.ok(prefix.chunks().length <= 16, `${prefix.chunks().length} chunks`);
  for (let turn = 0; turn < 500; turn += 1) {
    prefix.append(userText("abandoned"));
    prefix = prefix.append(userText(`kept ${turn}`));
  }
  assert.ok(prefix.chunks().length <= 80, `${prefix.chunks().length} chunks`);
});

test("the first divergence is named by its path in the request", () => {
  const parent = grown([userText("one"), { role: "assistant", content: [text("two")] }, userText("three")]);
  const divergence = (other: FrozenPrefix) => parent.firstDivergence(other)?.path;
  const tools = [
    {
      type: "function" as const,
      name: "Read",
      description: "Reads one file.",
      inputSchema: { type: "object", properties: {} },
    },
  ];
  assert.equal(
    divergence(grown([userText("one"), { role: "assistant", content: [text("2")] }])),
    "messages[1].content[0].text",
  );
  assert.equal(divergence(grown([userText("one")], open({ tools }))), "tools[0].description");
  assert.equal(divergence(grown([userText("one")], open({ model: "claude-opus-5" }))), "model");
  assert.equal(divergence(grown([userText("one")], open({ settings: { effort: "low" } }))), "output_config");
  assert.equal(divergence(grown([userText("one")], open({ settings: { betas: ["a-2026"] } }))), "betas");
  assert.equal(divergence(grown([userText("one")])), "messages[1].content[0]");
  assert.equal(divergence(parent), undefined);
});

test("unanswered calls are answered by the constant when the next message enters", () => {
  const [call] = readTurn(2);
  const asked = grown([userText("go"), call as Message]);
  assert.deepEqual(asked.pending, ["toolu_0", "toolu_1"]);
  const partly = asked.append({ role: "user", content: [text("and now?"), toolResult("toolu_1", "second")] });
  const { messages } = JSON.parse(bodyOf(partly).toString());
  const placeholder = [{ type: "text", text: "No result stands here: this call is handled in the background." }];
  assert.deepEqual(messages[2], {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "second" }] },
      { type: "tool_result", tool_use_id: "toolu_0", content: placeholder },
      { type: "text", text: "and now?" },
    ],
  });
  assert.ok(partly.startsWith(asked), "no earlier turn was touched");
  assert.deepEqual(JSON.parse(bodyOf(asked).toString()).messages[2], {
    role: "user",
    content: ["toolu_0", "toolu_1"].map((id) => ({ type: "tool_result", tool_use_id: id, content: placeholder })),
  });
});

test("what a provider adds to its call is sent back with it", () => {
  const call = readBlock(
    `{"type":"tool_use","caller":{"type":"direct", "n":1.0},"id":"toolu_1","name":"Read","input":{}}`,
  );
  const prefix = grown([userText("go"), { role: "assistant", content: [call] }]);
  assert.ok(bytes(prefix).includes(`"input":{},"caller":{"type":"direct", "n":1.0}}`));
});
