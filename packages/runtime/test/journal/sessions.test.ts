import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { test } from "node:test";
import { type Scratch, scratch, treeOf } from "@prefork/testing/scratch";
import { text, toolResult, userText } from "@prefork/wire";
import {
  createJournal,
  deleteSession,
  findSession,
  forkJournal,
  latestSession,
  listSessions,
  openJournal,
  readSession,
} from "../../src/journal/index.ts";
import { createOutputStore } from "../../src/tools/index.ts";
import { factsOf, Live, session, storeIn } from "./histories.ts";

/** Names and modes below a folder, without contents. */
const modesIn = (folder: string): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(treeOf(folder)).map(([name, value]) => [name, value.split(" ")[0] ?? ""]));

for (const mask of [0o000, 0o077, 0o022]) {
  test(`folders are 0700 and files 0600 under umask ${mask.toString(8).padStart(3, "0")}`, async () => {
    using folder = scratch();
    const before = process.umask(mask);
    try {
      const journal = await createJournal(storeIn(folder.at("state")), session);
      await createOutputStore(journal.outputs.path).keep("call-1", "all of it");
      assert.deepEqual(modesIn(folder.at("state")), {
        "sessions/": "700",
        "sessions/s1/": "700",
        "sessions/s1/journal.jsonl": "600",
        "sessions/s1/lock-1": "->",
        "sessions/s1/outputs/": "700",
        "sessions/s1/outputs/call-1.txt": "600",
      });
      assert.equal(lstatSync(folder.at("state")).mode & 0o777, 0o700);
      await journal.close();
    } finally {
      process.umask(before);
    }
  });
}

const SESSION = "state/sessions/s1";

const planted: Readonly<Record<string, (folder: Scratch) => void>> = {
  "a link in place of the journal": (folder) => {
    renameSync(folder.at(SESSION, "journal.jsonl"), folder.at("elsewhere.jsonl"));
    symlinkSync(folder.at("elsewhere.jsonl"), folder.at(SESSION, "journal.jsonl"));
  },
  "a link in place of the session": (folder) => {
    renameSync(folder.at(SESSION), folder.at("elsewhere"));
    symlinkSync(folder.at("elsewhere"), folder.at(SESSION));
  },
  "a link in place of all sessions": (folder) => {
    renameSync(folder.at("state/sessions"), folder.at("elsewhere"));
    symlinkSync(folder.at("elsewhere"), folder.at("state/sessions"));
  },
  "a second name of the journal": (folder) => linkSync(folder.at(SESSION, "journal.jsonl"), folder.at("second")),
  "a journal that others can write": (folder) => chmodSync(folder.at(SESSION, "journal.jsonl"), 0o666),
  "a session that others can write": (folder) => chmodSync(folder.at(SESSION), 0o777),
  "a state folder that others can write": (folder) => chmodSync(folder.at("state"), 0o777),
  "a pipe in place of the journal": (folder) => {
    renameSync(folder.at(SESSION, "journal.jsonl"), folder.at("elsewhere.jsonl"));
    execFileSync("mkfifo", [folder.at(SESSION, "journal.jsonl")]);
  },
};

for (const [name, plant] of Object.entries(planted)) {
  test(`${name} is refused, and nothing is written through it`, async () => {
    using folder = scratch();
    const store = storeIn(folder.at("state"));
    await (await createJournal(store, session)).close();
    plant(folder);
    await assert.rejects(openJournal(store, "s1"), { name: "JournalError", reason: "insecure" });
    await assert.rejects(readSession(store, "s1"), { name: "JournalError", reason: "insecure" });
  });
}

const foreign = { skip: process.getuid?.() === 0 ? false : "only the superuser can give a file away" };

test("a session or a journal of another user is refused", foreign, async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  await (await createJournal(store, session)).close();
  for (const path of [folder.at(SESSION, "journal.jsonl"), folder.at(SESSION)]) {
    chownSync(path, 12_345, 12_345);
    await assert.rejects(openJournal(store, "s1"), {
      reason: "insecure",
      message: `${path} belongs to another user (12345)`,
    });
    chownSync(path, 0, 0);
  }
});

test("listing sessions where there are none creates nothing", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  assert.deepEqual(await listSessions(store), []);
  await assert.rejects(openJournal(store, "s1"), { reason: "not-found", message: "there is no session s1" });
  await assert.rejects(findSession(store, "s"), { reason: "not-found", message: "there is no session s" });
  assert.deepEqual(treeOf(folder.path), {});
});

test("ids that could lead out of the folder are not valid", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  await (await createJournal(store, session)).close();
  for (const id of ["..", ".", "", "../s1", "s1/../s1", "/etc", ".removed-s1"])
    await assert.rejects(readSession(store, id), { reason: "not-found" });
  await assert.rejects(createJournal({ ...store, newId: () => "../out" }, session), { name: "TypeError" });
  await assert.rejects(createJournal({ ...store, newId: () => "s1" }, session), {
    reason: "exists",
    message: "session s1 already exists",
  });
});

test("a list shows for each session what one wants to know before opening it", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const first = new Live(await createJournal(store, session));
  first.enter(userText("conventions of the project"), { source: "project" });
  first.enter({ role: "assistant", content: [text("ready")] });
  first.enter(
    { role: "user", content: [text("a note"), text(`  Fix\n\tthe \u001b[31mtest ${"and more ".repeat(20)}`)] },
    { source: "prompt" },
  );
  first.ask();
  store.at = 2_000;
  first.answer();
  await createOutputStore(first.journal.outputs.path).keep("out", "12345");
  await first.journal.close();
  store.at = 1_500;
  const second = await createJournal(store, { ...session, cwd: "/elsewhere" });
  const listed = await listSessions(store);
  assert.deepEqual(
    listed.map((found) => (found.kind === "session" ? { ...found, bytes: 0, holder: found.holder?.pid } : found)),
    [
      {
        kind: "session",
        id: "s1",
        cwd: "/work/project",
        model: "claude-sonnet-5",
        createdAt: 1_000,
        usedAt: 2_000,
        firstPrompt: "Fix the [31mtest and more and more and more and more and more and more and more…",
        turns: 1,
        problems: 0,
        bytes: 0,
        holder: undefined,
      },
      {
        kind: "session",
        id: "s2",
        cwd: "/elsewhere",
        model: "claude-sonnet-5",
        createdAt: 1_500,
        usedAt: 1_500,
        firstPrompt: "",
        turns: 0,
        problems: 0,
        bytes: 0,
        holder: process.pid,
      },
    ],
  );
  const [{ bytes } = { bytes: 0 }] = listed.filter((found) => found.kind === "session");
  assert.equal(bytes, lstatSync(folder.at(SESSION, "journal.jsonl")).size + 5);
  assert.equal((await latestSession(store, "/elsewhere"))?.id, "s2");
  assert.equal((await latestSession(store, "/work/project"))?.id, "s1");
  assert.equal(await latestSession(store, "/nowhere"), undefined);
  await second.close();
});

test("unreadable sessions are listed with the reason and do not hide the others", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  for (let count = 0; count < 4; count += 1) await (await createJournal(store, session)).close();
  truncateSync(folder.at("state/sessions/s1/journal.jsonl"), 0);
  writeFileSync(folder.at("state/sessions/s2/journal.jsonl"), '{"v":9,"seq":1}\n');
  chmodSync(folder.at("state/sessions/s3/journal.jsonl"), 0o602);
  mkdirSync(folder.at("state/sessions/s5"), { mode: 0o700 });
  assert.deepEqual(
    (await listSessions(store)).map((found) => (found.kind === "session" ? found.id : `${found.id}: ${found.reason}`)),
    [
      "s4",
      "s1: session s1 begins with an entry that cannot be read",
      "s2: session s2 was written by a newer version (journal version 9)",
      `s3: ${folder.at("state/sessions/s3/journal.jsonl")} can be changed by others (mode 0602)`,
      `s5: ${folder.at("state/sessions/s5/journal.jsonl")}: there is no such file or folder`,
    ],
  );
});

test("a session is found by the beginning of its id if that is unambiguous", async () => {
  using folder = scratch();
  const ids = ["aa1", "aa2", "aab", "b"];
  const store = { ...storeIn(folder.at("state")), newId: () => ids.shift() ?? "" };
  for (let count = 0; count < 4; count += 1) await (await createJournal(store, session)).close();
  assert.equal(await findSession(store, "aab"), "aab");
  assert.equal(await findSession(store, "aa1"), "aa1");
  assert.equal(await findSession(store, "b"), "b");
  await assert.rejects(findSession(store, "aa"), {
    reason: "ambiguous",
    message: "3 sessions begin with aa: aa1, aa2, aab",
  });
  await assert.rejects(findSession(store, "c"), { reason: "not-found" });
  await assert.rejects(findSession(store, ""), { reason: "not-found" });
});

/** A parent with three messages and a fork of it. */
const family = async (folder: Scratch) => {
  const store = storeIn(folder.at("state"));
  const parent = new Live(await createJournal(store, session));
  parent.enter(userText(`the parent's long history ${"x".repeat(400_000)}`));
  parent.ask();
  parent.enter({ role: "assistant", content: [{ type: "tool_use", id: "a", name: "Agent", input: "{}" }] });
  parent.enter({ role: "user", content: [toolResult("a", "launched")] }, { open: true });
  const fork = await forkJournal(store, parent.journal, { ...session, prefix: parent.prefix });
  return { store, parent, fork };
};

test("a fork's journal is a pointer plus its own entries, and opens with the parent's bytes", async () => {
  using folder = scratch();
  const { store, parent, fork } = await family(folder);
  const branch = Object.assign(Object.create(Live.prototype), parent, { journal: fork });
  branch.extend([text("you are a fork: count the files")]);
  branch.ask();
  parent.extend([text("the parent goes on otherwise")]);
  parent.enter({ role: "assistant", content: [text("later")] });
  await fork.close();
  const { journal, replayed } = await openJournal(store, fork.id);
  assert.deepEqual(factsOf(replayed.prefix), factsOf(branch.prefix));
  assert.deepEqual(replayed.problems, []);
  assert.equal(replayed.inherited?.lastSeq, 6);
  assert.equal(replayed.messages.length, 3);
  assert.deepEqual(
    replayed.markers,
    branch.markers.map(({ at, ...rest }: { at: { index: number } }) => ({
      at: replayed.prefix?.segmentAt(at.index),
      ...rest,
    })),
  );
  await journal.close();
  assert.deepEqual((await readSession(store, "s1")).replayed.problems, []);
  const size = (id: string): number => lstatSync(folder.at("state/sessions", id, "journal.jsonl")).size;
  assert.ok(size(fork.id) < size("s1") / 100, `${size(fork.id)} of ${size("s1")}`);
  assert.deepEqual((await readSession(store, "s1")).replayed.forks, [{ kind: "fork", session: "s2", after: 6 }]);
  parent.journal.append({ kind: "unfork", session: "s2" });
  assert.deepEqual((await readSession(store, "s1")).replayed.forks, []);
  await parent.journal.close();
});

test("a fork of a fork reads both parents", async () => {
  using folder = scratch();
  const { store, parent, fork } = await family(folder);
  const branch = Object.assign(Object.create(Live.prototype), parent, { journal: fork });
  branch.extend([text("one")]);
  const second = await forkJournal(store, fork, { ...session, prefix: branch.prefix });
  const leaf = Object.assign(Object.create(Live.prototype), branch, { journal: second });
  leaf.extend([text("two")]);
  for (const { journal } of [parent, branch, leaf]) await journal.close();
  assert.deepEqual(factsOf((await readSession(store, "s3")).replayed.prefix), factsOf(leaf.prefix));
});

test("a fork starts from any prefix of its parent's journal, also after reopening it", async () => {
  using folder = scratch();
  const { store, parent, fork } = await family(folder);
  const snapshot = parent.prefix;
  parent.journal.append({ kind: "state", slot: "todos", value: [] });
  parent.extend([text("the parent goes on")]);
  await parent.journal.close();
  const { journal } = await openJournal(store, "s1");
  const late = await forkJournal(store, journal, { ...session, prefix: snapshot });
  const later = await forkJournal(store, late, { ...session, prefix: snapshot });
  await assert.rejects(forkJournal(store, journal, { ...session, prefix: snapshot.extend([text("never entered")]) }), {
    reason: "not-found",
    message: "session s1 holds no entry with the prefix that the fork starts from",
  });
  for (const each of [journal, fork, late, later]) await each.close();
  assert.deepEqual(
    (await readSession(store, "s1")).replayed.forks.map(({ session: id, after }) => [id, after]),
    [
      ["s2", 6],
      ["s3", 8],
    ],
  );
  for (const id of ["s2", "s3", "s4"])
    assert.deepEqual(factsOf((await readSession(store, id)).replayed.prefix), factsOf(snapshot));
});

test("opening a fork fails if its parent is gone or has changed", async () => {
  using folder = scratch();
  const { store, parent, fork } = await family(folder);
  await Promise.all([parent.journal.close(), fork.close()]);
  const file = folder.at(SESSION, "journal.jsonl");
  const lines = readFileSync(file, "utf8").split("\n");
  writeFileSync(file, lines.toSpliced(5, 1).join("\n"));
  await assert.rejects(openJournal(store, "s2"), {
    reason: "damaged",
    message: "session s2 continues session s1, whose entries up to 6 have changed",
  });
  renameSync(folder.at(SESSION), folder.at("elsewhere"));
  await assert.rejects(readSession(store, "s2"), {
    reason: "damaged",
    message: "session s2 continues session s1, which does not exist",
  });
});

test("a session is not deleted while it is open, or while a fork needs it", async () => {
  using folder = scratch();
  const { store, parent, fork } = await family(folder);
  await assert.rejects(deleteSession(store, "s1"), {
    reason: "has-forks",
    message: "session s1 is needed by its fork s2: delete it too, or keep it",
  });
  await assert.rejects(deleteSession(store, "s1", { forks: true }), { reason: "locked" });
  await fork.close();
  await assert.rejects(deleteSession(store, "s1", { forks: true }), { reason: "locked" });
  await parent.journal.close();
  assert.deepEqual(readdirSync(folder.at("state/sessions")), ["s1", "s2"]);
  assert.deepEqual(await deleteSession(store, "s1", { forks: true }), ["s2", "s1"]);
  assert.deepEqual(readdirSync(folder.at("state/sessions")), []);
  await assert.rejects(deleteSession(store, "s1"), { reason: "not-found" });
});

test("a fork is deleted alone, and forks are only listed on request", async () => {
  using folder = scratch();
  const { store, parent, fork } = await family(folder);
  await Promise.all([parent.journal.close(), fork.close()]);
  const ids = async (forks: boolean) => (await listSessions(store, { forks })).map(({ id }) => id);
  assert.deepEqual([await ids(false), await ids(true)], [["s1"], ["s1", "s2"]]);
  assert.deepEqual(await deleteSession(store, "s2"), ["s2"]);
  assert.deepEqual(await ids(true), ["s1"]);
  assert.deepEqual(await deleteSession(store, "s1"), ["s1"]);
});
