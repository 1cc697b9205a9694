/** The handle of a fork: how long it is valid, what it reports, and what is refused before anything is sent. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { say } from "@prefork/simulator";
import { InputError, type Message, text } from "@prefork/wire";
import type { ForkHandle, RuntimeEvent } from "../../src/index.ts";
import {
  begun,
  ended,
  type FamilyGround,
  familyScript,
  type Gate,
  gate,
  openFamily,
  openListening,
  part,
  prompted,
  starts,
  watched,
} from "./family-ground.ts";

const reports = ({ directive }: { readonly directive: string }) => say(`Scope: ${directive}\nResult: done`);

// --- how long it lasts -----------------------------------------------------------------------------------------------

/** A main agent that says nothing more once it is told to stay, and forks that answer when they are let. */
const openStaying = ({ passed }: Gate): Promise<FamilyGround> =>
  openFamily(
    familyScript({
      main: ({ words }) => (words.includes("stay") ? { ...say(""), hold: new Promise(() => {}) } : say("hello")),
      fork: (seen) => ({ ...reports(seen), hold: passed }),
    }),
  );

type Ending = { readonly end: string; readonly ms?: number; readonly by?: "signal" | "exchange" };

const ENDS: Readonly<Record<string, Ending>> = {
  "its time limit": { end: "out-of-time", ms: 300 },
  "its caller's signal": { end: "aborted", by: "signal" },
  "its abort": { end: "aborted", by: "exchange" },
};

for (const [name, { end, ms, by }] of Object.entries(ENDS))
  test(`a fork that a program starts during an exchange does not end with ${name}`, async () => {
    const over = gate();
    await using place = await openStaying(over);
    await using session = await begun(place);
    const caller = new AbortController();
    const exchange = session.prompt("stay", { signal: caller.signal, limits: ms === undefined ? {} : { ms } });
    let fork: ForkHandle | undefined;
    for await (const { type, agent } of exchange) {
      if (type === "turn_started" && agent === "main") fork = session.fork({ prompt: "beside it" });
      if (type === "fork_started" && by === "signal") caller.abort();
      if (type === "fork_started" && by === "exchange") exchange.abort();
    }
    assert.equal((await exchange.result()).end, end);
    over.open();
    assert.ok(fork);
    assert.equal((await ended(fork)).end, "reported");
  });

// --- what it tells ---------------------------------------------------------------------------------------------------

test("an observer that throws or rejects causes an event and affects nothing else", async () => {
  await using place = await openListening(reports);
  await using session = await begun(place);
  const heard: Message[] = [];
  const onMessage = [
    () => {
      throw new Error("thrown");
    },
    async () => {
      await Promise.resolve();
      throw new Error("rejected");
    },
    (message: Message) => void heard.push(message),
  ];
  const events = await watched(session, async () => {
    assert.equal((await ended(session.fork({ prompt: "look", onMessage }))).end, "reported");
  });
  const failed = events.flatMap((event) => (event.type === "observer_failed" ? [event] : []));
  assert.equal(heard.length, 2);
  assert.deepEqual(
    failed.map(({ taskId, agent, level, reason }) => ({ taskId, agent, level, reason })).toSorted(byReason),
    heard
      .flatMap(() => ["rejected", "thrown"])
      .map((reason) => ({ taskId: "task-1", agent: "task-1", level: "warn", reason }))
      .toSorted(byReason),
  );
});

const byReason = (a: { readonly reason: string }, b: { readonly reason: string }): number =>
  a.reason < b.reason ? -1 : 1;

test("the event stream of a fork that has ended is empty and ends", async () => {
  await using place = await openListening(reports);
  await using session = await begun(place);
  const fork = session.fork({ prompt: "look" });
  await ended(fork);
  const events: RuntimeEvent[] = [];
  for await (const event of fork.events) events.push(event);
  assert.deepEqual(events, []);
});

test("in plan and event, the model's fork is fire-and-forget and a program's fork is sync", async () => {
  await using place = await openFamily(familyScript({ main: starts([part("model's")]), fork: reports }));
  await using session = await place.open();
  const { events } = await prompted(session, "go");
  const more = await watched(session, async () => {
    await ended(session.fork({ prompt: "program's" }));
  });
  const modes = [...events, ...more].flatMap((event) =>
    event.type === "fork_started" ? [[event.label, event.mode]] : [],
  );
  const expected = [
    ["model's", "fire-and-forget"],
    ["program's", "sync"],
  ];
  assert.deepEqual(modes, expected);
  assert.deepEqual(
    session.tasks.map(({ label, plan }) => [label, Object(plan).mode]),
    expected,
  );
});

// --- what is refused -------------------------------------------------------------------------------------------------

test("a fork without a transcript stays in the foreground: moving it by id is refused, and moving all tasks skips it", async () => {
  const over = gate();
  await using place = await openStaying(over);
  await using session = await begun(place);
  const [unkept, kept] = session.forkAll([{ prompt: "unkept", skipTranscript: true }, { prompt: "kept" }]);
  assert.ok(unkept && kept);
  const refused = new InputError(
    "a fork without a transcript cannot move to the background, because nothing would report its end",
  );
  assert.throws(() => unkept.background(), refused);
  assert.throws(() => session.background(unkept.id), refused);
  session.background();
  assert.deepEqual(await kept.result(), { status: "async_launched", taskId: kept.id });
  over.open();
  assert.equal((await ended(unkept)).text, "Scope: unkept\nResult: done");
});

const MESSAGES: Readonly<Record<string, readonly [messages: unknown, reason: string]>> = {
  "a text in place of blocks": [
    [{ role: "user", content: "hello" }],
    "the content of a fork's message must be a list of blocks",
  ],
  "no content": [[{ role: "user" }], "the content of a fork's message must be a list of blocks"],
  "no block": [[{ role: "user", content: [] }], "a message of the fork is empty"],
  "an empty text": [[{ role: "user", content: [text("")] }], "a message of the fork is empty"],
  "an empty text before the last": [
    [
      { role: "user", content: [text("one")] },
      { role: "assistant", content: [text("")] },
      { role: "user", content: [text("two")] },
    ],
    "a message of the fork is empty",
  ],
};

test("messages whose content is a string or empty are refused before anything is sent", async () => {
  await using place = await openListening(reports);
  await using session = await begun(place);
  for (const [name, [messages, reason]] of Object.entries(MESSAGES))
    assert.throws(() => session.fork({ messages: messages as readonly Message[] }), new InputError(reason), name);
  assert.deepEqual([session.tasks, place.simulator.ledger().length], [[], 1]);
});
