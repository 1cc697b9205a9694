/** A copy of the checkout for one task, with all that is not committed in it.
 *  Invariant: noted before it is begun; a copy that could not be made whole is taken away again, and nothing else is: a
 *  task that should have had one never works in the checkout instead.
 *  Elsewhere: what the copy holds (snapshot.ts), its end (work.ts). */

import { constants } from "node:fs";
import { copyFile, lstat, mkdir, readlink, rmdir, symlink } from "node:fs/promises";
import { join, relative } from "node:path";
import { WorktreeError, worktreeErrorOf } from "./errors.ts";
import { bytesOf, fieldsOf, shownPath, type TreePath } from "./git.ts";
import { baseRef, branchOf, branchRef, dropRefs, mustBeTaskName, readRef, setRefs } from "./refs.ts";
import type { Repository } from "./repository.ts";
import type { Snapshot } from "./snapshot.ts";
import type { WorktreeStore } from "./store.ts";

export type Place = { readonly repository: Repository; readonly store: WorktreeStore };

export type CreateOptions = {
  readonly task: string;
  readonly label: string;
  readonly session?: string;
  /** Where the agent that starts it works: at the top of the checkout, or below. */
  readonly cwd: string;
  readonly snapshot: Snapshot;
  /** Where copies go. Default: the user's state folder. */
  readonly folder?: string;
  /** Patterns of ignored files that it needs all the same. */
  readonly copyIgnored?: readonly string[];
  readonly signal?: AbortSignal;
};

export type Created = {
  readonly path: string;
  /** The folder in it that stands for `cwd`. */
  readonly cwd: string;
  readonly branch: string;
};

export const createWorktree = async (place: Place, options: CreateOptions): Promise<Created> => {
  const { repository, store } = place;
  const { task, label, session, cwd, snapshot, folder = store.trees, signal } = options;
  mustBeTaskName(task);
  const { git, top } = repository;
  const path = join(folder, task);
  const below = relative(top, cwd);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const leftOut = snapshot.leftOut.map(shownPath);
  await store.append({
    ...{ kind: "creating", by: store.self, task, label, top, folder: below, path },
    ...{ branch: branchOf(task), base: snapshot.commit, ...(session === undefined ? {} : { session }) },
  });
  try {
    signal?.throwIfAborted();
    await setRefs(repository, [
      { ref: baseRef(task), to: snapshot.commit },
      { ref: branchRef(task), to: snapshot.commit, isNew: true },
    ]);
    // Files are written by a call of their own: it is the long one, and it needs to know of no other worktree.
    const how = ["--no-checkout", "--lock", "--reason", `prefork works here: ${task}`];
    await git.out(["worktree", "add", "--quiet", ...how, path, branchOf(task)], signal ? { signal } : {});
    await git.at(path).out(["reset", "--hard", "--quiet", "--no-recurse-submodules"], signal ? { signal } : {});
    const copied = await copyIgnored(repository, path, options.copyIgnored ?? []);
    if (below !== "") await mkdir(join(path, below), { recursive: true }); // it may have held ignored files alone
    await store.append({ kind: "created", task, copied, leftOut });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    await takeAway(place, { task, path, base: snapshot.commit }).catch(() => undefined); // repair does it later
    await store.append({ kind: "not-created", task, reason }).catch(() => undefined);
    throw worktreeErrorOf(error, `no worktree could be made for ${task}`);
  }
  return { path, cwd: join(path, below), branch: branchOf(task) };
};

/** A copy that was never given to anybody. */
export const takeAway = async (
  { repository }: Place,
  { task, path, base }: { readonly task: string; readonly path: string; readonly base: string },
): Promise<void> => {
  const { git } = repository;
  if (await isOurs(repository, path)) {
    const { code } = await git.ask(["worktree", "remove", "--force", "--force", path], { may: [0, 128] });
    if (code !== 0) await git.ask(["worktree", "unlock", path], { may: [0, 128] }); // it never came to be a folder
  }
  await git.out(["worktree", "prune"]);
  await rmdir(path).catch(() => undefined); // what git had begun with; a folder that holds anything stays
  const there = await readRef(repository, branchRef(task));
  await dropRefs(repository, [{ ref: baseRef(task) }, ...(there === base ? [{ ref: branchRef(task), at: base }] : [])]);
};

/** Does git itself say that this folder is a copy of this repository? Nothing else is ever removed. */
export const isOurs = async ({ git }: Pick<Repository, "git">, path: string): Promise<boolean> => {
  const listed = fieldsOf(await git.out(["worktree", "list", "--porcelain", "-z"]));
  const name = Buffer.from(`worktree ${path}`).toString("latin1");
  return listed.indexOf(name) > 0; // the first is the checkout that all others belong to
};

const copyIgnored = async ({ git, top }: Repository, to: string, patterns: readonly string[]): Promise<number> => {
  if (patterns.length === 0) return 0;
  const wrong = patterns.find((pattern) => pattern.startsWith("/") || pattern.split("/").includes(".."));
  if (wrong !== undefined)
    throw new WorktreeError("not-ready", `worktrees.copyIgnored: ${wrong} must lie inside the repository`);
  const how = ["ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--"];
  const found = fieldsOf(await git.out([...how, ...patterns.map((pattern) => `:(glob)${pattern}`)]));
  for (const path of found) if (!path.endsWith("/")) await copyFrom(top, to, path);
  return found.length;
};

const copyFrom = async (top: string, to: string, path: TreePath): Promise<void> => {
  const [from, target] = [top, to].map((folder) => Buffer.concat([Buffer.from(`${folder}/`), bytesOf(path)]));
  if (!from || !target) return;
  await mkdir(folderOf(target), { recursive: true });
  const facts = await lstat(from);
  if (facts.isSymbolicLink()) await symlink(await readlink(from, { encoding: "buffer" }), target);
  else if (facts.isFile()) await copyFile(from, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
};

const folderOf = (path: Buffer): Buffer => path.subarray(0, path.lastIndexOf(47));
