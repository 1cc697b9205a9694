/** What stands in a checkout now, as a tree and as a commit that nobody sees.
 *  Invariant: the checkout is only read: the index used is a copy, and nothing but objects is added to the repository.
 *  What is ignored stays behind; what is left out for its size is named.
 *  Elsewhere: which repository (repository.ts), the ref that holds the commit (create.ts). */

import { randomUUID } from "node:crypto";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { protectedWhenMissing } from "@prefork/guard/internal";
import { Checkout } from "./checkout.ts";
import { WorktreeError } from "./errors.ts";
import { bytesOf, fieldsOf, inputOf, type TreePath, toldPath } from "./git.ts";
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
  /** In the tree, and by the user's will not among the files (a sparse checkout). */
  readonly absent: ReadonlySet<TreePath>;
  /** Folders that are repositories of their own, by the index. */
  readonly modules: readonly TreePath[];
  /** The index that the tree was written from, with fresh facts of every file. */
  readonly index: string;
};

export type Snapshot = TreeReading & {
  /** Tells it apart from another of the same state, taken in the same second. */
  readonly id: string;
  readonly commit: string;
  readonly head: string | undefined;
};

/** As it stands, whatever that is. */
export const EVERYTHING: ReadOptions = { bytes: Number.POSITIVE_INFINITY, takesConflicts: true };

const DEFAULT_BYTES = 64 * 1024 * 1024;

export type ReadOptions = UntrackedLimit & {
  /** Files with conflicts are taken as they stand. Default: they are refused. */
  readonly takesConflicts?: boolean;
  /** These where they are files, whether git ignores them or not. */
  readonly also?: readonly TreePath[];
};

/** `scratch`: a file that does not exist yet, in a folder of ours. */
export const readTree = async (
  repository: Repository,
  scratch: string,
  options: ReadOptions = {},
): Promise<TreeReading> => {
  await copyIndex(repository.index, scratch);
  const git = repository.git.indexed(scratch);
  const listed = await listedIn(git);
  if (!options.takesConflicts) mustBeResolved(listed.unmerged);
  const absent = await unmark(repository, git, listed);
  const changed = await changedIn(git);
  const placeholders = await placeholdersIn(repository.top, listed.untracked);
  const files = listed.untracked.filter((path) => !path.endsWith("/") && !placeholders.has(path));
  const over = await overLimit(repository.top, files, options);
  if (changed.gone.length > 0)
    await git.out(["update-index", "-z", "--index-info"], {
      input: inputOf(changed.gone.map((path) => `0 ${repository.noObject}\t${path}`)),
    });
  const named = await filesAmong(repository.top, options.also ?? []);
  const written = [...new Set([...changed.there, ...files.filter((path) => !over.has(path)), ...named])];
  if (written.length > 0)
    await git.out(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], { input: inputOf(written) });
  const tree = await git.line(["write-tree"]);
  const leftOut = [...listed.untracked.filter((path) => path.endsWith("/")), ...over];
  return { tree, index: scratch, absent, modules: listed.modules, leftOut };
};

type Listed = {
  readonly untracked: readonly TreePath[];
  readonly unmerged: readonly TreePath[];
  readonly modules: readonly TreePath[];
  /** Marked by the user: not among the files, or not to be looked at. */
  readonly skipped: readonly TreePath[];
  readonly assumed: readonly TreePath[];
};

/** A letter each; then mode, name of the object and stage of those that the index has. */
const LISTED = /^(?<tag>\S) (?:(?<mode>\d{6}) [0-9a-f]{40,64} (?<stage>\d)\t)?(?<path>.*)$/s;

const listedIn = async (git: Repository["git"]): Promise<Listed> => {
  const words = ["ls-files", "-z", "-v", "--stage", "--cached", "--others", "--exclude-standard"];
  const found = fieldsOf(await git.out(words)).map((line) => LISTED.exec(line)?.groups ?? {});
  const those = (is: (one: (typeof found)[number]) => boolean): readonly TreePath[] =>
    found.filter(is).map(({ path = "" }) => path);
  return {
    untracked: those(({ tag }) => tag === "?"),
    unmerged: [...new Set(those(({ stage = "0" }) => stage !== "0"))],
    modules: those(({ mode }) => mode === "160000"),
    skipped: those(({ tag }) => tag === "S" || tag === "s"),
    assumed: those(({ tag = "" }) => /^[a-z]$/.test(tag)),
  };
};

const mustBeResolved = (unmerged: readonly TreePath[]): void => {
  if (unmerged.length === 0) return;
  const more = unmerged.length > 3 ? ` and ${unmerged.length - 3} more` : "";
  const words = `this checkout has conflicts that are not resolved: ${unmerged.slice(0, 3).map(toldPath).join(", ")}${more}`;
  throw new WorktreeError("not-ready", `${words}; resolve them and git add them first`);
};

/** Files that a person told git not to look at are looked at in the copy of the index: what is there counts. Gives those
 *  that are not there and are not to be. */
const unmark = async (
  { top, settings }: Repository,
  git: Repository["git"],
  { skipped, assumed }: Listed,
): Promise<ReadonlySet<TreePath>> => {
  const absent = new Set(skipped);
  if (settings["core.sparsecheckout"] !== "true") {
    // In a sparse checkout git itself takes the mark from those that are there.
    await using checkout = await Checkout.open(top);
    for (const path of skipped) if (await checkout.facts(path)) absent.delete(path);
  }
  const marked = [
    ["--no-skip-worktree", skipped.filter((path) => !absent.has(path))],
    ["--no-assume-unchanged", assumed],
  ] as const;
  for (const [flag, paths] of marked)
    if (paths.length > 0) await git.out(["update-index", flag, "-z", "--stdin"], { input: inputOf(paths) });
  return absent;
};

export const takeSnapshot = async (
  repository: Repository,
  scratch: string,
  limit: UntrackedLimit = {},
): Promise<Snapshot> => {
  const reading = await readTree(repository, scratch, limit);
  const { head } = repository;
  const id = randomUUID();
  return {
    ...reading,
    id,
    head,
    commit: await commitTree(repository, reading.tree, { parent: head, message: MESSAGE }),
  };
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
    const shown = largest.slice(0, 3).map(({ path, size }) => `${toldPath(path)} (${megabytes(size)})`);
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

const filesAmong = async (top: string, paths: readonly TreePath[]): Promise<readonly TreePath[]> => {
  if (paths.length === 0) return [];
  await using checkout = await Checkout.open(top);
  const found: TreePath[] = [];
  for (const path of paths) if ((await checkout.look(path).catch(() => ABSENT)).kind !== "absent") found.push(path);
  return found;
};

const ABSENT = { kind: "absent" } as const;

const megabytes = (bytes: number): string => `${(bytes / (1024 * 1024)).toFixed(1)} MiB`;
