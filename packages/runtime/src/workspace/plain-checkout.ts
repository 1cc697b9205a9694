/** What can be learned about a checkout without starting git. Starting it three times before every `git diff` took longer
 *  than the diff.
 *  Invariant: only the plain form gets an answer (a folder `.git` that git itself would take for one, settings that name
 *  no other place, one index of version 2 or 3). For every other form the answer is undefined, and git is asked: it passes
 *  over a broken one and goes on above.
 *  Elsewhere: asking git (ask-git.ts), what is done with the answer (git-attributes.ts). */

import { accessSync, constants, existsSync, lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { readPlainFile } from "./plain-file.ts";
import { canonical } from "./reached.ts";

export type Checkout = { readonly top: string; readonly git: string };

const MOST_BYTES = 64_000_000;

/** The checkout that git finds from `folder`. */
export const plainCheckout = (folder: string): Checkout | undefined => {
  let top = canonical(folder);
  while (kindOf(join(top, ".git")) === "none") {
    if (isBare(top) || dirname(top) === top) return undefined;
    top = dirname(top);
  }
  const git = join(top, ".git");
  const isPlain = kindOf(git) === "folder" && isSound(git) && kindOf(join(git, "commondir")) === "none";
  const settings = isPlain ? contentOf(join(git, "config"))?.toString("latin1") : undefined;
  return settings === undefined || SPECIAL.test(settings) || !hasKnownFormat(settings) ? undefined : { top, git };
};

const SPECIAL = /worktree|include|extensions/i;

const hasKnownFormat = (settings: string): boolean =>
  [...settings.matchAll(/repositoryformatversion(.*)/gi)].every(([, value = ""]) => /^\s*=\s*[01]\s*$/.test(value));

/** What git wants of a folder before it takes it for its own. */
const isSound = (git: string): boolean => {
  const head = contentOf(join(git, "HEAD"))?.toString("latin1") ?? "";
  if (!/^(?:ref: refs\/\S+|[0-9a-f]{40}|[0-9a-f]{64})\n?$/.test(head)) return false;
  return ["objects", "refs"].every((name) => kindOf(join(git, name)) === "folder" && canEnter(join(git, name)));
};

const canEnter = (folder: string): boolean => {
  try {
    accessSync(folder, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** The bytes of the index; undefined where they cannot be had. */
export const indexOf = ({ git }: Pick<Checkout, "git">): Buffer | "none" | undefined =>
  kindOf(join(git, "index")) === "none" ? "none" : contentOf(join(git, "index"));

/** May the index keep a file of this name, in whatever folder? Where it does not, no question is left. */
export const indexMayKeep = ({ git }: Pick<Checkout, "git">, name: string): boolean => {
  const index = indexOf({ git });
  if (index === "none") return false;
  if (index === undefined || index.length < 12 || index.toString("latin1", 0, 4) !== "DIRC") return true;
  const isWhole = index.readUInt32BE(4) <= 3 && !index.includes("sdir"); // later versions shorten names; a sparse one lacks some
  return !isWhole || isSplit(git) || index.includes(name);
};

const isSplit = (git: string): boolean => {
  try {
    return readdirSync(git).some((name) => name.startsWith("sharedindex."));
  } catch {
    return true;
  }
};

const isBare = (folder: string): boolean =>
  existsSync(join(folder, "HEAD")) && existsSync(join(folder, "objects")) && existsSync(join(folder, "refs"));

/** `other` for whatever is neither, and for what cannot be looked at: then git is asked. */
const kindOf = (path: string): "none" | "folder" | "file" | "other" => {
  try {
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts === undefined) return "none";
    if (facts.isDirectory()) return "folder";
    return facts.isFile() ? "file" : "other";
  } catch {
    return "other";
  }
};

const contentOf = (path: string): Buffer | undefined => {
  const file = kindOf(path) === "file" ? readPlainFile(path, MOST_BYTES) : "missing";
  return typeof file === "string" ? undefined : file;
};
