/** What has a task changed in its worktree so far?
 *  Invariant: read-only: the worktree, its branch and the checkout do not change, even while its agent works.
 *  Elsewhere: committing the work (work.ts), previewing a merge (preview.ts). */

import type { WorktreeContext } from "./create.ts";
import { displayPath, fieldsOf } from "./git.ts";
import { openWorktree } from "./open-worktree.ts";
import type { Worktree } from "./records.ts";
import { branchRef, readRefs, requireBase, tipRef } from "./refs.ts";
import type { Repository } from "./repository.ts";
import { EVERYTHING, readTree } from "./snapshot.ts";

export type ChangedFile = {
  readonly path: string;
  readonly how: "added" | "changed" | "deleted";
  /** Lines; undefined for a binary file. */
  readonly added?: number;
  readonly removed?: number;
};

export type WorktreeInspection = {
  readonly files: readonly ChangedFile[];
  /** Since the worktree was created, newest first. */
  readonly commits: readonly { readonly id: string; readonly subject: string }[];
  /** Nested repositories, which are in no tree. */
  readonly leftOut: readonly string[];
  /** Ignored files and folders in the worktree. */
  readonly ignored: readonly string[];
  /** The folder exists. */
  readonly exists: boolean;
};

type Sides = { readonly base: string; readonly tree: string };

export const inspectWorktree = async (place: WorktreeContext, worktree: Worktree): Promise<WorktreeInspection> =>
  withSides(place, worktree, async (sides, { leftOut, copy }) => ({
    files: await filesOf(place.repository, sides),
    commits: await commitsOf(place.repository, worktree),
    leftOut,
    ignored: copy ? await ignoredIn(copy) : [],
    exists: copy !== undefined,
  }));

/** The changes as a diff. */
export const worktreeDiff = async (place: WorktreeContext, worktree: Worktree): Promise<string> =>
  withSides(place, worktree, async ({ base, tree }) => {
    const how = ["-r", "-p", "-M", "--no-color", "--no-ext-diff", "--no-textconv"];
    return (await place.repository.git.out(["diff-tree", ...how, base, tree])).toString();
  });

type SidesContext = { readonly leftOut: readonly string[]; readonly copy: Repository | undefined };

/** The tree that it started with, and the tree of its folder now; if the folder is gone, of its last commit. */
const withSides = async <T>(
  place: WorktreeContext,
  worktree: Worktree,
  use: (sides: Sides, context: SidesContext) => Promise<T>,
): Promise<T> => {
  const { repository, store } = place;
  await requireBase(repository, worktree);
  const base = `${worktree.base}^{tree}`;
  const copy = await openWorktree(repository, worktree.path);
  if (!copy)
    return use(
      { base, tree: `${(await tipOf(repository, worktree)) ?? worktree.base}^{tree}` },
      { leftOut: [], copy: undefined },
    );
  return store.scratch(async (scratch) => {
    const { tree, leftOut } = await readTree(copy, `${scratch}/index`, EVERYTHING);
    return use({ base, tree }, { leftOut: leftOut.map(displayPath), copy });
  });
};

/** Its last commit. */
const tipOf = async (repository: Repository, { task }: Worktree): Promise<string | undefined> => {
  const refs = await readRefs(repository, [tipRef(task), branchRef(task)]);
  return (refs.get(tipRef(task)) ?? refs.get(branchRef(task)))?.id;
};

const STATUS_LETTERS: Readonly<Record<string, ChangedFile["how"]>> = { A: "added", D: "deleted" };

const filesOf = async ({ git }: Repository, { base, tree }: Sides): Promise<readonly ChangedFile[]> => {
  const how = ["-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"];
  const counts = fieldsOf(await git.out(["diff-tree", ...how, "--numstat", base, tree]));
  const kinds = fieldsOf(await git.out(["diff-tree", ...how, "--name-status", base, tree]));
  const kindOf = new Map(kinds.flatMap((kind, at) => (at % 2 === 0 ? [[kinds[at + 1] ?? "", kind] as const] : [])));
  return counts.map((line) => {
    const [, added = "", removed = "", path = ""] = /^(\S+)\t(\S+)\t(.*)$/s.exec(line) ?? [];
    const lines = added === "-" ? {} : { added: Number(added), removed: Number(removed) };
    return { path: displayPath(path), how: STATUS_LETTERS[kindOf.get(path) ?? ""] ?? "changed", ...lines };
  });
};

const commitsOf = async (repository: Repository, worktree: Worktree): Promise<WorktreeInspection["commits"]> => {
  const tip = await tipOf(repository, worktree);
  if (tip === undefined) return [];
  const words = ["log", "-z", "--format=%H %s", "--no-show-signature", `${worktree.origin}..${tip}`];
  const { code, out } = await repository.git.ask(words, { okCodes: [0, 128] });
  if (code !== 0) return [];
  return out
    .toString()
    .split("\0")
    .filter(Boolean)
    .map((line) => ({ id: line.slice(0, line.indexOf(" ")), subject: line.slice(line.indexOf(" ") + 1) }));
};

/** A folder that is ignored as a whole counts as one entry. */
const ignoredIn = async ({ git }: Repository): Promise<readonly string[]> => {
  const how = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
  return fieldsOf(await git.out(how)).map(displayPath);
};
