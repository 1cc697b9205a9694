/** Reads and changes single files of a checkout, by their git paths.
 *  Invariant: a path is walked from the open top folder, one folder at a time and never through a symbolic link; a file is
 *  put in place by renaming, so it is complete or absent.
 *  Elsewhere: which files (apply.ts, save.ts). */

import { type BigIntStats, constants } from "node:fs";
import { mkdir, open, readlink, rename, rmdir, unlink } from "node:fs/promises";
import { Folder } from "@prefork/guard/internal";
import { WorktreeError } from "./errors.ts";
import { bytesOf, messagePath, type TreePath } from "./git.ts";

/** What is at a path. */
export type FileState =
  | { readonly kind: "absent" }
  | { readonly kind: "file" | "link"; readonly mode: number; readonly version: string; readonly mtimeMs: number };

const ABSENT: FileState = { kind: "absent" };

export const versionOf = ({ dev, ino, size, mtimeNs, mode }: BigIntStats): string =>
  [dev, ino, size, mtimeNs, mode].join(":");

export class Checkout implements AsyncDisposable {
  readonly #top: Folder;

  private constructor(top: Folder) {
    this.#top = top;
  }

  static async open(path: string): Promise<Checkout> {
    return new Checkout(await Folder.open(path));
  }

  /** A folder counts as absent. Throws for anything that git cannot store. */
  async fileState(path: TreePath): Promise<FileState> {
    const facts = await this.stat(path);
    if (facts === undefined || facts.isDirectory()) return ABSENT;
    const { mode, mtimeMs } = facts;
    const about = { mode: Number(mode) & 0o7777, version: versionOf(facts), mtimeMs: Number(mtimeMs) };
    if (facts.isSymbolicLink()) return { kind: "link", ...about };
    if (facts.isFile()) return { kind: "file", ...about };
    throw new WorktreeError("changed-meanwhile", `${messagePath(path)} is not a file`);
  }

  async stat(path: TreePath): Promise<BigIntStats | undefined> {
    return this.#visit(path, (folder, name) => folder.look(name), { missing: undefined });
  }

  async read(path: TreePath, kind: "file" | "link"): Promise<Buffer> {
    return this.#visit(path, async (folder, name) => {
      if (kind === "link") return readlink(folder.at(name), { encoding: "buffer" });
      await using file = await open(folder.at(name), NO_FOLLOW);
      return await file.readFile();
    });
  }

  /** The content of a file, in chunks. */
  async *pieces(path: TreePath, size: number): AsyncGenerator<Buffer> {
    await using file = await this.#visit(path, (folder, name) => open(folder.at(name), NO_FOLLOW));
    let left = size;
    while (left > 0) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(PIECE, left)));
      if (bytesRead === 0)
        throw new WorktreeError("changed-meanwhile", `${messagePath(path)} became shorter while it was read`);
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  /** Moves a file out of the checkout. */
  async moveOut(path: TreePath, to: string | Buffer): Promise<void> {
    await this.#visit(path, async (folder, name) => {
      await folder.verify();
      await rename(folder.at(name), to);
    });
  }

  /** Moves a file of the same file system to its place, and creates missing folders. Returns the folders it created. */
  async moveIn(from: string | Buffer, path: TreePath): Promise<readonly TreePath[]> {
    const made: TreePath[] = [];
    await this.#visit(
      path,
      async (folder, name) => {
        const existing = await folder.look(name);
        if (existing?.isDirectory()) await rmdir(folder.at(name)).catch(refuseFolder(path));
        else if (existing)
          throw new WorktreeError("changed-meanwhile", `${messagePath(path)} was created in the meantime`);
        await folder.verify();
        await rename(from, folder.at(name));
      },
      { made },
    );
    return made;
  }

  /** Moves a file of the same file system to its place, replacing any file there. */
  async replace(from: string | Buffer, path: TreePath): Promise<void> {
    await this.#visit(
      path,
      async (folder, name) => {
        const existing = await folder.look(name);
        if (existing?.isDirectory()) await rmdir(folder.at(name)).catch(refuseFolder(path));
        await folder.verify();
        await rename(from, folder.at(name));
      },
      { made: [] },
    );
  }

  async remove(path: TreePath): Promise<void> {
    await this.#visit(
      path,
      async (folder, name) => {
        await folder.verify();
        await unlink(folder.at(name)).catch(ignoreMissing);
      },
      { missing: undefined },
    );
  }

  async chmod(path: TreePath, mode: number): Promise<void> {
    await this.#visit(path, async (folder, name) => {
      await using file = await open(folder.at(name), NO_FOLLOW);
      await file.chmod(mode);
    });
  }

  /** Removes an empty folder. Returns false if it is not empty or does not exist. */
  async removeFolder(path: TreePath): Promise<boolean> {
    return this.#visit(
      path,
      async (folder, name) => {
        try {
          await rmdir(folder.at(name));
          return true;
        } catch {
          return false;
        }
      },
      { missing: false },
    );
  }

  async makeFolder(path: TreePath, mode: number): Promise<void> {
    await this.#visit(
      path,
      async (folder, name) => {
        await mkdir(folder.at(name)).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== "EEXIST") throw error;
        });
        await using made = await folder.enter(name);
        await made.handle.chmod(mode);
      },
      { made: [] },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#top.close();
  }

  async #visit<T>(path: TreePath, use: Visit<T>, how: VisitOptions<T> = {}): Promise<T> {
    if (path.split("/").some((part) => part === "" || part === "." || part === ".."))
      throw new WorktreeError("not-ready", `${messagePath(path)} is not a name below the checkout`);
    const parts = path.split("/").map(bytesOf);
    const entered: Folder[] = [];
    try {
      let folder = this.#top;
      for (const [at, part] of parts.slice(0, -1).entries()) {
        const next = await enter(folder, part, how);
        if (!next) return how.missing as T;
        if (next.isMade) how.made?.push(path.split("/", at + 1).join("/"));
        folder = next.folder;
        entered.push(folder);
      }
      return await use(folder, parts.at(-1) ?? EMPTY);
    } finally {
      await Promise.all(entered.map((folder) => folder.close()));
    }
  }
}

type Visit<T> = (folder: Folder, name: Buffer) => Promise<T>;

type VisitOptions<T> = {
  /** The result if a folder of the path does not exist. Without it, that is an error. */
  readonly missing?: T;
  /** Missing folders are created, and listed here. */
  readonly made?: TreePath[];
};

const PIECE = 1 << 20;
const EMPTY = Buffer.alloc(0);
const NO_FOLLOW = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const enter = async <T>(
  folder: Folder,
  name: Buffer,
  how: VisitOptions<T>,
): Promise<{ readonly folder: Folder; readonly isMade: boolean } | undefined> => {
  try {
    return { folder: await folder.enter(name), isMade: false };
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (how.made && code === "ENOENT") {
      await mkdir(folder.at(name));
      return { folder: await folder.enter(name), isMade: true };
    }
    // If it is a file or a link, nothing is below it.
    if ("missing" in how && ["ENOENT", "ENOTDIR", "ELOOP"].includes(code)) return undefined;
    throw error;
  }
};

/** A file may replace only an empty folder. */
const refuseFolder =
  (path: TreePath) =>
  (cause: unknown): never => {
    const message = `${messagePath(path)}: a folder that contains other files is in the way`;
    throw new WorktreeError("changed-meanwhile", message, { cause });
  };

const ignoreMissing = (error: NodeJS.ErrnoException): void => {
  if (error.code !== "ENOENT") throw error;
};
