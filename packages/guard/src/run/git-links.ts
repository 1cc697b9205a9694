/** Does a folder of objects lead to keys, or to what is no plain file? git reads it as it is, and prints from such files
 *  in complaints.
 *  Invariant: every name below it is looked at, and where it leads, in folders behind links and in alternate object
 *  folders too. A folder with too many names to look at is reported itself, and so are alternates that are not plain lines.
 *  Elsewhere: all other files of git, of which it sees copies only (git-view.ts). */

import { type Dirent, statSync } from "node:fs";
import { join } from "node:path";
import { pathProblem } from "../rules/index.ts";
import { listFolder } from "./list-folder.ts";
import { readPlainFile } from "./plain-file.ts";
import { canonical, reached } from "./reached.ts";

/** Why git may not read these objects unasked. */
export const objectsProblem = (objects: string): string | undefined => {
  const path = linkToKeys(objects);
  return path === undefined ? undefined : `git would read ${path}, which leads to keys or is no plain file`;
};

/** More than any repository that is looked after has: references are packed. */
const MOST_NAMES = 50_000;

/** Named by their content, and many before they are packed. */
const OBJECT = /^objects\/[0-9a-f]{2}\/[0-9a-f]+$/;
const MOST_OBJECTS = 500_000;

type Place = {
  /** Where it is. */
  readonly path: string;
  /** What git calls it. */
  readonly name: string;
};

const linkToKeys = (folder: string): string | undefined => {
  const queue: Place[] = [{ path: folder, name: "objects" }];
  const seen = new Set<string>();
  let [names, objects] = [0, 0];
  for (let at = 0; at < queue.length; at += 1) {
    const { path, name } = queue[at] as Place;
    const key = canonical(path);
    if (seen.has(key)) continue;
    seen.add(key);
    const entries = entriesOf(path, /(?:^|\/)objects\/[0-9a-f]{2}$/.test(name) ? MOST_OBJECTS : MOST_NAMES);
    if (entries === undefined) return path;
    for (const entry of entries) {
      const below: Place = { path: join(path, entry.name), name: `${name}/${entry.name}` };
      if (OBJECT.test(below.name)) objects += 1;
      else names += 1;
      if (names > MOST_NAMES || objects > MOST_OBJECTS) return folder;
      if (entry.isFIFO() || entry.isCharacterDevice()) return below.path;
      if (entry.isSymbolicLink()) {
        if (pathProblem(canonical(below.path)) !== undefined) return below.path;
        if (isFolder(below.path)) queue.push(below);
      } else if (entry.isDirectory()) queue.push(below);
      if (!/^objects\/info\/alternates$/.test(below.name)) continue;
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
