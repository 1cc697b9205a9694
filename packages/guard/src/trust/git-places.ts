/** Where does git keep the settings and hooks of a folder?
 *  Invariant: only pointers are followed, as git follows them: `.git` may be a file, and its target may share with another
 *  repository. Nothing is run.
 *  Elsewhere: hashing what is there (configuration.ts), work trees that inherit trust (work-tree.ts). */

import { lstatSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { existingPath, isFolder, readBounded, UncheckedPathError, unlessMissing } from "../files/index.ts";

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

/** Throws if that is unknown. */
const factsOf = (path: string) => unlessMissing(path, () => lstatSync(path));

/** Where a pointer leads, as the kernel resolves it: `..` after a link is the parent of its target. Undefined if that is
 *  unknown: the pointer is not valid text, or git may get to another place by it than we do. */
export const resolvePointer = (folder: string, pointer: string): string | undefined => {
  if (/[\0\ufffd]/.test(pointer)) return undefined;
  const path = isAbsolute(pointer) ? pointer : `${folder}/${pointer}`;
  try {
    return existingPath(path) ?? resolve(path); // nothing is there, so git finds nothing either
  } catch (error) {
    if (error instanceof UncheckedPathError) return undefined;
    throw error;
  }
};

/** Undefined: there is none. `unreadable`: git would follow something that we cannot read. */
export const gitPlaces = async (folder: string): Promise<GitPlaces | "unreadable" | undefined> => {
  try {
    return await placesOf(folder);
  } catch (error) {
    if (error instanceof UncheckedPathError) return "unreadable";
    throw error;
  }
};

const placesOf = async (folder: string): Promise<GitPlaces | "unreadable" | undefined> => {
  const top = topAbove(folder);
  if (top === undefined) return undefined;
  const usual = join(top, ".git");
  const own = await ownPlace(usual, top);
  if (own === undefined) return "unreadable";
  const pointer = join(own, "commondir");
  const isUsual = top === folder && factsOf(usual)?.isDirectory() === true;
  if (factsOf(pointer) === undefined) return { top, own, common: own, isUsual };
  const shared = (await readBounded(pointer, MAX_POINTER_BYTES))?.toString().replace(/(?<![\r\n])[\r\n]+$/, "");
  const common = shared === undefined || shared === "" ? undefined : resolvePointer(own, shared);
  return common === undefined ? "unreadable" : { top, own, common, isUsual: false };
};

/** Where git finds a repository: settings and hooks of an enclosing repository apply in the folder as well. */
const topAbove = (folder: string): string | undefined => {
  if (factsOf(join(folder, ".git")) !== undefined) return folder;
  return dirname(folder) === folder ? undefined : topAbove(dirname(folder));
};

const ownPlace = async (usual: string, folder: string): Promise<string | undefined> => {
  if (isFolder(usual)) return existingPath(usual);
  const file = await readBounded(usual, MAX_POINTER_BYTES);
  const claim = /^gitdir: ([^\n]+?)[\r\n]*$/.exec(file?.toString() ?? "")?.[1];
  return claim === undefined ? undefined : resolvePointer(folder, claim);
};
