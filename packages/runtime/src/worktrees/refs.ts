/** Names that hold commits where no branch of the user's does.
 *  Invariant: nothing outside these and `refs/heads/prefork/` is ever made, moved or deleted.
 *  Elsewhere: who makes them (create.ts, work.ts, save.ts). */

import { WorktreeError } from "./errors.ts";
import type { Repository } from "./repository.ts";

export const branchOf = (task: string): string => `prefork/${task}`;
export const branchRef = (task: string): string => `refs/heads/${branchOf(task)}`;
/** The checkout's state that a task branched off from. */
export const baseRef = (task: string): string => `refs/prefork/base/${task}`;
/** What a task has come to, wherever its branch points. */
export const tipRef = (task: string): string => `refs/prefork/tip/${task}`;
/** What a merge replaced. */
export const savedRef = (point: number): string => `refs/prefork/saved/${point}`;

const TASK = /^[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,99}$/;

/** A task's name becomes part of refs and paths. */
export const mustBeTaskName = (task: string): void => {
  if (!TASK.test(task) || task.endsWith(".lock") || task.endsWith("."))
    throw new WorktreeError("unknown-task", `${JSON.stringify(task)} cannot be the name of a worktree`);
};

type Named = Pick<Repository, "git" | "noObject">;

/** All of these or none; one that is new only where there is none of its name. */
export const setRefs = async (
  { git, noObject }: Named,
  refs: readonly { readonly ref: string; readonly to: string; readonly isNew?: boolean }[],
): Promise<void> => {
  const lines = refs.map(({ ref, to, isNew }) => `update ${ref} ${to}${isNew ? ` ${noObject}` : ""}\n`);
  await git.out(["update-ref", "--stdin"], { input: lines.join("") });
};

/** Those that are there; each only where it still points to what is expected, if that is said. */
export const dropRefs = async (
  { git }: Named,
  refs: readonly { readonly ref: string; readonly at?: string }[],
): Promise<void> => {
  const lines = refs.map(({ ref, at }) => `delete ${ref}${at === undefined ? "" : ` ${at}`}\n`);
  await git.out(["update-ref", "--stdin"], { input: lines.join("") });
};

/** What a ref points to; undefined where there is none. */
export const readRef = async ({ git }: Named, ref: string): Promise<string | undefined> => {
  const { code, out } = await git.ask(["rev-parse", "--verify", "--quiet", `${ref}^{commit}`], { may: [0, 1, 128] });
  return code === 0 ? out.toString().trim() : undefined;
};
