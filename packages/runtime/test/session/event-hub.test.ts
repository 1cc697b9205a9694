import assert from "node:assert/strict";
import { test } from "node:test";
import { EventHub, type EventPlace } from "../../src/session/event-hub.ts";

const PLACE: EventPlace = {
  session: "s",
  now: () => 7,
  familyOf: (agent) => (agent === "task-1" ? "family-1" : undefined),
};

test("an event carries its time, session, agent and family", async () => {
  const hub = new EventHub(PLACE);
  const reader = hub.read();
  hub.emit({ type: "answer_restarted", turn: 1 });
  hub.emit({ type: "answer_restarted", turn: 2 }, "task-1");
  const common = { type: "answer_restarted", at: 7, level: "info", session: "s" };
  assert.deepEqual(
    [(await reader.next()).value, (await reader.next()).value],
    [
      { ...common, turn: 1, seq: 1, agent: "main" },
      { ...common, turn: 2, seq: 2, agent: "task-1", family: "family-1" },
    ],
  );
});

test("a slow reader loses only progress events, and delays nobody else", async () => {
  const hub = new EventHub(PLACE);
  const slow = hub.read();
  const quick = hub.read();
  const seen: number[] = [];
  const reading = (async () => {
    for await (const { seq } of quick) seen.push(seq);
  })();
  for (let turn = 1; turn <= 12_000; turn += 1) {
    hub.emit({ type: "text_grew", turn, text: "x" });
    if (turn % 100 === 0) await Promise.resolve().then(() => undefined);
  }
  hub.emit({ type: "text_entered", turn: 12_000, text: "x" });
  hub.close();
  await reading;
  const late: string[] = [];
  for await (const { seq, type } of slow) late.push(`${seq} ${type}`);
  assert.deepEqual([late.length, late[0], late.at(-1)], [10_001, "1 text_grew", "12001 text_entered"]);
  assert.deepEqual([seen.length >= 10_001, seen.at(-1)], [true, 12_001]);
});

test("a reader that leaves while it waits gets the end of the stream and nothing more", async () => {
  const hub = new EventHub(PLACE);
  const reader = hub.read();
  const waiting = reader.next();
  reader[Symbol.dispose]();
  assert.deepEqual(await waiting, { value: undefined, done: true });
  hub.emit({ type: "answer_restarted", turn: 1 });
  assert.deepEqual(await reader.next(), { value: undefined, done: true });
});

test("several pending reads of one reader are answered in order", async () => {
  const hub = new EventHub(PLACE);
  const reader = hub.read();
  const waits = [reader.next(), reader.next(), reader.next()];
  hub.emit({ type: "answer_restarted", turn: 1 });
  hub.emit({ type: "answer_restarted", turn: 2 });
  hub.close();
  const results = await Promise.all(waits);
  assert.deepEqual(
    results.map(({ value, done }) => [value?.seq, done]),
    [
      [1, false],
      [2, false],
      [undefined, true],
    ],
  );
});
