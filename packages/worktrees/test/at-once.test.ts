/** Many worktrees created at the same moment: git reads the others while they are being created, and must not fail. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempDisposableSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Worktrees } from "@prefork/worktrees";

test("sixteen worktrees created at once all succeed, each on its own branch", async () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-at-once-"));
  const [work, state] = [join(folder.path, "work"), join(folder.path, "state")];
  mkdirSync(work);
  const git = (...words: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...words], { cwd: work, encoding: "utf8" });
  git("init", "-q");
  for (let at = 0; at < 50; at += 1) writeFileSync(join(work, `${at}.txt`), `${at}\n`);
  git("add", "-A");
  git("commit", "-qm", "first");
  const worktrees = await Worktrees.open({ cwd: work, state });
  const snapshot = await worktrees.snapshot();
  const tasks = Array.from({ length: 16 }, (_, at) => `task-${at}`);
  const made = await Promise.allSettled(tasks.map((task) => worktrees.create({ task, label: task, snapshot })));
  assert.deepEqual(
    made.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : [])),
    [],
  );
  const branches = git("for-each-ref", "--format=%(refname:short)", "refs/heads/prefork").trim().split("\n");
  assert.deepEqual(branches.toSorted(), tasks.map((task) => `prefork/${task}`).toSorted());
  for (const task of tasks) assert.deepEqual((await worktrees.inspect(task)).files, []);
});

test("a branch of the user's own that has the name of a task's is left alone, and no worktree is made", async () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-at-once-"));
  const [work, state] = [join(folder.path, "work"), join(folder.path, "state")];
  mkdirSync(work);
  const git = (...words: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...words], { cwd: work, encoding: "utf8" });
  git("init", "-q");
  git("commit", "-q", "--allow-empty", "-m", "first");
  git("branch", "prefork/task-1");
  const before = git("rev-parse", "prefork/task-1");
  const worktrees = await Worktrees.open({ cwd: work, state });
  const snapshot = await worktrees.snapshot();
  await assert.rejects(
    worktrees.create({ task: "task-1", label: "one", snapshot }),
    /the branch prefork\/task-1 already exists/,
  );
  assert.equal(git("rev-parse", "prefork/task-1"), before);
  assert.equal(git("worktree", "list").trim().split("\n").length, 1);
});
