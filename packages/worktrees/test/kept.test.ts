/** What a user does between a merge and its undo, and what a task leaves outside its commits, is not lost. */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { test } from "node:test";
import type { Worktrees } from "../src/index.ts";
import { runCheck } from "../src/internal.ts";
import { commitUsual, type Files, type Ground, openGround, photograph } from "./ground.ts";

const worked = async (ground: Ground, edit: (copy: Files) => void, copyIgnored: readonly string[] = []) => {
  const worktrees = await ground.open();
  const snapshot = await worktrees.snapshot();
  const created = await worktrees.create({ task: "one", label: "one", snapshot, copyIgnored });
  edit(ground.copy(created));
  return { worktrees, created, finished: await worktrees.finish("one", { message: "m\n", end: "reported" }) };
};

const makes = ({ put }: Files): void => put("made", "m\n");

test("what was staged since a merge stays staged when the merge is taken back", async () => {
  using ground = openGround();
  commitUsual(ground);
  const { worktrees } = await worked(ground, makes);
  await worktrees.merge(["one"]);
  ground.put("precious", "staged\n");
  ground.git("add", "precious");
  ground.put("precious", "of the working tree\n");
  await worktrees.undo(1);
  assert.equal(ground.git("show", ":precious"), "staged\n");
  assert.equal(existsSync(ground.at("repo/made")), false);
});

test("a user's merge continues after another one was rolled back half-way", async () => {
  using ground = openGround();
  commitUsual(ground);
  ground.git("checkout", "-q", "-b", "other");
  ground.put("added", "a\n");
  ground.put("b", "of the other\n");
  ground.git("add", "-A");
  ground.git("commit", "-qm", "other");
  ground.git("checkout", "-q", "-");
  ground.put("b", "of this one\n");
  ground.git("commit", "-qam", "this");
  const { worktrees } = await worked(ground, makes);
  await worktrees.merge(["one"]);
  assert.throws(() => ground.git("merge", "-q", "other"));
  const staged = ground.git("ls-files", "--stage");
  await worktrees.undo(1);
  assert.equal(ground.git("ls-files", "--stage"), staged);
});

test("a commit that is made while a check runs is not turned back by the check's no", async () => {
  using ground = openGround();
  commitUsual(ground);
  const { worktrees } = await worked(ground, makes);
  const check = async () => {
    ground.put("of the user", "u\n");
    ground.git("add", "of the user");
    ground.git("commit", "-qm", "meanwhile");
    return { ok: false, output: "no" };
  };
  const [outcome] = await worktrees.merge(["one"], { check });
  assert.equal(outcome?.kind, "check-failed");
  assert.equal(ground.git("status", "--porcelain"), "");
});

test("with force, what stood there is kept also where git ignores it by then", async () => {
  using ground = openGround();
  commitUsual(ground);
  const { worktrees } = await worked(ground, ({ put }) => put("out.txt", "of the task\n"));
  await worktrees.merge(["one"]);
  ground.put(".gitignore", "out.txt\n");
  ground.put("out.txt", "precious\n");
  await assert.rejects(worktrees.undo(1), /changed since the merge: out\.txt/);
  const [undone] = await worktrees.undo(1, { isForced: true });
  assert.equal(ground.git("show", `${undone?.kept}:out.txt`), "precious\n");
});

test("a copy with ignored files of its agent is kept, one with those that it was given is not", async () => {
  using ground = openGround();
  commitUsual(ground);
  ground.put(".gitignore", "*.log\n.env\nbuilt/\n");
  ground.put(".env", "KEY=1\n");
  const { finished, created, worktrees } = await worked(ground, ({ put }) => put("report.log", "r\n"), [".env"]);
  assert.deepEqual([finished.isRemoved, finished.ignored], [false, ["report.log"]]);
  assert.deepEqual(await worktrees.prune(), [
    { task: "one", kind: "kept", reason: `${created.path} contains ignored files that exist nowhere else: report.log` },
  ]);
  using another = openGround();
  commitUsual(another);
  another.put(".gitignore", ".env\nbuilt/\n");
  another.put(".env", "KEY=1\n");
  const none = await worked(another, ({ put }) => put("built/x", "x\n"), [".env"]);
  assert.equal(none.finished.isRemoved, true);
});

test("a task whose folder is gone cannot continue there, and its work is kept", async () => {
  using ground = openGround();
  commitUsual(ground);
  const { worktrees, created } = await worked(ground, makes);
  rmSync(created.path, { recursive: true });
  await assert.rejects(worktrees.enter("one"), /the worktree of one was removed, so the task cannot resume in it/);
  assert.equal((await worktrees.merge(["one"]))[0]?.kind, "merged");
  assert.equal(readFileSync(ground.at("repo/made"), "utf8"), "m\n");
});

test("another repository at the same path is reported as such, and forgets the old records", async () => {
  using ground = openGround();
  commitUsual(ground);
  const { worktrees } = await worked(ground, makes);
  await worktrees.merge(["one"]);
  rmSync(ground.path, { recursive: true });
  mkdirSync(ground.path);
  ground.git("init", "-q");
  commitUsual(ground);
  const before = photograph(ground);
  const anew: Worktrees = await ground.open();
  const [outcome] = await anew.merge(["one"]);
  assert.match(outcome?.kind === "failed" ? outcome.reason : "", /another repository may have taken its place/);
  await assert.rejects(anew.undo(1), /no longer in this repository/);
  assert.deepEqual(await anew.prune(), [{ task: "one", kind: "removed" }]);
  await assert.rejects(anew.undo(1), /there is no merge to undo/);
  assert.deepEqual(photograph(ground), before);
});

test("a check that is called off before it began does not begin", async () => {
  using ground = openGround();
  const how = { cwd: ground.path, environment: process.env, signal: AbortSignal.abort() };
  assert.deepEqual(await runCheck("touch begun", how), { ok: false, output: "interrupted before it started" });
  assert.equal(existsSync(ground.at("repo/begun")), false);
});
