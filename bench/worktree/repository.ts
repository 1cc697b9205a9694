/** A repository to branch off from: generated files in folders, one commit, and some state that is not committed.
 *  Invariant: the same count gives the same files, everywhere.
 *  Elsewhere: what is done with it (index.ts). */

import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

const FILES_A_FOLDER = 50;

/** Without the hooks, helpers and settings of the person who runs this. */
const ENVIRONMENT = {
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  HOME: "/nowhere",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "bench",
  GIT_AUTHOR_EMAIL: "bench@localhost",
  GIT_COMMITTER_NAME: "bench",
  GIT_COMMITTER_EMAIL: "bench@localhost",
};

export const git = async (cwd: string, ...words: readonly string[]): Promise<string> =>
  (await run("git", ["-c", "gc.auto=0", ...words], { cwd, env: ENVIRONMENT, maxBuffer: 1 << 28 })).stdout;

export const fileName = (index: number): string => `src/part-${Math.floor(index / FILES_A_FOLDER)}/file-${index}.ts`;

/** About 2 KB that no two files share. */
const contentOf = (index: number): string =>
  Array.from(
    { length: 40 },
    (_, line) => `export const value_${index}_${line} = "${(index * 7919 + line) % 104729}";\n`,
  ).join("");

export const makeRepository = async (path: string, files: number): Promise<void> => {
  for (let index = 0; index < files; index += 1) {
    const file = join(path, fileName(index));
    if (index % FILES_A_FOLDER === 0) await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, contentOf(index));
  }
  await writeFile(join(path, "README.md"), "# A generated repository\n");
  await git(path, "init", "-q", "-b", "main");
  await git(path, "add", "-A");
  await git(path, "commit", "-q", "-m", "All of it");
  await git(path, "repack", "-q", "-a", "-d"); // like a repository that was fetched
  await writeFile(join(path, "README.md"), "# A generated repository, changed and not committed\n");
  await writeFile(join(path, "untracked.md"), "Never added.\n");
};

/** The disk space of a folder, in KiB. */
export const diskOf = async (path: string): Promise<number> =>
  Number((await run("du", ["-sk", path])).stdout.split("\t")[0]);
