/** What in a folder could run something or change what we do, as hashes? This is what a person trusts.
 *  Invariant: bytes are hashed and never interpreted. Links are recorded and never followed, except for those that lead git to its
 *  settings and hooks. If one part cannot be read completely, the whole is unreadable.
 *  Elsewhere: who trusted which hashes (store.ts), where git keeps its settings (git-places.ts), what settings of git include
 *  (included.ts), holding files (../files). */

import { createHash } from "node:crypto";
import { type Stats, statSync } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { existingPath, type Root, readBounded, UncheckedPathError, unlessMissing } from "../files/index.ts";
import type { Refused } from "../paths/index.ts";
import { withoutBranches } from "./git-config.ts";
import { gitPlaces, resolvePointer } from "./git-places.ts";
import { hooksPathsIn, includedPaths } from "./included.ts";

export type Configuration = {
  /** Name inside the folder → the hash of its content. */
  readonly entries: Readonly<Record<string, string>>;
  /** One hash over all entries: what the user agreed to. */
  readonly fingerprint: string;
};

const SETTINGS = ["settings.json", "settings.local.json", "agents", "skills", "hooks", "commands"];

/** Files and whole folders, relative to the trusted folder. */
const EXECUTABLE: readonly string[] = [
  ...SETTINGS.map((name) => `.prefork/${name}`),
  ...SETTINGS.map((name) => `.claude/${name}`),
  ".prefork/extensions",
  ".agents/skills",
  ".mcp.json",
  ".envrc",
  ".git/config",
  ".git/config.worktree",
  ".git/hooks",
];

const GIT_SETTINGS: readonly string[] = [".git/config", ".git/config.worktree"];

const MAX_FILES = 2_000;
const MAX_BYTES = 32 * 1024 * 1024;
const MAX_DEPTH = 12;
/** git gives up after ten nested includes. */
const MAX_INCLUDED = { depth: 10, files: 200 };
/** Prefix of the entries of files that git's settings include, wherever they are. */
const INCLUDED = "included";

export const isIncluded = (entry: string | undefined): boolean => entry?.startsWith(`${INCLUDED} `) === true;

const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Whether these are the bytes that an entry was computed from. Used by code that reads the file after it was hashed. That
 *  git's settings include a file does not mean that anything in it may run. */
export const isEntryOf = (entry: string | undefined, bytes: Uint8Array): boolean =>
  entry === `file ${sha256(bytes)}` || entry === `program ${sha256(bytes)}`;

export const fingerprintOf = (entries: Readonly<Record<string, string>>): string =>
  sha256(JSON.stringify(Object.entries(entries).sort(([a], [b]) => (a < b ? -1 : 1))));

/** An expected problem on the walk through a folder; ends the walk. */
class Unreadable extends Error {}

class Reading {
  /** A map, because a file may be named like a property that every object has. */
  readonly entries = new Map<string, string>();
  readonly #root: Root;
  /** Paths as git opens them. */
  readonly #included = new Set<string>();
  /** Folders of hooks that settings name. */
  readonly #hooksPaths = new Set<string>();
  #files = 0;
  #bytes = 0;

  constructor(root: Root) {
    this.#root = root;
  }

  async add(name: string, depth = 0): Promise<void> {
    const path = join(this.#root.path, name);
    const looked = await this.#root.look(path);
    if (!looked.ok) {
      // A link or a file where a folder was expected: we do not reach anything below it either.
      if (depth > 0) throw new Unreadable(`${name}: ${looked.reason}`);
      this.entries.set(name, "out of reach");
      if (GIT_SETTINGS.includes(name)) await this.#addIncluded(path);
      return;
    }
    const { facts } = looked;
    if (facts === undefined || /^\.git\/hooks\/[^/]+\.sample$/.test(name)) return;
    if (++this.#files > MAX_FILES) throw new Unreadable(`over ${MAX_FILES} files of configuration`);
    if (facts.kind === "folder") return this.#addFolder(name, depth);
    if (facts.kind === "link") {
      const link = await this.#root.linkText(path);
      if (!link.ok) throw new Unreadable(`${name}: ${link.reason}`);
      this.entries.set(name, `link ${sha256(link.text)}`);
      if (GIT_SETTINGS.includes(name)) await this.#addIncluded(path);
      if (name.startsWith(".git/hooks/")) await this.#addHook(path);
      return;
    }
    const read = await this.#root.read(path, { maxBytes: MAX_BYTES - this.#bytes });
    if (!read.ok) throw new Unreadable(`${name}: ${read.reason}`);
    this.#bytes += read.bytes.length;
    const bytes = name === ".git/config" ? withoutBranches(read.bytes.toString("latin1")) : read.bytes;
    this.entries.set(name, `${facts.mode & 0o111 ? "program" : "file"} ${sha256(bytes)}`);
    if (GIT_SETTINGS.includes(name)) await this.#addAllIncluded(path, read.bytes);
  }

  /** Settings and hooks outside the usual location, for this work tree or for all. */
  async addElsewhere(): Promise<void> {
    const places = await gitPlaces(this.#root.path);
    if (places === undefined) return;
    if (places === "unreadable") throw new Unreadable(".git: where it leads is unknown");
    const { top, own, common, isUsual } = places;
    if (!isUsual)
      for (const file of [join(common, "config"), join(own, "config.worktree")]) await this.#addIncluded(file);
    const usual = await lstat(join(common, "hooks")).catch(() => undefined);
    if (!isUsual || !usual?.isDirectory()) await this.#addHooks(join(common, "hooks"));
    for (const path of this.#hooksPaths) {
      const target = resolvePointer(top, path);
      if (target === undefined) throw new Unreadable("core.hooksPath: where it leads is unknown");
      await this.#addHooks(target);
    }
  }

  async #addHooks(path: string): Promise<void> {
    const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ENOTDIR") return []; // counts as a change once it exists
      throw new Unreadable(`${path}: cannot be read`);
    });
    for (const name of names) if (!name.endsWith(".sample")) await this.#addHook(join(path, name));
  }

  async #addHook(path: string): Promise<void> {
    const found = this.#find(path);
    if (found === undefined || found.facts.isDirectory()) return; // git runs no folder
    const { real, facts } = found;
    if (++this.#files > MAX_FILES) throw new Unreadable(`over ${MAX_FILES} files of configuration`);
    const bytes = await readBounded(real, MAX_BYTES - this.#bytes);
    const name = this.#nameOf(path);
    if (bytes === undefined) throw new Unreadable(`${name}: is not a regular file`);
    this.#bytes += bytes.length;
    const target = path === real ? name : `${name} -> ${this.#nameOf(real)}`;
    this.#enter(target, `${INCLUDED} ${facts.mode & 0o111 ? "program" : "file"} ${sha256(bytes)}`);
  }

  /** What is at a path that git opens. Undefined if nothing is there. A path that git could get to and we could not, or
   *  that means another file to git, makes the whole unreadable. */
  #find(path: string): { readonly real: string; readonly facts: Stats } | undefined {
    try {
      const real = existingPath(path);
      const facts = real === undefined ? undefined : unlessMissing(real, () => statSync(real));
      return real === undefined || facts === undefined ? undefined : { real, facts };
    } catch (error) {
      if (error instanceof UncheckedPathError) throw new Unreadable(error.message);
      throw error;
    }
  }

  /** The first entry of a name stays. */
  #enter(name: string, entry: string): void {
    if (!this.entries.has(name)) this.entries.set(name, entry);
  }

  #nameOf(path: string): string {
    const inside = `${this.#root.path}/`;
    return path.startsWith(inside) ? path.slice(inside.length) : path;
  }

  async #addAllIncluded(file: string, settings: Uint8Array, depth = 0): Promise<void> {
    const paths = await includedPaths(file, settings);
    const hooks = await hooksPathsIn(settings);
    if (paths === undefined || hooks === undefined) throw new Unreadable(`${file}: what it includes is unknown`);
    for (const path of hooks) this.#hooksPaths.add(path);
    for (const path of paths) await this.#addIncluded(path, depth + 1);
  }

  /** A file that git reaches through links, or through an include at depth 1 or more. Links are followed as git follows them; a
   *  missing file counts as a change once it exists. */
  async #addIncluded(path: string, depth = 0): Promise<void> {
    if (this.#included.has(path)) return;
    this.#included.add(path);
    if (depth > MAX_INCLUDED.depth || this.#included.size > MAX_INCLUDED.files)
      throw new Unreadable(`${path}: too many settings of git that include each other`);
    const found = this.#find(path);
    if (found === undefined || found.real === "/dev/null") return;
    const { real, facts } = found;
    const name = this.#nameOf(real);
    if (!facts.isFile() || facts.size > MAX_BYTES - this.#bytes) throw new Unreadable(`${name}: is not a regular file`);
    const bytes = await readBounded(real, MAX_BYTES - this.#bytes);
    if (bytes === undefined) throw new Unreadable(`${name}: cannot be read`);
    this.#bytes += bytes.length;
    const counted = depth === 0 ? withoutBranches(bytes.toString("latin1")) : bytes;
    this.#enter(name, `${INCLUDED} ${sha256(counted)}`);
    await this.#addAllIncluded(path, bytes, depth);
  }

  async #addFolder(name: string, depth: number): Promise<void> {
    if (depth >= MAX_DEPTH) throw new Unreadable(`${name}: folders are nested too deeply`);
    const listed = await this.#root.list(join(this.#root.path, name));
    if (!listed.ok) throw new Unreadable(`${name}: ${listed.reason}`);
    for (const entry of listed.entries) await this.add(`${name}/${entry.name}`, depth + 1);
  }
}

/** Reads the executable configuration of an open folder. */
export const readConfiguration = async (
  root: Root,
): Promise<{ readonly ok: true; readonly configuration: Configuration } | Refused> => {
  const reading = new Reading(root);
  try {
    for (const name of EXECUTABLE) await reading.add(name);
    await reading.addElsewhere();
  } catch (error) {
    if (error instanceof Unreadable) return { ok: false, reason: error.message };
    throw error;
  }
  const entries = Object.fromEntries(reading.entries);
  return { ok: true, configuration: { entries, fingerprint: fingerprintOf(entries) } };
};

/** The entry of a name, which may also be a property of every object. */
export const entryOf = (entries: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(entries, name) ? entries[name] : undefined;

/** Names whose entries differ, in either direction. */
export const changedNames = (
  before: Readonly<Record<string, string>>,
  now: Readonly<Record<string, string>>,
): readonly string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(now)])]
    .filter((name) => entryOf(before, name) !== entryOf(now, name))
    .sort();
