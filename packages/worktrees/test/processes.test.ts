import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Worktrees } from "../src/index.ts";
import { commitUsual, type Ground, heldFiles, openGround, photograph } from "./ground.ts";

const PROCESS = fileURLToPath(new URL("act-process.ts", import.meta.url));

/** Each in its own process, all at the same moment. */
const together = async (ground: Ground, acts: readonly (readonly string[])[]): Promise<readonly unknown[]> => {
  const running = acts.map((words) => {
    const child = spawn(process.execPath, [...process.execArgv, PROCESS, ground.at(), ...words], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    return createInterface(child.stdout);
  });
  const spoken = (lines: (typeof running)[number]): Promise<unknown[]> =>
    Promise.race([once(lines, "line"), once(lines, "close").then(() => ['"it ended without a word"'])]);
  await Promise.all(running.map(spoken));
  const said = Promise.all(running.map(spoken));
  writeFileSync(ground.at("go"), "");
  return (await said).map(([line]) => JSON.parse(line as string));
};

const finished = async (ground: Ground, worktrees: Worktrees, task: string): Promise<void> => {
  const created = await worktrees.create({ task, label: "", snapshot: await worktrees.snapshot() });
  ground.copy(created).put(`by ${task}`, `${task}\n`);
  await worktrees.finish(task, { message: "m\n", end: "reported" });
};

test("two processes that merge at once merge one after the other", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  for (const task of ["one", "two"]) await finished(ground, worktrees, task);
  const before = photograph(ground);
  const said = await together(ground, [
    ["merge", "one"],
    ["merge", "two"],
  ]);
  assert.deepEqual(said, [["merged"], ["merged"]]);
  for (const task of ["one", "two"]) assert.equal(readFileSync(join(ground.path, `by ${task}`), "utf8"), `${task}\n`);
  await worktrees.undo(2);
  assert.deepEqual(photograph(ground), before);
});

test("what is merged while another process prunes is lost in neither order", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  await finished(ground, worktrees, "one");
  const before = photograph(ground);
  const [merged, pruned] = await together(ground, [["merge", "one"], ["prune"]]);
  assert.deepEqual(merged, ["merged"]);
  assert.ok(["kept", "removed"].includes((pruned as string[])[0] ?? ""));
  assert.equal(readFileSync(join(ground.path, "by one"), "utf8"), "one\n");
  await worktrees.undo(1);
  assert.deepEqual(photograph(ground), before);
});

test("twenty copies made at once by two processes are all there and all whole", async () => {
  using ground = openGround();
  commitUsual(ground);
  ground.put("b", "changed\n");
  const before = photograph(ground);
  const tasks = Array.from({ length: 20 }, (_, at) => `task-${at}`);
  const said = await together(ground, [
    ["create", ...tasks.slice(0, 10)],
    ["create", ...tasks.slice(10)],
  ]);
  assert.deepEqual(
    said.flat(),
    tasks.map((task) => `prefork/${task}`),
  );
  const { worktrees } = await (await ground.open()).table();
  assert.deepEqual([...worktrees.keys()].sort(), tasks.toSorted());
  const held = heldFiles(ground);
  for (const { path, branch } of worktrees.values())
    assert.deepEqual(heldFiles(ground.copy({ path, cwd: path, branch })), held);
  assert.deepEqual(photograph(ground), before);
});

test("waiting too long for another process is an error that names it", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  await finished(ground, worktrees, "one");
  await finished(ground, worktrees, "two");
  const { promise: checked, resolve: end } = Promise.withResolvers<void>();
  const { promise: checking, resolve: begun } = Promise.withResolvers<void>();
  const first = worktrees.merge(["one"], {
    check: async () => {
      begun();
      await checked;
      return { ok: true, output: "" };
    },
  });
  await checking;
  const other = await ground.open({ lockTimeoutMs: 50 });
  const words = (doing: string): string =>
    `${doing}: process ${process.pid} on ${hostname()} is changing the worktrees of this repository; try again`;
  for (const [doing, work] of [
    ["merge", () => other.merge(["two"])],
    ["undo", () => other.undo(1)],
    ["prune", () => other.prune()],
    ["repair", () => other.repair()],
  ] as const)
    await assert.rejects(work(), { name: "WorktreeError", reason: "busy", message: words(doing) });
  end();
  assert.equal((await first)[0]?.kind, "merged");
  assert.equal((await other.merge(["two"]))[0]?.kind, "merged");
});
