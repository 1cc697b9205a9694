/** The current state of a checkout as a tree, and as a commit on no branch.
 *  Invariant: the checkout is only read: git uses a copy of the index, and only objects are added to the repository.
 *  Ignored files are not included; files that are too large are listed.
 *  Elsewhere: which repository (repository.ts), the ref that keeps the commit (create.ts). */

import { randomUUID } from "node:crypto";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { findBlockingFile, protectedWhenMissing, shownName } from "@prefork/guard/internal";
import { Checkout } from "./checkout.ts";
import { WorktreeError } from "./errors.ts";
import { bytesOf, fieldsOf, inputOf, messagePath, type TreePath } from "./git.ts";
import { copyIndex } from "./private-index.ts";
import type { Repository } from "./repository.ts";
import { sizeOfTree, type TreeSize } from "./room.ts";

export type UntrackedLimit = {
  /** All untracked files together. Default: 64 MiB. */
  readonly bytes?: number;
  /** Above the limit: refuse, or leave out the largest files. Default: refuse. */
  readonly over?: "refuse" | "leave-out";
};

export type TreeReading = {
  readonly tree: string;
  /** Untracked files that are not in the tree: too large, or nested repositories. */
  readonly leftOut: readonly TreePath[];
  /** In the tree, but deliberately not among the files (a sparse checkout). */
  readonly absent: ReadonlySet<TreePath>;
  /** Submodules, according to the index. */
  readonly modules: readonly TreePath[];
  /** The index that the tree was written from, with fresh file stats. */
  readonly index: string;
};

export type Snapshot = TreeReading & {
  /** Distinguishes it from another snapshot of the same state in the same second. */
  readonly id: string;
  readonly commit: string;
  readonly head: string | undefined;
  readonly size: TreeSize;
};

/** Everything, without limits. */
export const EVERYTHING: ReadOptions = { bytes: Number.POSITIVE_INFINITY, takesConflicts: true };

const DEFAULT_BYTES = 64 * 1024 * 1024;

export type ReadOptions = UntrackedLimit & {
  /** Take files with conflicts as they are. Default: refuse them. */
  readonly takesConflicts?: boolean;
  /** Include these files, even if git ignores them. */
  readonly also?: readonly TreePath[];
};

/** `scratch`: the path of a new file in a scratch folder. */
export const readTree = async (
  repository: Repository,
  scratch: string,
  options: ReadOptions = {},
): Promise<TreeReading> => {
  requireReadable(repository);
  await copyIndex(repository.index, scratch);
  const git = repository.git.indexed(scratch);
  const listed = await listIndex(git);
  if (!options.takesConflicts) requireNoConflicts(listed.unmerged);
  const absent = await clearMarks(repository, git, listed);
  const changed = await listChanged(git);
  const placeholders = await placeholdersIn(repository.top, listed.untracked);
  const files = listed.untracked.filter((path) => !path.endsWith("/") && !placeholders.has(path));
  const over = await overLimit(repository.top, files, options);
  if (changed.gone.length > 0)
    await git.out(["update-index", "-z", "--index-info"], {
      input: inputOf(changed.gone.map((path) => `0 ${repository.noObject}\t${path}`)),
    });
  const named = await existingFiles(repository.top, options.also ?? []);
  const written = [...new Set([...changed.there, ...files.filter((path) => !over.has(path)), ...named])];
  if (written.length > 0)
    await git.out(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], { input: inputOf(written) });
  const tree = await git.line(["write-tree"]);
  const leftOut = [...listed.untracked.filter((path) => path.endsWith("/")), ...over];
  return { tree, index: scratch, absent, modules: listed.modules, leftOut };
};

/** Throws if git would open a pipe or a device and wait for it. */
export const requireReadable = ({ top }: Pick<Repository, "top">): void => {
  const waiting = findBlockingFile(top);
  if (waiting !== undefined)
    throw new WorktreeError("not-ready", `${shownName(waiting)} is not a regular file, and git would wait for it`);
};

/** Git walks the whole checkout, and may meet a file that it waits for. Real checkouts take seconds. */
const WALK_MS = 3 * 60_000;

export type ListLimits = { readonly maxBytes?: number; readonly maxNames?: number };

export type IndexListing = {
  readonly untracked: readonly TreePath[];
  readonly unmerged: readonly TreePath[];
  readonly modules: readonly TreePath[];
  /** Marked by the user: skip-worktree, or assume-unchanged. */
  readonly skipped: readonly TreePath[];
  readonly assumed: readonly TreePath[];
};

/** A status letter; for tracked files also mode, object name and stage. */
const LISTED = /^(?<tag>\S) (?:(?<mode>\d{6}) [0-9a-f]{40,64} (?<stage>\d)\t)?(?<path>.*)$/s;

export const listIndex = async (git: Repository["git"], limits: ListLimits = {}): Promise<IndexListing> => {
  const { maxNames = Number.POSITIVE_INFINITY, ...bytes } = limits;
  const words = ["ls-files", "-z", "-v", "--stage", "--cached", "--others", "--exclude-standard"];
  const out = await git.out(words, { limitMs: WALK_MS, ...bytes });
  const [untracked, modules, skipped, assumed]: [TreePath[], TreePath[], TreePath[], TreePath[]] = [[], [], [], []];
  const unmerged = new Set<TreePath>();
  let count = 0;
  // Not all lines at once: there may be a million of them, and few are kept.
  for (let at = 0, end = out.indexOf(0); end >= 0; at = end + 1, end = out.indexOf(0, at)) {
    count += 1;
    if (count > maxNames) throw new WorktreeError("too-large", `the index has more than ${maxNames} names`);
    if (count % LINES_PER_TURN === 0) await nextTurn();
    const { tag = "", mode, stage = "0", path = "" } = LISTED.exec(out.toString("latin1", at, end))?.groups ?? {};
    if (tag === "?") untracked.push(path);
    if (stage !== "0") unmerged.add(path);
    if (mode === "160000") modules.push(path);
    if (tag === "S" || tag === "s") skipped.push(path);
    if (/^[a-z]$/.test(tag)) assumed.push(path);
  }
  return { untracked, unmerged: [...unmerged], modules, skipped, assumed };
};

const LINES_PER_TURN = 10_000;

const requireNoConflicts = (unmerged: readonly TreePath[]): void => {
  if (unmerged.length === 0) return;
  const more = unmerged.length > 3 ? ` and ${unmerged.length - 3} more` : "";
  const problem = `this checkout has unresolved conflicts: ${unmerged.slice(0, 3).map(messagePath).join(", ")}${more}`;
  throw new WorktreeError("not-ready", `${problem}; resolve and git add them first`);
};

/** Clears the marks that keep git from checking files, in the copy of the index. Returns the files that are deliberately
 *  absent. */
export const clearMarks = async (
  { top, settings }: Repository,
  git: Repository["git"],
  { skipped, assumed }: IndexListing,
): Promise<ReadonlySet<TreePath>> => {
  const absent = new Set(skipped);
  if (settings["core.sparsecheckout"] !== "true") {
    // In a sparse checkout git itself clears the mark of files that exist.
    await using checkout = await Checkout.open(top);
    for (const path of skipped) if (await checkout.stat(path)) absent.delete(path);
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
  const [size, commit] = await Promise.all([
    sizeOfTree(repository, reading.tree, reading.absent),
    commitTree(repository, reading.tree, { parent: head, message: MESSAGE }),
  ]);
  return { ...reading, id: randomUUID(), head, size, commit };
};

const MESSAGE =
  "The checkout when work started from it\n\nCreated by prefork; it is on none of your branches. See docs/worktrees.md.\n";

export const commitTree = (
  { git }: Pick<Repository, "git">,
  tree: string,
  { parent, message }: { readonly parent: string | undefined; readonly message: string },
): Promise<string> =>
  git.line(["commit-tree", tree, ...(parent === undefined ? [] : ["-p", parent]), "-F", "-"], { input: message });

export const listChanged = async (
  git: Repository["git"],
  { maxBytes }: Pick<ListLimits, "maxBytes"> = {},
): Promise<{ readonly gone: string[]; readonly there: string[] }> => {
  const how = ["-z", "--name-status", "--no-renames", "--ignore-submodules=all", "--no-ext-diff"];
  const fields = fieldsOf(
    await git.out(["diff-files", ...how], { limitMs: WALK_MS, ...(maxBytes === undefined ? {} : { maxBytes }) }),
  );
  const changed = { gone: [] as string[], there: [] as string[] };
  for (let at = 0; at + 1 < fields.length; at += 2)
    (fields[at] === "D" ? changed.gone : changed.there).push(fields[at + 1] ?? "");
  return changed;
};

export const overLimit = async (
  top: string,
  files: readonly TreePath[],
  { bytes = DEFAULT_BYTES, over = "refuse" }: UntrackedLimit,
): Promise<ReadonlySet<TreePath>> => {
  const sized = await sizesOf(top, files);
  let total = sized.reduce((sum, { size }) => sum + size, 0);
  if (total <= bytes) return new Set();
  const largest = sized.toSorted((a, b) => b.size - a.size);
  if (over === "refuse") {
    const shown = largest.slice(0, 3).map(({ path, size }) => `${messagePath(path)} (${megabytes(size)})`);
    throw new WorktreeError(
      "too-large",
      `untracked files take ${megabytes(total)}, and the limit is ${megabytes(bytes)}: ${shown.join(", ")}. ` +
        "Ignore or commit them, raise worktrees.untrackedMegabytes in your settings, or set worktrees.largeFiles to leave-out",
    );
  }
  const skipped = new Set<TreePath>();
  for (const { path, size } of largest) {
    if (total <= bytes) break;
    skipped.add(path);
    total -= size;
  }
  return skipped;
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

/** Placeholders for missing protected names, which a killed sandbox leaves behind. They are nobody's work. */
export const placeholdersIn = async (top: string, untracked: readonly TreePath[]): Promise<ReadonlySet<TreePath>> => {
  const found = new Set<TreePath>();
  for (const path of untracked.filter((name) => protectedWhenMissing.includes(name))) {
    const facts = await lstat(join(top, path)).catch(() => undefined);
    if (facts?.isFile() && facts.size === 0 && (facts.mode & 0o777) === 0o444) found.add(path);
  }
  return found;
};

const existingFiles = async (top: string, paths: readonly TreePath[]): Promise<readonly TreePath[]> => {
  if (paths.length === 0) return [];
  await using checkout = await Checkout.open(top);
  const found: TreePath[] = [];
  for (const path of paths)
    if ((await checkout.fileState(path).catch(() => ABSENT)).kind !== "absent") found.push(path);
  return found;
};

const ABSENT = { kind: "absent" } as const;

const megabytes = (bytes: number): string => `${(bytes / (1024 * 1024)).toFixed(1)} MiB`;
