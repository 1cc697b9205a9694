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

/** A name of ours that stands for another is replaced; what it stands for is the user's. */
const ITSELF = "option no-deref\n";

/** All of these or none; each only where it points to what is expected, if that is said. */
export const setRefs = async (
  { git }: Named,
  refs: readonly { readonly ref: string; readonly to: string; readonly from?: string }[],
): Promise<void> => {
  if (refs.length === 0) return;
  const lines = refs.map(
    ({ ref, to, from }) => `${ITSELF}update ${ref} ${to}${from === undefined ? "" : ` ${from}`}\n`,
  );
  await git.out(["update-ref", "--stdin"], { input: lines.join("") });
};

/** Those that are there; each only where it still points to what is expected, if that is said. */
export const dropRefs = async (
  { git }: Named,
  refs: readonly { readonly ref: string; readonly at?: string }[],
): Promise<void> => {
  const lines = refs.map(({ ref, at }) => `${ITSELF}delete ${ref}${at === undefined ? "" : ` ${at}`}\n`);
  await git.out(["update-ref", "--stdin"], { input: lines.join("") });
};

/** Those of these commits that are not here: another repository may stand at the place of the one they were made in. */
export const missingOf = async ({ git }: Named, commits: readonly string[]): Promise<ReadonlySet<string>> => {
  if (commits.length === 0) return new Set();
  const input = commits.map((commit) => `${commit}\n`).join("");
  const lines = (await git.out(["cat-file", "--batch-check"], { input })).toString().split("\n");
  return new Set(lines.flatMap((line) => /^(\S+) missing$/.exec(line)?.[1] ?? []));
};

/** Throws where the commit that a task began with is not here. */
export const mustBeHere = async (
  named: Named,
  { task, base }: { readonly task: string; readonly base: string },
): Promise<void> => {
  if ((await missingOf(named, [base])).size === 0) return;
  throw new WorktreeError(
    "unknown-task",
    `what ${task} began with is not in this repository: another one may stand in its place now. prefork worktrees prune forgets ${task}`,
  );
};

/** What a ref points to; undefined where there is none. */
export const readRef = async ({ git }: Named, ref: string): Promise<string | undefined> => {
  const { code, out } = await git.ask(["rev-parse", "--verify", "--quiet", `${ref}^{commit}`], { may: [0, 1, 128] });
  return code === 0 ? out.toString().trim() : undefined;
};

export type RefFacts = { readonly id: string; readonly tree: string; readonly parents: readonly string[] };

/** The commits that these refs point to; those that are not there are left out. */
export const readRefs = async ({ git }: Named, refs: readonly string[]): Promise<ReadonlyMap<string, RefFacts>> => {
  const format = "--format=%(refname)%09%(objectname)%09%(tree)%09%(parent)";
  const lines = (await git.line(["for-each-ref", format, ...refs])).split("\n");
  return new Map(
    lines.flatMap((line) => {
      const [ref = "", id = "", tree = "", parents = ""] = line.split("\t");
      return refs.includes(ref) ? [[ref, { id, tree, parents: parents.split(" ").filter(Boolean) }] as const] : [];
    }),
  );
};
