/** A task's life that is interrupted, and what must hold afterwards.
 *  Elsewhere: the life (life.ts), how often (crash.test.ts, worktrees-soak.ts). */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { type Ground, openGround, type Photograph, photograph, photographFiles, type Tree } from "./ground.ts";
import { begin, EDITED, goOn, note, notesOf, type Phase, prepareLife } from "./life.ts";

const PROCESS = fileURLToPath(new URL("life-process.ts", import.meta.url));

export type Cut = { readonly atStep: number } | { readonly afterMs: number };

type Lived = {
  readonly out: string;
  readonly signal: NodeJS.Signals | null;
  readonly complaint: string;
  readonly ms: number;
};

const isThere = (group: number): boolean => {
  try {
    process.kill(-group, 0);
    return true;
  } catch {
    return false;
  }
};

/** Resolves when the process and every git that it started have exited. */
export const live = async (ground: Ground, cut: Cut): Promise<Lived> => {
  const begun = performance.now();
  const step = "atStep" in cut ? cut.atStep : 0;
  const words = [...process.execArgv, PROCESS, ground.at(), String(step)];
  const child = spawn(process.execPath, words, { detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let [out, complaint] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => {
    out += chunk;
  });
  child.stderr.on("data", (chunk: Buffer) => {
    complaint += chunk;
  });
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals | null>();
  child.on("close", (_code, signal) => resolve(signal));
  const { pid } = child;
  assert.ok(pid !== undefined);
  if ("afterMs" in cut) {
    while (child.exitCode === null && !existsSync(ground.at("notes"))) await sleep(5);
    await Promise.race([sleep(cut.afterMs), promise]);
    if (isThere(pid)) process.kill(-pid, "SIGKILL");
  }
  const signal = await promise;
  while (isThere(pid)) await sleep(5);
  return { out, signal, complaint, ms: performance.now() - begun };
};

export type Reference = {
  readonly steps: readonly string[];
  /** From opened to the end. */
  readonly ms: number;
  readonly start: Tree;
  readonly own: Tree;
  readonly merged: Tree;
};

/** The same life, uninterrupted. */
export const reference = async (): Promise<Reference> => {
  using ground = openGround();
  prepareLife(ground);
  const start = photographFiles(ground.path);
  const { out, ms, complaint } = await live(ground, { atStep: 0 });
  assert.equal(complaint, "");
  const merged = photographFiles(ground.path);
  const worktrees = await ground.open();
  await worktrees.undo(1);
  return { steps: JSON.parse(out) as string[], ms, start, own: photographFiles(ground.path), merged };
};

/** Returns the laws that fail after this interruption; empty if all hold. */
export const brokenBy = async (cut: Cut, wanted: Reference): Promise<readonly string[]> => {
  using ground = openGround();
  prepareLife(ground);
  const before = photograph(ground);
  const { signal, complaint } = await live(ground, cut);
  const phases = notesOf(ground.at("notes"));
  const about = `${JSON.stringify(cut)} (${"atStep" in cut ? wanted.steps[cut.atStep - 1] : ""}) after ${phases.at(-1)}`;
  try {
    if (signal !== "SIGKILL") {
      assert.equal(complaint, "");
      return []; // it finished before the interruption
    }
    await assertSurvives({ ground, before, phases, wanted });
    return [];
  } catch (error) {
    return [`${about}: ${error instanceof Error ? error.message : String(error)}`];
  }
};

type Survival = {
  readonly ground: Ground;
  readonly before: Photograph;
  readonly phases: readonly Phase[];
  readonly wanted: Reference;
};

/** The complete state that the checkout is in; there must be nothing in between. */
const stateOf = (files: Tree, { start, own, merged }: Reference): "start" | "own" | "merged" | "between" => {
  if (isDeepStrictEqual(files, start)) return "start";
  if (isDeepStrictEqual(files, own)) return "own";
  return isDeepStrictEqual(files, merged) ? "merged" : "between";
};

const assertSurvives = async ({ ground, before, phases, wanted }: Survival): Promise<void> => {
  const worktrees = await ground.open();
  await worktrees.repair();
  assert.deepEqual(await worktrees.repair(), [], "repairing twice is the same as once");
  const now = photograph(ground);
  assert.deepEqual({ ...now, files: {} }, { ...before, files: {} }, "only files may have changed");
  const state = stateOf(now.files, wanted);
  if (state === "between") assert.deepEqual(now.files, wanted.own, "the checkout is between two states");
  const [store = ""] = readdirSync(join(ground.state, "worktrees")).map((name) =>
    join(ground.state, "worktrees", name),
  );
  assert.deepEqual(
    readdirSync(store).filter((name) => name.startsWith("scratch-")),
    [],
  );
  ground.git("fsck", "--connectivity-only");
  const known = (await worktrees.table()).worktrees.get("t");
  const life = { worktrees, checkout: ground, home: ground.home, done: note(ground.at("notes")) };
  if (!known || known.state.kind === "gone") {
    if (phases.includes("edited")) {
      assert.equal(state, "merged", "a copy goes only when its work stands in the checkout");
      await worktrees.undo(1);
      assert.deepEqual(photograph(ground), { ...before, files: wanted.own });
      return;
    }
    await begin(life);
  } else if (phases.includes("edited")) assert.deepEqual((await worktrees.work("t")).files, EDITED, "work is lost");
  else {
    // Nobody had worked in it: its record is removed and it is created again.
    assert.deepEqual(await worktrees.prune({ forced: ["t"] }), [{ task: "t", kind: "removed" }]);
    await begin(life);
  }
  const { points } = await worktrees.table();
  if (points.some((point) => point.state === "merged")) await worktrees.undo(1);
  assert.equal(existsSync((await worktrees.find("t")).path), true);
  await worktrees.enter("t");
  await goOn(life);
  assert.deepEqual(photograph(ground), { ...before, files: wanted.merged }, "the end of the life");
  await worktrees.undo(1);
  assert.deepEqual(photograph(ground), { ...before, files: wanted.own });
  ground.git("fsck", "--connectivity-only");
};
