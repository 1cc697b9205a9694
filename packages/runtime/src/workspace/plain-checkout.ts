/** What can be learned about a checkout without starting git. Starting it three times before every `git diff` took longer
 *  than the diff.
 *  Invariant: only the plain form gets an answer (a folder `.git`, settings that name no other place, one index of version
 *  2 or 3). For every other form the answer is undefined, and git is asked.
 *  Elsewhere: asking git (ask-git.ts), what is done with the answer (git-attributes.ts). */

import { closeSync, existsSync, fstatSync, lstatSync, openSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { canonical } from "./reached.ts";

export type Checkout = { readonly top: string; readonly git: string };

const MOST_BYTES = 64_000_000;

/** The checkout that git finds from `folder`. */
export const plainCheckout = (folder: string): Checkout | undefined => {
  let top = canonical(folder);
  while (!exists(join(top, ".git"))) {
    if (isBare(top) || dirname(top) === top) return undefined;
    top = dirname(top);
  }
  const git = join(top, ".git");
  const isPlain = lstatSync(git).isDirectory() && isBare(git) && !exists(join(git, "commondir"));
  const settings = isPlain ? contentOf(join(git, "config")) : undefined;
  return settings === undefined || /worktree|include/i.test(settings.toString("latin1")) ? undefined : { top, git };
};

/** May the index keep a file of this name, in whatever folder? Where it does not, no question is left. */
export const indexMayKeep = ({ git }: Checkout, name: string): boolean => {
  if (!exists(join(git, "index"))) return false;
  const index = contentOf(join(git, "index"));
  if (index === undefined || index.length < 12 || index.toString("latin1", 0, 4) !== "DIRC") return true;
  const isWhole = index.readUInt32BE(4) <= 3 && !index.includes("sdir"); // later versions shorten names; a sparse one lacks some
  return !isWhole || isSplit(git) || index.includes(name);
};

const isSplit = (git: string): boolean => readdirSync(git).some((name) => name.startsWith("sharedindex."));

const isBare = (folder: string): boolean =>
  existsSync(join(folder, "HEAD")) && existsSync(join(folder, "objects")) && existsSync(join(folder, "refs"));

/** Also a link that leads nowhere. */
const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** Undefined for what is no plain file, or too large. */
const contentOf = (path: string): Buffer | undefined => {
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  const descriptor = openSync(path, "r");
  try {
    return fstatSync(descriptor).size <= MOST_BYTES ? readFileSync(descriptor) : undefined;
  } finally {
    closeSync(descriptor);
  }
};
