import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, type SimulatorOptions, startSimulator, textOfTokens } from "@prefork/simulator";
import { type Body, marked, parts, request, row, textBlock } from "./sending.ts";

/** One user turn of `count` blocks of 100 tokens; the blocks at these places (from 1) carry markers. */
const blocks = (count: number, markers: readonly number[]): Body[] =>
  Array.from({ length: count }, (_, index) => textBlock(100, index, markers.includes(index + 1) ? marked : {}));

const turn = (count: number, markers: readonly number[]): Body =>
  request({ messages: [{ role: "user", content: blocks(count, markers) }] });

const start = (options: SimulatorOptions = {}) => startSimulator({ clock: new ManualClock(), ...options });

test("a marker at block 35 finds an entry at block 16 and misses one at block 15", async () => {
  await using sim = await start();
  assert.deepEqual(parts(await row(sim, turn(16, [16]))), [0, 1_600, 0, 0]);
  assert.deepEqual(parts(await row(sim, turn(35, [35]))), [1_600, 1_900, 0, 0]);
  sim.reset();
  assert.deepEqual(parts(await row(sim, turn(15, [15]))), [0, 1_500, 0, 0]);
  const missed = await row(sim, turn(35, [35]));
  assert.deepEqual(parts(missed), [0, 3_500, 0, 0]);
  assert.deepEqual([missed.expectedRead, missed.missCause], [1_500, "look-back exceeded"]);
});

test("the search resumes from the next earlier marker", async () => {
  await using sim = await start();
  await row(sim, turn(15, [15]));
  assert.deepEqual(parts(await row(sim, turn(60, [30, 60]))), [1_500, 4_500, 0, 0]);
});

test("a stable block that never carried a marker is never a hit", async () => {
  await using sim = await start();
  await row(sim, turn(20, [20]));
  const shorter = await row(sim, turn(19, [19]));
  assert.deepEqual(parts(shorter), [0, 1_900, 0, 0]);
  assert.equal(shorter.expectedRead, 0);
});

test("an entry behind the last marker is not read: no marker there", async () => {
  await using sim = await start();
  await row(sim, turn(20, [12, 20]));
  const earlierMarker = await row(sim, turn(20, [11]));
  assert.deepEqual(parts(earlierMarker), [0, 1_100, 0, 900]);
  assert.deepEqual([earlierMarker.expectedRead, earlierMarker.missCause], [2_000, "no marker there"]);
});

const calls = Array.from({ length: 25 }, (_, index) => `toolu_${index}`);

/** A prefix of 2,000 tokens with an entry, then 25 parallel calls and their results. */
const manyCalls = (withTail: boolean): Body =>
  request({
    messages: [
      {
        role: "user",
        content: [textBlock(2_000, 1, marked)].map((block) => (withTail ? { ...block, cache_control: null } : block)),
      },
      ...(withTail
        ? [
            { role: "assistant", content: calls.map((id) => ({ type: "tool_use", id, name: "Read", input: {} })) },
            {
              role: "user",
              content: calls.map((id, index) => ({
                type: "tool_result",
                tool_use_id: id,
                content: textOfTokens(10),
                ...(index === 24 ? marked : {}),
              })),
            },
          ]
        : []),
    ],
  });

test("a run of calls and a run of results are one position each, or one a block when counted singly", async () => {
  await using collapsed = await start();
  await row(collapsed, manyCalls(false));
  assert.deepEqual(parts(await row(collapsed, manyCalls(true))), [2_000, 275, 0, 0]);
  await using singly = await start({ lookback: "singly" });
  await row(singly, manyCalls(false));
  assert.deepEqual(parts(await row(singly, manyCalls(true))), [0, 2_275, 0, 0]);
});

const tools = (count: number): Body[] =>
  Array.from({ length: count }, (_, index) => ({ name: `tool_${index}`, input_schema: { type: "object" } }));

test("system blocks count as positions unless the switch says they do not", async () => {
  const body = (systemMarker: boolean): Body =>
    request({
      tools: tools(2),
      system: [
        textBlock(2_000, 1, systemMarker ? marked : {}),
        ...Array.from({ length: 19 }, (_, i) => textBlock(1, i)),
      ],
      messages: [{ role: "user", content: [textBlock(1, 9, systemMarker ? {} : marked)] }],
    });
  await using counted = await start();
  const first = await row(counted, body(true));
  assert.equal((await row(counted, body(false))).read, 0);
  await using free = await start({ rules: { cache: { headCountsAsPositions: false } } });
  await row(free, body(true));
  assert.equal((await row(free, body(false))).read, first.written["5m"]);
});
