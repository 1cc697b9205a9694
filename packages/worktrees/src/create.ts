/** Creates a worktree for one task, with the uncommitted state of the checkout.
 *  Invariant: the intent is recorded first; a worktree that cannot be completed is removed again, and nothing else is. The
 *  task then fails: it never works in the checkout instead.
 *  Elsewhere: what the worktree contains (snapshot.ts), its end (work.ts). */

import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, lstat, mkdir, readlink, realpath, rmdir, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { isPseudoPath } from "@prefork/guard/internal";
import { toWorktreeError, WorktreeError } from "./errors.ts";
import { bytesOf, displayPath, fieldsOf, type TreePath } from "./git.ts";
import { dropUnfinishedRecords, lockReason, openWorktree, removeWorktreeFolder } from "./open-worktree.ts";
import { baseRef, branchOf, branchRef, dropRefs, readRef, requireTaskName, setRefs } from "./refs.ts";
import { dependOnCheckout, type Repository } from "./repository.ts";
import { requireRoom } from "./room.ts";
import type { Snapshot } from "./snapshot.ts";
import type { WorktreeStore } from "./store.ts";

export type WorktreeContext = { readonly repository: Repository; readonly store: WorktreeStore };

export type CreateOptions = {
  readonly task: string;
  readonly label: string;
  readonly session?: string;
  /** Its position among the tasks that start together. */
  readonly order?: number;
  /** The working folder of the agent that starts it: the top of the checkout, or below. */
  readonly cwd: string;
  readonly snapshot: Snapshot;
  /** Where worktrees are created. Default: the user's state folder. */
  readonly folder?: string;
  /** Patterns of ignored files that it needs anyway. */
  readonly copyIgnored?: readonly string[];
  readonly signal?: AbortSignal;
};

export type CreatedWorktree = {
  readonly path: string;
  /** The folder in it that corresponds to `cwd`. */
  readonly cwd: string;
  readonly branch: string;
};

export const createWorktree = async (place: WorktreeContext, options: CreateOptions): Promise<CreatedWorktree> => {
  const { repository, store } = place;
  const { task, cwd, snapshot, signal } = options;
  requireTaskName(task);
  const { git, top } = repository;
  const below = relative(top, await realpath(cwd));
  const { path, nonce } = await recordCreation(place, options, below);
  const leftOut = snapshot.leftOut.map(displayPath);
  try {
    signal?.throwIfAborted();
    await requireRoom(top, snapshot.size, dirname(path));
    await setRefs(repository, [{ ref: baseRef(task), to: snapshot.commit }]);
    const how = ["--no-checkout", "--no-track", "--lock", "--reason", lockReason(task), "-b", branchOf(task)];
    await store.lockGitList(() => git.out(["worktree", "add", "--quiet", ...how, path, snapshot.commit]));
    await (await gitIn(repository, path)).out(
      ["reset", "--hard", "--quiet", "--no-recurse-submodules"],
      signal ? { signal } : {},
    );
    const ignored = await copyIgnored(repository, path, options.copyIgnored ?? []);
    if (below !== "") await mkdir(join(path, below), { recursive: true }); // it may contain only ignored files
    await store.append({ kind: "created", task, ignored, leftOut });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    // If removing or recording fails, a later repair does it.
    await removeUnused(place, { task, path, base: snapshot.commit })
      .then(() => store.append({ kind: "not-created", task, reason }))
      .catch(() => undefined);
    throw toWorktreeError(error, `no worktree could be created for ${task}`);
  } finally {
    store.making.delete(nonce);
  }
  return { path, cwd: join(path, below), branch: branchOf(task) };
};

/** Also switches off filters that are configured for the worktree only. */
const gitIn = async (repository: Repository, path: string): Promise<Repository["git"]> => {
  if (!dependOnCheckout(repository.settings)) return repository.git.at(path);
  const copy = await openWorktree(repository, path);
  if (copy === undefined) throw new WorktreeError("not-ready", `git does not know ${path} as a worktree`);
  return copy.git;
};

/** Records that this task gets a worktree. If several want the same name, the first record wins. */
const recordCreation = async (
  { repository, store }: WorktreeContext,
  { task, label, order = 0, session, snapshot, folder = store.trees }: CreateOptions,
  below: string,
): Promise<{ readonly path: string; readonly nonce: string }> => {
  const taken = new WorktreeError("not-ready", `${task} already has a worktree`);
  const known = (await store.read()).worktrees.get(task);
  if (known?.state.kind === "creating" && store.isAbandoned(known)) {
    await removeUnused({ repository, store }, known);
    await store.append({ kind: "not-created", task, reason: "it was abandoned" });
  } else if (known && known.state.kind !== "gone") throw taken;
  // Kernel file systems take no files, and creating a folder below them never ends.
  if (isPseudoPath(folder))
    throw new WorktreeError("not-ready", `worktrees cannot be created in ${folder}; change worktrees.folder`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(await realpath(folder), task);
  const { top } = repository;
  if (`${path}/`.startsWith(`${top}/`))
    throw new WorktreeError("not-ready", `worktrees must be outside the checkout ${top}; change worktrees.folder`);
  if (await lstat(path).catch(() => undefined)) throw new WorktreeError("not-ready", `${path} already exists`);
  if ((await readRef(repository, branchRef(task))) !== undefined)
    throw new WorktreeError("not-ready", `the branch ${branchOf(task)} already exists`);
  const nonce = randomUUID();
  store.making.add(nonce);
  await store.append({
    ...{ kind: "creating", by: store.self, nonce, task, label, order, top: repository.top, folder: below, path },
    ...{
      family: snapshot.id,
      branch: branchOf(task),
      base: snapshot.commit,
      ...(session === undefined ? {} : { session }),
    },
  });
  if ((await store.read()).worktrees.get(task)?.nonce !== nonce) throw taken;
  return { path, nonce };
};

/** Removes a worktree that no task has used. */
export const removeUnused = async (
  { repository, store }: WorktreeContext,
  { task, path, base }: { readonly task: string; readonly path: string; readonly base: string },
): Promise<void> => {
  await store.lockGitList(() => removeWorktreeFolder(repository, path));
  await dropUnfinishedRecords(repository, task);
  await rmdir(path).catch(() => undefined); // only if it is empty
  const existing = await readRef(repository, branchRef(task));
  await dropRefs(repository, [
    { ref: baseRef(task) },
    ...(existing === base ? [{ ref: branchRef(task), at: base }] : []),
  ]);
};

const copyIgnored = async (
  { git, top }: Repository,
  to: string,
  patterns: readonly string[],
): Promise<readonly TreePath[]> => {
  if (patterns.length === 0) return [];
  const wrong = patterns.find((pattern) => pattern.startsWith("/") || pattern.split("/").includes(".."));
  if (wrong !== undefined)
    throw new WorktreeError("not-ready", `worktrees.copyIgnored: ${wrong} must be inside the repository`);
  const how = ["ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--"];
  const found = fieldsOf(await git.out([...how, ...patterns.map((pattern) => `:(glob)${pattern}`)]));
  for (const path of found) if (!path.endsWith("/")) await copyOne(top, to, path);
  return found;
};

const copyOne = async (top: string, to: string, path: TreePath): Promise<void> => {
  const [from, target] = [top, to].map((folder) => Buffer.concat([Buffer.from(`${folder}/`), bytesOf(path)]));
  if (!from || !target) return;
  await mkdir(folderOf(target), { recursive: true });
  const facts = await lstat(from);
  if (facts.isSymbolicLink()) await symlink(await readlink(from, { encoding: "buffer" }), target);
  else if (facts.isFile()) await copyFile(from, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
};

const folderOf = (path: Buffer): Buffer => path.subarray(0, path.lastIndexOf(47));
