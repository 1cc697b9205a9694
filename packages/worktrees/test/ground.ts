/** A repository for one test, worktrees on it, and a snapshot of everything in it that belongs to the user.
 *  Invariant: taking the snapshot starts no git that could write or run a filter; the test's git ignores the machine's
 *  settings. */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { scratchInMemory } from "@prefork/testing/scratch";
import { NO_GIT_MAINTENANCE } from "@prefork/testing/without-upkeep";
import { Worktrees, type WorktreesOptions } from "../src/index.ts";
import type { CreatedWorktree } from "../src/internal.ts";

export type Files = {
  readonly path: string;
  readonly git: (...words: readonly string[]) => string;
  /** Writes a file and the folders above it. A name that is not valid text is given as bytes, one per character. */
  readonly put: (name: string | Buffer, content: string | Buffer, mode?: number) => void;
  readonly link: (name: string, target: string) => void;
  readonly drop: (name: string | Buffer) => void;
};

const WHO = { GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@b", GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@b" };

const below = (folder: string, name: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name)]);

const folderOf = (path: Buffer): Buffer => path.subarray(0, path.lastIndexOf(47));

export const filesIn = (path: string, home: string): Files => ({
  path,
  git: (...words) =>
    execFileSync("git", [...words], {
      cwd: path,
      encoding: "utf8",
      env: {
        PATH: process.env.PATH,
        HOME: home,
        LC_ALL: "C.UTF-8",
        GIT_CONFIG_NOSYSTEM: "1",
        ...NO_GIT_MAINTENANCE,
        ...WHO,
      },
      stdio: ["ignore", "pipe", "pipe"],
    }),
  put: (name, content, mode) => {
    const file = below(path, name);
    mkdirSync(folderOf(file), { recursive: true });
    writeFileSync(file, content);
    if (mode !== undefined) chmodSync(file, mode);
  },
  link: (name, target) => symlinkSync(target, join(path, name)),
  drop: (name) => rmSync(below(path, name), { recursive: true }),
});

export type Ground = Disposable &
  Files & {
    readonly at: (...names: readonly string[]) => string;
    readonly home: string;
    readonly state: string;
    readonly open: (options?: Partial<WorktreesOptions>) => Promise<Worktrees>;
    readonly copy: (created: CreatedWorktree) => Files;
    /** A file that a program of the repository would create if it ran. */
    readonly canary: string;
    readonly touch: string;
  };

/** `kind`: arguments for git init. */
export const openGround = (...kind: readonly string[]): Ground => {
  const place = scratchInMemory();
  const [path, home, state, canary] = ["repo", "home", "state", "canary"].map((name) => place.at(name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const folder of [path, home]) mkdirSync(folder);
  const files = filesIn(path, home);
  files.git("init", "-q", "-b", "main", ...kind);
  return {
    ...files,
    at: place.at,
    ...{ home, state, canary, touch: `touch ${canary};` },
    open: (options = {}) => Worktrees.open({ cwd: path, state, environment: { HOME: home }, ...options }),
    copy: (created) => filesIn(created.path, home),
    [Symbol.dispose]: () => place[Symbol.dispose](),
  };
};

/** The committed files that most tests start with. */
export const commitUsual = ({ put, git }: Files): void => {
  put("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  put("b", "b\n");
  put("d/e/f", "f\n");
  put("tool.sh", "#!/bin/sh\n", 0o755);
  put(".gitignore", "*.log\n.env\nbuild/\n");
  git("add", "-A");
  git("commit", "-qm", "one");
};

/** The entry behind a name, with its content as a hash. */
export type Tree = Readonly<Record<string, string>>;

const hashOf = (content: Buffer): string => createHash("sha256").update(content).digest("hex").slice(0, 16);

export const photographFiles = (folder: string): Tree => {
  const found: Record<string, string> = {};
  const visit = (path: Buffer): void => {
    for (const name of readdirSync(below(folder, path), { encoding: "buffer" })) {
      const inside = Buffer.concat([path, name]);
      const shown = inside.toString("latin1");
      if (shown === ".git") continue;
      const file = below(folder, inside);
      const facts = lstatSync(file);
      const mode = (facts.mode & 0o7777).toString(8);
      if (facts.isDirectory()) {
        found[`${shown}/`] = mode;
        visit(Buffer.concat([inside, Buffer.from("/")]));
      } else if (facts.isSymbolicLink())
        found[shown] = `-> ${readlinkSync(file, { encoding: "buffer" }).toString("latin1")}`;
      else if (facts.isFile()) found[shown] = `${mode} ${hashOf(readFileSync(file))}`;
      else found[shown] = "special";
    }
  };
  visit(Buffer.alloc(0));
  return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)));
};

export type Photograph = {
  readonly files: Tree;
  readonly index: string;
  readonly head: string;
  /** Refs except our own. */
  readonly refs: readonly string[];
  readonly logs: Tree;
  readonly config: string;
  /** Names in git's folder: a lock or a stage left behind would show up. */
  readonly gitFolder: readonly string[];
};

const contentOf = (path: string): string => (existsSync(path) ? hashOf(readFileSync(path)) : "none");

const isOurRef = (ref: string): boolean => /refs\/(?:heads\/)?prefork\//.test(ref);

/** The git folder and the common folder of a checkout: they never move. */
const gitFolders = new Map<string, readonly string[]>();

const gitFoldersOf = ({ path, git }: Files): readonly string[] => {
  const known = gitFolders.get(path);
  if (known) return known;
  const found = git("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir").split("\n");
  gitFolders.set(path, found);
  return found;
};

/** Everything in a checkout and its repository that belongs to the user. */
export const photograph = (files: Files): Photograph => {
  const { path } = files;
  const [gitDir = "", common = ""] = gitFoldersOf(files);
  const logs = existsSync(join(common, "logs")) ? photographFiles(join(common, "logs")) : {};
  const packed = join(common, "packed-refs");
  const refs = [
    ...(existsSync(packed) ? readFileSync(packed, "utf8").split("\n") : []),
    ...Object.entries(photographFiles(join(common, "refs"))).map(([name, what]) => `refs/${name} ${what}`),
  ];
  return {
    files: photographFiles(path),
    index: contentOf(join(gitDir, "index")),
    head: readFileSync(join(gitDir, "HEAD"), "utf8"),
    refs: refs.filter((ref) => !isOurRef(ref)),
    logs: Object.fromEntries(Object.entries(logs).filter(([name]) => !name.includes("prefork"))),
    config: contentOf(join(common, "config")),
    gitFolder: readdirSync(gitDir)
      .filter((name) => !["worktrees", "logs"].includes(name))
      .sort(),
  };
};

/** Files that git tracks or would add, with what matters to git: content, executable bit, link target. */
export const heldFiles = ({ path, git }: Files): Tree => {
  const all = photographFiles(path);
  const names = git("-c", "core.quotePath=false", "ls-files", "-z", "-co", "--exclude-standard");
  const held = new Set(Buffer.from(names).toString("latin1").split("\0"));
  const kept = Object.entries(all).filter(([name]) => held.has(name) && !name.endsWith("/"));
  return Object.fromEntries(
    kept.map(([name, what]) => [
      name,
      what.replace(/^(\d+) /, (_, mode) => (Number.parseInt(mode, 8) & 0o100 ? "x " : "- ")),
    ]),
  );
};
