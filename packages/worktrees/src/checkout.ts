/** Reading and changing single files of a checkout, by the names that git has for them.
 *  Invariant: a name is reached from the held top folder, one folder at a time and through no link; a file is put in place
 *  by renaming, so that it is there whole or not at all.
 *  Elsewhere: which files (apply.ts, save.ts). */

import { type BigIntStats, constants } from "node:fs";
import { mkdir, open, readlink, rename, rmdir, unlink } from "node:fs/promises";
import { Folder } from "@prefork/guard/internal";
import { WorktreeError } from "./errors.ts";
import { bytesOf, type TreePath, toldPath } from "./git.ts";

/** What stands at a name. */
export type Standing =
  | { readonly kind: "absent" }
  | { readonly kind: "file" | "link"; readonly mode: number; readonly version: string; readonly mtimeMs: number };

const ABSENT: Standing = { kind: "absent" };

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

  /** A folder is no file: absent. Throws where something stands there that git cannot hold. */
  async look(path: TreePath): Promise<Standing> {
    const facts = await this.facts(path);
    if (facts === undefined || facts.isDirectory()) return ABSENT;
    const { mode, mtimeMs } = facts;
    const about = { mode: Number(mode) & 0o7777, version: versionOf(facts), mtimeMs: Number(mtimeMs) };
    if (facts.isSymbolicLink()) return { kind: "link", ...about };
    if (facts.isFile()) return { kind: "file", ...about };
    throw new WorktreeError("changed-meanwhile", `${toldPath(path)} is no file`);
  }

  async facts(path: TreePath): Promise<BigIntStats | undefined> {
    return this.#visit(path, (folder, name) => folder.look(name), { missing: undefined });
  }

  async read(path: TreePath, kind: "file" | "link"): Promise<Buffer> {
    return this.#visit(path, async (folder, name) => {
      if (kind === "link") return readlink(folder.at(name), { encoding: "buffer" });
      await using file = await open(folder.at(name), NO_FOLLOW);
      return await file.readFile();
    });
  }

  /** The content of a file, piece by piece. */
  async *pieces(path: TreePath, size: number): AsyncGenerator<Buffer> {
    await using file = await this.#visit(path, (folder, name) => open(folder.at(name), NO_FOLLOW));
    let left = size;
    while (left > 0) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(PIECE, left)));
      if (bytesRead === 0) throw new WorktreeError("changed-meanwhile", `${toldPath(path)} was cut while it was read`);
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

  /** Puts a file of the same file system in place, making folders on the way. Gives the folders it made. */
  async moveIn(from: string | Buffer, path: TreePath): Promise<readonly TreePath[]> {
    const made: TreePath[] = [];
    await this.#visit(
      path,
      async (folder, name) => {
        const there = await folder.look(name);
        if (there?.isDirectory()) await rmdir(folder.at(name)).catch(inTheWay(path));
        else if (there) throw new WorktreeError("changed-meanwhile", `${toldPath(path)} came into being meanwhile`);
        await folder.verify();
        await rename(from, folder.at(name));
      },
      { made },
    );
    return made;
  }

  /** Puts a file of the same file system in place of whatever file stands there. */
  async replace(from: string | Buffer, path: TreePath): Promise<void> {
    await this.#visit(
      path,
      async (folder, name) => {
        const there = await folder.look(name);
        if (there?.isDirectory()) await rmdir(folder.at(name)).catch(inTheWay(path));
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
        await unlink(folder.at(name)).catch(unlessGone);
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

  /** Removes an empty folder. False where it is not empty, or none. */
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

  async #visit<T>(path: TreePath, use: Visit<T>, how: Walk<T> = {}): Promise<T> {
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

type Walk<T> = {
  /** The answer where a folder of the way is not there. Without it that is an error. */
  readonly missing?: T;
  /** Folders that are not there are made, and noted here. */
  readonly made?: TreePath[];
};

const PIECE = 1 << 20;
const EMPTY = Buffer.alloc(0);
const NO_FOLLOW = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const enter = async <T>(
  folder: Folder,
  name: Buffer,
  how: Walk<T>,
): Promise<{ readonly folder: Folder; readonly isMade: boolean } | undefined> => {
  try {
    return { folder: await folder.enter(name), isMade: false };
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (how.made && code === "ENOENT") {
      await mkdir(folder.at(name));
      return { folder: await folder.enter(name), isMade: true };
    }
    // A file or a link may stand there: then nothing is below it.
    if ("missing" in how && ["ENOENT", "ENOTDIR", "ELOOP"].includes(code)) return undefined;
    throw error;
  }
};

/** Only an empty folder gives way to a file. */
const inTheWay =
  (path: TreePath) =>
  (cause: unknown): never => {
    const words = `${toldPath(path)}: a folder with other files in it stands in the way`;
    throw new WorktreeError("changed-meanwhile", words, { cause });
  };

const unlessGone = (error: NodeJS.ErrnoException): void => {
  if (error.code !== "ENOENT") throw error;
};
