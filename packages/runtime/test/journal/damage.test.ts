import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import { type Message, text, toolResult, userText } from "@prefork/wire";
import fc from "fast-check";
import { createJournal, JournalError, openJournal, readEntries, readSession, replay } from "../../src/journal/index.ts";
import { factsOf, Live, session, storeIn } from "./histories.ts";

const call = (id: string): Message => ({
  role: "assistant",
  content: [{ type: "tool_use", id, name: "Read", input: "{}" }],
});
const said = (words: string): Message => ({ role: "assistant", content: [text(words)] });

const FILE = "state/sessions/s1/journal.jsonl";

/** A closed session of two exchanges, and its lines: opened, epoch, then one per message. */
const recorded = async (folder: Scratch, messages: readonly Message[]): Promise<readonly string[]> => {
  const store = storeIn(folder.at("state"));
  const live = new Live(await createJournal(store, session));
  for (const message of messages) live.enter(message);
  await live.journal.close();
  return readFileSync(folder.at(FILE), "utf8").split("\n").slice(0, -1);
};

const rewrite = (folder: Scratch, lines: readonly string[]): void =>
  writeFileSync(folder.at(FILE), lines.map((line) => `${line}\n`).join(""));

const CONVERSATION = [
  userText("one"),
  call("a"),
  { role: "user" as const, content: [toolResult("a", "1")] },
  said("two"),
];

test("torn at any byte of its last line, a journal loses that line and nothing else, and continues", async () => {
  using folder = scratch();
  await recorded(folder, CONVERSATION);
  const whole = readFileSync(folder.at(FILE));
  const start = whole.lastIndexOf("\n", whole.length - 2) + 1;
  const before = readEntries(whole.subarray(0, start), "s1");
  const store = storeIn(folder.at("state"));
  for (let cut = start; cut < whole.length; cut += 1) {
    const pure = readEntries(whole.subarray(0, cut), "s1");
    assert.equal(pure.lastSeq, cut === whole.length - 1 ? before.lastSeq + 1 : before.lastSeq);
    if (cut % 16 !== 0 && cut < whole.length - 3) continue;
    writeFileSync(folder.at(FILE), whole.subarray(0, cut));
    const { journal, replayed } = await openJournal(store, "s1");
    const isWhole = cut === whole.length - 1; // only its newline is missing
    const torn = { line: 6, kind: "torn", detail: `the last write was torn after ${cut - start} bytes` };
    assert.deepEqual(replayed.problems, cut === start || isWhole ? [] : [torn]);
    assert.equal(replayed.lastSeq, isWhole ? before.lastSeq + 1 : before.lastSeq);
    const seq = journal.append({ kind: "state", slot: "next", value: cut });
    await journal.close();
    const again = (await readSession(store, "s1")).replayed;
    assert.deepEqual(again.problems, []);
    assert.equal(again.lastSeq, seq);
    assert.equal(again.state.get("next"), cut);
    assert.deepEqual(factsOf(again.prefix), factsOf(replayed.prefix));
  }
});

test("what was written at once counts together or not at all", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const live = new Live(await createJournal(store, session));
  for (const message of CONVERSATION) live.enter(message);
  const [before, size] = [factsOf(live.prefix), readFileSync(folder.at(FILE)).length];
  live.compact(userText("all that was said"));
  const after = factsOf(live.prefix);
  await live.journal.close();
  const whole = readFileSync(folder.at(FILE));
  for (let cut = size; cut <= whole.length; cut += 1) {
    const { prefix, openEpoch: began } = replay(readEntries(whole.subarray(0, cut), "s1").entries);
    const isWhole = cut >= whole.length - 1;
    assert.deepEqual([began?.epoch, factsOf(prefix)], isWhole ? [2, after] : [1, before]);
  }
  const firstLine = whole.indexOf("\n", size) + 1;
  writeFileSync(folder.at(FILE), whole.subarray(0, firstLine));
  const { journal, replayed } = await openJournal(store, "s1");
  assert.deepEqual(replayed.problems, [
    { line: 7, kind: "torn", detail: "the write that this line belongs to was never finished" },
  ]);
  await journal.close();
  assert.equal(readFileSync(folder.at(FILE)).length, size);
});

test("an unreadable line is skipped and reported, and what follows is kept", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const { journal } = { journal: await createJournal(store, session) };
  for (const value of [1, 2, 3]) journal.append({ kind: "state", slot: `slot ${value}`, value });
  await journal.close();
  const lines = readFileSync(folder.at(FILE), "utf8").split("\n").slice(0, -1);
  rewrite(folder, lines.with(2, '{"v":1,"seq":3,"at":1000,"kind":"state","slot":"slot 2"'));
  const { reading, replayed } = await readSession(store, "s1");
  assert.deepEqual(reading.problems, [
    { line: 3, kind: "unreadable", detail: "not JSON (55 bytes)" },
    { line: 4, kind: "lost", detail: "entry 3 is missing" },
  ]);
  assert.deepEqual(
    [...replayed.state],
    [
      ["slot 1", 1],
      ["slot 3", 3],
    ],
  );
});

test("an entry of an unknown kind is skipped, and its number is not reported as missing", async () => {
  using folder = scratch();
  const lines = await recorded(folder, [userText("one")]);
  rewrite(folder, [
    ...lines,
    '{"v":1,"seq":4,"at":1000,"kind":"dreamt","of":"sheep"}',
    '{"v":1,"seq":5,"at":1000,"kind":"state","slot":"a","value":1}',
  ]);
  const { replayed } = await readSession(storeIn(folder.at("state")), "s1");
  assert.deepEqual(replayed.problems, [{ line: 4, kind: "unknown", detail: 'unknown kind of entry "dreamt"' }]);
  assert.equal(replayed.lastSeq, 5);
  assert.equal(replayed.exact, true);
});

test("malformed lines are reported with what is wrong", async () => {
  using folder = scratch();
  const lines = await recorded(folder, []);
  rewrite(folder, [
    ...lines,
    "[]",
    '{"seq":3}',
    '{"v":1,"seq":3,"at":1000}',
    '{"v":1,"seq":"3","at":1000,"kind":"state"}',
    '{"v":1,"seq":3,"at":1000,"kind":"state","slot":7,"value":1}',
    '{"v":1,"seq":4,"at":1000,"kind":"message","message":{"role":"user","content":[]}}',
    '{"v":1,"seq":2,"at":1000,"kind":"state","slot":"late","value":1}',
  ]);
  const { replayed } = await readSession(storeIn(folder.at("state")), "s1");
  assert.deepEqual(
    replayed.problems.map(({ line, kind, detail }) => `${line} ${kind}: ${detail}`),
    [
      "3 unreadable: not a JSON object",
      "4 unreadable: the line has no version",
      "5 unreadable: the line has no kind",
      "6 unreadable: the line has no number or no time",
      "7 unreadable: state.slot: Invalid input: expected string, received number",
      "7 unreadable: entry 3 follows entry 3",
      "8 unreadable: the lengths of what was sent are not at the start of the line",
      "9 unreadable: entry 2 follows entry 4",
    ],
  );
});

test("damaged bytes are restored if the message still contains them", async () => {
  using folder = scratch();
  const lines = await recorded(folder, CONVERSATION);
  const whole = (await readSession(storeIn(folder.at("state")), "s1")).replayed;
  const line = lines[2] ?? "";
  const at = line.lastIndexOf("one");
  rewrite(folder, lines.with(2, `${line.slice(0, at)}0ne${line.slice(at + 3)}`));
  const { replayed } = await readSession(storeIn(folder.at("state")), "s1");
  assert.deepEqual(replayed.problems, [
    { line: 3, kind: "mended", detail: "the bytes that were sent are damaged; they were restored" },
  ]);
  assert.deepEqual(factsOf(replayed.prefix), factsOf(whole.prefix));
  assert.equal(replayed.exact, true);
});

const CHANGED = "from here on the bytes differ from those that were sent; no cache knows them";

test("if a message differs from what was sent, that is reported once, and the session can continue", async () => {
  using folder = scratch();
  const lines = await recorded(folder, CONVERSATION);
  const line = lines[2] ?? "";
  rewrite(folder, lines.with(2, line.replaceAll("one", "0ne")));
  const { replayed } = await readSession(storeIn(folder.at("state")), "s1");
  assert.deepEqual(replayed.problems, [{ line: 3, kind: "changed", detail: CHANGED }]);
  assert.equal(replayed.exact, false);
  assert.deepEqual(replayed.messages, [userText("0ne"), ...CONVERSATION.slice(1)]);
  assert.deepEqual(replayed.markers, []);
});

test("a lost message leaves a history in which every result has its call and every call its result", async () => {
  const lost =
    "The result of this call was lost, so its effect is unknown. Look at the present state before you rely on it.";
  const unknown = { ...toolResult("a", lost), isError: true };
  const expected: readonly (readonly Message[])[] = [
    [userText("(What was said here can no longer be read.)"), ...CONVERSATION.slice(1)],
    [userText("one"), said("two")],
    [userText("one"), call("a"), { role: "user", content: [unknown] }, said("two")],
    [userText("one"), call("a"), { role: "user", content: [toolResult("a", "1")] }],
  ];
  for (const [at, left] of expected.entries()) {
    using folder = scratch();
    const lines = await recorded(folder, CONVERSATION);
    rewrite(folder, lines.toSpliced(2 + at, 1));
    const { replayed } = await readSession(storeIn(folder.at("state")), "s1");
    assert.deepEqual(replayed.messages, left);
    assert.equal(replayed.prefix?.messages, left.length);
    assert.deepEqual(replayed.prefix?.pending, []);
  }
});

test("a journal without its first entry cannot be continued, and the error says so", async () => {
  using folder = scratch();
  const lines = await recorded(folder, CONVERSATION);
  rewrite(folder, lines.slice(1));
  const before = readFileSync(folder.at(FILE));
  await assert.rejects(openJournal(storeIn(folder.at("state")), "s1"), {
    name: "JournalError",
    reason: "damaged",
    message: "session s1 cannot be continued: its first entry cannot be read",
  });
  assert.deepEqual(readFileSync(folder.at(FILE)), before);
});

test("a journal of a newer version is refused, and its file is not changed", async () => {
  using folder = scratch();
  await recorded(folder, CONVERSATION);
  appendFileSync(folder.at(FILE), '{"v":3,"seq":7,"kind":"later"}\n{"v":3,"torn');
  const before = readFileSync(folder.at(FILE));
  const store = storeIn(folder.at("state"));
  const refusal = {
    name: "JournalError",
    reason: "newer-version",
    message:
      "session s1 was written by a newer version (journal version 3, and this one reads up to 2): update prefork to open it; the file was not changed",
  };
  await assert.rejects(openJournal(store, "s1"), refusal);
  await assert.rejects(readSession(store, "s1"), refusal);
  assert.deepEqual(readFileSync(folder.at(FILE)), before);
});

test("whatever bytes are changed, removed or inserted, a journal is read to its end, and differences are reported", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const live = new Live(await createJournal(store, session));
  for (const message of CONVERSATION) live.enter(message);
  live.ask();
  live.compact(userText("summary"));
  live.enter(call("b"));
  await live.journal.close();
  const whole = readFileSync(folder.at(FILE));
  const anyEdit = fc.record({
    at: fc.nat(whole.length - 1),
    taken: fc.nat(60),
    put: fc.oneof(
      fc.uint8Array({ maxLength: 6 }),
      fc.constantFrom(...['"', "\\", "\n", "{", "]", "9"].map(Buffer.from)),
    ),
  });
  fc.assert(
    fc.property(fc.array(anyEdit, { minLength: 1, maxLength: 4 }), (edits) => {
      let bytes = whole;
      for (const { at, taken, put } of edits)
        bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + taken)]);
      try {
        const reading = readEntries(bytes, "s1");
        const { prefix, exact, problems } = replay(reading.entries);
        const isSame = prefix?.hash === live.prefix.hash && exact;
        assert.ok(isSame || reading.problems.length + problems.length > 0 || reading.end < whole.length);
      } catch (error) {
        assert.ok(error instanceof JournalError && error.reason === "newer-version", String(error));
      }
    }),
    { numRuns: 1_000 },
  );
});
