/** Which files can tools open? Those of the workspace, and single files outside that were approved.
 *  Invariant: every file is opened through a folder that is held open, without following a link. A path means the same
 *  to the guard and here. New files get the umask's modes; existing files keep theirs.
 *  Elsewhere: holding folders, the meaning of a path, and permissions (@prefork/guard). */

import { lstat } from "node:fs/promises";
import { dirname } from "node:path";
import {
  type ListResult,
  type LookResult,
  openRoot,
  type ReadResult,
  Root,
  RootError,
  type WriteResult,
} from "@prefork/guard";
import { judgeInside, judgePath, type Refused } from "@prefork/guard/internal";

export type ToolFilesOptions = {
  /** The folders of the workspace. */
  readonly roots: readonly string[];
  /** Relative paths start here. Canonical. */
  readonly cwd: string;
  /** For a search from some folder: false for files that a rule denies, which the search skips. Default: everything
   *  may be read. */
  readonly mayRead?: (from?: string) => (path: string) => boolean;
  /** The ripgrep program; null: search without it. Default: our own copy, else the system's. */
  readonly ripgrep?: string | null;
  /** The folder where half-written files are recorded. Default: none. */
  readonly drafts?: string;
  /** Called before a file is written, with its canonical path. */
  readonly beforeWrite?: ((path: string) => Promise<void>) | undefined;
};

/** The canonical path if it is in the workspace, otherwise the path as given. */
export type LocatedPath = { readonly ok: true; readonly path: string } | Refused;

type DraftOptions = Pick<ToolFilesOptions, "drafts">;
type WriteOptions = { readonly expected?: string; readonly approved?: boolean };

type RootOwnership = { readonly isLent?: boolean; readonly own?: readonly Root[] };

type UseRoot<T> = (root: Root, path: string) => Promise<T | Refused>;

const refuse = (reason: string): Refused => ({ ok: false, reason });

export class ToolFiles implements AsyncDisposable {
  readonly cwd: string;
  readonly ripgrep: string | null | undefined;
  readonly mayRead: (from?: string) => (path: string) => boolean;
  readonly #roots: readonly Root[];
  /** Somebody else closes the roots. */
  readonly #isLent: boolean;
  /** Roots opened for this instance alone. */
  readonly #own: readonly Root[];
  /** The same folders without protection, for writes that a person approved by name. */
  #open: Promise<readonly Root[]> | undefined;
  readonly #shownNotes = new Set<string>();
  readonly #drafts: string | undefined;
  readonly #beforeWrite: ToolFilesOptions["beforeWrite"];

  /** Use `openToolFiles`. */
  constructor(roots: readonly Root[], options: Omit<ToolFilesOptions, "roots"> & RootOwnership) {
    const { cwd, ripgrep, mayRead = () => () => true, isLent = false, own = [], drafts, beforeWrite } = options;
    this.#drafts = drafts;
    this.#beforeWrite = beforeWrite;
    this.#own = own;
    this.#isLent = isLent;
    this.cwd = cwd;
    this.ripgrep = ripgrep;
    this.mayRead = mayRead;
    this.#roots = roots;
  }

  locate(text: string): LocatedPath {
    const judged = judgePath(/^[^/~]/.test(text) && !/^[a-z][a-z0-9+.-]*:/i.test(text) ? `${this.cwd}/${text}` : text);
    if (!judged.ok) return judged;
    const inside = findRoot(this.#roots, judged.path);
    return { ok: true, path: inside?.path ?? judged.path };
  }

  read(path: string, options: { readonly maxBytes?: number } = {}): Promise<ReadResult> {
    return this.#use<ReadResult>(path, (root, at) => root.read(at, options));
  }

  look(path: string): Promise<LookResult> {
    return this.#use<LookResult>(path, (root, at) => root.look(at));
  }

  list(path: string): Promise<ListResult> {
    return this.#use<ListResult>(path, (root, at) => root.list(at), { isFolder: true });
  }

  linkText(path: string): Promise<{ readonly ok: true; readonly text: string } | Refused> {
    return this.#use<{ readonly ok: true; readonly text: string }>(path, (root, at) => root.linkText(at));
  }

  /** `expected`: the version that was read. `approved`: files that are executed later may be written too. */
  async write(path: string, content: string | Uint8Array, how: WriteOptions = {}): Promise<WriteResult> {
    const { expected, approved = false } = how;
    const options = expected === undefined ? {} : { expected };
    const located = this.locate(path);
    if (located.ok) await this.#beforeWrite?.(located.path);
    return this.#use<WriteResult>(path, (root, at) => root.write(at, content, options), { approved });
  }

  /** The note the first time, and an empty text after that. */
  noteOnce(note: string): string {
    if (this.#shownNotes.has(note)) return "";
    this.#shownNotes.add(note);
    return note;
  }

  /** The same folders for a child, which may be allowed to read other files. The owner outlives the child and closes
   *  them. */
  lend(mayRead: ToolFiles["mayRead"]): ToolFiles {
    const { cwd, ripgrep } = this;
    const options = {
      cwd,
      mayRead,
      isLent: true,
      beforeWrite: this.#beforeWrite,
      ...(ripgrep === undefined ? {} : { ripgrep }),
      ...this.#draftOptions,
    };
    return new ToolFiles(this.#roots, options);
  }

  /** The same with one more folder, known by these names. The first one is its real path. */
  async withFolder(names: readonly string[]): Promise<ToolFiles> {
    const { cwd, ripgrep, mayRead } = this;
    const own: Root[] = [];
    for (const name of names) own.push(await openRoot(name, this.#draftOptions));
    const options = { ...{ cwd, mayRead, own, isLent: this.#isLent }, ...(ripgrep === undefined ? {} : { ripgrep }) };
    const beforeWrite = this.#beforeWrite;
    return new ToolFiles([...own, ...this.#roots], { ...options, ...this.#draftOptions, beforeWrite });
  }

  async close(): Promise<void> {
    const open = await this.#open?.catch(() => []);
    const lent = this.#isLent ? this.#roots.filter((root) => !this.#own.includes(root)) : [];
    const closing = [...this.#roots.filter((root) => !lent.includes(root)), ...(open ?? [])];
    await Promise.all(closing.map((root) => root.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #draftOptions(): DraftOptions {
    return this.#drafts === undefined ? {} : { drafts: this.#drafts };
  }

  async #use<T>(
    text: string,
    use: UseRoot<T>,
    options: { approved?: boolean; isFolder?: boolean } = {},
  ): Promise<T | Refused> {
    const located = this.locate(text);
    if (!located.ok) return located;
    const { path } = located;
    if (options.approved)
      this.#open ??= openAll(
        this.#roots.map((root) => root.path),
        { protect: false, ...this.#draftOptions },
      );
    const roots = (options.approved ? await this.#open : undefined) ?? this.#roots;
    const inside = findRoot(roots, path);
    if (inside !== undefined) return use(inside.root, path);
    const outside = await openNearestFolder(options.isFolder ? path : dirname(path), {
      protect: !options.approved,
      ...this.#draftOptions,
    });
    if (!(outside instanceof Root)) return outside;
    await using root = outside;
    return await use(root, path);
  }
}

const findRoot = (roots: readonly Root[], path: string): { readonly root: Root; readonly path: string } | undefined => {
  for (const root of roots) {
    const inside = judgeInside(root.names, path);
    if (inside.ok) return { root, path: [root.path, ...inside.below].join("/") };
  }
  return undefined;
};

/** Opens the nearest existing folder. A path that leads through a link is refused with the link's target. */
const openNearestFolder = async (
  wanted: string,
  options: DraftOptions & { readonly protect: boolean },
): Promise<Root | Refused> => {
  let folder = wanted;
  for (;;) {
    const stats = await lstat(folder).catch((error: NodeJS.ErrnoException) => error);
    if (!(stats instanceof Error)) break;
    if (stats.code !== "ENOENT" || folder === "/") break; // openRoot reports what is wrong
    folder = dirname(folder);
  }
  try {
    const root = await openRoot(folder, { private: false, ...options });
    if (root.path === folder) return root;
    await root.close();
    return refuse(`${folder} is reached through a link, and links are not followed; it is ${root.path}`);
  } catch (error) {
    if (error instanceof RootError) return refuse(error.message);
    throw error;
  }
};

const openAll = async (
  folders: readonly string[],
  options: DraftOptions & { readonly protect: boolean },
): Promise<readonly Root[]> => {
  const opened: Root[] = [];
  try {
    for (const folder of folders) opened.push(await openRoot(folder, { private: false, ...options }));
    return opened;
  } catch (error) {
    await Promise.all(opened.map((root) => root.close()));
    throw error;
  }
};

/** Throws RootError if a folder of the workspace cannot be held open. */
export const openToolFiles = async (options: ToolFilesOptions): Promise<ToolFiles> => {
  const { roots, drafts } = options;
  return new ToolFiles(await openAll(roots, { protect: true, ...(drafts === undefined ? {} : { drafts }) }), options);
};
