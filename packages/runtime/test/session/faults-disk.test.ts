import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, readFileSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { callTools, lastUserText, type SimScript, say } from "@prefork/simulator";
import { treeOf } from "@prefork/testing/scratch";
import { createSession, type RuntimeEvent, resumeSession } from "../../src/index.ts";
import { assertGoesOn, assertOnlyGrown, endOf, followed, openGround, reopened } from "./fault-ground.ts";

/** No file of this process may become longer while it works: what a full disk does, for one process. */
const withoutSpace = async <T>(bytes: number, work: () => Promise<T>): Promise<T> => {
  const limit = (value: string): unknown => execFileSync("prlimit", ["--pid", String(process.pid), `--fsize=${value}`]);
  limit(`${bytes}:unlimited`);
  try {
    return await work();
  } finally {
    limit("unlimited:unlimited");
  }
};

const journalOf = (ground: { readonly folder: { at: (...names: string[]) => string } }, id: string): string =>
  ground.folder.at("state/sessions", id, "journal.jsonl");

const MOMENTS = 6;

/** To "work" three turns with two calls each; to all else a word. */
const working: SimScript = (request) => {
  const prompt = lastUserText(request);
  if (prompt !== "" && prompt !== "work") return say(`heard ${prompt}`);
  const results = JSON.stringify(request.body.messages).split("tool_use_id").length - 1;
  if (results >= 6) return say("finished");
  const name = `made-${results}`;
  return callTools([
    { name: "Bash", input: { command: `echo x >> ${name}; cat ${name}` } },
    { name: "Read", input: { file_path: name } },
  ]);
};

test("a disk that becomes full at any moment ends the exchange and loses nothing that was stored", async () => {
  await using ground = await openGround(working);
  await using whole = await ground.open();
  await whole.prompt("hello").result();
  const least = statSync(journalOf(ground, whole.id)).size;
  await whole.prompt("work").result();
  const most = statSync(journalOf(ground, whole.id)).size;
  const ends = new Set<string>();
  for (let moment = 0; moment < MOMENTS; moment += 1) {
    ground.simulator.reset();
    // Where something stayed held for a request that was never sent, the next would not fit.
    await using session = await ground.open({ limits: { tokens: 90_000 }, maxTokens: 30_000 });
    const file = journalOf(ground, session.id);
    await session.prompt("hello").result();
    const before = readFileSync(file);
    const limit = before.length + Math.floor(((most - least) * moment) / MOMENTS);
    const { events } = await withoutSpace(limit, () => followed(session.prompt("work")));
    assert.equal(endOf(events), `journal-failed: ${file}: the file has reached its size limit`);
    ends.add(events.findLast(({ type }) => /^(?:turn|call|prompt)_/.test(type))?.type ?? "none");
    const kept = readFileSync(file);
    assert.ok(kept.subarray(0, before.length).equals(before) && kept.length <= limit && kept.at(-1) === 0x0a);
    await assertGoesOn(ground, session);
  }
  // The moments were not all the same one.
  assert.ok(ends.size >= 3, [...ends].join());
});

test("the result of a call that ran before the disk was full is reported when there is space again, and the call does not run twice", async () => {
  await using ground = await openGround(working);
  await using session = await ground.open();
  const exchange = session.prompt("work");
  let undo: (() => void) | undefined;
  const limit = (value: string): unknown => execFileSync("prlimit", ["--pid", String(process.pid), `--fsize=${value}`]);
  const { events } = await followed(exchange, (event) => {
    if (event.type !== "call_ended" || undo) return;
    limit(`${statSync(journalOf(ground, session.id)).size}:unlimited`);
    undo = () => limit("unlimited:unlimited");
  });
  undo?.();
  assert.match(endOf(events) ?? "", /^journal-failed: /);
  await session.prompt("go on").result();
  const told = ground.simulator.requests().at(-1)?.body.toString("utf8") ?? "";
  assert.ok(told.includes('"content":[{"type":"text","text":"x\\n[exit code 0]"'), told.slice(-2_000));
  assert.ok(told.includes("could not be recorded"));
  assert.equal(readFileSync(ground.folder.at("work/made-0"), "utf8"), "x\n");
  assertOnlyGrown(ground.simulator);
});

test("an output that cannot be stored does not fail its call", async () => {
  const command = "head -c 3000000 /dev/zero | tr '\\0' x";
  await using ground = await openGround({ print: callTools([{ name: "Bash", input: { command } }]) });
  await using session = await ground.open();
  await session.prompt("hello").result();
  const { events, result } = await withoutSpace(1_000_000, () => followed(session.prompt("print")));
  assert.equal(endOf(events), "done: end");
  assert.match(result.text, /characters left out; its beginning is in .*bash-toolu_\w+\.txt: .*\[exit code 0\]$/s);
  await assertGoesOn(ground, session);
});

const TORN =
  /^line \d+: the (?:last write was torn after \d+ bytes|write that this line belongs to was never finished)$/;

const problems = (events: readonly RuntimeEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === "journal_troubled" ? [event.problem] : []));

test("a journal torn anywhere in its last exchange can be resumed, reports what was lost, and sends what it still holds", async () => {
  await using ground = await openGround(working);
  const session = await ground.open();
  await session.prompt("hello").result();
  const file = journalOf(ground, session.id);
  const start = statSync(file).size;
  await session.prompt("work").result();
  await session.close();
  const whole = readFileSync(file);
  for (let cut = 1; cut <= MOMENTS; cut += 1) {
    const end = start + Math.floor(((whole.length - start) * cut) / MOMENTS) - 1;
    ground.simulator.reset();
    writeFileSync(file, whole);
    truncateSync(file, end);
    const again = await reopened(ground, session.id);
    const { events } = await followed(again.prompt("go on"));
    assert.equal(endOf(events), "done: end");
    const isTorn = whole[end - 1] !== 0x0a && whole[end] !== 0x0a;
    for (const problem of problems(events)) assert.match(problem, TORN);
    assert.ok(problems(events).length >= (isTorn ? 1 : 0));
    await assertGoesOn(ground, again);
  }
});

test("folders, journal and outputs are private to their owner, whatever the umask", async () => {
  await using ground = await openGround({
    print: callTools([{ name: "Bash", input: { command: "seq 100000" } }]),
  });
  const before = process.umask(0);
  try {
    await using session = await ground.open();
    await session.prompt("print").result();
  } finally {
    process.umask(before);
  }
  const modes = new Set(
    Object.entries(treeOf(ground.folder.at("state"))).flatMap(([name, facts]) => {
      if (facts.startsWith("->")) return []; // a lock, which nobody follows
      return [name.endsWith("/") ? `folder ${facts}` : `file ${facts.split(" ")[0]}`];
    }),
  );
  assert.deepEqual(modes, new Set(["folder 700", "file 600"]));
  assert.equal(statSync(ground.folder.at("state")).mode & 0o777, 0o700);
});

test("a state folder that others may change is refused with its name and its mode", async () => {
  await using ground = await openGround();
  const state = ground.folder.at("state");
  await (await ground.open()).close();
  chmodSync(state, 0o777);
  await assert.rejects(createSession(ground.options()), {
    name: "JournalError",
    reason: "insecure",
    message: `sessions cannot be kept in ${state}: ${state} can be changed by others (mode 0777)`,
  });
});

test("a journal that others may change, a link in its place and another user's file are refused and left unchanged", async () => {
  await using ground = await openGround();
  await using session = await ground.open();
  await session.prompt("hello").result();
  await session.close();
  const file = journalOf(ground, session.id);
  const resume = (): Promise<unknown> => resumeSession(session.id, ground.options());
  const before = readFileSync(file);
  chmodSync(file, 0o666);
  const changed = `${file} can be changed by others (mode 0666)`;
  await assert.rejects(resume(), { name: "JournalError", reason: "insecure", message: changed });
  chmodSync(file, 0o600);
  if (process.getuid?.() === 0) {
    chownSync(file, 12_345, 12_345);
    await assert.rejects(resume(), { reason: "insecure", message: `${file} belongs to another user (12345)` });
    chownSync(file, 0, 0);
  }
  execFileSync("mv", [file, `${file}.real`]);
  symlinkSync(`${file}.real`, file);
  await assert.rejects(resume(), { reason: "insecure", message: `${file}: it is a symbolic link` });
  execFileSync("mv", [`${file}.real`, file]);
  assert.deepEqual(readFileSync(file), before);
  await assertGoesOn(ground, await reopened(ground, session.id));
});
