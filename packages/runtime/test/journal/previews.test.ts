/** Titles, previews and search of sessions, and the index that makes their list fast. */

import assert from "node:assert/strict";
import { chmodSync, closeSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import { text, userText } from "@prefork/wire";
import {
  createJournal,
  forkJournal,
  listSessionPreviews,
  renameSession,
  searchSessions,
} from "../../src/journal/index.ts";
import { journalLines } from "../../src/journal/journal-lines.ts";
import { Live, session, storeIn } from "./histories.ts";

type Spoken = { readonly prompt: string; readonly answer: string };

/** Adds exchanges to a new session, and returns it still open. */
const talk = async (store: ReturnType<typeof storeIn>, exchanges: readonly Spoken[], cwd = session.cwd) => {
  store.at += 1_000;
  const live = new Live(await createJournal(store, { ...session, cwd }));
  for (const { prompt, answer } of exchanges) {
    live.enter({ role: "user", content: [text("Working folder: /x"), text(prompt)] }, { source: "prompt" });
    live.ask();
    live.enter({ role: "assistant", content: [text(answer)] });
    live.answer();
  }
  await live.journal.flush();
  return live;
};

const INDEX = "state/sessions/.previews.json";

test("a preview has the title, the last answer, the cost with forks, and the number of forks", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const live = await talk(store, [
    { prompt: "\n\u001b[31mFix \u202ethe tests\nand then more", answer: "Looking." },
    { prompt: "go on", answer: `Done:\n\n- one\u0007\n- ${"x".repeat(200)}\n3\n4\n5\n6` },
  ]);
  const fork = await forkJournal(store, live.journal, { ...session, prefix: live.prefix });
  const usage = { plain: 1, read: 0, written: {}, output: 1 };
  fork.append({ kind: "billed", turn: 0, usage, usd: 0.5 });
  await fork.flush();
  await fork.close();
  await live.journal.close();
  const [first, ...others] = await listSessionPreviews(store.state);
  assert.deepEqual(others, []);
  assert.ok(first?.kind === "session");
  const { id, title, lastAnswer, usd, usdWithForks, forks, turns, cwd, firstPrompt } = first;
  assert.deepEqual(
    { id, title, lastAnswer, usd, usdWithForks, forks, turns, cwd, firstPrompt },
    {
      id: "s1",
      title: "[31mFix the tests",
      firstPrompt: "[31mFix the tests and then more",
      lastAnswer: `Done:\n- one\n- ${"x".repeat(157)}…\n3\n4`,
      ...{ usd: 0.5, usdWithForks: 1, forks: 1, turns: 2, cwd: "/work/project" },
    },
  );
  assert.deepEqual(
    (await listSessionPreviews(store.state, { forks: true })).map((one) => one.id),
    ["s1", "s2"],
  );
  assert.deepEqual(await listSessionPreviews(store.state, { cwd: "/elsewhere" }), []);
});

test("a title can be set while the session is open, and an empty one removes it", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const live = await talk(store, [{ prompt: "first words", answer: "yes" }]);
  const titleNow = async () =>
    (await listSessionPreviews(store.state)).map((one) => (one.kind === "session" ? one.title : one.reason));
  assert.deepEqual(await titleNow(), ["first words"]);
  assert.equal(await renameSession(store, "s1", '  "quoted"\u001b[2J\n title '), '"quoted" [2J title');
  assert.deepEqual(await titleNow(), ['"quoted" [2J title']);
  assert.equal(await renameSession(store, "s1", " \n"), undefined);
  assert.deepEqual(await titleNow(), ["first words"]);
  symlinkSync("/etc/hostname", folder.at("state/sessions/s1/title"));
  assert.deepEqual(await titleNow(), ["first words"], "a link is not followed");
  await assert.rejects(renameSession(store, "none", "x"), { reason: "not-found" });
  await live.journal.close();
});

test("the index is rebuilt from the journals whatever happens to it", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const live = await talk(store, [{ prompt: "one", answer: "first answer" }]);
  const other = await talk(store, [{ prompt: "two", answer: "second answer" }], "/other");
  await other.journal.close();
  const answers = async () =>
    (await listSessionPreviews(store.state)).map((one) => (one.kind === "session" ? one.lastAnswer : one.reason));
  assert.deepEqual(await answers(), ["second answer", "first answer"]);
  const index = readFileSync(folder.at(INDEX), "utf8");

  // An unchanged journal is not read again: the index is believed.
  writeFileSync(folder.at(INDEX), index.replace("second answer", "from the index"));
  assert.deepEqual(await answers(), ["from the index", "first answer"]);

  for (const spoil of [
    () => rmSync(folder.at(INDEX)),
    () => writeFileSync(folder.at(INDEX), index.slice(0, 100)),
    () => writeFileSync(folder.at(INDEX), '{"version":1,"sessions":{"s1":{"key":"x"}}}'),
    () => writeFileSync(folder.at(INDEX), index.replace('"version":1', '"version":0')),
    () => chmodSync(folder.at(INDEX), 0o666),
    () => writeFileSync(folder.at(INDEX), index.replaceAll('"key":"', '"key":"1')),
  ]) {
    spoil();
    assert.deepEqual(await answers(), ["second answer", "first answer"]);
    assert.equal(readFileSync(folder.at(INDEX), "utf8"), index);
  }

  live.enter(userText("three"), { source: "prompt" });
  live.enter({ role: "assistant", content: [text("third answer")] });
  await live.journal.flush();
  await live.journal.close();
  assert.deepEqual(await answers(), ["third answer", "second answer"]);
  chmodSync(folder.at("state/sessions/s2"), 0o777);
  assert.deepEqual(await answers(), [
    "third answer",
    `${folder.at("state/sessions/s2")} can be changed by others (mode 0777)`,
  ]);
  rmSync(folder.at("state/sessions/s2"), { recursive: true });
  assert.deepEqual(await answers(), ["third answer"]);
  assert.ok(!readFileSync(folder.at(INDEX), "utf8").includes("second answer"));
});

test("a search finds sessions that have every word, the last used first, with excerpts", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const long = `${"before ".repeat(20)}the Flaky test${" after".repeat(60)}`;
  for (const [exchanges, cwd] of [
    [[{ prompt: "why is it FLAKY?", answer: "Because of the clock." }], "/a"],
    [[{ prompt: "nothing", answer: "Nothing at all." }], "/a"],
    [
      [
        { prompt: "look", answer: long },
        { prompt: "the clock\u001b[2J", answer: "Yes." },
      ],
      "/b",
    ],
  ] as const)
    await (await talk(store, exchanges, cwd)).journal.close();
  await renameSession(store, "s2", "about clocks");
  const find = async (words: readonly string[], cwd?: string) => {
    const found: unknown[] = [];
    for await (const { session: one, excerpts } of searchSessions(store.state, words, cwd === undefined ? {} : { cwd }))
      found.push([one.id, ...excerpts.map(({ from, text: shown }) => `${from}: ${shown}`)]);
    return found;
  };
  assert.deepEqual(await find(["flaky", "CLOCK"]), [
    ["s3", `answer: … ${"before ".repeat(5)}the Flaky test${" after".repeat(15)} …`, "prompt: the clock [2J"],
    ["s1", "prompt: why is it FLAKY?", "answer: Because of the clock."],
  ]);
  assert.deepEqual(await find(["flaky", "clock"], "/a"), [
    ["s1", "prompt: why is it FLAKY?", "answer: Because of the clock."],
  ]);
  assert.deepEqual(await find(["clocks"]), [["s2"]], "the title counts too");
  assert.deepEqual(await find(["Working"]), [], "what accompanies a prompt is not searched");
  assert.deepEqual(await find(["", " "]), []);
});

test("a journal is read line by line, and an overlong line is skipped alone", () => {
  using folder = scratch();
  const lines = ["a", "", "bb".repeat(9), "ccc", "d".repeat(40), "e", "last"];
  writeFileSync(folder.at("file"), lines.join("\n"));
  for (const chunk of [1, 3, 7, 64, 1_000]) {
    const fd = openSync(folder.at("file"), "r");
    assert.deepEqual(
      Array.from(journalLines(fd, { chunk, most: 20 }), (line) => line.toString()),
      ["a", "bb".repeat(9), "ccc", "e", "last"],
    );
    closeSync(fd);
  }
});
