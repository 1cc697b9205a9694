import assert from "node:assert/strict";
import { test } from "node:test";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import { type Message, text, toolResult, userText } from "@prefork/wire";
import { createJournal, type OpenCall, readSession } from "../../src/journal/index.ts";
import { Live, session, storeIn } from "./histories.ts";

const calls = (...ids: readonly string[]): Message => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool_use", id, name: "Bash", input: `{"id":"${id}"}` })),
});
const callOf = (id: string) => ({ type: "tool_use", id, name: "Bash", input: `{"id":"${id}"}` }) as const;

const begin = async (folder: Scratch): Promise<Live> =>
  new Live(await createJournal(storeIn(folder.at("state")), session));

const replayedIn = async (folder: Scratch) => (await readSession(storeIn(folder.at("state")), "s1")).replayed;

test("for calls in flight it is known which never started, which may have had an effect, and how the others ended", async () => {
  using folder = scratch();
  const live = await begin(folder);
  live.enter(userText("go"));
  live.enter(calls("a", "b", "c", "d"));
  live.journal.append({ kind: "call_started", callId: "b", name: "Bash", readOnly: false });
  live.journal.append({ kind: "call_started", callId: "c", name: "Bash", readOnly: true });
  live.journal.append({ kind: "call_ended", callId: "c", result: toolResult("c", "3"), ms: 5, state: { n: 1 } });
  const inFlight: readonly OpenCall[] = [
    { call: callOf("a"), status: "never-started" },
    { call: callOf("b"), status: "started", readOnly: false },
    { call: callOf("c"), status: "ended", result: toolResult("c", "3"), ms: 5, state: { n: 1 } },
    { call: callOf("d"), status: "never-started" },
  ];
  assert.deepEqual((await replayedIn(folder)).openCalls, inFlight);
  live.enter({ role: "user", content: [toolResult("c", "3"), toolResult("a", "1")] }, { open: true });
  assert.deepEqual((await replayedIn(folder)).openCalls, [inFlight[1], inFlight[3]]);
  live.extend([toolResult("b", "2"), toolResult("d", "4")]);
  assert.deepEqual((await replayedIn(folder)).openCalls, []);
  live.enter(calls("b"));
  assert.deepEqual((await replayedIn(folder)).openCalls, [{ call: callOf("b"), status: "never-started" }]);
  await live.journal.close();
});

test("the latest value of a slot counts, and a notice is pending until it was delivered, and never again", async () => {
  using folder = scratch();
  const live = await begin(folder);
  const { journal } = live;
  for (const value of [1, { deep: [null, "two"] }]) journal.append({ kind: "state", slot: "todos", value });
  journal.append({ kind: "state", slot: "mode", value: "plan" });
  for (const id of ["n1", "n2", "n1", "n3"]) journal.append({ kind: "notice", id, text: `about ${id}` });
  journal.append({ kind: "notice_delivered", id: "n2" });
  journal.append({ kind: "notice", id: "n2", text: "again" });
  live.compact(userText("summary"));
  const replayed = await replayedIn(folder);
  assert.deepEqual(
    [...replayed.state],
    [
      ["todos", { deep: [null, "two"] }],
      ["mode", "plan"],
    ],
  );
  assert.deepEqual(replayed.notices, [
    { kind: "notice", id: "n1", text: "about n1" },
    { kind: "notice", id: "n3", text: "about n3" },
  ]);
  await journal.close();
});

test("usage and money add up across epochs, and a request without an answer is known", async () => {
  using folder = scratch();
  const live = await begin(folder);
  live.enter(userText("one"));
  live.ask();
  live.answer();
  live.compact(userText("summary"));
  live.ask();
  live.answer();
  live.enter({ role: "assistant", content: [text("yes")] });
  live.enter(userText("two"));
  live.ask();
  const replayed = await replayedIn(folder);
  const { usage, usd, turns, unanswered, lastResponse, messages, lastSeq, lastAt } = replayed;
  assert.deepEqual(
    { usage, usd, turns, lastSeq, lastAt, turn: unanswered?.turn, answered: lastResponse?.id },
    {
      usage: { plain: 2, read: 4, written: { "5m": 6 }, output: 8 },
      usd: 0.5,
      turns: 2,
      lastSeq: 12,
      lastAt: 1_000,
      turn: 3,
      answered: "msg_2",
    },
  );
  assert.deepEqual(messages, [userText("summary"), { role: "assistant", content: [text("yes")] }, userText("two")]);
  live.journal.append({ kind: "exchange_ended", reason: "failed" });
  assert.equal((await replayedIn(folder)).unanswered, undefined);
  await live.journal.close();
});

test("a request that was sent with other bytes than the journal contains is reported", async () => {
  using folder = scratch();
  const live = await begin(folder);
  live.enter(userText("one"));
  const prefixHash = live.prefix.append(userText("never journalled")).hash;
  live.journal.append({ kind: "request", turn: 1, markers: [], prefixHash, maxTokens: 1 });
  assert.deepEqual((await replayedIn(folder)).problems, [
    { line: 4, kind: "changed", detail: "the request of turn 1 was sent with other bytes" },
  ]);
  await live.journal.close();
});

test("an epoch of an unknown protocol leaves no prefix, and is reported once", async () => {
  using folder = scratch();
  const live = await begin(folder);
  live.enter(userText("one"));
  await live.journal.close();
  const store = { ...storeIn(folder.at("state")), protocols: [] };
  const { replayed } = await readSession(store, "s1");
  assert.equal(replayed.prefix, undefined);
  assert.deepEqual(replayed.problems, [{ line: 2, kind: "unknown", detail: 'unknown protocol "anthropic"' }]);
});
