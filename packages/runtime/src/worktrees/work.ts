/** What a task has done in its copy: kept as commits on its branch, whatever its end was; and the copy's removal.
 *  Invariant: a copy is removed only by git, only where git calls it a copy of this repository, and only when all that
 *  stands in it is committed and merged, or when somebody has said so of exactly this one.
 *  Elsewhere: making it (create.ts), bringing the work back (merge.ts). */

import { constants } from "node:fs";
import { access, readFile } from "node:fs/promises";
import { isOurs, type Place } from "./create.ts";
import { WorktreeError, worktreeErrorOf } from "./errors.ts";
import { fieldsOf, shownPath } from "./git.ts";
import { putIndex } from "./private-index.ts";
import type { Worktree } from "./records.ts";
import { baseRef, branchRef, dropRefs, readRef, setRefs, tipRef } from "./refs.ts";
import { openRepository, type Repository } from "./repository.ts";
import { commitTree, readTree } from "./snapshot.ts";

export type Work = {
  readonly tip: string;
  /** Paths that differ from what it began with. */
  readonly files: readonly string[];
  /** In the copy, and not in the tip: a repository of its own, or commits that its agent has left behind. */
  readonly leftOut: readonly string[];
};

const EVERYTHING = { bytes: Number.POSITIVE_INFINITY } as const;

/** Commits all that stands in a copy now. The same again changes nothing. */
export const commitWork = async (place: Place, worktree: Worktree, message: string): Promise<Work> => {
  const { store, repository } = place;
  const { task, path, base } = worktree;
  const copy = await copyOf(place, path);
  if (!copy) return workAt(repository, { tip: (await tipOf(repository, worktree)) ?? base, base });
  return store.scratch(async (scratch) => {
    const { tree, index, leftOut } = await readTree(copy, `${scratch}/index`, EVERYTHING);
    const { head } = copy;
    const before = head === undefined ? undefined : await copy.git.line(["rev-parse", `${head}^{tree}`]);
    const tip = tree === before && head ? head : await commitTree(copy, tree, { parent: head ?? base, message });
    const branch = await readRef(repository, branchRef(task));
    await setRefs(repository, [
      { ref: tipRef(task), to: tip },
      // The branch is the task's, wherever its agent has gone meanwhile.
      ...(branch === undefined ? [{ ref: branchRef(task), to: tip }] : []),
    ]);
    if (tip !== head) {
      await copy.git.out(["update-ref", "HEAD", tip, ...(head === undefined ? [] : [head])]);
      await putIndex(copy.index, await readFile(index));
    }
    const behind = (await leftBehind(copy, tip)).map((commit) => `commit ${commit.slice(0, 12)}`);
    return { ...(await workAt(repository, { tip, base })), leftOut: [...leftOut.map(shownPath), ...behind] };
  });
};

/** Commits that its agent made and then went away from, by a reset or another branch. */
const leftBehind = async ({ git }: Repository, tip: string): Promise<readonly string[]> => {
  const { out } = await git.ask(["rev-list", "--walk-reflogs", "HEAD"], { may: [0, 128, 129] });
  const seen = [...new Set(out.toString().split("\n").filter(Boolean))];
  if (seen.length === 0) return [];
  const lost = await git.line(["rev-list", "--no-walk=unsorted", "--stdin"], {
    input: `${seen.join("\n")}\n^${tip}\n`,
  });
  return lost === "" ? [] : lost.split("\n");
};

/** As any of its agents last left it. */
export const tipOf = async (repository: Repository, { task }: Worktree): Promise<string | undefined> =>
  (await readRef(repository, tipRef(task))) ?? (await readRef(repository, branchRef(task)));

const workAt = async (
  { git }: Repository,
  { tip, base }: { readonly tip: string; readonly base: string },
): Promise<Work> => {
  const words = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", `${base}^{tree}`, tip];
  return { tip, files: fieldsOf(await git.out(words)).map(shownPath), leftOut: [] };
};

/** Undefined where the folder is gone, or is no copy any more. */
export const copyOf = async ({ repository }: Place, path: string): Promise<Repository | undefined> => {
  const isThere = await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isThere || !(await isOurs(repository, path))) return undefined;
  const copy = await openRepository(path).catch(() => undefined);
  // Its settings are the repository's, and what was switched off there is switched off here.
  return copy && copy.commonDir === repository.commonDir ? { ...copy, git: repository.git.at(path) } : undefined;
};

/** The end of a task's work. An empty copy goes at once. */
export const finishWork = async (
  place: Place,
  worktree: Worktree,
  { message, end }: { readonly message: string; readonly end: string },
): Promise<Work & { readonly isRemoved: boolean }> => {
  const { store } = place;
  const work = await commitWork(place, worktree, message).catch((error: unknown) => {
    throw worktreeErrorOf(error, `the work of ${worktree.task} is not committed; it stands in ${worktree.path}`);
  });
  await store.append({ kind: "finished", task: worktree.task, tip: work.tip, files: work.files.length, end });
  if (work.files.length > 0 || work.leftOut.length > 0) return { ...work, isRemoved: false };
  const finished: Worktree = { ...worktree, tip: work.tip, files: 0, state: { kind: "finished", end } };
  const isRemoved = await removeWorktree(place, finished, {}).then(
    () => true,
    () => false, // it stays, and prune tells why
  );
  return { ...work, isRemoved };
};

export type RemoveOptions = {
  /** Somebody was told what would be lost, and said yes. */
  readonly forced?: boolean;
};

export const removeWorktree = async (
  place: Place,
  worktree: Worktree,
  { forced = false }: RemoveOptions,
): Promise<void> => {
  const { store, repository } = place;
  const { task, path } = worktree;
  if (!forced) await mustHoldNothing(place, worktree);
  await store.append({ kind: "removing", task, by: store.self, forced });
  try {
    await dropCopy(repository, { task, path }, { forced });
    await dropAll(repository, worktree);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    await store.append({ kind: "not-removed", task, reason });
    throw worktreeErrorOf(error, `the worktree of ${task} was not removed`);
  }
  await store.append({ kind: "removed", task });
};

/** The folder, by git alone; where it is not content, the folder is locked as it was. */
export const dropCopy = async (
  { git }: Repository,
  { task, path }: Pick<Worktree, "task" | "path">,
  { forced }: { readonly forced: boolean },
): Promise<void> => {
  if (!(await isOurs({ git }, path))) return;
  await git.ask(["worktree", "unlock", path], { may: [0, 128] });
  try {
    await git.out(["worktree", "remove", ...(forced ? ["--force", "--force"] : []), path]);
  } catch (error) {
    await git.ask(["worktree", "lock", "--reason", `prefork keeps this: ${task}`, path], { may: [0, 128] });
    throw error;
  }
};

/** All of it is merged, or there is none; and nothing was added since. */
const mustHoldNothing = async (place: Place, worktree: Worktree): Promise<void> => {
  const { task, path, mergedTip } = worktree;
  const work = await commitWork(place, worktree, `Kept before ${task} was to be removed\n`);
  if (work.leftOut.length > 0)
    throw new WorktreeError("unmerged", `${path} holds what no merge brings back: ${work.leftOut.join(", ")}`);
  if (work.files.length > 0 && work.tip !== mergedTip)
    throw new WorktreeError("unmerged", `${task} has ${work.files.length} changed files that are not merged`);
};

export const dropAll = async (repository: Repository, { task }: Pick<Worktree, "task">): Promise<void> => {
  await dropRefs(repository, [{ ref: branchRef(task) }, { ref: baseRef(task) }, { ref: tipRef(task) }]);
};
