/** Where does git keep the settings and hooks of a folder?
 *  Invariant: only pointers are followed, as git follows them: `.git` may be a file, and its target may share with another
 *  repository. Nothing is run.
 *  Elsewhere: hashing what is there (configuration.ts), work trees that inherit trust (work-tree.ts). */

import { lstat, realpath } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { readBounded } from "../files/index.ts";

export type GitPlaces = {
  /** The folder with the `.git`: this one, or one above it. */
  readonly top: string;
  /** Of this folder alone: `config.worktree`. */
  readonly own: string;
  /** Of all work trees together: `config`, `hooks`. */
  readonly common: string;
  /** A plain folder `.git` of this folder, and no other. */
  readonly isUsual: boolean;
};

const MAX_POINTER_BYTES = 8_192;

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** Where a pointer leads, as the kernel resolves it: `..` after a link is the parent of its target. Undefined if the pointer is
 *  not valid text. */
export const resolvePointer = async (folder: string, pointer: string): Promise<string | undefined> => {
  if (/[\0\ufffd]/.test(pointer)) return undefined;
  const path = isAbsolute(pointer) ? pointer : `${folder}/${pointer}`;
  return realpath(path).catch(() => resolve(path)); // nothing is there, so git finds nothing either
};

/** Undefined: there is none. `unreadable`: git would follow something that we cannot read. */
export const gitPlaces = async (folder: string): Promise<GitPlaces | "unreadable" | undefined> => {
  const top = await topAbove(folder);
  if (top === undefined) return undefined;
  const usual = join(top, ".git");
  const own = await ownPlace(usual, top);
  if (own === undefined) return "unreadable";
  const pointer = join(own, "commondir");
  const isUsual = top === folder && (await lstat(usual)).isDirectory();
  if (!(await isThere(pointer))) return { top, own, common: own, isUsual };
  const shared = (await readBounded(pointer, MAX_POINTER_BYTES))?.toString().replace(/(?<![\r\n])[\r\n]+$/, "");
  const common = shared === undefined || shared === "" ? undefined : await resolvePointer(own, shared);
  return common === undefined ? "unreadable" : { top, own, common, isUsual: false };
};

/** Where git finds a repository: settings and hooks of an enclosing repository apply in the folder as well. */
const topAbove = async (folder: string): Promise<string | undefined> => {
  if (await isThere(join(folder, ".git"))) return folder;
  return dirname(folder) === folder ? undefined : topAbove(dirname(folder));
};

const ownPlace = async (usual: string, folder: string): Promise<string | undefined> => {
  const file = await readBounded(usual, MAX_POINTER_BYTES); // undefined for a folder
  if (file === undefined) return realpath(usual).catch(() => undefined);
  const claim = /^gitdir: ([^\n]+?)[\r\n]*$/.exec(file.toString())?.[1];
  return claim === undefined ? undefined : resolvePointer(folder, claim);
};
