/** What holds in every state of a checkout: the whole life of one task, with the checkout compared after each step.
 *  Elsewhere: the states (cases of the neighbouring tests). */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import type { MergeOutcome, Worktrees } from "../src/index.ts";
import type { CreatedWorktree, Snapshot, UntrackedLimit } from "../src/internal.ts";
import { commitUsual, type Files, type Ground, heldFiles, openGround, type Photograph, photograph } from "./ground.ts";

export type State = {
  readonly name: string;
  /** Arguments for git init. */
  readonly init?: readonly string[];
  /** What is added to the usual files. */
  readonly prepare: (ground: Ground) => void;
  readonly withoutUsual?: true;
  /** Where the task is started from; default: the repository. */
  readonly from?: (ground: Ground) => Files;
  readonly limit?: UntrackedLimit;
  readonly copyIgnored?: readonly string[];
  /** What the task does; default: a change, a new file, a removal and a new mode. */
  readonly edit?: (copy: Files, created: CreatedWorktree) => void;
  /** What the worktree contains, if it differs from the checkout. */
  readonly copyHolds?: (copy: Files, checkout: Files) => void;
  /** The checkout after the merge, if it differs from the worktree. */
  readonly mergedHolds?: (checkout: Files, copy: Files) => void;
  /** A command for the user's own git that triggers the trap; without it the test would prove nothing. */
  readonly spring?: readonly string[];
  readonly also?: (facts: {
    readonly ground: Ground;
    readonly snapshot: Snapshot;
    readonly created: CreatedWorktree;
  }) => void;
};

export const usualEdit = ({ put, drop, path }: Files): void => {
  put("made/by/task.txt", "made\n");
  put("b", "b of the task\n", 0o755);
  if (existsSync(`${path}/d/e/f`)) drop("d");
};

const mustBeMerged = (outcomes: readonly MergeOutcome[]): void =>
  assert.deepEqual(
    outcomes.map(({ kind, conflicts, ...rest }) => ({ kind, conflicts, ...("reason" in rest ? rest : {}) })),
    [{ kind: "merged", conflicts: [] }],
  );

const assertSprings = ({ git, canary }: Ground, words: readonly string[]): void => {
  try {
    git(...words);
  } catch {
    // a filter without output fails
  }
  assert.equal(existsSync(canary), true, "the trap would have sprung");
};

/** Create, edit, finish, merge, undo; and, for the full life, merge again, prune, and undo without the worktree. */
export const assertLife = async (state: State, isWhole = true): Promise<void> => {
  using ground = openGround(...(state.init ?? []));
  if (!state.withoutUsual) commitUsual(ground);
  state.prepare(ground);
  const checkout = state.from?.(ground) ?? ground;
  const before = photograph(checkout);
  const isAsBefore = (when: string): void => assert.deepEqual(photograph(checkout), before, when);
  const worktrees = await ground.open({ cwd: checkout.path });
  const snapshot = await worktrees.snapshot(state.limit);
  const { copyIgnored = [] } = state;
  const created = await worktrees.create({ task: "task-1", label: "one", snapshot, copyIgnored });
  const copy = ground.copy(created);
  isAsBefore("after create");
  if (state.copyHolds) state.copyHolds(copy, checkout);
  else assert.deepEqual(heldFiles(copy), heldFiles(checkout), "the copy holds what the checkout holds");
  state.also?.({ ground, snapshot, created });
  (state.edit ?? usualEdit)(copy, created);
  const { leftOut } = await worktrees.finish("task-1", { message: "did it\n", end: "reported" });
  assert.deepEqual(leftOut, []);
  isAsBefore("after finish");
  mustBeMerged(await worktrees.merge(["task-1"]));
  const merged = photograph(checkout);
  assert.deepEqual({ ...merged, files: {} }, { ...before, files: {} }, "a merge changes files alone");
  if (state.mergedHolds) state.mergedHolds(checkout, copy);
  else assert.deepEqual(heldFiles(checkout), heldFiles(copy), "the checkout holds what the task left");
  await worktrees.undo(1);
  isAsBefore("after undo");
  if (isWhole) await assertRest({ checkout, worktrees, created, before, merged });
  assert.equal(existsSync(ground.canary), false, "no program of the repository was run");
  if (isWhole) ground.git("fsck", "--connectivity-only");
  if (state.spring) assertSprings(ground, state.spring);
};

type Rest = {
  readonly checkout: Files;
  readonly worktrees: Worktrees;
  readonly created: CreatedWorktree;
  readonly before: Photograph;
  readonly merged: Photograph;
};

const assertRest = async ({ checkout, worktrees, created, before, merged }: Rest): Promise<void> => {
  mustBeMerged(await worktrees.merge(["task-1"]));
  assert.deepEqual(photograph(checkout), merged, "the same again");
  assert.deepEqual(await worktrees.prune(), [{ task: "task-1", kind: "removed" }]);
  assert.deepEqual(photograph(checkout), merged, "after prune");
  assert.equal(existsSync(created.path), false);
  assert.equal(checkout.git("for-each-ref", "refs/heads/prefork", "refs/prefork/base", "refs/prefork/tip"), "");
  await worktrees.undo(1);
  assert.deepEqual(photograph(checkout), before, "after undo without the copy");
};
