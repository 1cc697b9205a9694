/** Could somebody else have written this file? Asked before a file of the user's is obeyed.
 *  Invariant: every folder, link and file on the way is judged, also behind links: it is ours or the superuser's, and
 *  nobody else can change it. A sticky folder may be open to others, since they cannot rename or remove what is ours.
 *  Elsewhere: folders that we make ourselves (private-folder.ts), files of a project, which are known by their hash
 *  (../trust). */

import { readFileSync, type Stats } from "node:fs";
import { lstat, readlink, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { refusalOf } from "./reasons.ts";

const STICKY = 0o1000;
const MOST_LINKS = 40;

const self = (): number => process.getuid?.() ?? -1;

export const octal = (mode: number): string => (mode & 0o7777).toString(8).padStart(4, "0");

/** Many systems give each user a group of the same number with nobody else in it; writable by that group is writable by
 *  the user. The superuser's group is no such group. */
const isOwnGroup = ({ gid, uid }: Stats): boolean => gid !== 0 && gid === uid && uid === self();

/** In a user namespace the superuser's own files show this owner, and nobody inside can become it. */
const isUnmapped = (uid: number): boolean => {
  if (uid !== 65_534) return false;
  try {
    return !/^\s*0\s+0\s+4294967295\s*$/.test(readFileSync("/proc/self/uid_map", "latin1"));
  } catch {
    return false;
  }
};

/** Why something could have been changed or exchanged by somebody else, or undefined. */
export const unsafeOwner = (path: string, stats: Stats): string | undefined => {
  if (stats.uid !== self() && stats.uid !== 0 && !isUnmapped(stats.uid))
    return `${path} belongs to another user (${stats.uid})`;
  if (stats.isSymbolicLink()) return undefined; // whose it is was asked; where it leads is asked next
  if (stats.isDirectory() && stats.mode & STICKY) return undefined;
  const others = stats.mode & 0o002 || (stats.mode & 0o020 && !isOwnGroup(stats));
  return others ? `${path} can be changed by others (mode ${octal(stats.mode)})` : undefined;
};

/** Why a file must not be obeyed, or undefined: also where there is none. */
export const tamperingRisk = async (path: string): Promise<string | undefined> => {
  if (process.getuid === undefined) return undefined; // a system without these owners and modes
  try {
    await stat(path); // what is not there needs no judging, whoever could put it there
    return await walk(resolve(path));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? undefined : `${path}: ${refusalOf(error).reason}`;
  }
};

const namesOf = (path: string): readonly string[] => path.split("/").filter((name) => name !== "" && name !== ".");

const walk = async (path: string): Promise<string | undefined> => {
  let [at, rest, links] = ["/", namesOf(path), 0];
  for (;;) {
    const stats = await lstat(at);
    const unsafe = unsafeOwner(at, stats);
    if (unsafe !== undefined) return unsafe;
    if (stats.isSymbolicLink()) {
      if (++links > MOST_LINKS) return `${path} leads through too many links`;
      const target = await readlink(at);
      rest = [...namesOf(target), ...rest];
      at = target.startsWith("/") ? "/" : dirname(at);
      continue;
    }
    const [name, ...others] = rest;
    if (name === undefined) return undefined;
    rest = others;
    at = name === ".." ? dirname(at) : join(at, name);
  }
};
