/** How do we keep a folder open, so that what we open is in it, whatever happens to its name in the meantime?
 *  Invariant: a folder is entered one name at a time and never through a link; every path given to the kernel is `<an
 *  open folder>/<one name>`.
 *  Elsewhere: which paths may be requested (../paths), what is done in a folder (root.ts, replace.ts). */

import { type BigIntStats, constants } from "node:fs";
import { chmod, type FileHandle, lstat, mkdir, open, readlink, realpath } from "node:fs/promises";
import type { Refused } from "../paths/index.ts";

/** Node has no `openat`. On Linux, `/proc/self/fd` does the same. Elsewhere we use names, refuse links, and compare each open
 *  folder with its name before and after every use. */
export type FolderAccess = "descriptors" | "names";

const ENTER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Linux: opens a file without needing any permission on it. Node has no constant for it. */
const O_PATH = 0o10000000;

export const isSame = (a: BigIntStats, b: BigIntStats): boolean => a.ino === b.ino && a.dev === b.dev;

/** A file or folder was replaced since it was checked. */
export class SwappedError extends Error {
  override readonly name = "SwappedError";
}

type OpenFolder = {
  readonly way: FolderAccess;
  readonly handle: FileHandle;
  /** Canonical, from when the folder was opened. Bytes, because names need not be valid text. */
  readonly path: Buffer;
  /** The first folder of the walk, and the names from there to here. */
  readonly from?: { readonly top: Folder; readonly names: readonly Buffer[] };
};

const SLASH = Buffer.from("/");

const asBytes = (name: string | Buffer): Buffer => (typeof name === "string" ? Buffer.from(name) : name);

const joinBytes = (folder: Buffer, names: readonly Buffer[]): Buffer =>
  Buffer.concat([folder.equals(SLASH) ? Buffer.alloc(0) : folder, ...names.flatMap((name) => [SLASH, name])]);

/** An open folder. The caller that opens or enters one closes it. */
export class Folder implements AsyncDisposable {
  readonly way: FolderAccess;
  readonly handle: FileHandle;
  readonly path: Buffer;
  readonly #from: OpenFolder["from"];

  private constructor({ way, handle, path, from }: OpenFolder) {
    this.way = way;
    this.handle = handle;
    this.path = path;
    this.#from = from;
  }

  /** Opens a folder by its canonical path; the caller has resolved it. */
  static async open(path: string, way?: FolderAccess): Promise<Folder> {
    const handle = await open(path, ENTER);
    try {
      const inProc =
        way === "names"
          ? undefined
          : await lstat(`/proc/self/fd/${handle.fd}/.`, { bigint: true }).catch(() => undefined);
      const held = await handle.stat({ bigint: true });
      const chosen: FolderAccess = inProc !== undefined && isSame(inProc, held) ? "descriptors" : "names";
      const folder = new Folder({ way: chosen, handle, path: Buffer.from(path) });
      await folder.verify();
      return folder;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** The path of one name in this folder, for a call that does not follow its last component. */
  at(name: string | Buffer): Buffer {
    const folder = this.way === "descriptors" ? Buffer.from(`/proc/self/fd/${this.handle.fd}`) : this.path;
    return joinBytes(folder, [asBytes(name)]);
  }

  /** The stats of a name, without following a link; undefined if there is nothing. */
  async look(name: string | Buffer): Promise<BigIntStats | undefined> {
    try {
      return await lstat(this.at(name), { bigint: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Sets the permission bits of a name, even if they keep us from opening it. Never through a link, and only while it is
   *  still what the caller saw. */
  async setRights(name: string | Buffer, seen: BigIntStats, mode: number): Promise<void> {
    if (seen.isSymbolicLink()) throw new SwappedError("links have no permissions of their own");
    await this.#verifyName();
    const swapped = "it was replaced meanwhile";
    if (this.way === "names") {
      if (!isSame(await lstat(this.at(name), { bigint: true }), seen)) throw new SwappedError(swapped);
      return chmod(this.at(name), mode);
    }
    await using held = await open(this.at(name), O_PATH | constants.O_NOFOLLOW);
    if (!isSame(await held.stat({ bigint: true }), seen)) throw new SwappedError(swapped);
    await chmod(`/proc/self/fd/${held.fd}`, mode);
  }

  async enter(name: string | Buffer): Promise<Folder> {
    await this.#verifyName();
    const handle = await open(this.at(name), ENTER);
    const top = this.#from?.top ?? this;
    const names = [...(this.#from?.names ?? []), asBytes(name)];
    const entered = new Folder({
      way: this.way,
      handle,
      path: joinBytes(this.path, [asBytes(name)]),
      from: { top, names },
    });
    try {
      await entered.#verifyName();
      return entered;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Creates the folder if it is missing, then enters it. `mode` undefined: from the umask. */
  async enterOrMake(name: string, mode: number | undefined): Promise<Folder> {
    try {
      return await this.enter(name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      await mkdir(this.at(name), { mode: mode ?? 0o777 }).catch((failure: NodeJS.ErrnoException) => {
        if (failure.code !== "EEXIST") throw failure;
      });
      const made = await this.enter(name);
      try {
        if (mode !== undefined) await made.handle.chmod(mode); // the umask may have removed bits that a private folder needs
        return made;
      } catch (failure) {
        await made.close();
        throw failure;
      }
    }
  }

  /** Throws if this folder is no longer where the walk found it. Called before each change: if the folder was moved while we
   *  hold it, our write would move along. */
  async verify(): Promise<void> {
    if (this.way === "names") return this.#verifyName();
    if (this.#from === undefined) return;
    const { top, names } = this.#from;
    const [now, topNow] = await Promise.all(
      [this, top].map(({ handle }) => readlink(`/proc/self/fd/${handle.fd}`, { encoding: "buffer" })),
    );
    if (now === undefined || topNow === undefined || !now.equals(joinBytes(topNow, names)))
      throw new SwappedError("a folder of the path was moved meanwhile");
  }

  /** Without descriptors: the name must still lead to the folder we hold, without any link. */
  async #verifyName(): Promise<void> {
    if (this.way === "descriptors") return;
    const [held, named, real] = await Promise.all([
      this.handle.stat({ bigint: true }),
      lstat(this.path, { bigint: true }),
      realpath(this.path, { encoding: "buffer" }),
    ]);
    if (!isSame(held, named) || !real.equals(this.path))
      throw new SwappedError("a folder of the path was replaced meanwhile, or is reached through a link");
  }

  async close(): Promise<void> {
    await this.handle.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

// --- what an error of the kernel means to a model that asked for a file -------------------------------------------------
// An error of the operating system becomes one line; anything else is a bug and is rethrown.

export const refuse = (reason: string): Refused => ({ ok: false, reason });

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  ENOTDIR: "a part of the path is a link or a file, not a folder",
  ELOOP: "a part of the path is a link, and links are not followed",
  EISDIR: "this is a folder, not a file",
  EACCES: "the file system does not permit it",
  EPERM: "the file system does not permit it",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EMFILE: "too many files are open; try again",
  ENFILE: "too many files are open; try again",
  ENAMETOOLONG: "the path is too long",
  EEXIST: "something else was put there meanwhile",
  ENOTEMPTY: "the folder is not empty",
  ENXIO: "this is a device or a socket, not a file",
  EBUSY: "it is in use",
};

export const refusalOf = (error: unknown): Refused => {
  if (error instanceof SwappedError) return refuse(error.message);
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) throw error;
  return refuse(Object.hasOwn(REASONS, code) ? (REASONS[code] ?? code) : `the file system answered ${code}`);
};

export type Kind = "file" | "folder" | "link" | "other";

export const kindOf = (stats: Pick<BigIntStats, "isFile" | "isDirectory" | "isSymbolicLink">): Kind =>
  stats.isFile() ? "file" : stats.isDirectory() ? "folder" : stats.isSymbolicLink() ? "link" : "other";

/** Why this is not an ordinary file; undefined if it is. */
export const fileProblem = (stats: BigIntStats): string | undefined => {
  const kind = kindOf(stats);
  if (kind === "link") return "this is a link, and links are not followed";
  if (kind === "folder") return "this is a folder, not a file";
  return kind === "other" ? "this is a device, a pipe or a socket, not a file" : undefined;
};

/** Why a file with hard links is not written: the write would change it under its other names too. */
export const hardLinkProblem = (stats: BigIntStats): string | undefined =>
  stats.nlink === 1n ? undefined : "this file has further names (hard links), which a write would change as well";
