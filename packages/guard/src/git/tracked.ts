/** Where do the names of an index lead on the disk?
 *  Invariant: git follows no link out of the work tree, and opens no repository in place of a tracked file: either is a reason to ask.
 *  Elsewhere: the names themselves (index-file.ts). */

import { existsSync } from "node:fs";
import type { ReadBudget } from "./checkout.ts";
import { Doubt, look } from "./checkout.ts";
import type { IndexCopy } from "./index-file.ts";

/** A name of the index as the system takes it; only one that is no UTF-8 cannot be said as text. */
const placed = (top: string, name: string): string | Buffer => {
  if (!/[\x80-\xff]/.test(name)) return `${top}/${name}`;
  const bytes = Buffer.from(name, "latin1");
  const text = bytes.toString();
  return Buffer.from(text).equals(bytes) ? `${top}/${text}` : Buffer.concat([Buffer.from(`${top}/`), bytes]);
};

/** Reading a file that became a folder, git looks for a repository in it, and would open that. */
export const checkTracked = (top: string, { names, repositories }: IndexCopy, budget: ReadBudget): void => {
  const others = new Set(repositories);
  for (const name of names) {
    budget.names(1, top);
    if (existsSync(placed(top, `${name}/.git`)) && !others.has(name) && look(placed(top, name))?.isDirectory())
      throw new Doubt(`${top}/${name} is tracked as a file, and a repository stands in its place`);
  }
};

/** A folder of tracked files that is a link now. */
export const linkedFolder = (top: string, { names }: IndexCopy): string | undefined => {
  const folders = new Set<string>();
  for (const name of names) addFolders(name, folders);
  const link = [...folders].find((folder) => look(placed(top, folder))?.isSymbolicLink());
  return link && Buffer.from(link, "latin1").toString();
};

/** The nearest last, and each once: names stand in order, so most are known. */
const addFolders = (name: string, folders: Set<string>): void => {
  const end = name.lastIndexOf("/");
  if (end < 0) return;
  const folder = name.slice(0, end);
  if (folders.has(folder)) return;
  addFolders(folder, folders);
  folders.add(folder);
};
