/** The worktrees of a repository.
 *  Invariant: every file that is used was read as a regular file and has the form that git writes; otherwise it is a reason to ask.
 *  Elsewhere: `git worktree list` (answers.ts). */

import { dirname, join } from "node:path";
import { listFolder } from "../files/index.ts";
import { ApprovalNeeded, look, readGitFile } from "./checkout.ts";
import { type Records, readRef } from "./records.ts";
import type { ReadRepository } from "./repository.ts";
import { isTrue, nameOf } from "./settings.ts";

export type Worktree = {
  readonly path: string;
  readonly isBare: boolean;
  /** The branch, if one is checked out. */
  readonly branch: string | undefined;
  /** Its commit id; zeros if there is no commit yet. */
  readonly commit: string;
  /** Why it is locked; empty if no reason was given. */
  readonly locked: string | undefined;
  readonly isGone: boolean;
};

const MOST_WORKTREES = 200;

/** The other worktrees as files of a view, so that `git branch` marks their branches. Worktrees that are not
 *  understood are skipped. */
export const otherWorktrees = (repository: ReadRepository): Records => {
  const { top, common } = repository.checkout;
  if (look(join(common, "worktrees")) === undefined) return new Map();
  let found: readonly Worktree[];
  try {
    found = readWorktrees(repository).filter(({ path, isBare }) => path !== top && !isBare);
  } catch (error) {
    if (error instanceof ApprovalNeeded) return new Map();
    throw error;
  }
  return new Map(
    found.flatMap(({ path, branch, commit }, at): readonly (readonly [string, string])[] => [
      [`worktrees/${at}/gitdir`, `${path}/.git\n`],
      [`worktrees/${at}/commondir`, "../..\n"],
      [`worktrees/${at}/HEAD`, branch === undefined ? `${commit}\n` : `ref: ${branch}\n`],
    ]),
  );
};

export const readWorktrees = ({ checkout, settings, records }: ReadRepository): readonly Worktree[] => {
  const { common } = checkout;
  const refs = new Map(
    String(records.get("packed-refs") ?? "")
      .split("\n")
      .map((line) => [line.slice(line.indexOf(" ") + 1), line.slice(0, line.indexOf(" "))]),
  );
  const none = "0".repeat(
    settings.some((one) => nameOf(one) === "extensions.objectformat" && one.value === "sha256") ? 64 : 40,
  );
  const headOf = (folder: string): Pick<Worktree, "branch" | "commit"> => {
    const head = readRef(join(folder, "HEAD"));
    if (head === undefined) throw new ApprovalNeeded(`${join(folder, "HEAD")} leads nowhere`);
    const branch = head.startsWith("ref: ") ? head.slice(5) : undefined;
    return { branch, commit: branch === undefined ? head : (refs.get(branch) ?? none) };
  };
  const bare = settings.findLast((one) => nameOf(one) === "core.bare");
  const main: Worktree = {
    path: common.replace(/\/\.git$/, ""),
    isBare: bare !== undefined && isTrue(bare.value),
    ...headOf(common),
    locked: undefined,
    isGone: false,
  };
  const linked = foldersIn(join(common, "worktrees")).flatMap((folder): readonly Worktree[] => {
    const path = pathIn(folder);
    if (path === undefined) return [];
    const lock = readGitFile(join(folder, "locked"), 4_096)?.toString().trim();
    if (lock !== undefined && /[^ -~\u0080-\uffff]/.test(lock))
      throw new ApprovalNeeded(`${folder}/locked contains more than a reason`);
    const isGone = look(join(path, ".git")) === undefined;
    return [{ path, isBare: false, ...headOf(folder), locked: lock, isGone }];
  });
  return [main, ...linked.sort((a, b) => (a.path < b.path ? -1 : 1))];
};

const foldersIn = (folder: string): readonly string[] => {
  if (look(folder) === undefined) return [];
  const entries = listFolder(folder, MOST_WORKTREES);
  if (entries.length > MOST_WORKTREES) throw new ApprovalNeeded(`${folder} has too many worktrees to list`);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
};

/** The folder that a worktree says contains its files. */
const pathIn = (folder: string): string | undefined => {
  const text = readGitFile(join(folder, "gitdir"), 4_096)?.toString();
  if (text === undefined) return undefined;
  const [, path] = /^(\/[ -~\u0080-\uffff]*\/\.git)[\r\n]*$/.exec(text) ?? [];
  if (path === undefined) throw new ApprovalNeeded(`${folder}/gitdir does not name a worktree`);
  return dirname(path);
};
