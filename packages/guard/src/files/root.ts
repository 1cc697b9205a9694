/** The files inside one pinned folder: read, write, list, look, remove.
 *  Invariant: the folder is held open from the start, and each operation walks down from it without following a link. A refusal
 *  is a value with a reason that can be shown to a model.
 *  Elsewhere: what a path means and which names are protected (../paths), the walk (folder.ts), writing (replace.ts). */

import { type BigIntStats, constants } from "node:fs";
import { access, lstat, open, readdir, readlink, realpath, unlink } from "node:fs/promises";
import { resolve } from "node:path";
import {
  isPseudoPath,
  judgeInside,
  judgePath,
  protectedInRepository,
  protectedName,
  type Refused,
  repositoryMarks,
} from "../paths/index.ts";
import { readUpTo } from "./bounded.ts";
import { ByteBudget } from "./byte-budget.ts";
import {
  Folder,
  type FolderAccess,
  fileProblem,
  hardLinkProblem,
  isSame,
  type Kind,
  kindOf,
  refusalOf,
  refuse,
  SwappedError,
} from "./folder.ts";
import { replaceFile, versionOf } from "./replace.ts";

export type RootOptions = {
  /** New files get mode 0600 and new folders 0700; otherwise the umask decides. Default: true. */
  readonly private?: boolean;
  /** Refuse to write names that run something later (../paths/protected.ts). Default: true. */
  readonly protect?: boolean;
  /** Default: descriptors if the kernel supports them. */
  readonly way?: FolderAccess;
  /** A folder of ours where half-written files are noted, in case this process dies. Default: none. */
  readonly drafts?: string;
};

export type FileFacts = {
  readonly kind: Kind;
  readonly size: number;
  readonly mode: number;
  readonly owner: number;
  readonly links: number;
  readonly modifiedMs: number;
  /** Equal versions mean equal bytes. Pass it to `write` to detect a change in between. */
  readonly version: string;
};

export type ReadResult = { readonly ok: true; readonly bytes: Buffer; readonly facts: FileFacts } | Refused;
export type WriteResult = { readonly ok: true; readonly created: boolean; readonly facts: FileFacts } | Refused;
export type LookResult = { readonly ok: true; readonly facts: FileFacts | undefined } | Refused;
export type Entry = { readonly name: string; readonly kind: Kind };
export type ListResult = { readonly ok: true; readonly entries: readonly Entry[] } | Refused;

/** The folder cannot be pinned: it is missing, or not an ordinary folder. */
export class RootError extends Error {
  override readonly name = "RootError";
}

const MAX_READ_BYTES = 32 * 1024 * 1024;
const MAX_ENTRIES = 20_000;
/** One per process: all readers share its memory. */
const LARGE_READS = new ByteBudget(4 * MAX_READ_BYTES);
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

const factsOf = (stats: BigIntStats): FileFacts => ({
  kind: kindOf(stats),
  size: Number(stats.size),
  mode: Number(stats.mode) & 0o7777,
  owner: Number(stats.uid),
  links: Number(stats.nlink),
  modifiedMs: Number(stats.mtimeMs),
  version: versionOf(stats),
});

type Visit<T> = (folder: Folder, name: string) => Promise<T | Refused>;

/** Options of a walk: `changes` refuses names that a bare repository acts on, `makeFolders` creates missing folders. */
type Walk = { readonly changes?: boolean; readonly makeFolders?: boolean };

export class Root implements AsyncDisposable {
  /** Canonical. */
  readonly path: string;
  /** All paths of the folder: canonical, and as it was given. */
  readonly names: readonly string[];
  readonly #folder: Folder;
  readonly #options: RootOptions;

  /** Use `openRoot`. */
  constructor(folder: Folder, names: readonly string[], options: RootOptions) {
    this.path = names[0] ?? "";
    this.names = names;
    this.#folder = folder;
    this.#options = options;
  }

  get way(): FolderAccess {
    return this.#folder.way;
  }

  async read(path: string, options: { readonly maxBytes?: number } = {}): Promise<ReadResult> {
    const { maxBytes = MAX_READ_BYTES } = options;
    return this.#visit(path, async (folder, name) => {
      const seen = await folder.look(name);
      if (seen === undefined) return refuse("there is no such file");
      const wrong = fileProblem(seen); // before opening: opening a device can have effects
      if (wrong !== undefined) return refuse(wrong);
      await using handle = await open(folder.at(name), READ);
      const held = await handle.stat({ bigint: true });
      if (!isSame(seen, held) || !held.isFile()) throw new SwappedError("the file was replaced meanwhile; try again");
      await folder.verify();
      if (held.size > BigInt(maxBytes)) return refuse(`the file has ${held.size} bytes; at most ${maxBytes} are read`);
      using _ = await LARGE_READS.take(Number(held.size));
      const bytes = await readUpTo(handle, maxBytes + 1);
      if (bytes.length > maxBytes) return refuse(`the file grew over ${maxBytes} bytes while it was read`);
      return { ok: true, bytes, facts: factsOf(held) };
    });
  }

  /** Replaces the whole file by `content`; creates the file and its folders if they are missing. */
  async write(
    path: string,
    content: string | Uint8Array,
    options: { readonly expected?: string } = {},
  ): Promise<WriteResult> {
    const isPrivate = this.#options.private ?? true;
    return this.#change(path, true, async (folder, name) => {
      const before = await folder.look(name);
      const wrong = await writeProblem(folder, name, before);
      if (wrong !== undefined) return refuse(wrong);
      if (options.expected !== undefined && (before === undefined || versionOf(before) !== options.expected))
        return refuse("the file was changed since it was read; read it again");
      const mode = isPrivate ? 0o600 : undefined;
      const now = await replaceFile({ folder, name, content, before, mode, drafts: this.#options.drafts });
      return { ok: true, created: before === undefined, facts: factsOf(now) };
    });
  }

  async remove(path: string): Promise<{ readonly ok: true } | Refused> {
    return this.#change(path, false, async (folder, name) => {
      const before = await folder.look(name);
      if (before === undefined) return refuse("there is no such file");
      const wrong = fileProblem(before) ?? hardLinkProblem(before);
      if (wrong !== undefined) return refuse(wrong);
      await folder.verify();
      await unlink(folder.at(name));
      return { ok: true };
    });
  }

  /** Describes a path; `facts` is undefined if nothing is there. A link is reported as a link, and not followed. */
  async look(path: string): Promise<LookResult> {
    const inside = judgeInside(this.names, path);
    if (!inside.ok) return inside;
    if (inside.below.length === 0)
      return { ok: true, facts: factsOf(await this.#folder.handle.stat({ bigint: true })) };
    const looked = await this.#visit<LookResult>(path, async (folder, name) => {
      const stats = await folder.look(name);
      return { ok: true, facts: stats === undefined ? undefined : factsOf(stats) };
    });
    return !looked.ok && looked.reason === NO_FOLDER ? { ok: true, facts: undefined } : looked;
  }

  /** The text of a link; its target is not looked up. */
  async linkText(path: string): Promise<{ readonly ok: true; readonly text: string } | Refused> {
    return this.#visit(path, async (folder, name) => ({ ok: true, text: await readlink(folder.at(name)) }));
  }

  /** The names in a folder, sorted by their bytes. */
  async list(path: string): Promise<ListResult> {
    const inside = judgeInside(this.names, path);
    if (!inside.ok) return inside;
    const listed = async (folder: Folder): Promise<ListResult> => {
      const found = await readdir(folder.at("."), { withFileTypes: true });
      await folder.verify();
      if (found.length > MAX_ENTRIES)
        return refuse(`the folder has ${found.length} entries; at most ${MAX_ENTRIES} are listed`);
      const entries = found.map((entry) => ({ name: entry.name, kind: kindOf(entry) }));
      return { ok: true, entries: entries.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))) };
    };
    if (inside.below.length === 0) return listed(this.#folder).catch(refusalOf);
    return this.#visit(path, async (folder, name) => {
      await using entered = await folder.enter(name);
      return await listed(entered);
    });
  }

  /** Whether this may be written. The same walk and checks as `write`, without changing anything. */
  async mayWrite(path: string): Promise<{ readonly ok: true } | Refused> {
    const refused = this.#refusesWrite(path);
    if (refused !== undefined) return refused;
    const visit: Visit<{ readonly ok: true }> = async (folder, name) => {
      const before = await folder.look(name);
      const wrong = await writeProblem(folder, name, before);
      await folder.verify();
      return wrong === undefined ? { ok: true } : refuse(wrong);
    };
    const looked = await this.#visit(path, visit, { changes: true });
    return !looked.ok && looked.reason === NO_FOLDER ? { ok: true } : looked;
  }

  async close(): Promise<void> {
    await this.#folder.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #refusesWrite(path: string): Refused | undefined {
    const inside = judgeInside(this.names, path);
    if (!inside.ok) return inside;
    const reason = (this.#options.protect ?? true) ? protectedName(inside.below) : undefined;
    if (reason !== undefined) return refuse(reason);
    return path.endsWith("/") ? refuse("this names a folder, not a file") : undefined;
  }

  #change<T>(path: string, makeFolders: boolean, visit: Visit<T>): Promise<T | Refused> {
    const refused = this.#refusesWrite(path);
    return refused === undefined ? this.#visit(path, visit, { changes: true, makeFolders }) : Promise.resolve(refused);
  }

  /** Walks to the folder of the last name, one name at a time. */
  async #visit<T>(path: string, visit: Visit<T>, walk: Walk = {}): Promise<T | Refused> {
    const { makeFolders = false } = walk;
    const protects = walk.changes === true && (this.#options.protect ?? true);
    const inside = judgeInside(this.names, path);
    if (!inside.ok) return inside;
    const name = inside.below.at(-1);
    if (name === undefined) return refuse("this is the folder itself, not a file in it");
    const entered: Folder[] = [];
    try {
      let folder = this.#folder;
      for (const part of inside.below.slice(0, -1)) {
        const reason = protects ? await repositoryProblem(folder, part) : undefined;
        if (reason !== undefined) return refuse(reason);
        const step = await this.#step(folder, part, makeFolders);
        if (!(step instanceof Folder)) return step;
        entered.push(step);
        folder = step;
      }
      const reason = protects ? await repositoryProblem(folder, name) : undefined;
      return reason === undefined ? await visit(folder, name) : refuse(reason);
    } catch (error) {
      return refusalOf(error);
    } finally {
      await Promise.all(entered.map((folder) => folder.close()));
    }
  }

  async #step(folder: Folder, name: string, make: boolean): Promise<Folder | Refused> {
    try {
      if (!make) return await folder.enter(name);
      return await folder.enterOrMake(name, (this.#options.private ?? true) ? 0o700 : undefined);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") return refuse(NO_FOLDER);
      if (code !== "ENOTDIR" && code !== "ELOOP") throw error;
      // The kernel reports a link and a file with the same error; a model can act on the difference.
      const stats = await folder.look(name);
      return refuse(
        stats?.isSymbolicLink() ? `${name} is a link, and links are not followed` : `${name} is not a folder`,
      );
    }
  }
}

/** Why a name may not be written because git would treat its folder as a repository. Looks for the repository's marks only
 *  if the name matters to git. */
const repositoryProblem = async (folder: Folder, name: string): Promise<string | undefined> => {
  if (protectedInRepository(name, repositoryMarks) === undefined) return undefined;
  const seen = await Promise.all(repositoryMarks.map((mark) => folder.look(mark)));
  return protectedInRepository(
    name,
    repositoryMarks.filter((_, at) => seen[at] !== undefined),
  );
};

/** Why a file may not be replaced. A rename would ignore the write protection of the file, so it is checked here. */
const writeProblem = async (
  folder: Folder,
  name: string,
  stats: BigIntStats | undefined,
): Promise<string | undefined> => {
  if (stats === undefined) return undefined;
  const wrong = fileProblem(stats) ?? hardLinkProblem(stats);
  if (wrong !== undefined) return wrong;
  const isProtected =
    (Number(stats.mode) & 0o222) === 0 ||
    (await access(folder.at(name), constants.W_OK).then(
      () => false,
      () => true,
    ));
  return isProtected ? "this file is write-protected" : undefined;
};

const NO_FOLDER = "there is no such folder";

/** Pins a folder. Throws RootError if it is missing or not a folder. */
export const openRoot = async (folder: string, options: RootOptions = {}): Promise<Root> => {
  if (process.platform === "win32") throw new RootError("files cannot be held safely on this platform");
  const given = judgePath(resolve(folder));
  if (!given.ok) throw new RootError(`${folder}: ${given.reason}`);
  try {
    const path = await realpath(given.path);
    const canonical = judgePath(path);
    if (!canonical.ok) throw new RootError(`${path}: ${canonical.reason}`);
    if (path === "/" || isPseudoPath(path))
      throw new RootError(`${path} cannot be a root: it is not an ordinary folder`);
    if (!(await lstat(path)).isDirectory()) throw new RootError(`${folder} is not a folder`);
    return new Root(await Folder.open(path, options.way), [...new Set([path, given.path])], options);
  } catch (error) {
    if (error instanceof RootError) throw error;
    throw new RootError(`${folder}: ${refusalOf(error).reason}`, { cause: error });
  }
};
