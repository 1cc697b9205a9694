import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type MergeOutcome, runCheck, type Worktrees } from "../../src/worktrees/index.ts";
import { commitUsual, type Files, type Ground, openGround, photograph } from "./ground.ts";

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

test("a preview tells what would happen and changes nothing", async () => {
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

test("a queue stops at a conflict, or goes on without it, as chosen; undo takes back what one command merged", async () => {
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
  await assert.rejects(worktrees.undo(1), /^WorktreeError: changed since the merge: b; nothing was taken back/);
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
  assert.equal(outcome.reason, "x.log: a file that git ignores stands in the way; nothing was merged");
  assert.deepEqual(photograph(ground), before);
});

test("a check runs without the keys of model providers", async () => {
  using ground = openGround();
  const environment = { PATH: process.env.PATH, ANTHROPIC_API_KEY: "sk-fake", OTHER: "seen" };
  const output = await runCheck('echo "$OTHER"; env | grep -c API_KEY', { cwd: ground.path, environment });
  assert.deepEqual(output, { ok: false, output: "seen\n0" });
});
