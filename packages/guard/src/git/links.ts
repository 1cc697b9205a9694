/** Object folders, which git reads in place.
 *  Invariant: what git opens there are regular files and folders only, no links and no pipes; lists that git would quote in errors
 *  have the form that git writes. Alternate object folders are found here and passed on by us, so that git follows no such list
 *  itself. A folder with too many names to check is a reason to ask.
 *  Elsewhere: all other files of git, of which it only sees copies (view.ts). */

import type { Dirent } from "node:fs";
import { join } from "node:path";
import { isFolder, listFolder, realPath, resolveName } from "../files/index.ts";
import type { ReadBudget } from "./checkout.ts";
import { ApprovalNeeded, readGitFile } from "./checkout.ts";

/** More than any maintained repository has. */
const MOST_NAMES = 50_000;
/** Named by their content, and many before they are packed. */
const MOST_OBJECTS = 500_000;

/** git follows no deeper nesting. */
const DEEPEST = 5;
const MOST_FOLDERS = 20;

/** The parts of an object folder that git opens; other names in it are not checked. */
const PART = /^(?:[0-9a-f]{2}|pack)$/;

type Seen = { names: number; objects: number; readonly budget: ReadBudget };

/** The repository's own object folder, then its alternates; canonical. */
export const readObjects = (common: string, budget: ReadBudget): readonly string[] => {
  const found: string[] = [];
  const seen: Seen = { names: 0, objects: 0, budget };
  let level = [realPath(join(common, "objects"))];
  for (let depth = 0; level.length > 0; depth += 1) {
    const fresh = [...new Set(level)].filter((folder) => !found.includes(folder));
    found.push(...fresh);
    if (found.length > MOST_FOLDERS || depth > DEEPEST)
      throw new ApprovalNeeded(`${common} takes objects from too many folders`);
    level = fresh.flatMap((folder) => {
      lookAt(folder, seen);
      return alternatesOf(folder, depth);
    });
  }
  return found;
};

/** The names of the parts that exist, by folder that was checked. */
export const partsOf = (objects: string): readonly string[] =>
  entriesOf(objects, MOST_NAMES)
    .map(({ name }) => name)
    .filter((name) => PART.test(name));

const lookAt = (objects: string, seen: Seen): void => {
  for (const entry of listed(objects, seen, "names")) {
    if (!PART.test(entry.name) && entry.name !== "info") continue;
    const path = join(objects, entry.name);
    if (!entry.isDirectory()) throw noPlain(path);
    const below = listed(path, seen, entry.name.length === 2 ? "objects" : "names");
    const odd = below.find((one) => !one.isFile() && !one.isDirectory());
    if (odd) throw noPlain(join(path, odd.name));
    // Multi-pack indexes in several layers, whose list is not read here.
    const layers = join(path, "multi-pack-index.d");
    if (below.some(({ name }) => name === "multi-pack-index.d") && listed(layers, seen, "names").length > 0)
      throw noPlain(layers);
  }
  const chain = join(objects, "info/commit-graphs");
  const odd = listed(chain, seen, "names").find((one) => !one.isFile());
  if (odd) throw noPlain(join(chain, odd.name));
  const text = readGitFile(join(chain, "commit-graph-chain"), MOST_BYTES)?.toString("latin1") ?? "";
  if (!/^(?:[0-9a-f]{40,64}\n)*$/.test(text))
    throw new ApprovalNeeded(`${chain}/commit-graph-chain has a line that is not an object id`);
};

const noPlain = (path: string): ApprovalNeeded =>
  new ApprovalNeeded(`git would read ${path}, which is a link, or not a regular file, or has an unknown form`);

const MOST_BYTES = 100_000;

/** Alternate object folders, from the one that lists them. */
const alternatesOf = (objects: string, depth: number): readonly string[] => {
  const path = join(objects, "info/alternates");
  const text = readGitFile(path, MOST_BYTES)?.toString() ?? "";
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const folder = realPath(resolveName(objects, line));
      // Unquoted, valid text, and below the first level absolute, as git requires.
      const isPlain = /^[ !#-~\u0080-\ufffc][ -~\u0080-\ufffc]*$/.test(line) && (depth === 0 || line.startsWith("/"));
      if (!isPlain || !isFolder(folder)) throw new ApprovalNeeded(`${path} has a line that does not name a folder`);
      return folder;
    });
};

const listed = (folder: string, seen: Seen, kind: "names" | "objects"): readonly Dirent[] => {
  const entries = entriesOf(folder, kind === "names" ? MOST_NAMES : MOST_OBJECTS);
  seen[kind] += entries.length;
  seen.budget.names(entries.length, folder);
  if (seen.names > MOST_NAMES || seen.objects > MOST_OBJECTS)
    throw new ApprovalNeeded(`${folder} has too many names to check`);
  return entries;
};

/** A folder that cannot be listed needs approval, because its files can still be opened by name. */
const entriesOf = (folder: string, most: number): readonly Dirent[] => {
  try {
    return listFolder(folder, most);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw new ApprovalNeeded(`${folder} cannot be inspected`);
  }
};
