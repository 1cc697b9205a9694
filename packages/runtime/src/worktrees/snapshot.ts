/** What stands in a checkout now, as a tree and as a commit that nobody sees.
 *  Invariant: the checkout is only read: the index used is a copy, and nothing but objects is added to the repository.
 *  What is ignored stays behind; what is left out for its size is named.
 *  Elsewhere: which repository (repository.ts), the ref that holds the commit (create.ts). */

import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { protectedWhenMissing } from "../paths/index.ts";
import { WorktreeError } from "./errors.ts";
import { bytesOf, fieldsOf, inputOf, shownPath, type TreePath } from "./git.ts";
import { copyIndex } from "./private-index.ts";
import type { Repository } from "./repository.ts";

export type UntrackedLimit = {
  /** All untracked files together. Default: 64 MiB. */
  readonly bytes?: number;
  /** What becomes of them over that: all is refused, or the largest stay behind. Default: refuse. */
  readonly over?: "refuse" | "leave-out";
};

export type TreeReading = {
  readonly tree: string;
  /** Untracked, and not in the tree: too large, or a repository of its own. */
  readonly leftOut: readonly TreePath[];
  /** The index that the tree was written from, with fresh facts of every file. */
  readonly index: string;
};

export type Snapshot = TreeReading & { readonly commit: string; readonly head: string | undefined };

const DEFAULT_BYTES = 64 * 1024 * 1024;

/** `scratch`: a file that does not exist yet, in a folder of ours. */
export const readTree = async (
  repository: Repository,
  scratch: string,
  limit: UntrackedLimit = {},
): Promise<TreeReading> => {
  await copyIndex(repository.index, scratch);
  const git = repository.git.indexed(scratch);
  // Files that a person told git to take for unchanged are looked at too: a copy must hold what is there.
  await git.ask(["update-index", "-q", "--really-refresh", "--ignore-submodules"], { may: [0, 1] });
  const changed = await changedIn(git);
  const untracked = fieldsOf(await git.out(["ls-files", "--others", "--exclude-standard", "-z"]));
  const placeholders = await placeholdersIn(repository.top, untracked);
  const files = untracked.filter((path) => !path.endsWith("/") && !placeholders.has(path));
  const over = await overLimit(repository.top, files, limit);
  const taken = files.filter((path) => !over.has(path));
  if (changed.gone.length > 0)
    await git.out(["update-index", "-z", "--index-info"], {
      input: inputOf(changed.gone.map((path) => `0 ${repository.noObject}\t${path}`)),
    });
  const written = [...changed.there, ...taken];
  if (written.length > 0)
    await git.out(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], { input: inputOf(written) });
  const tree = await git.line(["write-tree"]);
  return { tree, index: scratch, leftOut: [...untracked.filter((path) => path.endsWith("/")), ...over] };
};

export const takeSnapshot = async (
  repository: Repository,
  scratch: string,
  limit: UntrackedLimit = {},
): Promise<Snapshot> => {
  const reading = await readTree(repository, scratch, limit);
  const { head } = repository;
  return { ...reading, head, commit: await commitTree(repository, reading.tree, { parent: head, message: MESSAGE }) };
};

const MESSAGE =
  "The checkout as it was when work branched off from it\n\nMade by prefork; it is in no branch of yours. See docs/worktrees.md.\n";

export const commitTree = (
  { git }: Pick<Repository, "git">,
  tree: string,
  { parent, message }: { readonly parent: string | undefined; readonly message: string },
): Promise<string> =>
  git.line(["commit-tree", tree, ...(parent === undefined ? [] : ["-p", parent]), "-F", "-"], { input: message });

const changedIn = async (git: Repository["git"]): Promise<{ readonly gone: string[]; readonly there: string[] }> => {
  const how = ["-z", "--name-status", "--no-renames", "--ignore-submodules=all", "--no-ext-diff"];
  const fields = fieldsOf(await git.out(["diff-files", ...how]));
  const changed = { gone: [] as string[], there: [] as string[] };
  for (let at = 0; at + 1 < fields.length; at += 2)
    (fields[at] === "D" ? changed.gone : changed.there).push(fields[at + 1] ?? "");
  return changed;
};

const overLimit = async (
  top: string,
  files: readonly TreePath[],
  { bytes = DEFAULT_BYTES, over = "refuse" }: UntrackedLimit,
): Promise<ReadonlySet<TreePath>> => {
  const sized = await sizesOf(top, files);
  let total = sized.reduce((sum, { size }) => sum + size, 0);
  if (total <= bytes) return new Set();
  const largest = sized.toSorted((a, b) => b.size - a.size);
  if (over === "refuse") {
    const shown = largest.slice(0, 3).map(({ path, size }) => `${shownPath(path)} (${megabytes(size)})`);
    throw new WorktreeError(
      "too-large",
      `untracked files have ${megabytes(total)}, and ${megabytes(bytes)} are copied at most: ${shown.join(", ")}. ` +
        "Ignore or commit them, raise worktrees.untrackedMegabytes in your settings, or set worktrees.largeFiles to leave-out",
    );
  }
  const left = new Set<TreePath>();
  for (const { path, size } of largest) {
    if (total <= bytes) break;
    left.add(path);
    total -= size;
  }
  return left;
};

const AT_ONCE = 64;

const sizesOf = async (
  top: string,
  files: readonly TreePath[],
): Promise<readonly { readonly path: TreePath; readonly size: number }[]> => {
  const sized: { path: TreePath; size: number }[] = [];
  for (let at = 0; at < files.length; at += AT_ONCE)
    sized.push(
      ...(await Promise.all(
        files.slice(at, at + AT_ONCE).map(async (path) => {
          const facts = await lstat(Buffer.concat([Buffer.from(join(top, "/")), bytesOf(path)])).catch(() => undefined);
          return { path, size: facts?.size ?? 0 };
        }),
      )),
    );
  return sized;
};

/** What a sandbox puts where a protected name is missing, and leaves behind when it is killed: nobody's work. */
const placeholdersIn = async (top: string, untracked: readonly TreePath[]): Promise<ReadonlySet<TreePath>> => {
  const found = new Set<TreePath>();
  for (const path of untracked.filter((name) => protectedWhenMissing.includes(name))) {
    const facts = await lstat(join(top, path)).catch(() => undefined);
    if (facts?.isFile() && facts.size === 0 && (facts.mode & 0o777) === 0o444) found.add(path);
  }
  return found;
};

const megabytes = (bytes: number): string => `${(bytes / (1024 * 1024)).toFixed(1)} MiB`;
