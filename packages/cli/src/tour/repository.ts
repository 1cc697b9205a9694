/** Writes a sample to disk and commits it.
 *  Invariant: git uses no configuration, hooks or keys of the user, and fixed names and dates, so that the same seed gives
 *  the same commit.
 *  Elsewhere: the files (sample.ts), the private folder (run.ts). */

import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { UsageError } from "../io.ts";
import type { Sample } from "./sample.ts";

export type Repository = { readonly folder: string; readonly files: number; readonly lines: number };

export type RepositoryOptions = {
  readonly folder: string;
  /** Where programs are found; nothing else of the user's environment is used. */
  readonly path: string | undefined;
  readonly signal: AbortSignal;
};

export const makeRepository = async ({ files }: Sample, options: RepositoryOptions): Promise<Repository> => {
  const { folder, signal } = options;
  for (const parent of new Set([...files.keys()].map((name) => dirname(join(folder, name)))))
    await mkdir(parent, { recursive: true });
  for (const [name, text] of files) await writeFile(join(folder, name), text, { signal });
  await git(["init", "--quiet", "--template="], options);
  await git(["symbolic-ref", "HEAD", "refs/heads/main"], options);
  await git(["add", "--all"], options);
  await git(["commit", "--quiet", "--no-verify", "--message", "Keep the books of one office"], options);
  const lines = [...files.values()].reduce((sum, text) => sum + text.split("\n").length - 1, 0);
  return { folder, files: files.size, lines };
};

/** No configuration file of this user or machine is read. */
const OWN_CONFIGURATION = { GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null", GIT_TERMINAL_PROMPT: "0" };
const FLAGS = ["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", "-c", "gc.auto=0"];

const COMMITTED_AT = "2026-01-05T09:00:00Z";
const PEOPLE = Object.fromEntries(
  ["AUTHOR", "COMMITTER"].flatMap((role) => [
    [`GIT_${role}_NAME`, "Ada Quay"],
    [`GIT_${role}_EMAIL`, "ada@example.com"],
    [`GIT_${role}_DATE`, COMMITTED_AT],
  ]),
);

const run = promisify(execFile);

const git = async (words: readonly string[], { folder, path, signal }: RepositoryOptions): Promise<void> => {
  const env = { ...OWN_CONFIGURATION, ...PEOPLE, HOME: folder, ...(path === undefined ? {} : { PATH: path }) };
  try {
    await run("git", [...FLAGS, ...words], { cwd: folder, env, signal });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT")
      throw new UsageError("the tour creates a real repository, and git is not installed here (apt install git)", {
        cause: error,
      });
    throw error;
  }
};
