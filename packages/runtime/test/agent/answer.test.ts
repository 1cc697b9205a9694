import assert from "node:assert/strict";
import { test } from "node:test";
import type { Block, StopReason, ToolUseBlock } from "@prefork/wire";
import fc from "fast-check";
import { readAnswer } from "../../src/agent/index.ts";

const call = (id: string, input = "{}"): ToolUseBlock => ({ type: "tool_use", id, name: "Read", input });
const words = (text: string): Block => ({ type: "text", text });
const thought = (signature: string): Block => ({ type: "thinking", thinking: "hm", signature });

const read = (content: readonly Block[], stop: StopReason = "tool-use") =>
  readAnswer({ message: { role: "assistant", content }, stop });

const refusals = (content: readonly Block[], stop?: StopReason): readonly (readonly [string, string])[] =>
  read(content, stop).refused.map(({ toolUseId, content: [block] }) => [
    toolUseId,
    block?.type === "text" ? block.text : "",
  ]);

const CUT =
  "Not run: the answer was cut at its length limit before this call was complete. Send smaller calls, fewer at a time.";

test("a valid answer is entered unchanged", () => {
  const content = [thought("s"), words("Let me look. "), call("a", '{ "file_path":"a" }'), words("And."), call("b")];
  assert.deepEqual(read(content), {
    message: { role: "assistant", content },
    calls: [content[2], content[4]],
    refused: [],
    text: "Let me look. And.",
  });
});

test("an incomplete call is entered with an empty input and answered, and so are the complete calls next to it", () => {
  const content = [words("Writing."), call("a", '{"x":1}'), call("b", '{"content":"hal')];
  const { message, calls } = read(content, "max-tokens");
  assert.deepEqual(message?.content, [words("Writing."), call("a", '{"x":1}'), call("b")]);
  assert.deepEqual(calls, [call("a", '{"x":1}'), call("b")]);
  assert.deepEqual(refusals(content, "max-tokens"), [
    ["a", CUT],
    ["b", CUT],
  ]);
});

test("input that is not a JSON object is emptied and refused", () => {
  for (const input of ["", "[]", "null", "1", '"x"', "{", '{"a":1}}'])
    assert.deepEqual(
      [read([call("a", input)]).calls, refusals([call("a", input)])],
      [[call("a")], [["a", "Not run: the input of this call was no complete JSON object."]]],
    );
});

test("an id that occurs twice in an answer, or in an earlier answer, is replaced by a unique one", () => {
  const content = [call("a", '{"x":1}'), call("b"), call("a", '{"x":2}'), call("a", '{"x":3}')];
  assert.deepEqual(read(content).calls, [
    call("a", '{"x":1}'),
    call("b"),
    call("a-2", '{"x":2}'),
    call("a-3", '{"x":3}'),
  ]);
  assert.deepEqual(refusals(content), []);
  const taken = new Set(["a", "a-2", "call-1"]);
  const { calls } = readAnswer(
    { message: { role: "assistant", content: [...content, call("")] }, stop: "tool-use" },
    (id) => taken.has(id),
  );
  assert.deepEqual(
    calls.map(({ id }) => id),
    ["a-3", "b", "a-4", "a-5", "call-2"],
  );
});

test("a replaced id no longer occurs in the raw text, and the new one is shorter than forty characters", () => {
  const raw = '{"type":"function_call","call_id":"a","name":"Read","arguments":"{}"}';
  assert.deepEqual(read([call("a"), { ...call("a"), raw }]).calls, [call("a"), call("a-2")]);
  const long = "x".repeat(60);
  assert.deepEqual(
    read([call(long), call(long)]).calls.map(({ id }) => id.length),
    [60, 34],
  );
});

test("ids stay in a turn that its provider signed: of two calls with one id, one is entered and neither may run", () => {
  for (const signed of [thought("s"), { type: "redacted_thinking", data: "d" } as const]) {
    const content = [signed, call("a", '{"x":1}'), call("b"), call("a", '{"x":2}')];
    assert.deepEqual(read(content).calls, [call("a", '{"x":1}'), call("b")]);
    assert.deepEqual(refusals(content), [["a", "Not run: another call of the same answer has the same id."]]);
    const { message } = readAnswer(
      { message: { role: "assistant", content: [signed, call("a")] }, stop: "end" },
      () => true,
    );
    assert.deepEqual(message?.content, [signed, call("a")]);
  }
});

test("a call without an id gets one, so that it can be answered", () => {
  assert.deepEqual(
    read([call(""), call("a"), call("")]).calls.map(({ id }) => id),
    ["call-1", "a", "call-2"],
  );
});

test("calls run only if the answer is complete", () => {
  const complete: readonly StopReason[] = ["tool-use", "end", "stop-sequence"];
  for (const stop of complete) assert.deepEqual(refusals([call("a")], stop), []);
  const others: readonly StopReason[] = ["pause", "refusal", "context-full", "other"];
  for (const stop of others)
    assert.deepEqual(refusals([call("a")], stop), [["a", "Not run: the answer ended before it was complete."]]);
});

test("content that no provider accepts back is not entered: blank text, and thinking that was cut off", () => {
  assert.equal(read([words(""), words(" \n")], "end").message, undefined);
  assert.equal(read([], "end").message, undefined);
  assert.equal(read([thought("")], "max-tokens").message, undefined);
  assert.deepEqual(read([thought("s")], "max-tokens").message?.content, [thought("s")]);
  // Some endpoints sign nothing and want it back all the same.
  assert.deepEqual(read([thought(""), words("x")], "end").message?.content, [thought(""), words("x")]);
});

const anyBlock: fc.Arbitrary<Block> = fc.oneof(
  fc.string({ maxLength: 5 }).map(words),
  fc.constantFrom("", "s").map(thought),
  fc
    .record({ id: fc.constantFrom("", "a", "b", "c"), input: fc.constantFrom("{}", '{"a":1}', "{", "[]") })
    .map(({ id, input }) => call(id, input)),
);
const anyStop = fc.constantFrom<StopReason>(
  "end",
  "tool-use",
  "max-tokens",
  "stop-sequence",
  "pause",
  "refusal",
  "context-full",
  "other",
);

test("for any answer, calls have unique ids and objects as input, and each is either allowed or refused once", () => {
  fc.assert(
    fc.property(fc.array(anyBlock, { maxLength: 8 }), anyStop, (content, stop) => {
      const { message, calls, refused } = read(content, stop);
      const ids = calls.map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length);
      assert.ok(ids.every((id) => id !== ""));
      for (const { input } of calls) assert.equal(typeof JSON.parse(input), "object");
      const answered = refused.map(({ toolUseId }) => toolUseId);
      assert.equal(new Set(answered).size, answered.length);
      assert.ok(answered.every((id) => ids.includes(id)));
      assert.deepEqual(message?.content.filter(({ type }) => type === "tool_use") ?? [], calls);
    }),
    { numRuns: 300 },
  );
});
