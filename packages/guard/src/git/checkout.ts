/** Which repository does a folder belong to, and how much of it may be read? Found by our own walk upwards, without git.
 *  Invariant: only a form that is fully understood gets an answer: a folder `.git`, or a file `.git` that points at one (linked
 *  worktree, submodule, separate git folder). Anything doubtful is a reason to ask, never "no repository".
 *  Elsewhere: what is read from it (records.ts), the copy that git gets to see (view.ts). */

import { lstatSync, readlinkSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isFolder, readPlainFile, realPath, resolveName } from "../files/index.ts";

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
  let here = realPath(folder);
  const { dev } = statSync(here);
  for (;;) {
    const path = join(here, ".git");
    const facts = look(path);
    if (facts !== undefined) return { kind: "checkout", checkout: checkoutAt(here, facts) };
    if (look(join(here, "HEAD")) && look(join(here, "objects")) && look(join(here, "refs")))
      throw new ApprovalNeeded(`git would treat ${here} itself as a repository`);
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
    throw new ApprovalNeeded(`${path} cannot be inspected`);
  }
};

const checkoutAt = (top: string, facts: Stats): Checkout => {
  const path = join(top, ".git");
  const real = facts.isSymbolicLink() ? realPath(path) : path;
  const kind = look(real);
  if (kind === undefined || kind.isSymbolicLink()) throw new ApprovalNeeded(`${path} leads nowhere`);
  if (kind.isDirectory()) return checked({ top, git: real, common: commonOf(real, top), isFolder: true });
  const text = readGitFile(real, LONGEST_POINTER)?.toString() ?? "";
  const [, pointer] = /^gitdir: ([^\n\r\0]+)[\r\n]*$/.exec(text) ?? [];
  if (pointer === undefined) throw new ApprovalNeeded(`${path} is not a file that git could follow`);
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
  if (pointer === undefined) throw new ApprovalNeeded(`${join(git, "commondir")} is not a file that git could follow`);
  const common = realPath(resolveName(git, pointer));
  const back = readGitFile(join(git, "gitdir"), LONGEST_POINTER)?.toString() ?? "";
  const [, named = ""] = /^([^\n\r\0]+\/\.git)[\r\n]*$/.exec(back) ?? [];
  if (dirname(git) !== join(common, "worktrees") || realPath(dirname(resolveName(git, named))) !== top)
    throw new ApprovalNeeded(`${common} has no record of ${top} as one of its worktrees`);
  return common;
};

/** The folder with the repository's files, as far as the location of its git folder shows it. */
export const placeOf = (git: string): string => {
  const [, above] = /^(.+?)\/\.git(?:\/|$)/.exec(git) ?? [];
  return above ?? dirname(git);
};

const checked = (checkout: Checkout): Checkout => {
  const { top, git, common } = checkout;
  if (!look(join(git, "HEAD")) || !isFolder(join(common, "objects")) || !isFolder(join(common, "refs")))
    throw new ApprovalNeeded(`${join(top, ".git")} is not a repository that git could use`);
  for (const path of [top, git, common]) own(path);
  return checkout;
};

/** git refuses repositories of other users. */
const own = (path: string): void => {
  if (statSync(path).uid !== process.geteuid?.()) throw new ApprovalNeeded(`${path} belongs to another user`);
};

/** Reads one of git's own files without ever waiting. `path`: below a folder whose path is canonical. Undefined if there is
 *  none. A link on the path needs approval, wherever it leads: even one of git's own files may not replace another. */
export const readGitFile = (path: string, mostBytes: number, budget?: ReadBudget): Buffer | undefined => {
  const facts = look(path);
  if (facts === undefined) return undefined;
  if (facts.isSymbolicLink() || realPath(path) !== path)
    throw new ApprovalNeeded(`git would read ${path}, which is a link`);
  const file = readPlainFile(path, Math.min(mostBytes, budget?.bytesLeft ?? mostBytes));
  budget?.file(typeof file === "string" ? 0 : file.length, path);
  if (file === "missing") throw new ApprovalNeeded(`${path} is not a regular file, and git would block on it`);
  if (file === "unreadable") throw new ApprovalNeeded(`${path} is too large, or cannot be read`);
  return file;
};

/** The text of a link, if it is one. */
export const linkText = (path: string): string | undefined =>
  look(path)?.isSymbolicLink() ? readlinkSync(path) : undefined;

/** Reading a repository blocks this process, so everything that is read shares one budget of bytes, names and time. Beyond
 *  it, reading ends with a reason to ask. Time is CPU time, so a busy machine gives the same answers. Limits for single
 *  files, which tell what is too large to be real, are in records.ts and index-file.ts. */

export type ReadLimits = {
  readonly bytes?: number; // default: 64,000,000
  /** Names read from folders, the index and lists. Default: 1,000,000. */
  readonly names?: number;
  readonly milliseconds?: number; // default: 1,000
  /** CPU time so far, in milliseconds. Default: of this process. */
  readonly now?: () => number;
};

/** Opening a file takes about as long as reading this many names. */
const OPENING = 20;

/** Reading the clock takes as long as checking a name, so it is read only after this many names. */
const BETWEEN_LOOKS = 500;

const ofThisProcess = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

export class ReadBudget {
  #bytes: number;
  #names: number;
  #milliseconds: number;
  readonly #now: () => number;
  #since: number | undefined;
  #sinceLook = 0;

  constructor({ bytes = 64_000_000, names = 1_000_000, milliseconds = 1_000, now = ofThisProcess }: ReadLimits = {}) {
    this.#bytes = bytes;
    this.#names = names;
    this.#milliseconds = milliseconds;
    this.#now = now;
  }

  /** Only time spent inside counts against the budget. */
  timed<T>(read: () => T): T {
    this.#since = this.#now();
    try {
      return read();
    } finally {
      this.#look();
      this.#since = undefined;
    }
  }

  #look(): void {
    this.#sinceLook = 0;
    if (this.#since === undefined) return;
    const now = this.#now();
    this.#milliseconds -= now - this.#since;
    this.#since = now;
  }

  /** Throws if this location, or what was read before it, exceeds the budget. */
  names(count: number, place: string): void {
    this.#names -= count;
    this.#sinceLook += count;
    if (this.#sinceLook >= BETWEEN_LOOKS) this.#look();
    if (this.#names < 0)
      throw new ApprovalNeeded(`the repository has too many names to check; the last were in ${place}`);
    if (this.#milliseconds < 0)
      throw new ApprovalNeeded(`reading the repository takes too long; the last read was ${place}`);
  }

  /** The most that the next file may contain. */
  get bytesLeft(): number {
    return Math.max(this.#bytes, 0);
  }

  file(bytes: number, path: string): void {
    this.#bytes -= bytes;
    this.names(OPENING, path);
  }
}

/** Why a repository needs approval. It is thrown while the repository is read; callers outside get it as a value
 *  (`orApprovalNeeded`, `viewProblem`). */
export class ApprovalNeeded extends Error {}
