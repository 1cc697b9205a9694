/** Is there room for a worktree, and is it about as large as the checkout?
 *  Invariant: sizes come from the objects that git will write, never from what the index says of the files. A few crafted
 *  kilobytes may stand for terabytes, so a tree that is far larger than the checkout is refused before anything is written.
 *  Elsewhere: what the worktree contains (snapshot.ts), creating it (create.ts). */

import { lstat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { WorktreeError } from "./errors.ts";
import { bytesOf, fieldsOf, type TreePath } from "./git.ts";
import type { Repository } from "./repository.ts";

export type TreeSize = {
  /** What a checkout of the tree writes. */
  readonly bytes: number;
  readonly paths: readonly TreePath[];
};

const LISTED = /^\d+ blob [0-9a-f]+ +(\d+)\t(.*)$/s;

/** `absent`: files of the tree that a sparse checkout does not write. */
export const sizeOfTree = async (
  { git, settings }: Repository,
  tree: string,
  absent: ReadonlySet<TreePath>,
): Promise<TreeSize> => {
  const isSparse = settings["core.sparsecheckout"] === "true";
  const paths: TreePath[] = [];
  let bytes = 0;
  for (const line of fieldsOf(await git.out(["ls-tree", "-r", "-l", "-z", "--full-tree", tree]))) {
    const [, size = "0", path] = LISTED.exec(line) ?? [];
    if (path === undefined || (isSparse && absent.has(path))) continue;
    paths.push(path);
    bytes += Number(size);
  }
  return { bytes, paths };
};

/** Smaller trees are never compared with the checkout. */
const LARGE_BYTES = 256 * 1024 * 1024;

/** Line ends, filters and deleted files make a difference, but no such one. */
const MAX_FACTOR = 4;

/** `folder`: where it will be. */
export const requireRoom = async (top: string, { bytes, paths }: TreeSize, folder: string): Promise<void> => {
  if (bytes <= LARGE_BYTES) return;
  const { bavail, bsize } = await statfs(folder);
  if (bytes > bavail * bsize)
    throw new WorktreeError(
      "disk-full",
      `a worktree takes ${megabytes(bytes)}, and ${megabytes(bavail * bsize)} are free in ${folder}; change worktrees.folder`,
    );
  const held = await heldBytes(top, paths);
  if (bytes > MAX_FACTOR * held + LARGE_BYTES)
    throw new WorktreeError(
      "too-large",
      `a worktree would take ${megabytes(bytes)}, and the same files take ${megabytes(held)} in the checkout; ` +
        "look at git status and at the sizes in git ls-tree -r -l HEAD",
    );
};

const AT_ONCE = 64;

const heldBytes = async (top: string, paths: readonly TreePath[]): Promise<number> => {
  let held = 0;
  for (let at = 0; at < paths.length; at += AT_ONCE) {
    const some = paths.slice(at, at + AT_ONCE);
    const sizes = some.map(async (path) => {
      const facts = await lstat(Buffer.concat([Buffer.from(join(top, "/")), bytesOf(path)])).catch(() => undefined);
      return facts?.isFile() ? facts.size : 0;
    });
    for (const size of await Promise.all(sizes)) held += size;
  }
  return held;
};

const megabytes = (bytes: number): string => `${(bytes / (1024 * 1024)).toFixed(1)} MiB`;
