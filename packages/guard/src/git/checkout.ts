/** Which repository does a folder belong to? Found by our own walk upwards, without git.
 *  Invariant: only a form that is fully understood gets an answer: a folder `.git`, or a file `.git` that points at one (linked
 *  worktree, submodule, separate git folder). Anything doubtful is a reason to ask, never "no repository".
 *  Elsewhere: what is read from it (records.ts), the copy that git gets to see (view.ts). */

import { lstatSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { readPlainFile, realPath, resolveName } from "../files/index.ts";
import type { ReadBudget } from "./read-budget.ts";
import { Doubt } from "./read-budget.ts";

export { Doubt } from "./read-budget.ts";

/** All paths are canonical. */
export type Checkout = {
  /** The folder that contains `.git`. */
  readonly top: string;
  /** HEAD, index and reflog of this worktree. */
  readonly git: string;
  /** Settings, refs and objects, which linked worktrees share. The same as `git` in most checkouts. */
  readonly common: string;
  /** A folder of that name at the top, and no file that points elsewhere. */
  readonly isFolder: boolean;
};

export type Located = { readonly kind: "none" } | { readonly kind: "checkout"; readonly checkout: Checkout };

const LONGEST_POINTER = 4_096;

/** The repository of a folder that exists. */
export const locate = (folder: string): Located => {
  let here = realpathSync.native(folder);
  const { dev } = statSync(here);
  for (;;) {
    const path = join(here, ".git");
    const facts = look(path);
    if (facts !== undefined) return { kind: "checkout", checkout: checkoutAt(here, facts) };
    if (look(join(here, "HEAD")) && look(join(here, "objects")) && look(join(here, "refs")))
      throw new Doubt(`git would treat ${here} itself as a repository`);
    const up = dirname(here);
    // git does not leave the file system that it starts in.
    if (up === here || statSync(up).dev !== dev) return { kind: "none" };
    here = up;
  }
};

/** Undefined if nothing is there. */
export const look = (path: string | Buffer): Stats | undefined => {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOTDIR" || code === "ENOENT") return undefined;
    throw new Doubt(`${path} cannot be inspected`);
  }
};

const checkoutAt = (top: string, facts: Stats): Checkout => {
  const path = join(top, ".git");
  const real = facts.isSymbolicLink() ? realPath(path) : path;
  const kind = look(real);
  if (kind === undefined || kind.isSymbolicLink()) throw new Doubt(`${path} leads nowhere`);
  if (kind.isDirectory()) return checked({ top, git: real, common: commonOf(real, top), isFolder: true });
  const text = readGitFile(real, LONGEST_POINTER)?.toString() ?? "";
  const [, pointer] = /^gitdir: ([^\n\r\0]+)[\r\n]*$/.exec(text) ?? [];
  if (pointer === undefined) throw new Doubt(`${path} is not a file that git could follow`);
  own(real);
  const git = realPath(resolveName(top, pointer));
  return checked({ top, git, common: commonOf(git, top), isFolder: false });
};

/** A different folder only for a linked worktree that the repository's records confirm. A `.git` file that anybody may have
 *  written could name any repository of the user. */
const commonOf = (git: string, top: string): string => {
  const text = readGitFile(join(git, "commondir"), LONGEST_POINTER)?.toString();
  if (text === undefined) return git;
  const [, pointer] = /^([^\n\r\0]+)[\r\n]*$/.exec(text) ?? [];
  if (pointer === undefined) throw new Doubt(`${join(git, "commondir")} is not a file that git could follow`);
  const common = realPath(resolveName(git, pointer));
  const back = readGitFile(join(git, "gitdir"), LONGEST_POINTER)?.toString() ?? "";
  const [, named = ""] = /^([^\n\r\0]+\/\.git)[\r\n]*$/.exec(back) ?? [];
  if (dirname(git) !== join(common, "worktrees") || realPath(dirname(resolveName(git, named))) !== top)
    throw new Doubt(`${common} has no record of ${top} as one of its worktrees`);
  return common;
};

/** The folder that the files of a repository lie in, as far as the place of its git folder tells. */
export const placeOf = (git: string): string => {
  const [, above] = /^(.+?)\/\.git(?:\/|$)/.exec(git) ?? [];
  return above ?? dirname(git);
};

const checked = (checkout: Checkout): Checkout => {
  const { top, git, common } = checkout;
  if (!look(join(git, "HEAD")) || !isFolder(join(common, "objects")) || !isFolder(join(common, "refs")))
    throw new Doubt(`${join(top, ".git")} is not a repository that git could use`);
  for (const path of [top, git, common]) own(path);
  return checkout;
};

export const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
};

/** git refuses repositories of other users. */
const own = (path: string): void => {
  if (statSync(path).uid !== process.geteuid?.()) throw new Doubt(`${path} belongs to another user`);
};

/** Reads one of git's own files without ever waiting. `path`: below a folder whose path is canonical. Undefined if there is
 *  none. A link on the path is a doubt, wherever it leads: even among git's own files, one may say what another must not. */
export const readGitFile = (path: string, mostBytes: number, budget?: ReadBudget): Buffer | undefined => {
  const facts = look(path);
  if (facts === undefined) return undefined;
  if (facts.isSymbolicLink() || realPath(path) !== path) throw new Doubt(`git would read ${path}, which is a link`);
  const file = readPlainFile(path, Math.min(mostBytes, budget?.bytesLeft ?? mostBytes));
  budget?.file(typeof file === "string" ? 0 : file.length, path);
  if (file === "missing") throw new Doubt(`${path} is not a regular file, and git would wait for it`);
  if (file === "unreadable") throw new Doubt(`${path} is too large, or cannot be read`);
  return file;
};

/** The text of a link, if it is one. */
export const linkText = (path: string): string | undefined =>
  look(path)?.isSymbolicLink() ? readlinkSync(path) : undefined;
