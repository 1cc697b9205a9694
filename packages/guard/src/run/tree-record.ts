/** The contents of a tree as data: every name with its kind, permissions, owner, times and, within limits, its bytes.
 *  Invariant: links are recorded and never followed; names are bytes. The walk holds folders, so a swap in the
 *  meantime cannot lead it elsewhere. A second record sees everything the first one saw, whatever was added or closed
 *  to us since.
 *  Elsewhere: comparing two records (audit.ts), restoring (revert.ts). */

import { type BigIntStats, constants } from "node:fs";
import { open, readdir, readlink } from "node:fs/promises";
import { type Folder, isSame, type Kind, kindOf } from "../files/index.ts";

export type Recorded = {
  /** The names from the watched folder down. */
  readonly names: readonly Buffer[];
  readonly kind: Kind;
  readonly stats: BigIntStats;
  /** The bytes of a file or the text of a link; undefined if the limit was exceeded. */
  readonly content: Buffer | undefined;
  /** A folder that may be written in: its name is recorded, its contents are not. */
  readonly isAllowed?: true;
};

/** By path, as bytes. A folder comes before its contents. */
export type TreeRecord = ReadonlyMap<string, Recorded>;

/** An open tree, with its recorded contents. */
export type RecordedTree = { readonly folder: Folder; readonly stats: BigIntStats; readonly record: TreeRecord };

export type RecordBounds = {
  readonly maxFiles: number;
  /** How many bytes to keep in total. 0: no contents, only what the kernel reports about each name. */
  readonly maxBytes: number;
  /** Folders that are not entered, identified by inode and not by name. */
  readonly except: readonly BigIntStats[];
  /** Paths, as bytes, that are skipped. */
  readonly exclude?: (key: string) => boolean;
  /** An earlier record of the same tree. Its names are recorded even beyond the limit, and if we have lost access to
   *  one of our folders since then, it is opened while we read it. */
  readonly before?: TreeRecord;
};

/** The limit on names was exceeded: nothing can be said about names that were not read. */
export class TooManyFiles extends Error {
  override readonly name = "TooManyFiles";
}

const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** Files of one folder that are read at the same time. */
const AT_ONCE = 16;

/** The permissions that the owner needs to list a folder and read its entries. */
const LOOK_IN = 0o500;

export const rightsOf = ({ mode }: Pick<BigIntStats, "mode">): number => Number(mode) & 0o7777;

export const isOurs = ({ uid }: Pick<BigIntStats, "uid">): boolean => Number(uid) === process.geteuid?.();

/** A folder that we own but can no longer read. */
export const isClosedToUs = (stats: BigIntStats): boolean => isOurs(stats) && (rightsOf(stats) & LOOK_IN) !== LOOK_IN;

/** Names that programs look for come first, so that no number of others can hide them. */
const isHidden = (name: Buffer): boolean => name[0] === 0x2e;

export const keyOf = (names: readonly Buffer[]): string => names.map((name) => name.toString("latin1")).join("/");

class Recording {
  readonly found = new Map<string, Recorded>();
  readonly #bounds: RecordBounds;
  #bytesLeft: number;
  isWhole = true;
  /** Why a second record is incomplete. */
  incomplete: string | undefined;

  constructor(bounds: RecordBounds) {
    this.#bounds = bounds;
    this.#bytesLeft = bounds.maxBytes;
  }

  async folder(folder: Folder, names: readonly Buffer[]): Promise<void> {
    const { exclude } = this.#bounds;
    const all = await readdir(folder.at("."), { encoding: "buffer" });
    const within = exclude ? all.filter((name) => !exclude(keyOf([...names, name]))) : all;
    const listed = [...within.filter(isHidden), ...within.filter((name) => !isHidden(name))];
    for (let at = 0; at < listed.length; at += AT_ONCE)
      await Promise.all(listed.slice(at, at + AT_ONCE).map((name) => this.#name(folder, [...names, name])));
    for (const path of listed.map((name) => [...names, name])) {
      const found = this.found.get(keyOf(path));
      if (found?.kind === "folder" && !found.isAllowed) await this.#enter(folder, path);
    }
  }

  async #name(folder: Folder, names: readonly Buffer[]): Promise<void> {
    const [name, key] = [names.at(-1), keyOf(names)];
    if (name === undefined || this.#isBeyond(key)) return;
    const stats = await folder.look(name);
    if (stats === undefined) return; // deleted since it was listed, so it does not exist
    const kind = kindOf(stats);
    const isAllowed = this.#bounds.except.some((other) => isSame(other, stats));
    this.found.set(key, { names, kind, stats, content: undefined, ...(isAllowed ? { isAllowed } : {}) });
    const content = await this.#content(folder, name, stats);
    if (content !== undefined) this.found.set(key, { names, kind, stats, content });
  }

  #isBeyond(key: string): boolean {
    const { maxFiles, before } = this.#bounds;
    if (this.found.size < maxFiles || before?.has(key)) return false;
    if (before === undefined) throw new TooManyFiles(`over ${maxFiles} files`);
    this.incomplete = `over ${maxFiles} files`;
    return true;
  }

  async #content(folder: Folder, name: Buffer, stats: BigIntStats): Promise<Buffer | undefined> {
    if (stats.isSymbolicLink()) return readlink(folder.at(name), { encoding: "buffer" });
    if (!stats.isFile()) return undefined;
    const size = Number(stats.size);
    if (size > this.#bytesLeft) {
      this.isWhole = false;
      return undefined;
    }
    this.#bytesLeft -= size;
    try {
      await using handle = await open(folder.at(name), READ);
      const held = await handle.stat({ bigint: true });
      if (!isSame(held, stats)) return undefined;
      const bytes = Buffer.alloc(size);
      const { bytesRead } = await handle.read(bytes, 0, size, 0);
      if (bytesRead === size) return bytes;
    } catch (error) {
      if (!["EACCES", "EPERM", "ENOENT", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
    this.isWhole = false;
    return undefined;
  }

  async #enter(folder: Folder, names: readonly Buffer[]): Promise<void> {
    const name = names.at(-1);
    const recorded = this.found.get(keyOf(names));
    if (name === undefined || recorded === undefined) return;
    const { stats } = recorded;
    const opens = this.#wasClosed(keyOf(names), stats);
    try {
      if (opens) await folder.setRights(name, stats, rightsOf(stats) | LOOK_IN);
      await using entered = await folder.enter(name);
      await this.folder(entered, names);
    } catch (error) {
      if (!["EACCES", "ENOENT", "ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
      this.isWhole = false; // no process of ours can write to a folder that we cannot enter, but the record is incomplete
    } finally {
      if (opens) await folder.setRights(name, stats, rightsOf(stats)).catch(() => undefined); // deleted in the meantime
    }
  }

  #wasClosed(key: string, stats: BigIntStats): boolean {
    const { before } = this.#bounds;
    const earlier = before?.get(key);
    return before !== undefined && isClosedToUs(stats) && (earlier === undefined || !isClosedToUs(earlier.stats));
  }
}

/** `isWhole` is false if some bytes were not kept. Throws TooManyFiles for a first record; a second record is marked
 *  `incomplete` instead. */
export const recordTree = async (
  folder: Folder,
  bounds: RecordBounds,
): Promise<{ readonly record: TreeRecord; readonly isWhole: boolean; readonly incomplete?: string }> => {
  const recording = new Recording(bounds);
  await recording.folder(folder, []);
  const { found: record, isWhole, incomplete } = recording;
  return { record, isWhole, ...(incomplete === undefined ? {} : { incomplete }) };
};
