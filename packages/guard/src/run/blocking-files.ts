/** Files that git and ripgrep open on their own: a pipe or a device would make them wait or read forever, and a link
 *  may lead to what must not be read.
 *  Invariant: only file types are checked, and nothing is opened. Bounded, nearest first, so a pipe deep in a large
 *  tree may be missed; then the time limit of the run ends it.
 *  Elsewhere: files that a command names (render-pipe.ts), git's own files (../git/view.ts). */

import { type Dirent, lstatSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { listFolder, realPath, UncheckedPathError, unlessMissing } from "../files/index.ts";

/** Read in every folder, and in all folders above it. */
const ALWAYS_READ: readonly string[] = [
  ".gitignore",
  ".gitattributes",
  ".mailmap",
  ".gitmodules",
  ".ignore",
  ".rgignore",
];
/** Large folders that rarely contain such files. */
const SKIPPED_FOLDERS: readonly string[] = [".git", "node_modules", ".venv", "venv", "target", "vendor", ".cache"];
const MOST_NAMES = 400;

/** Throws if the folder cannot be listed for lack of resources. One that is too deep to be listed is beyond the bound. */
const entriesOf = (folder: string, most: number): readonly Dirent[] => {
  try {
    return unlessMissing(folder, () => listFolder(folder, most)) ?? [];
  } catch (error) {
    if (error instanceof UncheckedPathError && error.code === "ENAMETOOLONG") return [];
    throw error;
  }
};

/** Must the file that a link leads to not be read? */
export type LinkJudge = (target: string) => boolean;

const leadsTo = (path: string, mayNot: LinkJudge): boolean =>
  isRisky(path, () => lstatSync(path).isSymbolicLink() && mayNot(realPath(path)));

const keepsWaiting = (path: string): boolean =>
  isRisky(path, () => {
    const stats = statSync(path);
    return stats.isFIFO() || stats.isCharacterDevice();
  });

/** What cannot be checked counts as risky. */
const isRisky = (path: string, look: () => boolean): boolean => {
  try {
    return unlessMissing(path, look) ?? false;
  } catch (error) {
    if (error instanceof UncheckedPathError) return true;
    throw error;
  }
};

const isOdd = (entry: Dirent): boolean => entry.isFIFO() || entry.isCharacterDevice() || entry.isSymbolicLink();

const above = (folder: string): readonly string[] => {
  const up = dirname(folder);
  return up === folder ? [] : [up, ...above(up)];
};

const isThere = (path: string): boolean => unlessMissing(path, () => lstatSync(path)) !== undefined;

/** Returns all of them, because ripgrep reads the ignore files of each. */
const repositoriesAround = (folder: string): readonly string[] =>
  [folder, ...above(folder)].filter((place) => isThere(join(place, ".git")));

/** The first such file that git or ripgrep would open when started in a folder: the files there, above and below that
 *  say what is ignored, shown or renamed. `mayNot` also rejects links by their target. */
export const findBlockingFile = (folder: string, mayNot: LinkJudge = () => false): string | undefined => {
  const up = above(folder);
  const tops = repositoriesAround(folder);
  const own = tops.flatMap((top) => [join(top, ".git"), join(top, ".git", "info", "exclude")]);
  const isRefused = (path: string): boolean => keepsWaiting(path) || leadsTo(path, mayNot);
  const kept = own.filter(isRefused);
  const over = up.flatMap((place) => ALWAYS_READ.map((name) => join(place, name))).filter(isRefused);
  const places = [folder, ...tops.filter((top) => top !== folder)];
  return kept[0] ?? over[0] ?? places.map((place) => below(place, isRefused)).find((path) => path !== undefined);
};

const below = (folder: string, isRefused: (path: string) => boolean): string | undefined => {
  const queue = [folder];
  let names = 0;
  for (let at = 0; at < queue.length; at += 1) {
    const here = queue[at] ?? folder;
    for (const entry of entriesOf(here, MOST_NAMES - names)) {
      names += 1;
      if (names > MOST_NAMES) return undefined;
      const path = join(here, entry.name);
      if (isOdd(entry) && ALWAYS_READ.includes(entry.name) && isRefused(path)) return path;
      // git checks whether a folder is a separate repository.
      const nested = entry.name === ".git" ? ["HEAD", "commondir"].map((name) => join(path, name)) : [];
      const waiting = nested.find(keepsWaiting);
      if (waiting !== undefined) return waiting;
      if (entry.isDirectory() && !SKIPPED_FOLDERS.includes(entry.name)) queue.push(path);
    }
  }
  return undefined;
};
