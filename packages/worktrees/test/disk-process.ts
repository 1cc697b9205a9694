/** Runs on its own small file system (the folder for temporary files) and fills it before each try, leaving a little
 *  more space each time until the try succeeds. Prints how often it failed, and how; a law that does not hold is an
 *  error.
 *  Argument: how many pages more each time. */

import assert from "node:assert/strict";
import { closeSync, openSync, readdirSync, rmSync, truncateSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { WorktreeError, type Worktrees } from "../src/index.ts";
import { type Ground, openGround, photograph, photographFiles } from "./ground.ts";
import { begin, editCheckout, prepareLife } from "./life.ts";

const PAGE = 4096;
const MOST_PAGES = 600;
const filler = join(tmpdir(), "filler");
const stride = Number(process.argv[2] ?? "1");

const fill = (freePages: number): void => {
  const file = openSync(filler, "w");
  let size = 0;
  for (const piece of [1 << 20, PAGE])
    for (;;) {
      try {
        size += writeSync(file, Buffer.alloc(piece));
      } catch {
        break;
      }
    }
  closeSync(file);
  truncateSync(filler, Math.max(0, size - freePages * PAGE));
};

type Trial = { readonly failures: number; readonly reasons: Readonly<Record<string, number>> };

type Trying = {
  readonly ground: Ground;
  readonly work: () => Promise<unknown>;
  /** A snapshot of everything that must stay unchanged. */
  readonly look: () => unknown;
  /** The work may also be done and just not recorded. */
  readonly isDone?: () => boolean;
};

const untilItFits = async ({ ground, work, look, isDone = () => false }: Trying): Promise<Trial> => {
  const reasons: Record<string, number> = {};
  for (let free = 0; free < MOST_PAGES; free += stride) {
    const before = look();
    fill(free);
    try {
      await work();
      return { failures: Object.values(reasons).reduce((sum, count) => sum + count, 0), reasons };
    } catch (error) {
      if (!(error instanceof WorktreeError)) throw error;
      reasons[error.reason] = (reasons[error.reason] ?? 0) + 1;
    } finally {
      rmSync(filler, { force: true });
    }
    if (!isDone()) assert.deepEqual(look(), before, `with ${free} pages free`);
    assert.deepEqual(
      readdirSync(join(ground.path, ".git")).filter((name) => /lock|prefork|crash/.test(name)),
      [],
    );
  }
  throw new Error("it never succeeded");
};

const mergeOrThrow = async (worktrees: Worktrees): Promise<void> => {
  const [outcome] = await worktrees.merge(["t"]);
  if (outcome?.kind === "failed") throw new WorktreeError("io", outcome.reason);
  assert.equal(outcome?.kind, "merged");
};

using ground = openGround();
prepareLife(ground);
const worktrees = await ground.open();
const trials: Record<string, Trial> = {};
const snapshot = await worktrees.snapshot();
trials.create = await untilItFits({
  ground,
  work: () => worktrees.create({ task: "first", label: "", snapshot }),
  look: () => ({
    checkout: photograph(ground),
    refs: ground.git("for-each-ref"),
    copies: ground.git("worktree", "list"),
  }),
});
const life = { worktrees, checkout: ground, home: ground.home, done: () => {} };
await begin(life);
const { path } = await worktrees.find("t");
const both = (): unknown => ({ checkout: photograph(ground), copy: photographFiles(path) });
trials.finish = await untilItFits({
  ground,
  work: () => worktrees.finish("t", { message: "m\n", end: "reported" }),
  look: both,
});
editCheckout(ground);
const before = photograph(ground);
trials.merge = await untilItFits({ ground, work: () => mergeOrThrow(worktrees), look: both });
trials.undo = await untilItFits({
  ground,
  work: () => worktrees.undo(1),
  look: both,
  isDone: () => isDeepStrictEqual(photograph(ground), before),
});
assert.deepEqual(photograph(ground), before);
console.log(JSON.stringify(trials));
