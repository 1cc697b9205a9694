/** The refs that keep our commits alive, outside the user's branches.
 *  Invariant: only these and `refs/heads/prefork/` are ever created, moved or deleted.
 *  Elsewhere: who creates them (create.ts, work.ts, save.ts). */

import { WorktreeError } from "./errors.ts";
import type { Repository } from "./repository.ts";

export const branchOf = (task: string): string => `prefork/${task}`;
export const branchRef = (task: string): string => `refs/heads/${branchOf(task)}`;
/** The state of the checkout that a task started from. */
export const baseRef = (task: string): string => `refs/prefork/base/${task}`;
/** The last commit of a task, wherever its branch points. */
export const tipRef = (task: string): string => `refs/prefork/tip/${task}`;
/** What a merge replaced. */
export const savedRef = (point: number): string => `refs/prefork/saved/${point}`;

/** The last snapshot of the files of a session; earlier ones are its ancestors. */
export const rewindRef = (session: string): string => `refs/prefork/rewind/${session}`;

const TASK = /^[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,99}$/;

/** A task's name becomes part of refs and paths, so it must be safe in both. */
export const requireTaskName = (task: string): void => {
  if (!TASK.test(task) || task.endsWith(".lock") || task.endsWith("."))
    throw new WorktreeError("unknown-task", `${JSON.stringify(task)} cannot be the name of a worktree`);
};

type Named = Pick<Repository, "git" | "noObject">;

/** If one of our refs is symbolic, the ref itself is replaced; its target belongs to the user. */
const ITSELF = "option no-deref\n";

/** Sets all of these refs or none; with `from`, only if a ref still points there. */
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

/** Deletes those of these refs that exist; with `at`, only if a ref still points there. */
export const dropRefs = async (
  { git }: Named,
  refs: readonly { readonly ref: string; readonly at?: string }[],
): Promise<void> => {
  const lines = refs.map(({ ref, at }) => `${ITSELF}delete ${ref}${at === undefined ? "" : ` ${at}`}\n`);
  await git.out(["update-ref", "--stdin"], { input: lines.join("") });
};

/** Those of these commits that this repository lacks: another repository may now be at the same path. */
export const findMissing = async ({ git }: Named, commits: readonly string[]): Promise<ReadonlySet<string>> => {
  if (commits.length === 0) return new Set();
  const input = commits.map((commit) => `${commit}\n`).join("");
  const lines = (await git.out(["cat-file", "--batch-check"], { input })).toString().split("\n");
  return new Set(lines.flatMap((line) => /^(\S+) missing$/.exec(line)?.[1] ?? []));
};

/** Throws if the commit that a task started from is missing. */
export const requireBase = async (
  named: Named,
  { task, base }: { readonly task: string; readonly base: string },
): Promise<void> => {
  if ((await findMissing(named, [base])).size === 0) return;
  throw new WorktreeError(
    "unknown-task",
    `the commit that ${task} started from is not in this repository; another repository may have taken its place. To forget ${task}: prefork worktrees prune`,
  );
};

/** What a ref points to; undefined if it does not exist. */
export const readRef = async ({ git }: Named, ref: string): Promise<string | undefined> => {
  const { code, out } = await git.ask(["rev-parse", "--verify", "--quiet", `${ref}^{commit}`], {
    okCodes: [0, 1, 128],
  });
  return code === 0 ? out.toString().trim() : undefined;
};

export type RefFacts = { readonly id: string; readonly tree: string; readonly parents: readonly string[] };

/** The commits that these refs point to, without missing ones. */
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
