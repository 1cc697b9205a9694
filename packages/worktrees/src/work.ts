/** Commits a task's work to its branch, however the task ended, and removes worktrees.
 *  Invariant: a worktree is removed only by git, only if git lists it as a worktree of this repository, and only if all its
 *  work is committed and merged, or the user confirmed the removal of this very one.
 *  Elsewhere: creating it (create.ts), merging the work (merge.ts). */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { readBounded, shownName } from "@prefork/guard/internal";
import type { WorktreeContext } from "./create.ts";
import { changedFilesText, toWorktreeError, WorktreeError } from "./errors.ts";
import { bytesOf, displayPath, fieldsOf, type TreePath } from "./git.ts";
import { type OpenWorktree, openWorktree, removeWorktreeFolder } from "./open-worktree.ts";
import { putIndex } from "./private-index.ts";
import type { Worktree } from "./records.ts";
import { baseRef, branchRef, dropRefs, type RefFacts, readRefs, setRefs, tipRef } from "./refs.ts";
import type { Repository } from "./repository.ts";
import { commitTree, EVERYTHING, readTree, type TreeReading } from "./snapshot.ts";

export type Work = {
  readonly tip: string;
  /** Paths that differ from the base. */
  readonly files: readonly string[];
  /** In the worktree but not in the tip: nested repositories, or commits that its agent abandoned. */
  readonly leftOut: readonly string[];
};

/** A task's work as a commit and a tree. */
export type KeptWork = Pick<Work, "tip" | "leftOut"> & {
  readonly tree: string;
  /** The tree of the base, if it is already known. */
  readonly baseTree: string | undefined;
  /** The tip is a direct child of the base. */
  readonly isOnBase: boolean;
};

/** Commits everything in a worktree. Idempotent. */
export const commitWork = async (place: WorktreeContext, worktree: Worktree, message: string): Promise<Work> => {
  const { tip, tree, leftOut } = await keepWork(place, worktree, message);
  const words = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff"];
  const out = await place.repository.git.out([...words, `${worktree.base}^{tree}`, tree]);
  return { tip, files: fieldsOf(out).map(displayPath), leftOut };
};

/** The same without listing the changed files. */
export const keepWork = async (place: WorktreeContext, worktree: Worktree, message: string): Promise<KeptWork> => {
  const { store, repository } = place;
  const { task, path, base } = worktree;
  const refs = await readRefs(repository, [branchRef(task), tipRef(task), baseRef(task)]);
  const copy = await openWorktree(repository, path, refs);
  const baseTree = refs.get(baseRef(task))?.id === base ? refs.get(baseRef(task))?.tree : undefined;
  const last = refs.get(tipRef(task)) ?? refs.get(branchRef(task));
  if (!copy) {
    const { id, tree, parents } = last ?? { id: base, tree: await treeOf(repository, base), parents: [] };
    return { tip: id, tree, baseTree, isOnBase: isOnly(parents, base), leftOut: [] };
  }
  return store.scratch(async (scratch) => {
    const reading = await readTree(copy, `${scratch}/index`, EVERYTHING);
    const { tip, parents } = await commitReading(copy, reading, { last, base, message });
    const follows = await moveHead(copy, { branch: branchRef(task), tip, index: reading.index });
    const branch = refs.get(branchRef(task))?.id;
    await setRefs(repository, [
      ...(refs.get(tipRef(task))?.id === tip ? [] : [{ ref: tipRef(task), to: tip }]),
      // The branch belongs to the task, whatever its agent has checked out.
      ...(branch === undefined ? [{ ref: branchRef(task), to: tip }] : []),
      ...(follows && branch !== undefined ? [{ ref: branchRef(task), to: tip, from: branch }] : []),
    ]);
    const behind = await findAbandonedCommits(copy, { tip, base, seen: branch === undefined ? [] : [branch] });
    const leftOut = [...reading.leftOut.map(displayPath), ...(await filledModules(copy, reading)), ...behind];
    return { tip, tree: reading.tree, baseTree, isOnBase: isOnly(parents, base), leftOut };
  });
};

/** A task's work without committing it: objects are written, but no ref points to them. */
export const readWork = async (
  { repository }: Pick<WorktreeContext, "repository">,
  { task, path, base }: Worktree,
  scratch: string,
): Promise<Pick<KeptWork, "tip" | "tree" | "baseTree" | "isOnBase">> => {
  const refs = await readRefs(repository, [branchRef(task), tipRef(task), baseRef(task)]);
  const copy = await openWorktree(repository, path, refs);
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

/** A commit with the content of a worktree: its HEAD, or a new one on top of it. */
const commitReading = async (
  copy: OpenWorktree,
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

/** Moves the worktree's HEAD to the commit, unless its agent checked out another branch. True if the branch must follow. */
const moveHead = async (copy: OpenWorktree, { branch, tip, index }: Following): Promise<boolean> => {
  const { head } = copy;
  if (head === undefined || head === tip || (copy.branch !== undefined && copy.branch !== branch)) return false;
  if (!(await putIndex(copy.index, await readFile(index)))) return false; // a git process of its agent is running
  if (copy.branch === undefined) await copy.git.out(["update-ref", "--no-deref", "HEAD", tip, head]);
  return copy.branch === branch;
};

const MOST_LOG_BYTES = 64_000_000;

/** Commits that its agent made and then abandoned, by a reset or by switching branches. */
const findAbandonedCommits = async (
  { git, gitDir }: OpenWorktree,
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

/** A worktree starts without the files of submodules; if there are any, its agent created them. */
const filledModules = async ({ top }: OpenWorktree, { modules }: TreeReading): Promise<readonly string[]> => {
  const filled: string[] = [];
  for (const path of modules) {
    const names = await readdir(Buffer.concat([Buffer.from(`${top}/`), bytesOf(path)])).catch(() => []);
    if (names.length > 0) filled.push(`${displayPath(path)}/`);
  }
  return filled;
};

export type FinishedWork = Work & {
  /** Ignored files that its agent created: they are in no commit, only in the worktree. */
  readonly ignored: readonly string[];
  readonly isRemoved: boolean;
};

/** Finishes a task's work. An empty worktree is removed at once. */
export const finishWork = async (
  place: WorktreeContext,
  worktree: Worktree,
  { message, end }: { readonly message: string; readonly end: string },
): Promise<FinishedWork> => {
  const { store } = place;
  const work = await commitWork(place, worktree, message).catch((error: unknown) => {
    throw toWorktreeError(error, `the work of ${worktree.task} is not committed; it is in ${worktree.path}`);
  });
  await store.append({ kind: "finished", task: worktree.task, tip: work.tip, files: work.files.length, end });
  if (work.files.length > 0 || work.leftOut.length > 0) return { ...work, ignored: [], isRemoved: false };
  const ignored = await newIgnoredFiles(place, worktree);
  if (ignored.length > 0) return { ...work, ignored, isRemoved: false };
  const finished: Worktree = { ...worktree, tip: work.tip, files: 0, state: { kind: "finished", end } };
  const isRemoved = await removeWorktree(place, finished, {}).then(
    () => true,
    () => false, // it stays, and prune says why
  );
  return { ...work, ignored, isRemoved };
};

/** Ignored files that its agent created. Ignored folders do not count, because whatever created them can do it again. */
const newIgnoredFiles = async (
  { repository }: WorktreeContext,
  { path, ignored }: Worktree,
): Promise<readonly string[]> => {
  const copy = await openWorktree(repository, path);
  const before = new Set(ignored);
  return copy ? (await ignoredIn(copy)).filter((one) => !before.has(one)).map(displayPath) : [];
};

export const ignoredIn = async ({ git }: OpenWorktree): Promise<readonly TreePath[]> => {
  const how = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
  return fieldsOf(await git.out(how)).filter((path) => !path.endsWith("/"));
};

export type RemoveOptions = {
  /** The user was shown what would be lost, and agreed. */
  readonly forced?: boolean;
};

export const removeWorktree = async (
  place: WorktreeContext,
  worktree: Worktree,
  { forced = false }: RemoveOptions,
): Promise<void> => {
  const { store, repository } = place;
  const { task, path } = worktree;
  if (!forced) await requireNothingLost(place, worktree);
  await store.append({ kind: "removing", task, by: store.self, forced });
  try {
    await store.lockGitList(() => removeWorktreeFolder(repository, path));
    await dropTaskRefs(repository, worktree);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    await store.append({ kind: "not-removed", task, reason });
    throw toWorktreeError(error, `the worktree of ${task} was not removed`);
  }
  await store.append({ kind: "removed", task });
};

/** Throws unless all its work is merged, or it has none. */
const requireNothingLost = async (place: WorktreeContext, worktree: Worktree): Promise<void> => {
  const { task, path, mergedTip } = worktree;
  const work = await commitWork(place, worktree, `Kept before ${task} was removed\n`);
  if (work.leftOut.length > 0)
    throw new WorktreeError(
      "unmerged",
      `${path} contains what a merge cannot bring back: ${work.leftOut.map(shownName).join(", ")}`,
    );
  const ignored = await newIgnoredFiles(place, worktree);
  if (ignored.length > 0)
    throw new WorktreeError(
      "unmerged",
      `${path} contains ignored files that exist nowhere else: ${ignored.map(shownName).join(", ")}`,
    );
  if (work.files.length > 0 && work.tip !== mergedTip)
    throw new WorktreeError("unmerged", `${task} is not merged: ${changedFilesText(work.files.length)}`);
};

export const dropTaskRefs = async (repository: Repository, { task }: Pick<Worktree, "task">): Promise<void> => {
  await dropRefs(repository, [{ ref: branchRef(task) }, { ref: baseRef(task) }, { ref: tipRef(task) }]);
};
