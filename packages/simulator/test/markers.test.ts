import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, startSimulator } from "@prefork/simulator";
import { type Body, marked, marked1h, parts, refusal, request, row, textBlock } from "./sending.ts";

const users = (...blocks: Body[]): Body => request({ messages: [{ role: "user", content: blocks }] });

test("one entry a breakpoint: both markers of a request can be read later", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  await row(sim, users(textBlock(2_000, 1, marked), textBlock(500, 2, marked), textBlock(30, 3)));
  assert.deepEqual(parts(await row(sim, users(textBlock(2_000, 1, marked), textBlock(9, 8)))), [2_000, 0, 0, 9]);
  assert.deepEqual(parts(await row(sim, users(textBlock(2_000, 1), textBlock(500, 2, marked)))), [2_500, 0, 0, 0]);
});

test("more than four markers are refused, wherever they are", async () => {
  await using sim = await startSimulator();
  const five = users(...[1, 2, 3, 4, 5].map((seed) => textBlock(10, seed, marked)));
  const message = "400 invalid_request_error: A maximum of 4 blocks with cache_control may be provided. Found 5.";
  assert.equal(await refusal(sim, five), message);
  const spread = request({
    tools: [{ name: "t", input_schema: { type: "object" }, ...marked }],
    system: [textBlock(10, 1, marked), textBlock(10, 2, marked)],
    messages: [{ role: "user", content: [textBlock(10, 3, marked), textBlock(10, 4, marked)] }],
  });
  assert.equal(await refusal(sim, spread), message);
  const four = users(...[1, 2, 3, 4].map((seed) => textBlock(10, seed, marked)));
  assert.equal(
    await refusal(sim, {
      ...four,
      ...marked,
      messages: [...(four.messages as Body[]), { role: "assistant", content: "and" }, { role: "user", content: "x" }],
    }),
    message,
  );
});

for (const [name, minimum] of [
  ["claude-opus-5", 512],
  ["claude-sonnet-5", 1_024],
  ["claude-opus-4-7", 2_048],
  ["claude-haiku-4-5", 4_096],
] as const)
  test(`${name} caches from ${minimum} tokens; below it both counters are 0`, async () => {
    await using sim = await startSimulator({ clock: new ManualClock() });
    const of = (tokens: number): Body => ({ ...users(textBlock(tokens, 1, marked)), model: name });
    const short = await row(sim, of(minimum - 1));
    assert.deepEqual(parts(short), [0, 0, 0, minimum - 1]);
    assert.equal(short.missCause, "below minimum");
    assert.deepEqual(parts(await row(sim, of(minimum - 1))), [0, 0, 0, minimum - 1]);
    assert.deepEqual(parts(await row(sim, of(minimum))), [0, minimum, 0, 0]);
    assert.deepEqual(parts(await row(sim, of(minimum))), [minimum, 0, 0, 0]);
  });

test("a marker below the minimum is ignored when a longer one is billed", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const body = users(textBlock(500, 1, marked1h), textBlock(1_500, 2, marked));
  assert.deepEqual(parts(await row(sim, body)), [0, 2_000, 0, 0]);
});

test("automatic caching marks the last cacheable block", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const automatic = { ...users(textBlock(2_000, 1), textBlock(100, 2)), ...marked };
  assert.deepEqual(parts(await row(sim, automatic)), [0, 2_100, 0, 0]);
  assert.deepEqual(parts(await row(sim, users(textBlock(2_000, 1), textBlock(100, 2, marked)))), [2_100, 0, 0, 0]);
  assert.deepEqual(parts(await row(sim, { ...users(textBlock(2_000, 7)), ...marked1h })), [0, 0, 2_000, 0]);
});

test("automatic caching walks back over thinking, is nothing new on a marked block, and must agree with its lifetime", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const walking = request({
    model: "claude-opus-4-5",
    ...marked,
    messages: [
      { role: "user", content: [textBlock(5_000, 1)] },
      { role: "assistant", content: [{ type: "thinking", thinking: "oak elm ", signature: "s" }] },
    ],
  });
  assert.deepEqual(parts(await row(sim, walking)), [0, 5_000, 0, 2]);
  const same = { ...users(...[1, 2, 3, 4].map((seed) => textBlock(1_000, seed, marked))), ...marked };
  assert.deepEqual(parts(await row(sim, same)), [0, 4_000, 0, 0]);
  const other = { ...users(textBlock(2_000, 1, marked)), ...marked1h };
  assert.match(await refusal(sim, other), /^400 invalid_request_error: cache_control: .*ttl 5m.*1h/);
});

test("markers on thinking and on empty text are refused", async () => {
  await using sim = await startSimulator();
  const onThinking = request({
    messages: [
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "t", signature: "s", ...marked },
          { type: "text", text: "x" },
        ],
      },
      { role: "user", content: "go" },
    ],
  });
  assert.equal(
    await refusal(sim, onThinking),
    "400 invalid_request_error: messages.1.content.0.cache_control: Extra inputs are not permitted",
  );
  assert.equal(
    await refusal(sim, users({ type: "text", text: "", ...marked })),
    "400 invalid_request_error: messages.0.content.0: cache_control cannot be set for empty text blocks",
  );
  assert.equal(
    await refusal(sim, users({ type: "text", text: "x", cache_control: { type: "ephemeral", ttl: "2h" } })),
    "400 invalid_request_error: messages.0.content.0.cache_control.ttl: Input should be '5m' or '1h'",
  );
});
