/** Which files below some folders may contain secrets?
 *  Invariant: bounded, nearest first. Links are not entered, but their targets are judged. What was not searched is
 *  reported, so that nobody takes it for harmless; a folder that cannot be listed for lack of resources is an error.
 *  Elsewhere: the names (../paths), excluding them from a walk (walk-limits.ts), covering them in the read-only
 *  sandbox (read-only-sandbox.ts). */

import type { Dirent } from "node:fs";
import { existingPath, listFolder, UncheckedPathError, unlessMissing } from "../files/index.ts";
import { isSecret } from "../paths/index.ts";

export type FoundSecret = {
  /** Absolute. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link";
  /** The target of a link: the file that may contain secrets. */
  readonly target?: string;
  /** It contains no secrets, but a rule names it. */
  readonly byRule?: true;
};

export type SecretWalk = { readonly found: readonly FoundSecret[]; readonly isWhole: boolean };

/** What is excluded in addition to secrets: settings in a home folder, and what rules name. */
export type KeptBack = {
  readonly isKey: (path: string) => boolean;
  readonly inside: (folder: string) => ((path: string) => boolean) | undefined;
};

export type WalkBounds = {
  readonly maxNames?: number; // default: 20,000
  readonly maxDepth?: number; // default: any
  readonly keptBack?: KeptBack; // default: secrets only
};

const MAX_NAMES = 20_000;
/** A link with a secret-looking name whose target contains no secrets. */
const SHOWS_WHICH = /[._-](?:example|sample|template|dist|defaults?)$/i;
/** Folders whose files have generated names. */
const NAMELESS = /\/\.git\/(?:objects|refs|logs|lfs)$/;
/** Folders without files of a user. */
const OF_THE_SYSTEM: readonly string[] = ["/proc", "/sys", "/dev"];
/** Large, and rarely with secrets, so they are searched last. */
const LAST: readonly string[] = ["node_modules", ".venv", "venv", "target", "vendor", ".cache", "dist", "build"];

/** Returns nothing if the folder may not be listed: then a program cannot walk it either. */
const entriesOf = (folder: string, most: number): Lookup<readonly Dirent[]> =>
  unlessTooLong(() => unlessMissing(folder, () => listFolder(folder, most)) ?? []);

/** No walk enters a link, so one that cannot be followed is only a name. */
const leadsTo = (path: string): Lookup<string | undefined> => {
  try {
    return unlessTooLong(() => existingPath(path));
  } catch (error) {
    if (error instanceof UncheckedPathError) return undefined;
    throw error;
  }
};

type Lookup<T> = T | typeof TOO_LONG;
const TOO_LONG = Symbol("the absolute path is too long for the system");

/** A program goes down folder by folder, so it gets to places whose absolute paths are too long to be looked up. */
const unlessTooLong = <T>(look: () => T): Lookup<T> => {
  try {
    return look();
  } catch (error) {
    if (error instanceof UncheckedPathError && error.code === "ENAMETOOLONG") return TOO_LONG;
    throw error;
  }
};

export const findSecrets = (folders: readonly string[], bounds: WalkBounds = {}): SecretWalk => {
  const { maxNames = MAX_NAMES, maxDepth = Number.POSITIVE_INFINITY, keptBack } = bounds;
  const isKey = keptBack?.isKey ?? isSecret;
  const found: FoundSecret[] = [];
  const queue = [...new Set(folders)].map((path) => ({ path, depth: 1 }));
  const last: { readonly path: string; readonly depth: number }[] = [];
  const seen = new Set<string>();
  let names = 0;
  let isWhole = true;
  for (let at = 0; at < queue.length || last.length > 0; at += 1) {
    const next = queue[at] ?? last.pop();
    if (!next || seen.has(next.path)) continue;
    seen.add(next.path);
    const isRuled = keptBack?.inside(next.path);
    const entries = entriesOf(next.path, maxNames - names);
    if (entries === TOO_LONG) {
      isWhole = false;
      continue;
    }
    for (const entry of entries) {
      names += 1;
      if (names > maxNames) return { found, isWhole: false };
      // A name in another encoding cannot be followed from here; a program can.
      if (entry.name.includes("\ufffd")) isWhole = false;
      const path = next.path.endsWith("/") ? next.path + entry.name : `${next.path}/${entry.name}`;
      if (entry.isSymbolicLink()) {
        const target = leadsTo(path);
        if (target === TOO_LONG) isWhole = false;
        else if (target !== undefined && (isKey(target) || (isKey(path) && !SHOWS_WHICH.test(target))))
          found.push({ path, kind: "link", target });
      } else if (isKey(path)) found.push({ path, kind: entry.isDirectory() ? "folder" : "file" });
      else if (isRuled?.(path)) found.push({ path, kind: entry.isDirectory() ? "folder" : "file", byRule: true });
      else if (entry.isDirectory() && next.depth < maxDepth && !NAMELESS.test(path) && !OF_THE_SYSTEM.includes(path))
        (LAST.includes(entry.name) ? last : queue).push({ path, depth: next.depth + 1 });
    }
  }
  return { found, isWhole };
};

type Towards = (folder: string) => ((path: string) => "under" | "towards" | undefined) | undefined;

/** Finds what rules name by path. It searches only along those paths, so it works in trees of any size. */
export const findPlaced = (folders: readonly string[], towards: Towards): SecretWalk => {
  const found: FoundSecret[] = [];
  const queue = new Set(folders); // folders that are added during the loop are visited last
  let names = 0;
  for (const folder of queue) {
    const leads = towards(folder);
    if (!leads) continue;
    const entries = entriesOf(folder, MAX_NAMES - names);
    if (entries === TOO_LONG) return { found, isWhole: false };
    for (const entry of entries) {
      names += 1;
      const path = folder.endsWith("/") ? folder + entry.name : `${folder}/${entry.name}`;
      const led = entry.isSymbolicLink() ? undefined : leads(path); // no walk enters a link
      if (names > MAX_NAMES || (led && entry.name.includes("\ufffd"))) return { found, isWhole: false };
      if (led === "under") found.push({ path, kind: entry.isDirectory() ? "folder" : "file", byRule: true });
      else if (led && entry.isDirectory()) queue.add(path);
    }
  }
  return { found, isWhole: true };
};
