/** Where does git keep the settings and hooks of a folder?
 *  Invariant: only pointers are followed, as git follows them: `.git` may be a file, and what it leads to may share with
 *  another; nothing is run.
 *  Elsewhere: hashing what stands there (configuration.ts), work trees that inherit trust (work-tree.ts). */

import { lstat, realpath } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { readBounded } from "../files/index.ts";

export type GitPlaces = {
  /** Of this folder alone: `config.worktree`. */
  readonly own: string;
  /** Of all work trees together: `config`, `hooks`. */
  readonly common: string;
  /** A plain folder `.git`, and no other. */
  readonly isUsual: boolean;
};

const MAX_POINTER_BYTES = 8_192;

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** Where a pointer leads, as the kernel goes there: `..` behind a link is the folder above where it leads. Undefined for one
 *  that is no text, and so names a place that we cannot say. */
export const ledTo = async (folder: string, pointer: string): Promise<string | undefined> => {
  if (/[\0\ufffd]/.test(pointer)) return undefined;
  const path = isAbsolute(pointer) ? pointer : `${folder}/${pointer}`;
  return realpath(path).catch(() => resolve(path)); // nothing is there, for git neither
};

/** Undefined: there is none. `unreadable`: git would follow something that we cannot. */
export const gitPlaces = async (folder: string): Promise<GitPlaces | "unreadable" | undefined> => {
  const usual = join(folder, ".git");
  const facts = await lstat(usual).catch(() => undefined);
  if (facts === undefined) return undefined;
  const own = await ownPlace(usual, folder);
  if (own === undefined) return "unreadable";
  const pointer = join(own, "commondir");
  if (!(await isThere(pointer))) return { own, common: own, isUsual: facts.isDirectory() };
  const shared = (await readBounded(pointer, MAX_POINTER_BYTES))?.toString().replace(/(?<![\r\n])[\r\n]+$/, "");
  const common = shared === undefined || shared === "" ? undefined : await ledTo(own, shared);
  return common === undefined ? "unreadable" : { own, common, isUsual: false };
};

const ownPlace = async (usual: string, folder: string): Promise<string | undefined> => {
  const file = await readBounded(usual, MAX_POINTER_BYTES); // undefined for a folder
  if (file === undefined) return realpath(usual).catch(() => undefined);
  const claim = /^gitdir: ([^\n]+?)[\r\n]*$/.exec(file.toString())?.[1];
  return claim === undefined ? undefined : ledTo(folder, claim);
};
