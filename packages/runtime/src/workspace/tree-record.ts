/** What stands in a tree, as data: every name with its kind, bits, owner, times and, within bounds, its bytes.
 *  Invariant: links are recorded and never followed; names are bytes; the walk holds folders, so a swap meanwhile cannot
 *  lead it elsewhere.
 *  Elsewhere: comparing two records (audit.ts), putting things back (revert.ts). */

import { type BigIntStats, constants } from "node:fs";
import { open, readdir, readlink } from "node:fs/promises";
import { type Folder, isSame, type Kind, kindOf } from "../files/index.ts";

export type Recorded = {
  /** The names from the watched folder down. */
  readonly names: readonly Buffer[];
  readonly kind: Kind;
  readonly stats: BigIntStats;
  /** The bytes of a file or the text of a link; undefined where the bound was passed. */
  readonly content: Buffer | undefined;
  /** A folder that may be written in: where it stands is recorded, what is in it is not. */
  readonly isAllowed?: true;
};

/** By the names joined as bytes: parents stand before what is in them. */
export type TreeRecord = ReadonlyMap<string, Recorded>;

/** A tree that is held, with what stood in it. */
export type RecordedTree = { readonly folder: Folder; readonly stats: BigIntStats; readonly record: TreeRecord };

export type RecordBounds = {
  readonly maxFiles: number;
  /** Bytes kept in all; 0: none, only what the kernel says about each name. */
  readonly maxBytes: number;
  /** Folders that are not entered, known by what they are and not by their name. */
  readonly except: readonly BigIntStats[];
  /** Names, joined as bytes, that are passed over. */
  readonly leaveOut?: (key: string) => boolean;
};

/** The bound of names is passed: what was not seen cannot be vouched for. */
export class TooManyFiles extends Error {
  override readonly name = "TooManyFiles";
}

const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** Files of one folder that are read at the same time. */
const AT_ONCE = 16;

export const keyOf = (names: readonly Buffer[]): string => names.map((name) => name.toString("latin1")).join("/");

class Recording {
  readonly found = new Map<string, Recorded>();
  readonly #bounds: RecordBounds;
  #bytesLeft: number;
  isWhole = true;

  constructor(bounds: RecordBounds) {
    this.#bounds = bounds;
    this.#bytesLeft = bounds.maxBytes;
  }

  async folder(folder: Folder, names: readonly Buffer[]): Promise<void> {
    const { leaveOut } = this.#bounds;
    const all = await readdir(folder.at("."), { encoding: "buffer" });
    const listed = leaveOut ? all.filter((name) => !leaveOut(keyOf([...names, name]))) : all;
    for (let at = 0; at < listed.length; at += AT_ONCE)
      await Promise.all(listed.slice(at, at + AT_ONCE).map((name) => this.#name(folder, [...names, name])));
    for (const path of listed.map((name) => [...names, name])) {
      const found = this.found.get(keyOf(path));
      if (found?.kind === "folder" && !found.isAllowed) await this.#enter(folder, path);
    }
  }

  async #name(folder: Folder, names: readonly Buffer[]): Promise<void> {
    const name = names.at(-1);
    const stats = name === undefined ? undefined : await folder.look(name);
    if (name === undefined || stats === undefined) return; // gone between listing and looking: then it is not there
    if (this.found.size >= this.#bounds.maxFiles) throw new TooManyFiles(`over ${this.#bounds.maxFiles} files`);
    const kind = kindOf(stats);
    const key = keyOf(names);
    const isAllowed = this.#bounds.except.some((other) => isSame(other, stats));
    this.found.set(key, { names, kind, stats, content: undefined, ...(isAllowed ? { isAllowed } : {}) });
    const content = await this.#content(folder, name, stats);
    if (content !== undefined) this.found.set(key, { names, kind, stats, content });
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
    if (name === undefined) return;
    try {
      await using entered = await folder.enter(name);
      await this.folder(entered, names);
    } catch (error) {
      if (!["EACCES", "ENOENT", "ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
      this.isWhole = false; // nobody who is us can write into what we cannot enter, but we say what we did not see
    }
  }
}

/** `isWhole` is false where some bytes were not kept. Throws TooManyFiles. */
export const recordTree = async (
  folder: Folder,
  bounds: RecordBounds,
): Promise<{ readonly record: TreeRecord; readonly isWhole: boolean }> => {
  const recording = new Recording(bounds);
  await recording.folder(folder, []);
  return { record: recording.found, isWhole: recording.isWhole };
};
