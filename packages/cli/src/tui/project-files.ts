/** Which files are in this project? For completing `@file`.
 *  Invariant: nothing here blocks: git runs in the background with limits and starts nothing that the repository names, and
 *  a folder without git is walked with limits; ignored files are left out; names that could act on a terminal are left out,
 *  because nobody can type them.
 *  Elsewhere: finding the ones that match (completion.ts). */

import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { findProgram } from "@prefork/guard";
import { cleanEnvironment, withMemoryLimit } from "@prefork/guard/internal";
import { safeText } from "./state/index.ts";

/** How long a list is used before it is read again, in the background. */
const FRESH_MS = 5_000;
const GIT_LIMITS = { timeout: 5_000, maxBuffer: 32_000_000, killSignal: "SIGKILL" } as const;
const MAX_FILES = 100_000;
/** Longer names exist only where somebody made them to be in the way. */
const MAX_NAME = 1_000;
const MAX_FOLDERS_IN_NAME = 40;
/** Names that are worked through before other work gets a turn. */
const PER_TURN = 5_000;
/** Without git nothing says what is unimportant, so less is listed. */
const MAX_WALKED_FILES = 20_000;
const MAX_DEPTH = 12;
const UNIMPORTANT: ReadonlySet<string> = new Set([".git", "node_modules", ".venv", "__pycache__", ".cache"]);

type FileList = { readonly at: number; readonly paths: readonly string[] };

export class ProjectFiles {
  readonly #cwd: () => string;
  #list: (FileList & { readonly cwd: string }) | undefined;
  #reading: Promise<readonly string[]> | undefined;

  constructor(cwd: () => string) {
    this.#cwd = cwd;
  }

  /** Files and folders, folders with a slash at their end. The last list, if there is one; a newer one is then on its way. */
  async paths(): Promise<readonly string[]> {
    const cwd = this.#cwd();
    const list = this.#list?.cwd === cwd ? this.#list : undefined;
    if (list && Date.now() - list.at < FRESH_MS) return list.paths;
    this.#reading ??= this.#read(cwd).finally(() => {
      this.#reading = undefined;
    });
    return list ? list.paths : this.#reading;
  }

  async #read(cwd: string): Promise<readonly string[]> {
    const files = (await gitFiles(cwd)) ?? (await walkedFiles(cwd));
    const paths = await withFolders(files);
    this.#list = { at: Date.now(), cwd, paths };
    return paths;
  }
}

/** Tracked files, and new ones that are not ignored. Undefined if git does not answer for this folder. */
const gitFiles = async (cwd: string): Promise<readonly string[] | undefined> => {
  const git = findProgram("git");
  if (git === undefined) return undefined;
  const words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const [program = "", ...args] = withMemoryLimit([git, ...words]);
  return new Promise((resolve) => {
    execFile(program, args, { cwd, env: cleanEnvironment(), encoding: "utf8", ...GIT_LIMITS }, (error, text) => {
      if (error) resolve(undefined);
      else resolve([...new Set(text.split("\0").filter((path) => path !== ""))].slice(0, MAX_FILES));
    });
  });
};

/** Breadth first, so that the limits cut off what is deepest. Links are not followed. */
const walkedFiles = async (cwd: string): Promise<readonly string[]> => {
  const files: string[] = [];
  let folders: readonly string[] = [""];
  for (let depth = 0; depth < MAX_DEPTH && folders.length > 0 && files.length < MAX_WALKED_FILES; depth++) {
    const deeper: string[] = [];
    for (const folder of folders) {
      if (files.length >= MAX_WALKED_FILES) break;
      const entries = await readdir(join(cwd, folder), { withFileTypes: true }).catch(() => []);
      for (const entry of entries) {
        if (UNIMPORTANT.has(entry.name)) continue;
        const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
        if (entry.isDirectory()) deeper.push(path);
        else if (entry.isFile()) files.push(path);
      }
    }
    folders = deeper;
  }
  return files.slice(0, MAX_WALKED_FILES);
};

/** A name below the folder, of a length that people use, without signs that nobody can type. An index may say anything. */
const isTypable = (path: string): boolean =>
  path.length <= MAX_NAME &&
  !/[\n"]/.test(path) &&
  !/(?:^|\/)\.{0,2}(?:\/|$)/.test(path) &&
  path.split("/").length <= MAX_FOLDERS_IN_NAME &&
  safeText(path) === path;

/** Those that can be typed, and their folders. */
const withFolders = async (files: readonly string[]): Promise<readonly string[]> => {
  const folders = new Set<string>();
  const typable: string[] = [];
  for (const [index, file] of files.entries()) {
    if (index % PER_TURN === PER_TURN - 1) await nextTurn();
    if (folders.size + typable.length >= MAX_FILES) break;
    if (!isTypable(file)) continue;
    typable.push(file);
    let end = file.lastIndexOf("/");
    while (end > 0) {
      const folder = file.slice(0, end + 1);
      if (folders.has(folder)) break;
      folders.add(folder);
      end = file.lastIndexOf("/", end - 1);
    }
  }
  return [...folders, ...typable];
};
