/** Where do the names of an index lead on the disk?
 *  Invariant: git follows no link out of the work tree, and opens no repository in place of a tracked file: either is a reason to ask.
 *  Elsewhere: the names themselves (index-file.ts). */

import { existsSync } from "node:fs";
import type { ReadBudget } from "./checkout.ts";
import { ApprovalNeeded, look } from "./checkout.ts";
import type { IndexCopy } from "./index-file.ts";

/** A name from the index as a path for the file system. Only a name that is not UTF-8 has to stay bytes. */
const placed = (top: string, name: string): string | Buffer => {
  if (!/[\x80-\xff]/.test(name)) return `${top}/${name}`;
  const bytes = Buffer.from(name, "latin1");
  const text = bytes.toString();
  return Buffer.from(text).equals(bytes) ? `${top}/${text}` : Buffer.concat([Buffer.from(`${top}/`), bytes]);
};

/** The system looks nothing up by a longer path, but git goes down from the top. */
const MAX_PATH_BYTES = 4_095;

/** If a tracked file became a folder, git would look for a repository in it and open that. */
export const checkTracked = (top: string, { names, repositories }: IndexCopy, budget: ReadBudget): void => {
  const others = new Set(repositories);
  for (const name of names) {
    budget.names(1, top);
    const inside = placed(top, `${name}/.git`);
    if (Buffer.byteLength(inside) > MAX_PATH_BYTES)
      throw new ApprovalNeeded(`${top} tracks a file whose path is too long to check`);
    if (existsSync(inside) && !others.has(name) && look(placed(top, name))?.isDirectory())
      throw new ApprovalNeeded(`${top}/${name} is tracked as a file but is now a repository`);
  }
};

/** A folder of tracked files that is now a link. */
export const linkedFolder = (top: string, { names }: IndexCopy): string | undefined => {
  const folders = new Set<string>();
  for (const name of names) addFolders(name, folders);
  const link = [...folders].find((folder) => look(placed(top, folder))?.isSymbolicLink());
  return link && Buffer.from(link, "latin1").toString();
};

/** The nearest parent last, each only once: names are in order, so most parents are already known. */
const addFolders = (name: string, folders: Set<string>): void => {
  const end = name.lastIndexOf("/");
  if (end < 0) return;
  const folder = name.slice(0, end);
  if (folders.has(folder)) return;
  addFolders(folder, folders);
  folders.add(folder);
};
