import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, type SimulatorOptions, say, startSimulator } from "@prefork/simulator";
import { type Body, marked, marked1h, parts, post, refusal, request, row, textBlock } from "./sending.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

const start = (options: SimulatorOptions = {}) => startSimulator({ clock: new ManualClock(), ...options });

const one = (marker: object = marked): Body =>
  request({ messages: [{ role: "user", content: [textBlock(3_000, 1, marker)] }] });

test("an entry lives five minutes from the start of the request that wrote it", async () => {
  await using sim = await start();
  await row(sim, one());
  sim.clock.advance(5 * MINUTE - 1);
  assert.deepEqual(parts(await row(sim, one())), [3_000, 0, 0, 0]);
  sim.reset();
  await row(sim, one());
  sim.clock.advance(5 * MINUTE);
  const late = await row(sim, one());
  assert.deepEqual(parts(late), [0, 3_000, 0, 0]);
  assert.deepEqual([late.expectedRead, late.missCause], [3_000, "expired"]);
});

test("the lifetime counts from the request's start, not from its first event", async () => {
  const clock = new ManualClock();
  const { promise: slow, resolve: open } = Promise.withResolvers<ReturnType<typeof say>>();
  const answers = [slow];
  await using sim = await start({ clock, script: () => answers.shift() ?? say("quick") });
  const first = post(sim, one());
  while (sim.ledger()[0]?.status !== 200) await new Promise(setImmediate);
  clock.advance(4 * MINUTE);
  open(say("late"));
  await (await first).text();
  clock.advance(MINUTE);
  assert.equal((await row(sim, one())).read, 0);
});

test("a read refreshes an entry for free", async () => {
  await using sim = await start();
  await row(sim, one());
  for (let turn = 0; turn < 3; turn += 1) {
    sim.clock.advance(4 * MINUTE);
    assert.deepEqual(parts(await row(sim, one())), [3_000, 0, 0, 0]);
  }
});

test("a one-hour entry lives an hour", async () => {
  await using sim = await start();
  assert.deepEqual(parts(await row(sim, one(marked1h))), [0, 0, 3_000, 0]);
  sim.clock.advance(60 * MINUTE - 1);
  assert.deepEqual(parts(await row(sim, one(marked1h))), [3_000, 0, 0, 0]);
  sim.clock.advance(60 * MINUTE);
  assert.deepEqual(parts(await row(sim, one(marked1h))), [0, 0, 3_000, 0]);
});

test("lifetime is not in the key; a five-minute read of a one-hour entry extends it by five minutes, or an hour by switch", async () => {
  const readAt = async (options: SimulatorOptions): Promise<number> => {
    await using sim = await start(options);
    await row(sim, one(marked1h));
    sim.clock.advance(58 * MINUTE);
    assert.deepEqual(parts(await row(sim, one(marked))), [3_000, 0, 0, 0]);
    sim.clock.advance(6 * MINUTE);
    return (await row(sim, one(marked))).read;
  };
  assert.equal(await readAt({}), 0);
  assert.equal(await readAt({ rules: { cache: { mixedRefresh: "entry" } } }), 3_000);
});

const twoLevels = (messageTokens: number): Body =>
  request({
    system: [textBlock(2_000, 1, marked)],
    messages: [{ role: "user", content: [textBlock(messageTokens, 2, marked)] }],
  });

test("a hit does not refresh shorter entries below it unless the switch says so", async () => {
  const systemReadAfter = async (options: SimulatorOptions): Promise<number> => {
    await using sim = await start(options);
    await row(sim, twoLevels(500));
    sim.clock.advance(4 * MINUTE);
    assert.equal((await row(sim, twoLevels(500))).read, 2_500);
    sim.clock.advance(2 * MINUTE);
    return (await row(sim, twoLevels(501))).read;
  };
  assert.equal(await systemReadAfter({}), 0);
  assert.equal(await systemReadAfter({ rules: { cache: { refreshBelowRead: true } } }), 2_000);
});

test("mixed lifetimes: read to A, one-hour write to B, five-minute write to C, the rest plain", async () => {
  await using sim = await start();
  const body = (extra: readonly Body[]): Body =>
    request({
      tools: [{ name: "t", description: "x".repeat(4_000), input_schema: { type: "object" }, ...marked1h }],
      system: [textBlock(3_000, 1, marked1h)],
      messages: [{ role: "user", content: [textBlock(700, 2, marked), textBlock(50, 3), ...extra] }],
    });
  const first = await row(sim, body([]));
  const toolTokens = first.promptTokens - 3_750;
  assert.deepEqual(parts(first), [0, 700, toolTokens + 3_000, 50]);
  assert.deepEqual(first.billed.inputUnits, 2 * (toolTokens + 3_000) + 875 + 50);
  sim.clock.advance(6 * MINUTE);
  assert.deepEqual(parts(await row(sim, body([]))), [toolTokens + 3_000, 700, 0, 50]);
});

test("a one-hour marker after a five-minute one is refused", async () => {
  await using sim = await start();
  const body = request({
    system: [textBlock(10, 1, marked)],
    messages: [{ role: "user", content: [textBlock(10, 2, marked1h)] }],
  });
  assert.match(
    await refusal(sim, body),
    /^400 invalid_request_error: messages\.0\.content\.0\.cache_control\.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'/,
  );
});

test("the price tier of the whole prompt applies: Haiku 5.5 above 100K tokens costs five times as much", async () => {
  await using sim = await start();
  const plain = (tokens: number): Body =>
    request({ model: "claude-haiku-5-5", messages: [{ role: "user", content: [textBlock(tokens)] }] });
  const below = await row(sim, plain(100_000));
  const above = await row(sim, plain(100_001));
  const outputUsd = (below.output * 0.5) / 1e6;
  assert.equal(below.billed.usd, Math.round((0.01 + outputUsd) * 1e12) / 1e12);
  assert.equal(above.billed.usd, Math.round((0.0500005 + (above.output * 2.5) / 1e6) * 1e12) / 1e12);
});

test("reads cost a tenth, a twentieth or a fortieth of input, by model", async () => {
  await using sim = await start();
  const units: (number | null)[] = [];
  for (const model of ["claude-sonnet-5", "claude-opus-5-5", "claude-fable-5-1"]) {
    const body = { ...one(), model };
    await row(sim, body);
    units.push((await row(sim, body)).billed.inputUnits);
  }
  assert.deepEqual(units, [300, 150, 75]);
});
