/** Files that git and ripgrep open unasked: one that is a pipe or a device would keep them waiting, or reading, for ever.
 *  Invariant: only kinds are looked at, and nothing is opened but plain files of git's own; bounded, nearest first, so a pipe deep in a large tree may be
 *  missed: then the time limit of the run ends it.
 *  Elsewhere: files that a command names (render-pipe.ts), what is in git's own files (git-probe.ts, git-attributes.ts). */

import { type Dirent, lstatSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { includedPaths } from "../trust/index.ts";
import { listFolder } from "./list-folder.ts";
import { readPlainFile } from "./plain-file.ts";

/** Read in every folder, and in those above. */
const READ_UNASKED: readonly string[] = [".gitignore", ".gitattributes", ".mailmap", ".ignore", ".rgignore"];
/** Folders inside `.git` with files that git reads for most questions. */
const OF_GIT: readonly string[] = ["", "info", "objects/info", "logs", "refs", "refs/heads", "refs/tags"];
/** Large, and hardly ever with such files of their own. */
const PASSED_OVER: readonly string[] = [".git", "node_modules", ".venv", "venv", "target", "vendor", ".cache"];
const MOST_NAMES = 400;
const MOST_RECORDS = 5_000;
const LONGEST_POINTER = 4_096;
const LONGEST_SETTINGS = 1_000_000;

const entriesOf = (folder: string, most: number): readonly Dirent[] => {
  try {
    return listFolder(folder, most);
  } catch {
    return [];
  }
};

const keepsWaiting = (path: string): boolean => {
  try {
    const stats = statSync(path);
    return stats.isFIFO() || stats.isCharacterDevice();
  } catch {
    return false;
  }
};

const isOdd = (entry: Dirent): boolean => entry.isFIFO() || entry.isCharacterDevice() || entry.isSymbolicLink();

const oddIn = (folder: string): readonly string[] =>
  entriesOf(folder, MOST_RECORDS)
    .filter(isOdd)
    .map(({ name }) => join(folder, name))
    .filter(keepsWaiting);

const above = (folder: string): readonly string[] => {
  const up = dirname(folder);
  return up === folder ? [] : [up, ...above(up)];
};

const isThere = (path: string): boolean => {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
};

/** All of them: git passes over one that is broken. */
const repositoriesAround = (folder: string): readonly string[] =>
  [folder, ...above(folder)].filter((place) => isThere(join(place, ".git")));

/** The first such file that git or ripgrep would meet from a folder: what git keeps for itself in the repository around
 *  it, and what says above and below what is ignored, shown or renamed. */
export const waitingFile = (folder: string): string | undefined => {
  const up = above(folder);
  const tops = repositoriesAround(folder);
  const own = tops.length === 0 ? [folder] : tops.map((top) => join(top, ".git"));
  const waiting = own.find(keepsWaiting);
  if (waiting !== undefined) return waiting;
  const records = own.flatMap(recordsOf);
  const kept = records.flatMap((record) => OF_GIT.flatMap((name) => oddIn(join(record, name))));
  const over = up.flatMap((place) => READ_UNASKED.map((name) => join(place, name))).filter(keepsWaiting);
  const places = [folder, ...tops.filter((top) => top !== folder)];
  return kept[0] ?? over[0] ?? places.map(below).find((path) => path !== undefined);
};

/** More than anybody includes; each is a question to git. */
const MOST_SETTINGS = 8;
const MOST_SETTINGS_BYTES = 400_000;

/** The first such file among those that git's settings include, and those that they include in turn. git opens them one
 *  by one while it reads, so settings of which nobody can tell what they include, or not in time, count too. */
export const waitingSettings = (folder: string): string | undefined => {
  const records = repositoriesAround(folder).flatMap((top) => recordsOf(join(top, ".git")));
  const found = records.flatMap((record) => [join(record, "config"), join(record, "config.worktree")]);
  const most = found.length + MOST_SETTINGS;
  let bytes = 0;
  for (let at = 0; at < found.length; at += 1) {
    const file = found[at] ?? "";
    if (keepsWaiting(file) || at >= most) return file;
    const settings = readPlainFile(file, LONGEST_SETTINGS);
    if (settings === "missing") continue;
    bytes += settings.length;
    const paths = settings === "unreadable" || bytes > MOST_SETTINGS_BYTES ? undefined : includedPaths(file, settings);
    if (paths === undefined) return file;
    found.push(...paths.filter((path) => !found.includes(path)));
  }
  return undefined;
};

const below = (folder: string): string | undefined => {
  const queue = [folder];
  let names = 0;
  for (let at = 0; at < queue.length; at += 1) {
    const here = queue[at] ?? folder;
    for (const entry of entriesOf(here, MOST_NAMES - names)) {
      names += 1;
      if (names > MOST_NAMES) return undefined;
      const path = join(here, entry.name);
      if (isOdd(entry) && READ_UNASKED.includes(entry.name) && keepsWaiting(path)) return path;
      if (entry.isDirectory() && !PASSED_OVER.includes(entry.name)) queue.push(path);
    }
  }
  return undefined;
};

/** The folders that a `.git` stands for: itself, or what it points at, and what that shares with others. */
export const recordsOf = (own: string): readonly string[] => {
  const pointed = pointerIn(own)?.replace(/^gitdir: /, "");
  const record = pointed === undefined ? own : resolve(dirname(own), pointed);
  const common = pointerIn(join(record, "commondir"));
  return common === undefined ? [record] : [record, resolve(record, common)];
};

const pointerIn = (path: string): string | undefined => {
  const file = readPlainFile(path, LONGEST_POINTER);
  return typeof file === "string" ? undefined : file.toString().replace(/[\r\n]+$/, ""); // as git takes them off
};
