import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { lstatSync, readdirSync, readlinkSync, symlinkSync, unlinkSync } from "node:fs";
import { hostname } from "node:os";
import { test } from "node:test";
import { promisify } from "node:util";
import { livenessOf, thisProcess } from "@prefork/guard/internal";
import { scratch } from "@prefork/testing/scratch";
import { createJournal, listSessions, openJournal, readSession } from "../../src/journal/index.ts";
import { session, storeIn } from "./histories.ts";
import { type Fact, startWriter } from "./processes.ts";

const run = promisify(execFile);

test("if many processes open a session whose writer was killed, exactly one gets it", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  await (await createJournal(store, session)).close();
  const hold = () => startWriter(["hold", folder.at("state"), "s1"]);
  await using one = hold();
  await using two = hold();
  await using three = hold();
  await using four = hold();
  await using dead = hold();
  const writers = [one, two, three, four];
  for (const writer of [...writers, dead]) assert.deepEqual(await writer.next(), { ready: writer.pid });
  dead.tell();
  assert.deepEqual(await dead.next(), { holding: dead.pid });
  const locks = (): readonly string[] =>
    readdirSync(folder.at("state/sessions/s1")).filter((name) => name.startsWith("lock-"));
  const [left = ""] = locks();
  const holder = readlinkSync(folder.at("state/sessions/s1", left));
  await dead.kill();
  for (let round = 0; round < 12; round += 1) {
    for (const writer of writers) writer.tell();
    const facts = await Promise.all(writers.map((writer) => writer.next()));
    const winners = facts.filter((fact) => fact?.holding !== undefined);
    assert.equal(winners.length, 1);
    const pid = winners[0]?.holding;
    const message = `session s1 is in use by process ${pid}; end it there, or start another session`;
    assert.deepEqual(
      facts.filter((fact) => fact?.holding === undefined),
      Array.from({ length: 3 }, () => ({ failed: "locked", message })),
    );
    const [listed] = await listSessions(store);
    assert.equal(listed?.kind === "session" && listed.holder?.pid, pid);
    for (const writer of writers) writer.tell();
    for (const writer of writers) assert.deepEqual(await writer.next(), { ready: writer.pid });
    // What the killed writer left behind, restored.
    const [free = ""] = locks();
    symlinkSync(holder, folder.at("state/sessions/s1", `lock-${Number(free.slice(5)) + 1}`));
  }
});

test("a session is free again when its writer is closed, and until then the error says who has it", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  const journal = await createJournal(store, session);
  await assert.rejects(openJournal(store, "s1"), {
    name: "JournalError",
    reason: "locked",
    message: `session s1 is in use by this process (${process.pid}); end it there, or start another session`,
  });
  await journal.close();
  await journal.close();
  for (let time = 0; time < 3; time += 1) await (await openJournal(store, "s1")).journal.close();
  assert.deepEqual(
    readdirSync(folder.at("state/sessions/s1")).filter((name) => name.startsWith("lock")),
    ["lock-8"],
  );
  assert.throws(() => journal.append({ kind: "state", slot: "a", value: 1 }), { reason: "closed" });
});

test("a lock is ignored if its process is gone, its id was reused, or the machine was restarted", () => {
  const self = thisProcess();
  assert.equal(livenessOf(self, self), "alive");
  assert.equal(livenessOf({ ...self, started: "1" }, self), self.started === null ? "alive" : "dead");
  assert.equal(livenessOf({ ...self, pid: 4_194_303, started: null }, self), "dead");
  assert.equal(livenessOf({ ...self, boot: "another" }, self), "dead");
  assert.equal(livenessOf({ ...self, boot: "another", host: "elsewhere" }, self), "elsewhere");
  assert.equal(livenessOf({ ...self, namespace: "pid:[1]" }, self), "elsewhere");
});

test("a lock of a process that cannot be seen is respected, and the message says how to remove it", async () => {
  using folder = scratch();
  const store = storeIn(folder.at("state"));
  await (await createJournal(store, session)).close();
  const place = folder.at("state/sessions/s1/lock-3");
  symlinkSync(`17 1 ${"b".repeat(36)} pid%3A%5B1%5D ${hostname()}x`, place);
  await assert.rejects(openJournal(store, "s1"), {
    reason: "locked",
    message: `session s1 is in use by process 17 on ${hostname()}x, which cannot be seen from here; if it no longer runs, remove ${place}`,
  });
  unlinkSync(place);
  await (await openJournal(store, "s1")).journal.close();
});

test("a writer killed at any moment loses nothing that it had reported", async () => {
  for (const wanted of [1, 7, 40]) {
    using folder = scratch();
    await using writer = startWriter(["turns", folder.at("state")]);
    let last: Fact | undefined;
    while ((last?.turn ?? 0) !== wanted) last = (await writer.next()) ?? last;
    const killed = writer.kill();
    for (let fact = await writer.next(); fact; fact = await writer.next()) last = fact;
    await killed;
    const store = storeIn(folder.at("state"));
    const { journal, replayed } = await openJournal(store, "s1");
    await journal.close();
    assert.ok(replayed.turns >= Number(last?.turn));
    assert.equal(replayed.exact, true);
    const told = replayed.messages.slice(0, 2 * Number(last?.turn)).at(-1);
    assert.deepEqual(told, { role: "assistant", content: [{ type: "text", text: `answer ${last?.turn}` }] });
    assert.deepEqual(
      replayed.problems.filter(({ kind }) => kind !== "torn"),
      [],
    );
    let segment = replayed.prefix?.tip;
    while (segment && segment.hash !== last?.hash) segment = segment.before;
    assert.equal(segment?.hash, last?.hash);
    assert.deepEqual((await readSession(store, "s1")).replayed.problems, []);
  }
});

test("on a full disk an append fails with an error, existing entries stay, and writing continues when there is space", async () => {
  using folder = scratch();
  await using writer = startWriter(["fill", folder.at("state")], "ulimit -S -f 20");
  const full = await writer.next();
  const path = folder.at("state/sessions/s1/journal.jsonl");
  assert.deepEqual(
    { failed: full?.failed, message: full?.message },
    { failed: "disk-full", message: `${path}: the file has reached its size limit` },
  );
  const store = storeIn(folder.at("state"));
  const before = (await readSession(store, "s1")).replayed;
  assert.deepEqual([before.messages.length, before.prefix?.hash, before.problems], [full?.prompts, full?.hash, []]);
  assert.ok(lstatSync(path).size <= 20 * 1_024);
  await run("prlimit", ["--pid", String(writer.pid), "--fsize=unlimited"]);
  writer.tell();
  const more = await writer.next();
  const after = (await readSession(store, "s1")).replayed;
  assert.deepEqual([after.messages.length, after.prefix?.hash, after.problems], [more?.prompts, more?.hash, []]);
  assert.equal(after.messages.length, before.messages.length + 1);
});
