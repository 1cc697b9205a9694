import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import {
  anthropic,
  bytesOf,
  type FrozenPrefix,
  type Marker,
  markerPlaces,
  prepare,
  text,
  userText,
} from "@prefork/wire";
import fc from "fast-check";
import { createJournal, openJournal, readSession, type SessionStore } from "../../src/journal/index.ts";
import { anyHistory, factsOf, head, Live, perform, session, shapes, storeIn } from "./histories.ts";

const requestOf = (prefix: FrozenPrefix, markers: readonly Marker[]): Buffer =>
  bytesOf(prepare({ protocol: anthropic, prefix, markers, closing: { maxTokens: 100, stream: true } }));

/** Closes the session, reopens it, and compares everything that the next request is made from. */
const assertSame = async (store: SessionStore, live: Live): Promise<void> => {
  await live.journal.close();
  const { journal, replayed } = await openJournal(store, live.journal.id);
  await using _journal = journal;
  assert.deepEqual(replayed.problems, []);
  assert.ok(replayed.prefix);
  assert.deepEqual(factsOf(replayed.prefix), factsOf(live.prefix));
  assert.deepEqual(markerPlaces(replayed.markers), markerPlaces(live.markers));
  assert.equal(replayed.exact, true);
  assert.equal(replayed.openEpoch?.epoch, live.epoch);
  if (live.prefix.messages === 0) return;
  const [before, after] = [requestOf(live.prefix, live.markers), requestOf(replayed.prefix, replayed.markers)];
  assert.equal(Buffer.compare(before, after), 0);
};

for (const [name, messages] of Object.entries(shapes)) {
  test(`a reopened session sends the bytes it would have sent: ${name}`, async () => {
    using folder = scratch();
    const store = storeIn(folder.at("state"));
    const live = new Live(await createJournal(store, session));
    for (const message of messages) live.enter(message);
    live.ask();
    await assertSame(store, live);
    const { replayed } = await readSession(store, "s1");
    assert.equal(replayed.messages.length, live.prefix.messages);
  });
}

test("a head without tools or system is restored as it was", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  for (const given of [
    { ...head, tools: [] },
    { ...head, system: [] },
    { model: head.model, tools: [], system: [], settings: {} },
  ]) {
    const live = new Live(await createJournal(store, session), given);
    live.enter(userText("go"));
    live.ask();
    await assertSame(store, live);
  }
});

test("any history gives the same request bytes and markers after it is reopened", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  await fc.assert(
    fc.asyncProperty(anyHistory, async (steps) => {
      const live = new Live(await createJournal(store, session));
      perform(live, steps);
      await assertSame(store, live);
    }),
    { numRuns: 60 },
  );
});

test("a reopened session continues with the bytes of one that was never closed", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  await fc.assert(
    fc.asyncProperty(anyHistory, anyHistory, async (first, second) => {
      const whole = new Live(await createJournal(store, session));
      perform(whole, first);
      const broken = new Live(await createJournal(store, session));
      perform(broken, first);
      await broken.journal.close();
      const { journal, replayed } = await openJournal(store, broken.journal.id);
      const again = Object.assign(Object.create(Live.prototype), broken, {
        journal,
        prefix: replayed.prefix,
        markers: replayed.markers,
      });
      perform(whole, second);
      perform(again, second);
      assert.deepEqual(factsOf(again.prefix), factsOf(whole.prefix));
      await whole.journal.close();
      await assertSame(store, again);
    }),
    { numRuns: 30 },
  );
});

test("a line is JSON whose last member is what was sent, or its text if that contains a newline", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const live = new Live(await createJournal(store, session));
  live.enter(userText("one\ntwo"));
  live.enter({
    role: "assistant",
    content: [{ type: "tool_use", id: "a", name: "Read", input: '{\n"n":1.0}' }],
  });
  await live.journal.close();
  const lines = readFileSync(folder.at("state/sessions/s1/journal.jsonl"), "utf8").split("\n");
  assert.deepEqual(
    lines.slice(2, 5).map((line) => line.slice(line.lastIndexOf(',"wire":'))),
    [
      ',"wire":[{"type":"text","text":"one\\ntwo"}]}',
      `,"wire":${JSON.stringify('[{"type":"tool_use","id":"a","name":"Read","input":{\n"n":1.0}}]')}}`,
      "",
    ],
  );
  for (const line of lines.slice(0, 4)) assert.equal(Object.keys(JSON.parse(line))[0], "v");
});

test("reopening an intact session encodes nothing again", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const live = new Live(await createJournal(store, session));
  for (const message of Object.values(shapes).flat()) live.enter(message);
  live.enter(userText("and"));
  live.extend([text("more")]);
  await live.journal.close();
  const { encoder } = anthropic;
  const spelled = (): never => assert.fail("something was encoded again");
  const onlySent: typeof encoder = {
    ...encoder,
    head: spelled,
    message: (message, place, sent) => (sent ? encoder.message(message, place, sent) : spelled()),
    blocks: (blocks, place, sent) => (sent ? encoder.blocks(blocks, place, sent) : spelled()),
  };
  const { replayed } = await readSession({ ...store, protocols: [{ ...anthropic, encoder: onlySent }] }, "s1");
  assert.deepEqual(replayed.problems, []);
  assert.deepEqual(factsOf(replayed.prefix), factsOf(live.prefix));
});
