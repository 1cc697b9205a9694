/** Which files are below a folder, except those that git ignores?
 *  Invariant: names are relative to the folder, and lead nowhere else. Only regular files are listed; links are neither followed nor listed,
 *  and nothing inside `.git` is. The answer is the same with and without ripgrep as far as git's own rules go.
 *  Elsewhere: patterns (glob.ts), contents (ripgrep.ts, search-text.ts). */

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { findProgram, findRipgrep } from "@prefork/guard";
import { findBlockingFile, type Refused } from "@prefork/guard/internal";
import { runProgram } from "./run-program.ts";
import type { ToolContext } from "./tool.ts";

export type FileList = {
  readonly ok: true;
  readonly names: readonly string[];
  /** There are more files than are listed. */
  readonly isCut: boolean;
};

const MAX_NAMES = 200_000;

/** The ripgrep program, or undefined if searches must do without it. */
export const ripgrepFor = ({ files }: ToolContext): string | undefined =>
  files.ripgrep === null ? undefined : (files.ripgrep ?? findRipgrep());

/** Shown once per session. */
export const NO_RIPGREP_NOTE = "[ripgrep is not installed; searching without it is slower and knows fewer patterns]";

export const listFiles = async (folder: string, context: ToolContext): Promise<FileList | Refused> => {
  const waiting = findBlockingFile(folder);
  if (waiting !== undefined)
    return { ok: false, reason: `${waiting} is not a regular file, and a search would wait for it` };
  const ripgrep = ripgrepFor(context);
  if (ripgrep !== undefined) {
    const argv = [ripgrep, "--no-config", "--files", "--hidden", "--null", "--no-messages", "--glob=!.git", "--", "./"];
    const listed = await runForNames(argv, folder, context);
    return typeof listed === "number" ? { ok: false, reason: `ripgrep failed with exit code ${listed}` } : listed;
  }
  return (await listByGit(folder, context)) ?? walk(folder, context);
};

/** Undefined if git cannot tell: no repository, no git, or the whole folder is ignored. */
const listByGit = async (folder: string, context: ToolContext): Promise<FileList | undefined> => {
  const git = findProgram("git");
  if (git === undefined) return undefined;
  const ignored = await runProgram(
    { argv: [git, "check-ignore", "--quiet", "--", "."], cwd: folder, output: () => true },
    context,
  );
  if (ignored.exitCode !== 1) return undefined;
  const argv = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "."];
  const listed = await runForNames(argv, folder, context);
  return typeof listed === "number" ? undefined : listed;
};

/** Runs a program that prints names, each followed by a zero byte. Returns its exit code if it failed. */
const runForNames = async (
  argv: readonly string[],
  folder: string,
  context: ToolContext,
): Promise<FileList | number> => {
  const names = new Set<string>();
  let rest: Buffer = Buffer.alloc(0);
  const { exitCode, ended } = await runProgram(
    {
      argv,
      cwd: folder,
      output: (chunk) => {
        const all = Buffer.concat([rest, chunk]);
        const end = all.lastIndexOf(0);
        rest = all.subarray(end + 1);
        for (const listed of all.subarray(0, Math.max(0, end)).toString("utf8").split("\0")) {
          const name = listed.replace(/^\.\//, "");
          if (staysBelow(name)) names.add(name);
        }
        return names.size < MAX_NAMES;
      },
    },
    context,
  );
  context.signal.throwIfAborted();
  // Exit code 1: nothing was found.
  if (ended === "finished" && exitCode > 1) return exitCode;
  return { ok: true, names: [...names], isCut: ended !== "finished" };
};

/** A repository's index may say anything, and git prints it as it is: `../other/notes.txt` too. */
const staysBelow = (name: string): boolean => name.split("/").every((part) => !["", ".", ".."].includes(part));

const walk = async (folder: string, { signal }: ToolContext): Promise<FileList> => {
  const names: string[] = [];
  const open = [""];
  for (let below = open.pop(); below !== undefined && names.length < MAX_NAMES; below = open.pop()) {
    signal.throwIfAborted();
    const entries = await readdir(join(folder, below), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const name = below === "" ? entry.name : `${below}/${entry.name}`;
      if (entry.name === ".git") continue;
      if (entry.isDirectory()) open.push(name);
      else if (entry.isFile()) names.push(name);
    }
  }
  return { ok: true, names, isCut: open.length > 0 };
};

/** Orders names as a walk through the folders would. No name contains NUL, and NUL sorts before every other letter. */
export const sortInWalkOrder = (names: readonly string[]): readonly string[] =>
  names
    .map((name) => name.replaceAll("/", "\0"))
    .sort()
    .map((name) => name.replaceAll("\0", "/"));
