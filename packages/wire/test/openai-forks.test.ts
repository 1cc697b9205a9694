/** Families of forks on formats whose items are not our messages: what siblings share, and where their markers stand. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bytesOf,
  FrozenPrefix,
  forkFamily,
  gemini,
  type Head,
  type Json,
  type Message,
  nextMarkers,
  openaiChat,
  openaiResponses,
  type Prepared,
  type Protocol,
  prepare,
  profiles,
  text,
  toolResult,
  userText,
} from "../src/index.ts";

const inFlight: Message = {
  role: "assistant",
  content: [
    text("I split it."),
    { type: "tool_use", id: "call_a", name: "Agent", input: `{"directive":"one"}` },
    { type: "tool_use", id: "call_b", name: "Agent", input: `{"directive":"two"}` },
    { type: "tool_use", id: "call_c", name: "Read", input: "{}" },
  ],
};

const parentOf = (protocol: Protocol, model: string): Prepared => {
  const head: Head = {
    model,
    tools: [{ type: "function", name: "Agent", description: "Forks.", inputSchema: { type: "object" } }],
    system: [text("You are a test.")],
    settings: { cacheKey: "session-1" },
  };
  const prefix = FrozenPrefix.open(protocol.encoder, head).append(userText("Do both."));
  return prepare({ protocol, prefix, markers: nextMarkers(prefix), closing: { maxTokens: 64, stream: true } });
};

const familyOf = (parent: Prepared) =>
  forkFamily(parent, ["one", "two", "three"], {
    inFlight,
    results: [toolResult("call_c", "the file")],
    parentNote: "launched",
    protocol: "none",
  });

type Item = { readonly [key: string]: Json };
const listOf = (prepared: Prepared, list: string): readonly Item[] =>
  (JSON.parse(bytesOf(prepared).toString()) as Record<string, readonly Item[]>)[list] ?? [];

const wires: readonly (readonly [Protocol | undefined, string, string])[] = [
  [openaiResponses, "gpt-6-sol", "input"],
  [openaiResponses, "gpt-5.5", "input"],
  [openaiChat, "gpt-6-sol", "messages"],
  [gemini, "gemini-3.8-flash", "contents"],
  [gemini, "gemini-2.5-pro", "contents"],
  [profiles.get("deepseek")?.protocol, "deepseek-flash", "messages"],
  [profiles.get("dashscope")?.protocol, "qwen3.7-max", "messages"],
];

for (const [protocol, model, list] of wires) {
  assert.ok(protocol);
  test(`${protocol.name}, ${model}: siblings and the parent's next request differ only in their last item`, () => {
    const { members, parentNext } = familyOf(parentOf(protocol, model));
    assert.ok(parentNext);
    const lines = [...members, parentNext].map((prepared) => listOf(prepared, list));
    const [first = []] = lines;
    for (const line of lines) {
      assert.equal(line.length, first.length);
      assert.deepEqual(unmarked(line.slice(0, -1)), unmarked(first.slice(0, -1)));
    }
    const shared = members.map((prepared) => bytesOf(prepared).subarray(0, members[0]?.prefix.tip?.start ?? 0));
    for (const bytes of shared) assert.equal(Buffer.compare(bytes, shared[0] ?? Buffer.of()), 0);
    assert.equal(new Set(lines.map((line) => JSON.stringify(line.at(-1)))).size, 4);
  });
}

/** A parent's note keeps one marker less than a fork does. */
const unmarked = (items: readonly Item[]): Json =>
  JSON.parse(
    JSON.stringify(items, (key, value) =>
      key === "prompt_cache_breakpoint" || key === "cache_control" ? undefined : value,
    ),
  ) as Json;

test("openai-responses: a fork marks the end of system, of what it inherits, of what all share, and its own last block", () => {
  const [fork] = familyOf(parentOf(openaiResponses, "gpt-6-sol")).members;
  assert.ok(fork);
  const marked = fork.markers.map(({ at, role }) => `${role} ${openaiResponses.encoder.pathOf(at)}`);
  assert.deepEqual(marked, [
    "system input[0].content[0]",
    "inherited input[1].content[0]",
    "shared input[8]",
    "tail input[9].content[0]",
  ]);
  const items = listOf(fork, "input");
  assert.deepEqual(items[8], {
    type: "function_call_output",
    call_id: "call_c",
    output: [{ type: "input_text", text: "the file", prompt_cache_breakpoint: { mode: "explicit" } }],
  });
});

test("openai-responses: with automatic caching nothing is marked, and the key keeps a family together", () => {
  const { members } = familyOf(parentOf(openaiResponses, "gpt-5.5"));
  for (const fork of members) {
    assert.deepEqual(fork.markers, []);
    assert.equal(JSON.parse(bytesOf(fork).toString()).prompt_cache_key, "session-1");
  }
});

test("openai-chat: a difference is located in the provider's own list", () => {
  const [one, two] = familyOf(parentOf(openaiChat, "gpt-6-sol")).members;
  assert.ok(one && two);
  assert.equal(one.prefix.firstDivergence(two.prefix)?.path, "messages[6].content[0].text");
});

test("gemini: siblings diverge at a separate content, and nothing is marked", () => {
  const [one, two] = familyOf(parentOf(gemini, "gemini-3.8-flash")).members;
  assert.ok(one && two);
  assert.deepEqual(one.markers, []);
  assert.equal(one.prefix.firstDivergence(two.prefix)?.path, "contents[3].parts[0].text");
});
