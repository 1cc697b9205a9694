/** Where does a path lead, is there nothing, or could it not be checked?
 *  Invariant: only an error that every program would get too means "nothing is there". Every other error, such as no free
 *  file descriptor, too many links, or a name that is too long only in its absolute form, is thrown: what was not
 *  checked is not harmless. So is a link into /proc: what it means depends on the process that follows it.
 *  Elsewhere: who asks (../run, ../git), turning the error into a refusal (../run/run-plan.ts). */

import { lstatSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";

/** What is at a path is unknown. The message says which path and why. */
export class UncheckedPathError extends Error {
  override readonly name = "UncheckedPathError";
  readonly code: string;

  constructor(path: string, code: string, options?: ErrorOptions) {
    super(`${shortened(path)} ${PROBLEMS[code] ?? `could not be checked (${code})`}`, options);
    this.code = code;
  }
}

const MAX_SHOWN = 200;

const shortened = (path: string): string => (path.length <= MAX_SHOWN ? path : `${path.slice(0, MAX_SHOWN)}…`);

const INTO_SYSTEM = "SYSTEM_LINK";
const CHANGED = "CHANGED";
const ENCODING = "ENCODING";
/** Stands for bytes that are not valid text, so the path would name another file. */
const UNREADABLE = "\ufffd";

const PROBLEMS: Readonly<Record<string, string>> = {
  [INTO_SYSTEM]:
    "leads to what may not be read: it goes through a link into /proc, /sys or /dev, which leads each process elsewhere",
  [ENCODING]: "leads to a name that is not valid text",
  [CHANGED]: "changed while it was checked",
};

/** Most file systems allow names of 255 bytes, a few allow 1,024. */
const MAX_NAME_BYTES = 255;
const MAX_NAME_BYTES_ANYWHERE = 1_024;
/** The system takes no longer path, with the zero byte at its end. */
const MAX_PATH_BYTES = 4_095;

/** A program gets the same error: it does not exist, or the system does not let this user see it, wherever the program
 *  starts from. The last one is a name with a zero byte in it, which Node refuses and no file has. */
const NOTHING: readonly string[] = ["ENOENT", "ENOTDIR", "EACCES", "EPERM", "ERR_INVALID_ARG_VALUE"];

const isNothing = (code: string, path: string): boolean =>
  NOTHING.includes(code) || (code === "ENAMETOOLONG" && hasImpossibleName(path));

/** Is a single name too long, rather than the whole path? A program may open the same file by a shorter path. */
const hasImpossibleName = (path: string): boolean => {
  const limit = Buffer.byteLength(path) > MAX_PATH_BYTES ? MAX_NAME_BYTES_ANYWHERE : MAX_NAME_BYTES;
  return path.split("/").some((name) => Buffer.byteLength(name) > limit);
};

/** Undefined if nothing is there. Throws if that is unknown. */
export const unlessMissing = <T>(path: string, look: () => T): T | undefined => {
  try {
    return look();
  } catch (error) {
    if (error instanceof UncheckedPathError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (typeof code !== "string") throw error;
    if (isNothing(code, path)) return undefined;
    throw new UncheckedPathError(path, code, { cause: error });
  }
};

/** The canonical path; undefined if nothing is there. Throws if that is unknown. */
export const existingPath = (written: string): string | undefined => {
  const path = written.replace(/\/(?:\.?\/)+/g, "/"); // listed names begin with `./`, which changes nothing
  const seen = canonicalPath(path);
  if (seen?.includes(UNREADABLE)) throw new UncheckedPathError(path, ENCODING);
  // Without a link on the way it means the same to every process.
  if (seen === path || isKnownName(path)) return seen;
  const followed = followLinks(path);
  if (seen === undefined) return followed;
  if (followed === undefined || folded(followed) !== folded(seen)) throw new UncheckedPathError(path, CHANGED);
  return seen;
};

/** Links of the system that are the same for every process, or that are read as such: a program's own input. */
const isKnownName = (path: string): boolean =>
  /^\/(?:dev\/(?:null|stdin|fd\/0)|proc\/mounts|sys\/.*)$/s.test(path) && !/\/\.\.(?:\/|$)/.test(path);

/** Some systems return a path with the letters that the disk has. */
const folded = (path: string): string => path.normalize("NFC").toLowerCase();

/** The canonical path, or the path itself if nothing is there. Throws if that is unknown. */
export const realPath = (path: string): string => existingPath(path) ?? path;

/** Also through links. Throws if that is unknown. */
export const isFolder = (path: string): boolean => {
  const real = existingPath(path);
  return real !== undefined && (unlessMissing(real, () => statSync(real).isDirectory()) ?? false);
};

/** As this process sees it. Undefined if the kernel does not tell: it follows 40 links, counted from where a process
 *  stands, so a program may get further than we do. */
const canonicalPath = (path: string): string | undefined => {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
};

/** More than the kernel follows from any folder. */
const MAX_LINKS = 200;
/** Links can lead to long paths of other links. */
const MAX_NAMES_LEFT = 5_000;

/** Follows a path name by name, as any process would. Undefined if nothing is there. */
const followLinks = (path: string): string | undefined => {
  let place = "/";
  let links = 0;
  const seen = new Set<string>();
  const names = path.split("/").reverse();
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      place = dirname(place);
      continue;
    }
    const next = place === "/" ? `/${name}` : `${place}/${name}`;
    if (next === "/dev/null" && names.length === 0) return next;
    const facts = unlessMissing(next, () => lstatSync(next, { throwIfNoEntry: false }));
    if (facts === undefined) return undefined;
    // /proc may be mounted elsewhere too. Its own links have no length, and every other link has one.
    const isOfProcess = facts.isSymbolicLink() && facts.size === 0 && !isOfSystem(next);
    if (isOfProcess || (links > 0 && isOfSystem(next))) throw new UncheckedPathError(path, INTO_SYSTEM);
    if (facts.isSymbolicLink()) {
      links += 1;
      if (links > MAX_LINKS || names.length > MAX_NAMES_LEFT) throw new UncheckedPathError(path, "ELOOP");
      const left = [next, ...names].join("\0");
      if (seen.has(left)) return undefined; // it leads to itself, for every process
      seen.add(left);
      const target = readlinkSync(next);
      if (target.includes(UNREADABLE)) throw new UncheckedPathError(path, ENCODING);
      if (target.startsWith("/")) place = "/";
      names.push(...target.split("/").reverse());
    } else {
      place = next;
      if (!facts.isDirectory() && names.some((more) => more !== "")) return undefined;
    }
  }
  return place;
};

const isOfSystem = (path: string): boolean => /^\/(?:proc|sys|dev)(?:\/|$)/.test(path);
