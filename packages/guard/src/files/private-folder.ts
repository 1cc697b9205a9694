/** A folder of the user that nobody else can read, change or put a link into: where state is kept.
 *  Invariant: the folder is ours with mode 0700, every folder above it can be changed only by us or the superuser, and it is
 *  not a link. Otherwise it is refused, and never silently repaired. The same checks tell whether somebody else could have
 *  written one of the user's files.
 *  Elsewhere: what is kept there (../trust). */

import { readFileSync, type Stats } from "node:fs";
import { lstat, mkdir, open, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { Refused } from "../paths/index.ts";
import { refusalOf, refuse } from "./folder.ts";
import { openRoot, type Root, type RootOptions } from "./root.ts";

const currentUser = (): number => process.getuid?.() ?? -1;

/** Why somebody else could replace a folder above ours, or undefined. */
const parentProblem = (path: string, stats: Stats): string | undefined =>
  ownershipProblem(path, stats) ??
  (stats.isDirectory() || stats.isSymbolicLink() ? undefined : `${path} is not a folder`);

const foldersTo = (path: string): readonly string[] => (path === "/" ? ["/"] : [...foldersTo(dirname(path)), path]);

type FolderState =
  | { readonly kind: "there"; readonly path: string; readonly mode: number }
  | { readonly kind: "missing"; readonly path: string; readonly make: readonly string[] };

/** Inspects without changing anything. */
const inspect = async (folder: string): Promise<FolderState | Refused> => {
  const missing: string[] = [];
  let given = dirname(resolve(folder));
  let above: string;
  for (;;) {
    try {
      above = await realpath(given);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") return refusalOf(error);
      // A dangling link is not the same as a missing folder: creating folders would go through it.
      if ((await lstat(given).catch(() => undefined)) !== undefined) return refuse(`${given} is a dangling link`);
      missing.unshift(basename(given));
      given = dirname(given);
    }
  }
  for (const path of new Set([...foldersTo(given), ...foldersTo(above)])) {
    const unsafe = parentProblem(path, await lstat(path));
    if (unsafe !== undefined) return refuse(unsafe);
  }
  const path = join(above, ...missing, basename(resolve(folder)));
  const stats = missing.length > 0 ? undefined : await lstat(path).catch(undefinedIfAbsent);
  if (stats === undefined) return { kind: "missing", path, make: foldersTo(path).slice(foldersTo(above).length) };
  if (stats.isSymbolicLink()) return refuse(`${path} is a link`);
  if (!stats.isDirectory()) return refuse(`${path} is not a folder`);
  if (stats.uid !== currentUser()) return refuse(`${path} belongs to another user (${stats.uid})`);
  if (stats.mode & 0o022) return refuse(`${path} can be changed by others (mode ${octal(stats.mode)})`);
  return { kind: "there", path, mode: stats.mode & 0o777 };
};

/** Only ENOENT means that the folder is missing. */
const undefinedIfAbsent = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== "ENOENT") throw error;
};

export type PrivateFolderState =
  | { readonly ok: true; readonly path: string; readonly mode: number | undefined }
  | Refused;

/** What `openPrivateFolder` would find; `mode` is undefined if the folder does not exist yet. */
export const inspectPrivateFolder = async (folder: string): Promise<PrivateFolderState> => {
  const found = await inspect(folder).catch(refusalOf);
  if (!("kind" in found)) return found;
  return { ok: true, path: found.path, mode: found.kind === "there" ? found.mode : undefined };
};

/** Opens the folder, and creates it with mode 0700 if it is missing. */
export const openPrivateFolder = async (
  folder: string,
  { drafts }: Pick<RootOptions, "drafts"> = {},
): Promise<{ readonly ok: true; readonly root: Root } | Refused> => {
  try {
    const found = await inspect(folder);
    if (!("kind" in found)) return found;
    if (found.kind === "missing") for (const path of found.make) await makeOrKeep(path);
    const rechecked = await inspect(folder);
    if (!("kind" in rechecked)) return rechecked;
    if (rechecked.kind === "missing") return refuse(`${rechecked.path} was removed meanwhile`);
    await using handle = await open(rechecked.path, "r");
    if (rechecked.mode !== 0o700) await handle.chmod(0o700);
    return { ok: true, root: await openRoot(rechecked.path, { protect: false, ...(drafts ? { drafts } : {}) }) };
  } catch (error) {
    return refusalOf(error);
  }
};

/** Another process of ours may create the same folder at the same time; the result is checked afterwards. */
const makeOrKeep = (path: string): Promise<void> =>
  mkdir(path, { mode: 0o700 }).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    },
  );

// --- could somebody else have written this file? -----------------------------------------------------------------------
// Every folder, link and file on the path is checked, also behind links: it belongs to us or the superuser, and nobody else
// can change it. A sticky folder may be writable by others, because they cannot rename or remove our files in it. Files of
// a project are checked by their hash instead (../trust).

const STICKY = 0o1000;
const MAX_LINKS = 40;

export const octal = (mode: number): string => (mode & 0o7777).toString(8).padStart(4, "0");

/** Many systems give each user a private group with the same id. A file writable by that group is writable only by the user.
 *  The superuser's group does not count. */
const isOwnGroup = ({ gid, uid }: Stats): boolean => gid !== 0 && gid === uid && uid === currentUser();

/** In a user namespace, the superuser's files show this owner, and nobody inside can become it. */
const isUnmapped = (uid: number): boolean => {
  if (uid !== 65_534) return false;
  try {
    return !/^\s*0\s+0\s+4294967295\s*$/.test(readFileSync("/proc/self/uid_map", "latin1"));
  } catch {
    return false;
  }
};

/** Why somebody else could have changed or replaced this, or undefined. */
export const ownershipProblem = (path: string, stats: Stats): string | undefined => {
  if (stats.uid !== currentUser() && stats.uid !== 0 && !isUnmapped(stats.uid))
    return `${path} belongs to another user (${stats.uid})`;
  if (stats.isSymbolicLink()) return undefined; // its owner is fine; its target is checked next
  if (stats.isDirectory() && stats.mode & STICKY) return undefined;
  const others = stats.mode & 0o002 || (stats.mode & 0o020 && !isOwnGroup(stats));
  return others ? `${path} can be changed by others (mode ${octal(stats.mode)})` : undefined;
};

/** Why a settings file must not be used, or undefined; also undefined if there is no file. */
export const tamperingRisk = async (path: string): Promise<string | undefined> => {
  if (process.getuid === undefined) return undefined; // this system has no such owners and modes
  try {
    await stat(path); // a missing file needs no check, no matter who could create it
    return await riskOnPath(resolve(path));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? undefined : `${path}: ${refusalOf(error).reason}`;
  }
};

const namesOf = (path: string): readonly string[] => path.split("/").filter((name) => name !== "" && name !== ".");

const riskOnPath = async (path: string): Promise<string | undefined> => {
  let [at, rest, links] = ["/", namesOf(path), 0];
  for (;;) {
    const stats = await lstat(at);
    const unsafe = ownershipProblem(at, stats);
    if (unsafe !== undefined) return unsafe;
    if (stats.isSymbolicLink()) {
      if (++links > MAX_LINKS) return `${path} leads through too many links`;
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
