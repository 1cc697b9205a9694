import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { familyOf, type MergeOutcome, type Worktrees } from "../src/index.ts";
import { runCheck } from "../src/internal.ts";
import { commitUsual, type Files, type Ground, openGround, photograph, photographFiles } from "./ground.ts";

const finished = async (
  ground: Ground,
  worktrees: Worktrees,
  edits: Readonly<Record<string, (copy: Files) => void>>,
) => {
  const snapshot = await worktrees.snapshot();
  for (const [task, edit] of Object.entries(edits)) {
    edit(ground.copy(await worktrees.create({ task, label: `label of ${task}`, snapshot })));
    await worktrees.finish(task, { message: "m\n", end: "reported" });
  }
};

const writes =
  (name: string, content: string) =>
  ({ put }: Files): void =>
    put(name, content);

const shown = (outcomes: readonly MergeOutcome[]): readonly string[] =>
  outcomes.map(({ task, kind, files }) => `${task} ${kind} ${files.join()}`);

test("a preview shows what would happen and changes nothing", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  await finished(ground, worktrees, { one: writes("new", "n\n"), two: writes("b", "of the task\n") });
  ground.put("b", "of the user\n");
  const before = photograph(ground);
  const about = (task: string) => ({ task, label: `label of ${task}` });
  assert.deepEqual(await worktrees.merge(["one", "two"], { isPreview: true }), [
    { ...about("one"), files: ["new"], conflicts: [], kind: "would-merge", isSkipped: false },
    { ...about("two"), files: ["b"], conflicts: [{ path: "b", kind: "content" }], kind: "conflicts", isSkipped: false },
  ]);
  assert.deepEqual(photograph(ground), before);
  assert.deepEqual((await worktrees.table()).points, []);
});

/** Everything that a preview could change: the files, git's folder, and our records. */
const everything = ({ path, state }: Ground): readonly unknown[] => [
  photographFiles(path),
  photographFiles(join(path, ".git")),
  photographFiles(state),
];

test("a preview builds each merge on those before it, ends where the merge would, and leaves no object behind", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  const edits = {
    one: writes("b", "of one\n"),
    two: writes("2", "2\n"),
    three: writes("b", "of three\n"),
    four: writes("2", "also 2\n"),
    five: writes("5", "5\n"),
  };
  await finished(ground, worktrees, edits);
  ground.put("new of the user", "u\n");
  const tasks = Object.keys(edits);
  for (const onConflict of ["stop", "skip"] as const) {
    const before = everything(ground);
    const preview = await worktrees.merge(tasks, { isPreview: true, onConflict });
    assert.deepEqual(everything(ground), before);
    const merged = await worktrees.merge(tasks, { onConflict });
    assert.deepEqual(
      shown(preview),
      shown(merged).map((line) => line.replace(" merged ", " would-merge ")),
    );
    await worktrees.undo("group");
  }
});

test("a preview repairs nothing: what a crash left is shown as a merge would find it", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  await finished(ground, worktrees, { one: writes("1", "1\n") });
  const copy = await worktrees.create({ task: "two", label: "", snapshot: await worktrees.snapshot() });
  ground.copy(copy).put("2", "2\n");
  const { path } = (await worktrees.find("two")) ?? {};
  const records = join(path, "../../records.jsonl");
  const dead = readFileSync(records, "utf8").replace(/"pid":\d+/g, '"pid":999999999');
  writeFileSync(records, dead);
  const before = everything(ground);
  assert.deepEqual(shown(await worktrees.merge(["one", "two"], { isPreview: true })), [
    "one would-merge 1",
    "two would-merge 2",
  ]);
  assert.deepEqual(everything(ground), before);
  const half = { v: 1, at: 1, kind: "merging", point: 1, task: "one", group: 1, tip: "", files: 1, saved: "" };
  const by = JSON.parse(dead.split("\n")[0] ?? "").by;
  writeFileSync(records, `${dead}${JSON.stringify({ ...half, by, top: ground.path })}\n`);
  await assert.rejects(
    worktrees.merge(["one"], { isPreview: true }),
    /^WorktreeError: merge 1 \(one\) was interrupted in this checkout; run prefork worktrees repair first$/,
  );
});

test("a check never passes while conflicts are left in files", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  await finished(ground, worktrees, { one: writes("b", "of the task\n") });
  ground.put("b", "of the user\n");
  const how = { onConflict: "markers", check: async () => ({ ok: true, output: "" }) } as const;
  const [unchecked] = await worktrees.merge(["one"], { onConflict: "markers" });
  assert.deepEqual(unchecked?.unresolved, ["b"]);
  await worktrees.undo(1);
  const [taken] = await worktrees.merge(["one"], how);
  assert.deepEqual([taken?.kind, readFileSync(ground.at("repo/b"), "utf8")], ["check-failed", "of the user\n"]);
  const [kept] = await worktrees.merge(["one"], { ...how, keepsFailed: true });
  assert.equal(kept?.kind === "check-failed" && kept.output, "the check was not run: conflicts are left in b");
  assert.match(readFileSync(ground.at("repo/b"), "utf8"), /^<<<<<<< your checkout\n/);
});

test("runs that start from the same state in the same second are two families", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  for (let tries = 0; tries < 2; tries += 1) {
    await finished(ground, worktrees, { [`a${tries}`]: writes("a", "a\n"), [`b${tries}`]: writes("b", "B\n") });
    await finished(ground, worktrees, { [`c${tries}`]: writes("c", "c\n") });
    assert.deepEqual(await familyOf(worktrees), [`c${tries}`]);
    assert.deepEqual(await familyOf(worktrees, `a${tries}`), [`a${tries}`, `b${tries}`]);
  }
});

test("a queue stops at a conflict or skips it, as chosen; undo reverts what one command merged", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  const edits = { one: writes("1", "1\n"), two: writes("b", "two\n"), three: writes("3", "3\n") };
  await finished(ground, worktrees, edits);
  ground.put("b", "of the user\n");
  const before = photograph(ground);
  const tasks = Object.keys(edits);
  assert.deepEqual(shown(await worktrees.merge(tasks)), ["one merged 1", "two conflicts b"]);
  await worktrees.undo("group");
  assert.deepEqual(photograph(ground), before);
  const skipped = await worktrees.merge(tasks, { onConflict: "skip" });
  assert.deepEqual(shown(skipped), ["one merged 1", "two conflicts b", "three merged 3"]);
  assert.deepEqual(
    (await worktrees.undo("group")).map(({ task }) => task),
    ["three", "one"],
  );
  assert.deepEqual(photograph(ground), before);
  await worktrees.merge(["two"], { onConflict: "markers" });
  const marked = "<<<<<<< your checkout\nof the user\n=======\ntwo\n>>>>>>> prefork/two\n";
  assert.equal(readFileSync(join(ground.path, "b"), "utf8"), marked);
});

test("a merge that the check says no to is taken back, and the queue ends", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  await finished(ground, worktrees, {
    good: writes("good", "g\n"),
    bad: writes("bad", "b\n"),
    late: writes("late", "l\n"),
  });
  const check = worktrees.check("test ! -e bad || { echo bad is there; exit 1; }");
  const outcomes = await worktrees.merge(["good", "bad", "late"], { check });
  assert.deepEqual(shown(outcomes), ["good merged good", "bad check-failed bad"]);
  const [, failed] = outcomes;
  assert.ok(failed?.kind === "check-failed");
  assert.deepEqual({ output: failed.output, isKept: failed.isKept }, { output: "bad is there", isKept: false });
  assert.deepEqual(
    ["good", "bad"].map((name) => Object.hasOwn(photograph(ground).files, name)),
    [true, false],
  );
});

test("what was changed since a merge is taken back only when that is asked for, and is kept on a ref", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  await finished(ground, worktrees, { one: writes("b", "of the task\n") });
  const before = photograph(ground);
  await worktrees.merge(["one"]);
  ground.put("b", "and of the user\n");
  await assert.rejects(worktrees.undo(1), /^WorktreeError: changed since the merge: b; nothing was undone/);
  assert.equal(readFileSync(join(ground.path, "b"), "utf8"), "and of the user\n");
  const [undone] = await worktrees.undo(1, { isForced: true });
  assert.equal(undone?.kept, "refs/prefork/kept/1");
  assert.equal(ground.git("show", "refs/prefork/kept/1:b"), "and of the user\n");
  assert.deepEqual(photograph(ground), before);
});

test("a file that git ignores is not overwritten by one of the same name", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  await finished(ground, worktrees, {
    one: ({ put, git }) => {
      put("x.log", "of the task\n");
      git("add", "-f", "x.log");
    },
  });
  ground.put("x.log", "of the user\n");
  const before = photograph(ground);
  const [outcome] = await worktrees.merge(["one"]);
  assert.ok(outcome?.kind === "failed");
  assert.equal(outcome.reason, "x.log: an ignored file is in the way; nothing was merged");
  assert.deepEqual(photograph(ground), before);
});

test("a check runs without the keys of model providers", async () => {
  using ground = openGround();
  const environment = { PATH: process.env.PATH, ANTHROPIC_API_KEY: "sk-fake", OTHER: "seen" };
  const output = await runCheck('echo "$OTHER"; env | grep -c API_KEY', { cwd: ground.path, environment });
  assert.deepEqual(output, { ok: false, output: "seen\n0" });
});
