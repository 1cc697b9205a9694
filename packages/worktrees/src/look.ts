/** What has a task done in its copy, for somebody who asks?
 *  Invariant: only looks: the copy, its branch and the checkout stay as they are, also while its agent is at work.
 *  Elsewhere: keeping the work (work.ts), what a merge would make of it (merge.ts). */

import { openCopy } from "./copies.ts";
import type { Place } from "./create.ts";
import { fieldsOf, shownPath } from "./git.ts";
import type { Worktree } from "./records.ts";
import { branchRef, mustBeHere, readRefs, tipRef } from "./refs.ts";
import type { Repository } from "./repository.ts";
import { EVERYTHING, readTree } from "./snapshot.ts";

export type ChangedFile = {
  readonly path: string;
  readonly how: "added" | "changed" | "deleted";
  /** Lines; undefined where it is no text. */
  readonly added?: number;
  readonly removed?: number;
};

export type Looked = {
  readonly files: readonly ChangedFile[];
  /** Since it began, the last first. */
  readonly commits: readonly { readonly id: string; readonly subject: string }[];
  /** In the copy, and in no tree: repositories of their own. */
  readonly leftOut: readonly string[];
  /** Ignored files and folders that stand in the copy alone. */
  readonly ignored: readonly string[];
  /** The folder is there. */
  readonly isThere: boolean;
};

type Sides = { readonly base: string; readonly tree: string };

export const lookAt = async (place: Place, worktree: Worktree): Promise<Looked> =>
  withSides(place, worktree, async (sides, { leftOut, copy }) => ({
    files: await filesOf(place.repository, sides),
    commits: await commitsOf(place.repository, worktree),
    leftOut,
    ignored: copy ? await ignoredIn(copy) : [],
    isThere: copy !== undefined,
  }));

/** As text, for people. */
export const diffOf = async (place: Place, worktree: Worktree): Promise<string> =>
  withSides(place, worktree, async ({ base, tree }) => {
    const how = ["-r", "-p", "-M", "--no-color", "--no-ext-diff", "--no-textconv"];
    return (await place.repository.git.out(["diff-tree", ...how, base, tree])).toString();
  });

type Around = { readonly leftOut: readonly string[]; readonly copy: Repository | undefined };

/** The tree that it began with, and that of its folder now; where that is gone, what was committed last. */
const withSides = async <T>(
  place: Place,
  worktree: Worktree,
  use: (sides: Sides, around: Around) => Promise<T>,
): Promise<T> => {
  const { repository, store } = place;
  await mustBeHere(repository, worktree);
  const base = `${worktree.base}^{tree}`;
  const copy = await openCopy(repository, worktree.path);
  if (!copy)
    return use(
      { base, tree: `${(await tipOf(repository, worktree)) ?? worktree.base}^{tree}` },
      { leftOut: [], copy: undefined },
    );
  return store.scratch(async (scratch) => {
    const { tree, leftOut } = await readTree(copy, `${scratch}/index`, EVERYTHING);
    return use({ base, tree }, { leftOut: leftOut.map(shownPath), copy });
  });
};

/** As any of its agents last left it. */
const tipOf = async (repository: Repository, { task }: Worktree): Promise<string | undefined> => {
  const refs = await readRefs(repository, [tipRef(task), branchRef(task)]);
  return (refs.get(tipRef(task)) ?? refs.get(branchRef(task)))?.id;
};

const HOW: Readonly<Record<string, ChangedFile["how"]>> = { A: "added", D: "deleted" };

const filesOf = async ({ git }: Repository, { base, tree }: Sides): Promise<readonly ChangedFile[]> => {
  const how = ["-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"];
  const counts = fieldsOf(await git.out(["diff-tree", ...how, "--numstat", base, tree]));
  const kinds = fieldsOf(await git.out(["diff-tree", ...how, "--name-status", base, tree]));
  const kindOf = new Map(kinds.flatMap((kind, at) => (at % 2 === 0 ? [[kinds[at + 1] ?? "", kind] as const] : [])));
  return counts.map((line) => {
    const [, added = "", removed = "", path = ""] = /^(\S+)\t(\S+)\t(.*)$/s.exec(line) ?? [];
    const lines = added === "-" ? {} : { added: Number(added), removed: Number(removed) };
    return { path: shownPath(path), how: HOW[kindOf.get(path) ?? ""] ?? "changed", ...lines };
  });
};

const commitsOf = async (repository: Repository, worktree: Worktree): Promise<Looked["commits"]> => {
  const tip = await tipOf(repository, worktree);
  if (tip === undefined) return [];
  const words = ["log", "-z", "--format=%H %s", "--no-show-signature", `${worktree.origin}..${tip}`];
  const { code, out } = await repository.git.ask(words, { may: [0, 128] });
  if (code !== 0) return [];
  return out
    .toString()
    .split("\0")
    .filter(Boolean)
    .map((line) => ({ id: line.slice(0, line.indexOf(" ")), subject: line.slice(line.indexOf(" ") + 1) }));
};

/** A folder that is ignored as a whole counts as one. */
const ignoredIn = async ({ git }: Repository): Promise<readonly string[]> => {
  const how = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
  return fieldsOf(await git.out(how)).map(shownPath);
};
