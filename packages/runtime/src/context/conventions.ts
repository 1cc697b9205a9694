/** What did the user and the project's authors write down about how to work here?
 *  Invariant: project files are read through descriptors from their root, never through a link to elsewhere, and never
 *  if they may hold keys or a rule keeps them back. Each file is read once, and sizes are bounded. Notes say what was
 *  left out. Names in fences and code spans are examples, not imports.
 *  Elsewhere: how conventions are shown, and later changes (surroundings.ts). */

import { createHash } from "node:crypto";
import { lstat, realpath } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { openRoot, type Root, RootError, tamperingRisk } from "@prefork/guard";
import { mayContainSecrets, pathProblem } from "@prefork/guard/internal";
import { byteLength, formatNumber, takeHead } from "./text.ts";

export type ConventionFile = {
  /** Absolute, without links. */
  readonly path: string;
  readonly text: string;
  /** Of the whole file, even if the text was truncated. */
  readonly hash: string;
  /** The file that imported it. */
  readonly from?: string;
};

/** Why a file is missing or incomplete: `<path> <text>` is a sentence. */
export type ConventionsNote = { readonly path: string; readonly text: string };

export type Conventions = { readonly files: readonly ConventionFile[]; readonly notes: readonly ConventionsNote[] };

export type ConventionsLimits = {
  readonly fileBytes?: number; // default: 40,000
  readonly totalBytes?: number; // default: 120,000
  readonly depth?: number; // of imports; default: 5
};

export type ConventionsOptions = ConventionsLimits & {
  readonly home: string;
  /** Where project files begin if `cwd` is not in a repository. */
  readonly workspace: string;
  readonly cwd: string;
  /** Whether the project's files are read, not only the user's. Default: true. */
  readonly project?: boolean;
  /** Files that rules keep back: a rule denies reading them, or says to ask. Default: none. */
  readonly keptBack?: (path: string) => boolean;
};

/** In this order in each folder. A later file with the same content is skipped. */
const NAMES = ["AGENTS.md", "CLAUDE.md"] as const;

const MAX_READ_BYTES = 4_000_000;

/** Limits for imports that are looked up, and for notes: a file can contain thousands of both. */
const MAX_IMPORTS = 100;
const MAX_NOTES = 20;

export const readConventions = async (question: ConventionsOptions): Promise<Conventions> => {
  const { home, fileBytes = 40_000, totalBytes = 120_000, depth = 5 } = question;
  const homes = [home, await realpath(home).catch(() => home)];
  const gathering = new ConventionsReader({ fileBytes, totalBytes, depth }, { homes, ...question });
  await gathering.user(home);
  if (question.project ?? true) await gathering.project(await projectRoot(question), question.cwd);
  return gathering.result();
};

/** The nearest folder from `cwd` upwards that contains a repository, else the workspace. A repository above that
 *  belongs to another user (in a shared folder, for example) does not count, and neither does one that contains the
 *  home folder. */
const projectRoot = async ({ cwd, workspace, home }: ConventionsOptions): Promise<string> => {
  const here = await realpath(cwd);
  const owner = await realpath(home).catch(() => home);
  const ours = [(await lstat(here)).uid, process.getuid?.()];
  for (let folder = here; folder === here || !isBelow(folder, owner); folder = dirname(folder)) {
    const mark = await lstat(join(folder, ".git")).catch(() => undefined);
    if (mark !== undefined && (mark.isDirectory() || mark.isFile()) && ours.includes(mark.uid)) return folder;
    if (folder === dirname(folder)) break;
  }
  const given = await realpath(workspace);
  return isBelow(given, here) ? given : here;
};

const isBelow = (folder: string, path: string): boolean => {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith("../"));
};

/** From the root down to `cwd`. */
const foldersBetween = (root: string, cwd: string): readonly string[] => {
  const names = relative(root, cwd)
    .split("/")
    .filter((name) => name !== "");
  return [root, ...names.map((_, at) => join(root, ...names.slice(0, at + 1)))];
};

type FoundFile = { readonly path: string; readonly text: string; readonly hash: string };

/** How far the imports of a file may lead, and what `~/` means in them. */
type ImportScope = { readonly root: Root; readonly home?: string };

/** What is not read: settings in home folders that hold keys, and what rules keep back. */
type Withheld = Pick<ConventionsOptions, "keptBack"> & { readonly homes: readonly string[] };

type ImportOrigin = { readonly from: ConventionFile; readonly depth: number };

class ConventionsReader {
  readonly #limits: Required<ConventionsLimits>;
  readonly #files: ConventionFile[] = [];
  readonly #notes: ConventionsNote[] = [];
  readonly #seen = new Set<string>();
  #room: number;
  #imports = 0;
  readonly #withheld: Withheld;

  constructor(limits: Required<ConventionsLimits>, withheld: Withheld) {
    this.#limits = limits;
    this.#withheld = withheld;
    this.#room = limits.totalBytes;
  }

  result(): Conventions {
    const more = this.#notes.length - MAX_NOTES;
    const rest = more > 0 ? [{ path: `${more} more`, text: "were left out or cut" }] : [];
    return { files: this.#files, notes: [...this.#notes.slice(0, MAX_NOTES), ...rest] };
  }

  /** The user's own file: the first name that exists. The folder may be a link, and files may link within the home
   *  folder. */
  async user(home: string): Promise<void> {
    const folder = await realpath(join(home, ".prefork")).catch(() => undefined);
    if (folder === undefined) return;
    const owner = await realpath(home);
    await using root = await openOrNote(isBelow(owner, folder) ? owner : folder, this.#notes);
    if (root === undefined) return;
    const realm = { root, ...(root.path === owner ? { home: owner } : {}) };
    for (const name of NAMES) {
      const risk = await tamperingRisk(join(folder, name));
      if (risk !== undefined) {
        this.#leaveOut(join(folder, name), risk);
        continue;
      }
      const found = await this.#find(root, join(folder, name));
      if (found === undefined) continue;
      await this.#enter(found, realm);
      return;
    }
  }

  async project(folder: string, cwd: string): Promise<void> {
    await using root = await openOrNote(folder, this.#notes);
    if (root === undefined) return;
    for (const at of foldersBetween(root.path, await realpath(cwd))) {
      const hashes = new Set<string>();
      for (const name of NAMES) {
        const found = await this.#find(root, join(at, name));
        if (found === undefined || hashes.has(found.hash)) continue;
        hashes.add(found.hash);
        await this.#enter(found, { root });
      }
    }
  }

  /** Reads a conventions file. If it is a link, reads the file that it names, if that is inside the root. */
  async #find(root: Root, path: string): Promise<FoundFile | undefined> {
    const looked = await root.look(path);
    if (!looked.ok) return this.#leaveOut(path, looked.reason);
    if (looked.facts === undefined) return undefined;
    if (looked.facts.kind !== "link") return this.#read(root, path);
    const link = await root.linkText(path);
    if (!link.ok) return this.#leaveOut(path, link.reason);
    const target = resolve(dirname(path), link.text);
    if (!isBelow(root.path, target)) return this.#leaveOut(path, "it is a link that leads outside");
    return this.#read(root, target);
  }

  async #read(root: Root, path: string): Promise<FoundFile | undefined> {
    const { homes, keptBack } = this.#withheld;
    if (pathProblem(path) !== undefined || mayContainSecrets(path, homes))
      return this.#leaveOut(path, "it may hold keys, or is no plain file");
    if (keptBack?.(path)) return this.#leaveOut(path, "a rule denies reading it, or says to ask");
    const read = await root.read(path, { maxBytes: MAX_READ_BYTES });
    if (!read.ok) return this.#leaveOut(path, read.reason);
    if (read.bytes.includes(0)) return this.#leaveOut(path, "it is no text");
    const hash = createHash("sha256").update(read.bytes).digest("base64url");
    return { path, text: read.bytes.toString("utf8"), hash };
  }

  #leaveOut(path: string, reason: string): undefined {
    this.#notes.push({ path, text: `was left out: ${reason}` });
  }

  async #enter({ path, text, hash }: FoundFile, realm: ImportScope, importing?: ImportOrigin): Promise<void> {
    if (this.#seen.has(path)) return;
    this.#seen.add(path);
    const from = importing === undefined ? {} : { from: importing.from.path };
    const most = Math.min(this.#limits.fileBytes, this.#room);
    const shown = takeHead(text, most);
    const [whole, kept] = [byteLength(text), byteLength(shown)];
    if (kept < whole) {
      const why = most < this.#limits.fileBytes ? "all conventions together are too long" : "it is too long";
      if (kept === 0) return this.#leaveOut(path, why);
      this.#notes.push({ path, text: `was cut after ${formatNumber(kept)} of ${formatNumber(whole)} bytes: ${why}` });
    }
    this.#room -= kept;
    const file = { path, text: shown, hash, ...from };
    this.#files.push(file);
    await this.#follow({ from: file, depth: (importing?.depth ?? 0) + 1 }, realm);
  }

  async #follow(importing: ImportOrigin, realm: ImportScope): Promise<void> {
    const { from, depth } = importing;
    for (const name of findImports(from.text)) {
      const path = this.#target(name, from.path, realm);
      if (path === undefined || this.#seen.has(path)) continue;
      this.#imports += 1;
      if (this.#imports > MAX_IMPORTS) {
        this.#leaveOut(path, `there are more than ${MAX_IMPORTS} imports (imported by ${from.path})`);
        return;
      }
      const looked = await realm.root.look(path);
      const refused = looked.ok ? (looked.facts === undefined ? "there is no such file" : undefined) : looked.reason;
      if (looked.ok && looked.facts?.kind === "folder") continue;
      if (refused === undefined && depth <= this.#limits.depth) {
        const found = await this.#read(realm.root, path);
        if (found !== undefined) await this.#enter(found, realm, importing);
      } else if (refused === undefined || looksLikeFile(name)) {
        const why = refused ?? `imports go deeper than ${this.#limits.depth}`;
        this.#leaveOut(path, `${why} (imported by ${from.path})`);
      }
    }
  }

  /** Where an imported name leads, judged by its text; undefined if it may not lead there. */
  #target(name: string, importer: string, { root, home }: ImportScope): string | undefined {
    if (name.startsWith("~/") && home === undefined)
      return this.#leaveOut(name, `only the user's own file may import from home (imported by ${importer})`);
    const path = name.startsWith("~/") ? resolve(home ?? "", name.slice(2)) : resolve(dirname(importer), name);
    if (isBelow(root.path, path)) return path === root.path ? undefined : path;
    return looksLikeFile(name) ? this.#leaveOut(name, `it leads outside (imported by ${importer})`) : undefined;
  }
}

const openOrNote = async (folder: string, notes: ConventionsNote[]): Promise<Root | undefined> => {
  try {
    return await openRoot(folder);
  } catch (error) {
    if (!(error instanceof RootError)) throw error;
    notes.push({ path: folder, text: `was left out: ${error.message}` });
    return undefined;
  }
};

/** The files that a conventions file names with `@path`, each once, in the order of the text. Pure. */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** Lines outside fences. A fence ends with a line of at least as many of the same marks, or with the text. */
const outsideFences = (text: string): readonly string[] => {
  const kept: string[] = [];
  let open: string | undefined;
  for (const line of text.split(/\r\n|\n|\r/)) {
    const marks = FENCE.exec(line)?.[1];
    if (open === undefined) {
      if (marks === undefined) kept.push(line);
      else open = marks;
    } else if (marks?.startsWith(open) && line.trim() === marks) open = undefined;
  }
  return kept;
};

/** A code span opens with a run of backticks and closes with a run of the same length. A run that never closes is
 *  text. */
const withoutSpans = (text: string): string => text.replace(/(?<!`)(`+)(?!`)[\s\S]*?(?<!`)\1(?!`)/g, " ");

/** After white space or a bracket, so that an e-mail address is not an import. */
const IMPORT = /(?<=^|[\s([{"'*])@([^\s@]+)/gm;

/** Closes a sentence or a bracket around the name. Only tried where a run of such characters begins: linear time. */
const CLOSING = /(?<![.,;:!?)\]}"'>*_])[.,;:!?)\]}"'>*_]+$/;

export const findImports = (text: string): readonly string[] => {
  const prose = withoutSpans(outsideFences(text).join("\n"));
  const names = [...prose.matchAll(IMPORT)].map(([, name = ""]) => name.replace(CLOSING, ""));
  return [...new Set(names.filter((name) => name !== ""))];
};

const ENDING =
  /[\w-]\.(?:mdx?|markdown|txt|rst|adoc|jsonc?|ya?ml|toml|xml|html|css|csv|ini|cfg|conf|sh|[cm]?[jt]sx?|py|rs|go|java|rb|sql)$/i;

/** `@scope/package`, `@somebody` and `@decorator(…)` are not files, and not worth a note. */
export const looksLikeFile = (name: string): boolean => /^(?:\.{1,2}|~)?\//.test(name) || ENDING.test(name);
