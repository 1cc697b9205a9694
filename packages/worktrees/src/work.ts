/** What a task has done in its copy: kept as commits on its branch, whatever its end was; and the copy's removal.
 *  Invariant: a copy is removed only by git, only where git calls it a copy of this repository, and only when all that
 *  stands in it is committed and merged, or when somebody has said so of exactly this one.
 *  Elsewhere: making it (create.ts), bringing the work back (merge.ts). */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { readBounded, shownName } from "@prefork/guard/internal";
import { type Copy, openCopy, removeCopy } from "./copies.ts";
import type { Place } from "./create.ts";
import { filesOf, WorktreeError, worktreeErrorOf } from "./errors.ts";
import { bytesOf, fieldsOf, shownPath, type TreePath } from "./git.ts";
import { putIndex } from "./private-index.ts";
import type { Worktree } from "./records.ts";
import { baseRef, branchRef, dropRefs, type RefFacts, readRefs, setRefs, tipRef } from "./refs.ts";
import type { Repository } from "./repository.ts";
import { commitTree, EVERYTHING, readTree, type TreeReading } from "./snapshot.ts";

export type Work = {
  readonly tip: string;
  /** Paths that differ from what it began with. */
  readonly files: readonly string[];
  /** In the copy, and not in the tip: a repository of its own, or commits that its agent has left behind. */
  readonly leftOut: readonly string[];
};

/** What a task has come to. */
export type Kept = Pick<Work, "tip" | "leftOut"> & {
  readonly tree: string;
  /** The tree of the base, where that is known without asking. */
  readonly baseTree: string | undefined;
  /** The tip was committed on the base, with nothing between. */
  readonly isOnBase: boolean;
};

/** Commits all that stands in a copy now. The same again changes nothing. */
export const commitWork = async (place: Place, worktree: Worktree, message: string): Promise<Work> => {
  const { tip, tree, leftOut } = await keepWork(place, worktree, message);
  const words = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff"];
  const out = await place.repository.git.out([...words, `${worktree.base}^{tree}`, tree]);
  return { tip, files: fieldsOf(out).map(shownPath), leftOut };
};

/** The same without comparing. */
export const keepWork = async (place: Place, worktree: Worktree, message: string): Promise<Kept> => {
  const { store, repository } = place;
  const { task, path, base } = worktree;
  const refs = await readRefs(repository, [branchRef(task), tipRef(task), baseRef(task)]);
  const copy = await openCopy(repository, path, refs);
  const baseTree = refs.get(baseRef(task))?.id === base ? refs.get(baseRef(task))?.tree : undefined;
  const last = refs.get(tipRef(task)) ?? refs.get(branchRef(task));
  if (!copy) {
    const { id, tree, parents } = last ?? { id: base, tree: await treeOf(repository, base), parents: [] };
    return { tip: id, tree, baseTree, isOnBase: isOnly(parents, base), leftOut: [] };
  }
  return store.scratch(async (scratch) => {
    const reading = await readTree(copy, `${scratch}/index`, EVERYTHING);
    const { tip, parents } = await committed(copy, reading, { last, base, message });
    const follows = await followed(copy, { branch: branchRef(task), tip, index: reading.index });
    const branch = refs.get(branchRef(task))?.id;
    await setRefs(repository, [
      ...(refs.get(tipRef(task))?.id === tip ? [] : [{ ref: tipRef(task), to: tip }]),
      // The branch is the task's, wherever its agent has gone meanwhile.
      ...(branch === undefined ? [{ ref: branchRef(task), to: tip }] : []),
      ...(follows && branch !== undefined ? [{ ref: branchRef(task), to: tip, from: branch }] : []),
    ]);
    const behind = await leftBehind(copy, { tip, base, seen: branch === undefined ? [] : [branch] });
    const leftOut = [...reading.leftOut.map(shownPath), ...(await filledModules(copy, reading)), ...behind];
    return { tip, tree: reading.tree, baseTree, isOnBase: isOnly(parents, base), leftOut };
  });
};

/** What a task has come to, with nothing committed: objects are written, and nothing points to them. */
export const readWork = async (
  { repository }: Pick<Place, "repository">,
  { task, path, base }: Worktree,
  scratch: string,
): Promise<Pick<Kept, "tip" | "tree" | "baseTree" | "isOnBase">> => {
  const refs = await readRefs(repository, [branchRef(task), tipRef(task), baseRef(task)]);
  const copy = await openCopy(repository, path, refs);
  const baseTree = refs.get(baseRef(task))?.id === base ? refs.get(baseRef(task))?.tree : undefined;
  const { id: tip, tree: last } = refs.get(tipRef(task)) ?? refs.get(branchRef(task)) ?? { id: base };
  const tree = copy
    ? (await readTree(copy, join(scratch, "copy"), EVERYTHING)).tree
    : (last ?? (await treeOf(repository, base)));
  return { tip, tree, baseTree, isOnBase: false };
};

const isOnly = (parents: readonly string[], base: string): boolean => parents.length === 1 && parents[0] === base;

const treeOf = ({ git }: Repository, commit: string): Promise<string> => git.line(["rev-parse", `${commit}^{tree}`]);

type Committing = { readonly last: RefFacts | undefined; readonly base: string; readonly message: string };

/** A commit with what stands in a copy: its head, or one on top of it. */
const committed = async (
  copy: Copy,
  { tree }: TreeReading,
  { last, base, message }: Committing,
): Promise<{ readonly tip: string; readonly parents: readonly string[] }> => {
  const { head } = copy;
  if (head !== undefined && copy.tree === tree) {
    const isLast = last?.id === head;
    return { tip: head, parents: isLast ? last.parents : [] };
  }
  const parent = head ?? last?.id ?? base;
  if (last?.tree === tree && (isOnly(last.parents, parent) || head === undefined))
    return { tip: last.id, parents: last.parents };
  return { tip: await commitTree(copy, tree, { parent, message }), parents: [parent] };
};

type Following = { readonly branch: string; readonly tip: string; readonly index: string };

/** The copy goes on from the commit, where its head is on no branch but its own. True where that is the branch's to say. */
const followed = async (copy: Copy, { branch, tip, index }: Following): Promise<boolean> => {
  const { head } = copy;
  if (head === undefined || head === tip || (copy.branch !== undefined && copy.branch !== branch)) return false;
  if (!(await putIndex(copy.index, await readFile(index)))) return false; // a git that its agent started is at work
  if (copy.branch === undefined) await copy.git.out(["update-ref", "--no-deref", "HEAD", tip, head]);
  return copy.branch === branch;
};

const MOST_LOG_BYTES = 64_000_000;

/** Commits that its agent made and then went away from, by a reset or another branch. */
const leftBehind = async (
  { git, gitDir }: Copy,
  { tip, base, seen }: { readonly tip: string; readonly base: string; readonly seen: readonly string[] },
): Promise<readonly string[]> => {
  const log = (await readBounded(join(gitDir, "logs/HEAD"), MOST_LOG_BYTES))?.toString("latin1") ?? "";
  const named = log.split("\n").flatMap((line) => /^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) /.exec(line)?.slice(1) ?? []);
  const asked = [...new Set([...named, ...seen])].filter((id) => id !== tip && id !== base && !/^0+$/.test(id));
  if (asked.length === 0) return [];
  const lost = await git.line(["rev-list", "--no-walk=unsorted", "--ignore-missing", "--stdin"], {
    input: `${asked.join("\n")}\n^${tip}\n^${base}\n`,
  });
  return lost === "" ? [] : lost.split("\n").map((commit) => `commit ${commit.slice(0, 12)}`);
};

/** A copy is made without the files of submodules: where there are some, its agent has put them there. */
const filledModules = async ({ top }: Copy, { modules }: TreeReading): Promise<readonly string[]> => {
  const filled: string[] = [];
  for (const path of modules) {
    const names = await readdir(Buffer.concat([Buffer.from(`${top}/`), bytesOf(path)])).catch(() => []);
    if (names.length > 0) filled.push(`${shownPath(path)}/`);
  }
  return filled;
};

export type Finished = Work & {
  /** Ignored files that its agent made: they are in no commit, and in no other place than the copy. */
  readonly ignored: readonly string[];
  readonly isRemoved: boolean;
};

/** The end of a task's work. An empty copy goes at once. */
export const finishWork = async (
  place: Place,
  worktree: Worktree,
  { message, end }: { readonly message: string; readonly end: string },
): Promise<Finished> => {
  const { store } = place;
  const work = await commitWork(place, worktree, message).catch((error: unknown) => {
    throw worktreeErrorOf(error, `the work of ${worktree.task} is not committed; it stands in ${worktree.path}`);
  });
  await store.append({ kind: "finished", task: worktree.task, tip: work.tip, files: work.files.length, end });
  if (work.files.length > 0 || work.leftOut.length > 0) return { ...work, ignored: [], isRemoved: false };
  const ignored = await ignoredSince(place, worktree);
  if (ignored.length > 0) return { ...work, ignored, isRemoved: false };
  const finished: Worktree = { ...worktree, tip: work.tip, files: 0, state: { kind: "finished", end } };
  const isRemoved = await removeWorktree(place, finished, {}).then(
    () => true,
    () => false, // it stays, and prune tells why
  );
  return { ...work, ignored, isRemoved };
};

/** Files that git does not keep, and that stood in no copy before its agent came. What is ignored as a folder is made
 *  anew by whatever made it. */
const ignoredSince = async ({ repository }: Place, { path, ignored }: Worktree): Promise<readonly string[]> => {
  const copy = await openCopy(repository, path);
  const before = new Set(ignored);
  return copy ? (await ignoredIn(copy)).filter((one) => !before.has(one)).map(shownPath) : [];
};

export const ignoredIn = async ({ git }: Copy): Promise<readonly TreePath[]> => {
  const how = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
  return fieldsOf(await git.out(how)).filter((path) => !path.endsWith("/"));
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
    await store.listing(() => removeCopy(repository, path));
    await dropAll(repository, worktree);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    await store.append({ kind: "not-removed", task, reason });
    throw worktreeErrorOf(error, `the worktree of ${task} was not removed`);
  }
  await store.append({ kind: "removed", task });
};

/** All of it is merged, or there is none; and nothing was added since. */
const mustHoldNothing = async (place: Place, worktree: Worktree): Promise<void> => {
  const { task, path, mergedTip } = worktree;
  const work = await commitWork(place, worktree, `Kept before ${task} was to be removed\n`);
  if (work.leftOut.length > 0)
    throw new WorktreeError(
      "unmerged",
      `${path} holds what no merge brings back: ${work.leftOut.map(shownName).join(", ")}`,
    );
  const ignored = await ignoredSince(place, worktree);
  if (ignored.length > 0)
    throw new WorktreeError(
      "unmerged",
      `${path} holds ignored files that are nowhere else: ${ignored.map(shownName).join(", ")}`,
    );
  if (work.files.length > 0 && work.tip !== mergedTip)
    throw new WorktreeError("unmerged", `${task} is not merged: ${filesOf(work.files.length)}`);
};

export const dropAll = async (repository: Repository, { task }: Pick<Worktree, "task">): Promise<void> => {
  await dropRefs(repository, [{ ref: branchRef(task) }, { ref: baseRef(task) }, { ref: tipRef(task) }]);
};
