/** A copy of the checkout for one task, with all that is not committed in it.
 *  Invariant: noted before it is begun; a copy that could not be made whole is taken away again, and nothing else is: a
 *  task that should have had one never works in the checkout instead.
 *  Elsewhere: what the copy holds (snapshot.ts), its end (work.ts). */

import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, lstat, mkdir, readlink, realpath, rmdir, symlink } from "node:fs/promises";
import { join, relative } from "node:path";
import { isPseudoPath } from "@prefork/guard/internal";
import { dropHalfMade, lockReason, openCopy, removeCopy } from "./copies.ts";
import { WorktreeError, worktreeErrorOf } from "./errors.ts";
import { bytesOf, fieldsOf, shownPath, type TreePath } from "./git.ts";
import { baseRef, branchOf, branchRef, dropRefs, mustBeTaskName, readRef, setRefs } from "./refs.ts";
import { dependOnCheckout, type Repository } from "./repository.ts";
import type { Snapshot } from "./snapshot.ts";
import type { WorktreeStore } from "./store.ts";

export type Place = { readonly repository: Repository; readonly store: WorktreeStore };

export type CreateOptions = {
  readonly task: string;
  readonly label: string;
  readonly session?: string;
  /** Its place among those that are started with it. */
  readonly order?: number;
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
  const { task, cwd, snapshot, signal } = options;
  mustBeTaskName(task);
  const { git, top } = repository;
  const below = relative(top, await realpath(cwd));
  const { path, nonce } = await announce(place, options, below);
  const leftOut = snapshot.leftOut.map(shownPath);
  try {
    signal?.throwIfAborted();
    await setRefs(repository, [{ ref: baseRef(task), to: snapshot.commit }]);
    const how = ["--no-checkout", "--no-track", "--lock", "--reason", lockReason(task), "-b", branchOf(task)];
    await store.listing(() => git.out(["worktree", "add", "--quiet", ...how, path, snapshot.commit]));
    await (await gitIn(repository, path)).out(
      ["reset", "--hard", "--quiet", "--no-recurse-submodules"],
      signal ? { signal } : {},
    );
    const ignored = await copyIgnored(repository, path, options.copyIgnored ?? []);
    if (below !== "") await mkdir(join(path, below), { recursive: true }); // it may have held ignored files alone
    await store.append({ kind: "created", task, ignored, leftOut });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    // What cannot be taken away, or noted, is seen to later.
    await takeAway(place, { task, path, base: snapshot.commit })
      .then(() => store.append({ kind: "not-created", task, reason }))
      .catch(() => undefined);
    throw worktreeErrorOf(error, `no worktree could be made for ${task}`);
  } finally {
    store.making.delete(nonce);
  }
  return { path, cwd: join(path, below), branch: branchOf(task) };
};

/** Filters that count in the copy alone are switched off in it. */
const gitIn = async (repository: Repository, path: string): Promise<Repository["git"]> => {
  if (!dependOnCheckout(repository.settings)) return repository.git.at(path);
  const copy = await openCopy(repository, path);
  if (copy === undefined) throw new WorktreeError("not-ready", `git does not know ${path} as a worktree`);
  return copy.git;
};

/** Notes that this task gets a copy. Of several that want the same name, the first to note it has it. */
const announce = async (
  { repository, store }: Place,
  { task, label, order = 0, session, snapshot, folder = store.trees }: CreateOptions,
  below: string,
): Promise<{ readonly path: string; readonly nonce: string }> => {
  const taken = new WorktreeError("not-ready", `there is a worktree of ${task} already`);
  const known = (await store.read()).worktrees.get(task);
  if (known?.state.kind === "creating" && store.isAbandoned(known)) {
    await takeAway({ repository, store }, known);
    await store.append({ kind: "not-created", task, reason: "it was given up" });
  } else if (known && known.state.kind !== "gone") throw taken;
  // Folders of the kernel's own take no files, and making one below them goes on for ever.
  if (isPseudoPath(folder))
    throw new WorktreeError("not-ready", `worktrees cannot lie in ${folder}; change worktrees.folder`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(await realpath(folder), task);
  const { top } = repository;
  if (`${path}/`.startsWith(`${top}/`))
    throw new WorktreeError("not-ready", `worktrees must lie outside of the checkout ${top}; change worktrees.folder`);
  if (await lstat(path).catch(() => undefined)) throw new WorktreeError("not-ready", `${path} exists already`);
  if ((await readRef(repository, branchRef(task))) !== undefined)
    throw new WorktreeError("not-ready", `there is a branch ${branchOf(task)} already`);
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

/** A copy that was never given to anybody. */
export const takeAway = async (
  { repository, store }: Place,
  { task, path, base }: { readonly task: string; readonly path: string; readonly base: string },
): Promise<void> => {
  await store.listing(() => removeCopy(repository, path));
  await dropHalfMade(repository, task);
  await rmdir(path).catch(() => undefined); // what git had begun with; a folder that holds anything stays
  const there = await readRef(repository, branchRef(task));
  await dropRefs(repository, [{ ref: baseRef(task) }, ...(there === base ? [{ ref: branchRef(task), at: base }] : [])]);
};

const copyIgnored = async (
  { git, top }: Repository,
  to: string,
  patterns: readonly string[],
): Promise<readonly TreePath[]> => {
  if (patterns.length === 0) return [];
  const wrong = patterns.find((pattern) => pattern.startsWith("/") || pattern.split("/").includes(".."));
  if (wrong !== undefined)
    throw new WorktreeError("not-ready", `worktrees.copyIgnored: ${wrong} must lie inside the repository`);
  const how = ["ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--"];
  const found = fieldsOf(await git.out([...how, ...patterns.map((pattern) => `:(glob)${pattern}`)]));
  for (const path of found) if (!path.endsWith("/")) await copyFrom(top, to, path);
  return found;
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
