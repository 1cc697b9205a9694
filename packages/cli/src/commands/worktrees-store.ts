/** What `merge` and `worktrees` have in common: the worktrees of the repository here, one of them by name, and how a
 *  refusal is told.
 *  Invariant: looking takes no lock; a task is named as in every other command; what the caller can change is exit code 2.
 *  Elsewhere: the worktrees themselves (@prefork/runtime). */

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
import { folderAt } from "../folder-flag.ts";
import { type Io, UsageError } from "../io.ts";
import { said } from "./tasks-store.ts";

export type PlaceFlags = { readonly cwd?: string };

export const CWD = ["--cwd <dir>", "the checkout to work on; default: this folder"] as const;

export const openWorktrees = async ({ cwd = "." }: PlaceFlags, { env }: Io): Promise<Worktrees> => {
  const folder = await folderAt(cwd, "--cwd");
  return Worktrees.open({ cwd: folder, state: stateFolder(env, env.HOME || homedir()), environment: env });
};

/** What has gone wrong on our side, or in the middle: exit code 1. */
const FAILURES: readonly WorktreeFault[] = ["changed-meanwhile", "disk-full", "git", "io"];

export const told = (act: () => Promise<void>): Promise<void> =>
  said(async () => {
    try {
      await act();
    } catch (error) {
      if (error instanceof WorktreeError && !FAILURES.includes(error.reason))
        throw new UsageError(error.message, { cause: error });
      throw error;
    }
  });

/** By its id, with or without the word in front, or by the first letters of either. */
export const namedWorktree = ({ worktrees }: WorktreeTable, given: string): Worktree => {
  const all = [...worktrees.values()];
  const there = all.filter(({ state }) => state.kind !== "gone");
  const exact = all.find(({ task }) => task === given || task === `task-${given}`);
  if (exact) return mustBeThere(exact);
  const found = there.filter(({ task }) => task.startsWith(given) || task.startsWith(`task-${given}`));
  const [first, second] = found;
  if (given === "" || !first)
    throw new UsageError(`there is no worktree of ${given || "a task without a name"}; prefork worktrees lists them`);
  if (second)
    throw new UsageError(`${given} could be ${found.map(({ task }) => task).join(" or ")}; write more of its name`);
  return first;
};

const mustBeThere = (worktree: Worktree): Worktree => {
  if (worktree.state.kind !== "gone") return worktree;
  throw new UsageError(`the worktree of ${worktree.task} was removed`);
};

/** Merges that can be taken back in this checkout. */
export const undoablePoints = ({ points }: WorktreeTable, top: string): readonly MergePoint[] =>
  points.filter((point) => point.state === "merged" && point.top === top);

export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
