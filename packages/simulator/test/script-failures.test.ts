import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ManualClock, type SimAnswer, type SimScript, type Simulator, say, startSimulator } from "@prefork/simulator";
import { type Body, marked, parts, post, refusal, request, row, textBlock } from "./sending.ts";

const body: Body = request({ messages: [{ role: "user", content: [textBlock(2_000, 1, marked)] }] });

/** The first answer is what a script without types may return; then it comes to its senses. */
const once = (wrong: unknown): SimScript => {
  const answers = [wrong as SimAnswer];
  return () => (answers.length > 0 ? (answers.shift() as SimAnswer) : say("ok"));
};

const settled = async (sim: Simulator): Promise<void> => {
  while (sim.ledger()[0]?.outcome === "open") await new Promise(setImmediate);
};

const wrongAnswers: readonly (readonly [string, unknown, string])[] = [
  ["undefined", undefined, "answer must be an object with content"],
  ["null", null, "answer must be an object with content"],
  ["a string", "hi", "answer must be an object with content"],
  ["an empty object", {}, "answer.content must be a list of blocks"],
  ["a list with null", { content: [null] }, "answer.content[0] must be an object"],
  ["text without text", { content: [{ type: "text" }] }, "answer.content[0].text must be a string"],
  ["a call without input", { content: [{ type: "tool_use", name: "R" }] }, "answer.content[0].input must be an object"],
  [
    "an inherited type",
    { content: [{ type: "constructor" }] },
    "answer.content[0].type must be text, thinking, redacted_thinking, tool_use, server_tool_use or end in _tool_result",
  ],
  ["half a token", { content: [], outputTokens: 0.5 }, "answer.outputTokens must be a whole number"],
  [
    "what JSON cannot say",
    { content: [{ type: "tool_use", name: "R", input: { n: 1n } }] },
    "Do not know how to serialize a BigInt",
  ],
];

for (const [what, wrong, complaint] of wrongAnswers)
  for (const stream of [false, true])
    test(`a script that answers ${what}, ${stream ? "streamed" : "whole"}, is a 500 that says so and leaves no entry`, async () => {
      await using sim = await startSimulator({ clock: new ManualClock(), script: once(wrong) });
      assert.equal(await refusal(sim, { ...body, stream }), `500 api_error: script: ${complaint}`);
      const [failed] = sim.ledger();
      assert.deepEqual(
        [failed?.outcome, failed?.status, failed?.error, failed?.messageId, failed?.billed.usd],
        ["refused", 500, `script: ${complaint}`, null, 0],
      );
      const next = await row(sim, body);
      assert.deepEqual([parts(next), next.expectedRead], [[0, 2_000, 0, 0], 0]);
    });

test("a call with its input as JSON needs no other: it is streamed as given, and a whole answer has an empty one", async () => {
  const inputJson = '{ "path": "a.ts"';
  const script = () => ({ content: [{ type: "tool_use" as const, name: "R", inputJson }] });
  await using sim = await startSimulator({ script });
  const streamed = await (await post(sim, { ...body, stream: true })).text();
  const pieces = streamed
    .split("\n")
    .flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6)).delta?.partial_json ?? ""] : []));
  assert.equal(pieces.join(""), inputJson);
  const whole = JSON.parse(await (await post(sim, { ...body, stream: false })).text());
  assert.deepEqual(
    whole.content.map(({ name, input }: { name: string; input: unknown }) => [name, input]),
    [["R", {}]],
  );
});

test("a hold that rejects is a 500 before the first byte and an error event after it", async () => {
  const held = (): SimAnswer => ({ ...say("late"), hold: Promise.reject(new Error("gave\nup")) });
  await using sim = await startSimulator({ script: held });
  assert.equal(await refusal(sim, body), "500 api_error: script: gave up");
  const text = await (await post(sim, { ...body, stream: true })).text();
  assert.match(text, /^event: message_start\n/);
  assert.match(text, /event: error\ndata: \{"type":"error","error":\{"type":"api_error","message":"script: gave up"\}/);
  assert.deepEqual(
    sim.ledger().map(({ outcome, status, error }) => [outcome, status, error]),
    [
      ["refused", 500, "script: gave up"],
      ["interrupted", 200, "script: gave up"],
    ],
  );
});

test("content that JSON cannot say, found in the middle of a stream, ends it with an error event", async () => {
  await using sim = await startSimulator({ script: once({ content: [{ type: "text", text: "x", citations: [1n] }] }) });
  const text = await (await post(sim, { ...body, stream: true })).text();
  await settled(sim);
  assert.match(text, /event: error\n/);
  assert.equal(sim.ledger()[0]?.outcome, "interrupted");
});

test("a token rule that throws is a 500 with a closed row", async () => {
  await using sim = await startSimulator({
    tokenRule: () => {
      throw new Error("cannot count");
    },
  });
  assert.equal(await refusal(sim, body), "500 api_error: simulator: cannot count");
  assert.deepEqual([sim.ledger()[0]?.outcome, sim.ledger()[0]?.status], ["refused", 500]);
});

test("while a stream is open nothing refers to the body it answers", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const { promise: hold, resolve: letGo } = Promise.withResolvers<void>();
  const seen: WeakRef<object>[] = [];
  await using sim = await startSimulator({
    script: (asked) => {
      seen.push(new WeakRef(asked.body));
      return { ...say("done"), hold };
    },
  });
  const response = await post(sim, { ...body, model: "claude-opus-5-5", stream: true });
  for (let tries = 0; tries < 1_000 && seen[0]?.deref() !== undefined; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    collect();
  }
  assert.deepEqual([seen.length, seen[0]?.deref()], [1, undefined]);
  assert.equal(sim.ledger()[0]?.outcome, "open");
  letGo();
  assert.match(await response.text(), /message_stop/);
});
