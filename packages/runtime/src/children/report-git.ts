/** What does git know about some paths and commits?
 *  Git is started directly, without a shell, in the clean environment of read-only commands and on a view of the
 *  repository, and not at all where the repository is not understood. Each answer is bounded in memory and size. A
 *  missing answer is never taken for a "no".
 *  Elsewhere: what makes git harmless (@prefork/guard), which questions it is asked (check-report.ts). */

import { execFile } from "node:child_process";
import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { classify, findProgram, planHazard, type ReadOnlySandbox } from "@prefork/guard";
import { cleanEnvironment, GitViews, withMemoryLimit } from "@prefork/guard/internal";

export type GitPlace = {
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly readOnlySandbox?: ReadOnlySandbox;
};

/** Absolute paths. A folder ends in a slash and stands for everything below it. */
export type GitStatus = {
  readonly changed: readonly string[];
  /** Existing files that the repository ignores. */
  readonly ignored: readonly string[];
  /** False: there may be more. */
  readonly isWhole: boolean;
};

const MOST_OUTPUT_BYTES = 1_000_000;

/** A system may not accept more arguments. */
const MOST_PATHS = 1_000;

export class GitView {
  readonly top: string;
  readonly #run: RunGit;

  /** Use `viewGit`. */
  constructor(top: string, run: RunGit) {
    this.top = top;
    this.#run = run;
  }

  /** Can git tell whether this changed? Not outside its tree, nor in a repository inside it, nor in its own folder. */
  knows(path: string): boolean {
    if (!isBelow(path, this.top)) return path === this.top;
    if (path.slice(this.top.length).split("/").includes(".git")) return false;
    for (let folder = path; isBelow(folder, this.top); folder = dirname(folder))
      if (isThere(join(folder, ".git"))) return false;
    return true;
  }

  /** Which of these paths differ from the last commit. */
  async status(paths: readonly string[]): Promise<GitStatus | undefined> {
    const inside = paths.filter((path) => path === this.top || isBelow(path, this.top));
    if (inside.length === 0) return { changed: [], ignored: [], isWhole: true };
    const how = ["--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching"];
    const words = ["--literal-pathspecs", "status", ...how, "--", ...inside.slice(0, MOST_PATHS)];
    const { text, problem } = await this.#run(words);
    if (problem !== undefined && problem !== "too long") return undefined;
    const records = text.split("\0").slice(0, -1);
    return {
      changed: records.flatMap((record) => this.#pathIn(record, CHANGED)),
      ignored: records.flatMap((record) => this.#pathIn(record, IGNORED)),
      isWhole: problem === undefined && inside.length <= MOST_PATHS,
    };
  }

  /** The paths that a commit changed; "missing" if there is no such commit; undefined if git cannot tell. */
  async commit(hash: string): Promise<readonly string[] | "missing" | undefined> {
    const name = `${hash}^{commit}`;
    const there = await this.#run(["cat-file", "-e", name]);
    if (there.problem !== undefined) {
      const isMissing = /Not a valid object name/.test(there.complaint) && !/ambiguous/.test(there.complaint);
      return isMissing ? "missing" : undefined;
    }
    const how = ["-r", "-m", "--root", "--no-commit-id", "--name-only", "-z", "--no-renames", "--no-ext-diff"];
    const { text, problem } = await this.#run(["diff-tree", ...how, name, "--"]);
    if (problem !== undefined && problem !== "too long") return [];
    const names = text.split("\0").slice(0, -1);
    return [...new Set(names)].map((path) => `${this.top}/${path}`);
  }

  #pathIn(record: string, form: RegExp): readonly string[] {
    const path = form.exec(record)?.[1];
    return path === undefined ? [] : [`${this.top}/${path}`];
  }
}

/** Kinds: 1 changed, u conflicted, ? untracked, ! ignored; the path follows the last known field. */
const CHANGED = /^(?:1(?: \S+){7}|u(?: \S+){9}|\?) (.*)$/s;
const IGNORED = /^! (.*)$/s;

/** A path that cannot be checked, because its name is too long or a folder is closed, counts as missing. */
export const isThere = (path: string): boolean => {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
};

const isBelow = (path: string, folder: string): boolean =>
  path !== folder && path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);

/** Undefined if there is no repository, or none that git may safely read. */
export const viewGit = async (place: GitPlace): Promise<GitView | undefined> => {
  const program = findProgram("git");
  const verdict = classify("git status");
  if (program === undefined || verdict.verdict !== "read-only") return undefined;
  if (planHazard(verdict.plan, place) !== undefined) return undefined;
  const run = runner(program, place);
  const { text, problem } = await run(["rev-parse", "--show-toplevel"]);
  const top = text.replace(/\n$/, "");
  return problem === undefined && top.startsWith("/") ? new GitView(top, run) : undefined;
};

type GitAnswer = { readonly text: string; readonly complaint: string; readonly problem?: "failed" | "too long" };
type RunGit = (words: readonly string[]) => Promise<GitAnswer>;

const FAILED: GitAnswer = { text: "", complaint: "", problem: "failed" };

const runner =
  (git: string, place: GitPlace): RunGit =>
  async (words) => {
    using views = new GitViews();
    const view = views.of(place.cwd, words);
    if ("problem" in view) return FAILED;
    return await started([git, ...words], place, view.variables());
  };

const started = (
  plain: readonly string[],
  { cwd, signal, readOnlySandbox }: GitPlace,
  variables: Readonly<Record<string, string>>,
): Promise<GitAnswer> =>
  new Promise((done) => {
    const how = {
      cwd,
      env: { ...cleanEnvironment(), ...variables },
      signal,
      maxBuffer: MOST_OUTPUT_BYTES,
      killSignal: "SIGKILL",
    } as const;
    try {
      const [program = "", ...args] = withMemoryLimit(readOnlySandbox ? readOnlySandbox.enter(plain, cwd) : plain);
      const child = execFile(program, args, how, (error, text, complaint) => {
        const isLong = error?.code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER";
        done(error ? { text, complaint, problem: isLong ? "too long" : "failed" } : { text, complaint });
      });
      child.stdin?.end();
    } catch {
      done(FAILED); // more words than the system passes on, or a sandbox that cannot be prepared
    }
  });
