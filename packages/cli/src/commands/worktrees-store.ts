/** What `merge` and `worktrees` share: the worktrees of this repository, finding one by name, and reporting errors.
 *  Invariant: reading takes no lock; tasks are named as in every other command; an error that the user can fix has exit
 *  code 2.
 *  Elsewhere: the worktrees themselves (@prefork/worktrees). */

import { homedir } from "node:os";
import { stateFolder } from "@prefork/guard";
import {
  type MergePoint,
  type Worktree,
  WorktreeError,
  type WorktreeFault,
  Worktrees,
  type WorktreeTable,
} from "@prefork/worktrees";
import { type Io, UsageError } from "../io.ts";
import { resolveFolder } from "../resolve-folder.ts";
import { withJournalErrors } from "./tasks-store.ts";

export type CheckoutFlags = { readonly cwd?: string };

export const CWD_OPTION = ["--cwd <dir>", "the checkout to work on (default: this folder)"] as const;

export const openWorktrees = async ({ cwd = "." }: CheckoutFlags, { env }: Io): Promise<Worktrees> => {
  const folder = await resolveFolder(cwd, "--cwd");
  return Worktrees.open({ cwd: folder, state: stateFolder(env, env.HOME || homedir()), environment: env });
};

/** Not the user's mistake, or not before anything was changed: exit code 1. */
const FAILURES: readonly WorktreeFault[] = ["changed-meanwhile", "disk-full", "git", "io"];

export const withWorktreeErrors = (act: () => Promise<void>): Promise<void> =>
  withJournalErrors(async () => {
    try {
      await act();
    } catch (error) {
      if (error instanceof WorktreeError && !FAILURES.includes(error.reason))
        throw new UsageError(error.message, { cause: error });
      throw error;
    }
  });

/** By its id, with or without `task-`, or by the first letters of either. */
export const findWorktree = ({ worktrees }: WorktreeTable, given: string): Worktree => {
  const all = [...worktrees.values()];
  const present = all.filter(({ state }) => state.kind !== "gone");
  const exact = all.find(({ task }) => task === given || task === `task-${given}`);
  if (exact) return requirePresent(exact);
  const found = present.filter(({ task }) => task.startsWith(given) || task.startsWith(`task-${given}`));
  const [first, second] = found;
  if (given === "" || !first)
    throw new UsageError(`there is no worktree of ${given || "a task without a name"} (prefork worktrees lists them)`);
  if (second)
    throw new UsageError(`${given} is ambiguous: ${found.map(({ task }) => task).join(" or ")}; give more letters`);
  return first;
};

const requirePresent = (worktree: Worktree): Worktree => {
  if (worktree.state.kind !== "gone") return worktree;
  throw new UsageError(`the worktree of ${worktree.task} was removed`);
};

/** Merges that can be undone in this checkout. */
export const undoablePoints = ({ points }: WorktreeTable, top: string): readonly MergePoint[] =>
  points.filter((point) => point.state === "merged" && point.top === top);

export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
