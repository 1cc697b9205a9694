/** Is one of git's own files a link to keys, or a pipe? git prints from such files as they are, if only in a complaint, and
 *  waits for a pipe.
 *  Invariant: every name below git's folder is looked at, and where it leads, in folders behind links, in alternate
 *  object folders and in submodules too. Hooks, which do not run, and git's settings, which have a check of their own, are left out. A folder
 *  with too many names to look at is reported itself, and so are alternates that are not plain lines.
 *  Elsewhere: its settings (git-probe.ts), attributes that have it show keys (git-attributes.ts). */

import { type Dirent, statSync } from "node:fs";
import { join } from "node:path";
import { pathProblem } from "../guard/index.ts";
import { askGit, hasNoRepository, through } from "./ask-git.ts";
import { nestedRepositories } from "./index-names.ts";
import { listFolder } from "./list-folder.ts";
import { plainCheckout } from "./plain-checkout.ts";
import { readPlainFile } from "./plain-file.ts";
import { canonical, reached } from "./reached.ts";
import { recordsOf } from "./waiting-files.ts";

/** Why git may not read its own files unasked, in the repository that it finds from `folder` and the `-C` it is given there. */
export const linkHazard = (folder: string, within: readonly string[]): string | undefined => {
  const folders = gitFolders(folder, within);
  if (folders === undefined) return "git does not say where the repository keeps its files";
  const nested = nestedRepositories(canonical(within.reduce(reached, folder)));
  if (nested === undefined) return "the repository's index cannot be read";
  const path = linkToKeys([...new Set([...folders, ...nested.flatMap(recordsOf)])]);
  return path === undefined ? undefined : `git would read ${path}, which leads to keys or is no plain file`;
};

/** Undefined where git gives no answer. */
const gitFolders = (folder: string, within: readonly string[]): readonly string[] | undefined => {
  const base = within.reduce(reached, folder);
  const plain = plainCheckout(base);
  if (plain !== undefined) return [plain.git];
  const words = [...through(within), "rev-parse", "--git-dir", "--git-common-dir"];
  const asked = askGit({ folder, words });
  if (asked === undefined || hasNoRepository(asked)) return [];
  if (asked.failed) return undefined;
  return asked.text
    .split("\n")
    .filter((path) => path !== "")
    .map((path) => canonical(reached(base, path)));
};

/** More than any repository that is looked after has: references are packed. */
const MOST_NAMES = 50_000;

/** By the names below git's folder, those of modules and worktrees included. */
const LEFT_OUT = /^(?:(?:modules|worktrees)\/.+\/)?(?:hooks|lfs|annex\/objects|config(?:\.worktree)?)$/;

/** Named by their content, and many before they are packed. */
const OBJECT = /(?:^|\/)objects\/[0-9a-f]{2}\/[0-9a-f]+$/;
const MOST_OBJECTS = 500_000;

type Place = {
  /** Where it is. */
  readonly path: string;
  /** What git calls it, counted from its own folder. */
  readonly name: string;
};

const linkToKeys = (folders: readonly string[]): string | undefined => {
  const queue: Place[] = folders.map((path) => ({ path, name: "" }));
  const seen = new Set<string>();
  let [names, objects] = [0, 0];
  for (let at = 0; at < queue.length; at += 1) {
    const { path, name } = queue[at] as Place;
    // One folder by two names is looked at by both: what is left out depends on the name.
    const key = `${canonical(path)}\0${/(?:^|\/)objects(?:\/|$)/.test(name)}`;
    if (seen.has(key)) continue;
    seen.add(key);
    const entries = entriesOf(path, /(?:^|\/)objects\/[0-9a-f]{2}$/.test(name) ? MOST_OBJECTS : MOST_NAMES);
    if (entries === undefined) return path;
    for (const entry of entries) {
      const below: Place = { path: join(path, entry.name), name: name === "" ? entry.name : `${name}/${entry.name}` };
      if (OBJECT.test(below.name)) objects += 1;
      else names += 1;
      if (names > MOST_NAMES || objects > MOST_OBJECTS) return folders[0];
      if (LEFT_OUT.test(below.name)) continue;
      if (entry.isFIFO() || entry.isCharacterDevice()) return below.path;
      if (entry.isSymbolicLink()) {
        if (pathProblem(canonical(below.path)) !== undefined) return below.path;
        if (isFolder(below.path)) queue.push(below);
      } else if (entry.isDirectory()) queue.push(below);
      if (!/(?:^|\/)objects\/info\/alternates$/.test(below.name)) continue;
      const others = alternatesIn(below.path);
      if (others === undefined) return below.path;
      queue.push(...others);
    }
  }
  return undefined;
};

const MOST_BYTES = 1_000_000;

/** Other folders of objects, from the one that names them. Undefined for what cannot be read, or is quoted as git does. */
const alternatesIn = (path: string): readonly Place[] | undefined => {
  const file = readPlainFile(path, MOST_BYTES);
  if (file === "missing" || file === "unreadable") return undefined;
  const lines = file
    .toString()
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (lines.some((line) => line.startsWith('"'))) return undefined;
  return lines.map((line) => ({ path: reached(join(path, "../.."), line), name: "objects" }));
};

/** Undefined for a folder that cannot be listed, but whose files may be opened by name all the same. */
const entriesOf = (folder: string, most: number): readonly Dirent[] | undefined => {
  try {
    return listFolder(folder, most);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? [] : undefined;
  }
};

const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
};
