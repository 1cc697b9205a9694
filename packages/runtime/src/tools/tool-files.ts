/** The files that tools reach: those of the workspace, and single ones outside that were approved.
 *  Invariant: every file is reached through a folder held open, without following a link; a name means the same to the
 *  guard and here; new files get the umask's modes and existing ones keep theirs.
 *  Elsewhere: holding folders (@prefork/guard), what a path text means (@prefork/guard), may it be touched (@prefork/guard). */

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
  /** Where relative names start. Canonical. */
  readonly cwd: string;
  /** For a search from some place: false for files that a rule denies, which it leaves out. Default: all may be read. */
  readonly mayRead?: (from?: string) => (path: string) => boolean;
  /** The ripgrep program; null: search without it. Default: our own copy, else the system's. */
  readonly ripgrep?: string | null;
  /** Where half-written files are noted. Default: nowhere. */
  readonly drafts?: string;
};

/** A path as the kernel has it where it lies in the workspace, else as it was given. */
export type Located = { readonly ok: true; readonly path: string } | Refused;

type Noting = Pick<ToolFilesOptions, "drafts">;

type Owned = { readonly isLent?: boolean; readonly own?: readonly Root[] };

type Use<T> = (root: Root, path: string) => Promise<T | Refused>;

const refuse = (reason: string): Refused => ({ ok: false, reason });

export class ToolFiles implements AsyncDisposable {
  readonly cwd: string;
  readonly ripgrep: string | null | undefined;
  readonly mayRead: (from?: string) => (path: string) => boolean;
  readonly #roots: readonly Root[];
  /** Closed by somebody else. */
  readonly #isLent: boolean;
  /** Opened for it alone. */
  readonly #own: readonly Root[];
  /** The same folders for writes that a person approved by name. */
  #open: Promise<readonly Root[]> | undefined;
  readonly #said = new Set<string>();
  readonly #drafts: string | undefined;

  /** Use `openToolFiles`. */
  constructor(roots: readonly Root[], how: Omit<ToolFilesOptions, "roots"> & Owned) {
    const { cwd, ripgrep, mayRead = () => () => true, isLent = false, own = [], drafts } = how;
    this.#drafts = drafts;
    this.#own = own;
    this.#isLent = isLent;
    this.cwd = cwd;
    this.ripgrep = ripgrep;
    this.mayRead = mayRead;
    this.#roots = roots;
  }

  locate(text: string): Located {
    const judged = judgePath(/^[^/~]/.test(text) && !/^[a-z][a-z0-9+.-]*:/i.test(text) ? `${this.cwd}/${text}` : text);
    if (!judged.ok) return judged;
    const inside = insideOf(this.#roots, judged.path);
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

  /** `expected`: the version that was read. `approved`: names that run something later may be written as well. */
  write(
    path: string,
    content: string | Uint8Array,
    { expected, approved = false }: { readonly expected?: string; readonly approved?: boolean } = {},
  ): Promise<WriteResult> {
    const options = expected === undefined ? {} : { expected };
    return this.#use<WriteResult>(path, (root, at) => root.write(at, content, options), { approved });
  }

  /** The note the first time, and nothing after that. */
  sayOnce(note: string): string {
    if (this.#said.has(note)) return "";
    this.#said.add(note);
    return note;
  }

  /** The same folders for a child, which may be shown other files; they stay with their owner, who outlives it. */
  lend(mayRead: ToolFiles["mayRead"]): ToolFiles {
    const { cwd, ripgrep } = this;
    const how = { cwd, mayRead, isLent: true, ...(ripgrep === undefined ? {} : { ripgrep }), ...this.#noting };
    return new ToolFiles(this.#roots, how);
  }

  /** The same with one more folder, which goes by these names; the first is what it is. */
  async beside(names: readonly string[]): Promise<ToolFiles> {
    const { cwd, ripgrep, mayRead } = this;
    const own: Root[] = [];
    for (const name of names) own.push(await openRoot(name, this.#noting));
    const how = { ...{ cwd, mayRead, own, isLent: this.#isLent }, ...(ripgrep === undefined ? {} : { ripgrep }) };
    return new ToolFiles([...own, ...this.#roots], { ...how, ...this.#noting });
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

  get #noting(): Noting {
    return this.#drafts === undefined ? {} : { drafts: this.#drafts };
  }

  async #use<T>(text: string, use: Use<T>, how: { approved?: boolean; isFolder?: boolean } = {}): Promise<T | Refused> {
    const located = this.locate(text);
    if (!located.ok) return located;
    const { path } = located;
    if (how.approved)
      this.#open ??= openAll(
        this.#roots.map((root) => root.path),
        { protect: false, ...this.#noting },
      );
    const roots = (how.approved ? await this.#open : undefined) ?? this.#roots;
    const inside = insideOf(roots, path);
    if (inside !== undefined) return use(inside.root, path);
    const outside = await rootAbove(how.isFolder ? path : dirname(path), { protect: !how.approved, ...this.#noting });
    if (!(outside instanceof Root)) return outside;
    await using root = outside;
    return await use(root, path);
  }
}

const insideOf = (roots: readonly Root[], path: string): { readonly root: Root; readonly path: string } | undefined => {
  for (const root of roots) {
    const inside = judgeInside(root.names, path);
    if (inside.ok) return { root, path: [root.path, ...inside.below].join("/") };
  }
  return undefined;
};

/** Pins the nearest folder that exists. A path that leads through a link is told where it leads, and not followed. */
const rootAbove = async (wanted: string, how: Noting & { readonly protect: boolean }): Promise<Root | Refused> => {
  let folder = wanted;
  for (;;) {
    const stats = await lstat(folder).catch((error: NodeJS.ErrnoException) => error);
    if (!(stats instanceof Error)) break;
    if (stats.code !== "ENOENT" || folder === "/") break; // the root itself says what is wrong
    folder = dirname(folder);
  }
  try {
    const root = await openRoot(folder, { private: false, ...how });
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
  how: Noting & { readonly protect: boolean },
): Promise<readonly Root[]> => {
  const opened: Root[] = [];
  try {
    for (const folder of folders) opened.push(await openRoot(folder, { private: false, ...how }));
    return opened;
  } catch (error) {
    await Promise.all(opened.map((root) => root.close()));
    throw error;
  }
};

/** Throws RootError where a folder of the workspace cannot be held. */
export const openToolFiles = async (options: ToolFilesOptions): Promise<ToolFiles> => {
  const { roots, drafts } = options;
  return new ToolFiles(await openAll(roots, { protect: true, ...(drafts === undefined ? {} : { drafts }) }), options);
};
