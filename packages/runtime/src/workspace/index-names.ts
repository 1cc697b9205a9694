/** Which names does the index of a checkout hold, and can git be let loose on them?
 *  Invariant: git checks a name when it is added and not when it is read, so an index that somebody else wrote may name
 *  files outside, or a key by a spelling that no attribute knows. Names are bytes, held as latin1. A plain index is read
 *  here; every other form is told by git.
 *  Elsewhere: attributes of files (git-attributes.ts), git's own files (git-links.ts). */

import { lstatSync } from "node:fs";
import { join } from "node:path";
import { askGit, hasNoRepository } from "./ask-git.ts";
import { indexOf, plainCheckout } from "./plain-checkout.ts";

export type IndexEntry = { readonly mode: number; readonly name: string };

/** `entries` is undefined where neither we nor git can read them. */
export type IndexNames = { readonly top: string; readonly entries: readonly IndexEntry[] | undefined };

const MOST_BYTES = 64_000_000;

/** Undefined where there is no checkout. */
export const indexNames = (folder: string): IndexNames | undefined => {
  const plain = plainCheckout(folder);
  const index = plain === undefined ? undefined : indexOf(plain);
  if (plain !== undefined && index === "none") return { top: plain.top, entries: [] };
  const entries = index === undefined || index === "none" ? undefined : readIndex(index);
  if (plain !== undefined && entries !== undefined) return { top: plain.top, entries };
  const asked = askGit({ folder, words: ["rev-parse", "--show-toplevel"] });
  if (asked === undefined || hasNoRepository(asked)) return undefined;
  const top = asked.text.replace(/\n$/, "");
  if (asked.failed || top === "") return undefined; // a repository without files
  const told = askGit({ folder: top, words: ["ls-files", "-s", "-z", "--full-name"], mostBytes: MOST_BYTES });
  return { top, entries: told === undefined || told.failed ? undefined : readListed(told.text) };
};

/** `MODE NUMBER STAGE<tab>NAME`, one after the other. */
const readListed = (text: string): readonly IndexEntry[] =>
  text
    .split("\0")
    .filter((line) => line !== "")
    .map((line) => ({
      mode: Number.parseInt(line.slice(0, 6), 8),
      name: Buffer.from(line.slice(line.indexOf("\t") + 1)).toString("latin1"),
    }));

const HEADER = 12;
/** Times, numbers, the mode, owner, size and the number of the content stand before the flags, and those before a name. */
const FLAGS = 60;
const MODE = 24;
const HAS_MORE_FLAGS = 0x4000;
const LONGEST = 0xfff;
const HASH = 20;

/** Version 2 or 3, whole and in one file. Undefined for anything else, and for anything odd about it. */
export const readIndex = (index: Buffer): readonly IndexEntry[] | undefined => {
  if (index.length < HEADER + HASH || index.toString("latin1", 0, 4) !== "DIRC") return undefined;
  const [version, count] = [index.readUInt32BE(4), index.readUInt32BE(8)];
  if (version !== 2 && version !== 3) return undefined;
  const entries: IndexEntry[] = [];
  let at = HEADER;
  for (let left = count; left > 0; left -= 1) {
    if (at + FLAGS + 4 > index.length) return undefined;
    const flags = index.readUInt16BE(at + FLAGS);
    const from = at + FLAGS + ((flags & HAS_MORE_FLAGS) === 0 ? 2 : 4);
    const to = index.indexOf(0, from);
    const length = flags & LONGEST;
    if (to < 0 || (length < LONGEST && to - from !== length)) return undefined;
    entries.push({ mode: index.readUInt32BE(at + MODE), name: index.toString("latin1", from, to) });
    at += (to - at + 8) & ~7;
  }
  return hasPlainEnd(index, at) ? entries : undefined;
};

/** Parts that follow the names: those in small letters change what the names mean. */
const hasPlainEnd = (index: Buffer, from: number): boolean => {
  let at = from;
  while (at + 8 <= index.length - HASH) {
    if (!/^[A-Z]/.test(index.toString("latin1", at, at + 4))) return false;
    at += 8 + index.readUInt32BE(at + 4);
  }
  return at === index.length - HASH;
};

const ODD_PART = /^(?:\.{0,2}|\.git)$/i;

const isOdd = ({ name }: IndexEntry): boolean => name.split("/").some((part) => ODD_PART.test(part));

/** All folders on the way to the names. */
export const foldersOf = (entries: readonly IndexEntry[]): ReadonlySet<string> => {
  const folders = new Set<string>();
  for (const { name } of entries)
    for (let at = name.lastIndexOf("/"); at > 0; at = name.lastIndexOf("/", at - 1)) {
      const folder = name.slice(0, at);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  return folders;
};

/** The place of a name below the top. */
export const asBytes = (top: string, name: string): Buffer =>
  Buffer.concat([Buffer.from(`${top}/`), Buffer.from(name, "latin1")]);

const isLink = (path: Buffer): boolean => {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  } catch {
    return false; // a folder of it is no folder: git does not get there either
  }
};

const shown = (name: string): string => JSON.stringify(Buffer.from(name, "latin1").toString());

/** Why git must not read the files that the index names. `verb`: only a search goes through folders that are links. */
export const indexProblem = (verb: string, folder: string): string | undefined => {
  const index = indexNames(folder);
  if (index === undefined) return undefined;
  const { top, entries } = index;
  if (entries === undefined) return `git ${verb}: the repository's index cannot be read`;
  const odd = entries.find(isOdd);
  if (odd !== undefined) return `git ${verb}: the repository's index names ${shown(odd.name)}, which is no path in it`;
  if (verb !== "grep") return undefined;
  const link = [...foldersOf(entries)].find((name) => isLink(asBytes(top, name)));
  return link === undefined
    ? undefined
    : `git grep would read through ${shown(link)}, which is a link now; use grep -r for other folders`;
};

const GITLINK = 0o160000;

/** The repositories that stand in this one as a commit of theirs: git looks what their heads are. */
export const nestedRepositories = (folder: string): readonly string[] | undefined => {
  const plain = plainCheckout(folder);
  const index = plain === undefined ? undefined : indexOf(plain);
  if (index === "none" || (index !== undefined && !index.includes(MODE_BYTES))) return [];
  const names = indexNames(folder);
  if (names === undefined) return [];
  return names.entries
    ?.filter(({ mode }) => mode === GITLINK)
    .map(({ name }) => join(names.top, Buffer.from(name, "latin1").toString(), ".git"));
};

const MODE_BYTES = Buffer.from([0, 0, GITLINK >> 8, GITLINK & 0xff]);
