/** Which names below a `.git` folder does git change by itself, so that a new one tells nothing?
 *  Invariant: what can make git run something, now or later, is never among them: settings, hooks, attributes, the files
 *  that lead to another repository, and the steps of a rebase; for submodules and work trees as for the repository itself.
 *  Elsewhere: comparing a tree before and after a run (run-audit.ts). */

import { existsSync } from "node:fs";

/** With all below them. */
const WATCHED = /^(?:config|config\.worktree|commondir|gitdir|hooks|info)$/;
/** Folders that hold repositories, or parts of them. */
const HOLDS_MORE = /^(?:modules|worktrees|rebase-merge|rebase-apply|sequencer)$/;
const STEPS = /^(?:git-rebase-todo|todo)$/;
/** What git keeps in a repository. A submodule may be called so as well: then it has settings. */
const KEPT =
  /^(?:objects|refs|logs|lfs|annex|branches|index|description|shallow|packed-refs|HEAD|\w+_HEAD|\w+_(?:MSG|MODE|RR|EDITMSG)|COMMIT_EDITMSG|gc\.\w+|.*\.(?:lock|pid))$/;

/** `path` below one of the roots; `root` is the one. */
export const isUpkeepOfGit = (path: string, root: string): boolean => {
  const [, ...below] = path.slice(root.length).split("/.git/");
  const names = below.join("/.git/").split("/");
  return below.length > 0 && isKept(names, path);
};

const isKept = ([first = "", ...rest]: readonly string[], path: string): boolean => {
  if (WATCHED.test(first)) return false;
  if (!HOLDS_MORE.test(first)) return true;
  const [, ...inside] = rest;
  if (rest.length === 0) return false;
  if (first === "modules") return isKeptInModule(rest, path);
  // A work tree by its name, or the state of a rebase.
  if (first === "worktrees") return inside.length > 0 && isKept(inside, path);
  return !STEPS.test(rest[0] ?? "");
};

/** The names of submodules may have several parts, so any name that is not git's own leads on. */
const isKeptInModule = (names: readonly string[], path: string): boolean => {
  const at = names.findIndex((name, index) => index > 0 && (WATCHED.test(name) || HOLDS_MORE.test(name)));
  if (at > 0) return isKept(names.slice(at), path);
  return names.length > 1 && KEPT.test(names.at(-1) ?? "") && !existsSync(`${path}/config`);
};
