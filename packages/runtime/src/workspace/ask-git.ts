/** Asks git a question about a repository.
 *  Invariant: everything that its configuration could start is switched off; an answer that takes too long or is too
 *  large has failed.
 *  Elsewhere: what is asked (git-probe.ts, git-links.ts, git-objects.ts). */

import { spawnSync } from "node:child_process";
import { cleanEnvironment } from "./environment.ts";
import { findProgram } from "./programs.ts";

export type GitQuestion = {
  readonly folder: string;
  readonly words: readonly string[];
  readonly input?: string;
  readonly mostBytes?: number; // default: 4,000,000
};

export type GitAnswer = { readonly text: string; readonly complaint: string; readonly failed: boolean };

/** Undefined where there is no git, which then cannot be run either. */
export const askGit = ({ folder, words, input, mostBytes = 4_000_000 }: GitQuestion): GitAnswer | undefined => {
  const git = findProgram("git");
  if (git === undefined) return undefined;
  const { stdout, stderr, error, status } = spawnSync(git, [...words], {
    cwd: folder,
    env: cleanEnvironment(),
    encoding: "utf8",
    timeout: 5_000,
    maxBuffer: mostBytes,
    stdio: ["pipe", "pipe", "pipe"],
    input: input ?? "",
  });
  return { text: stdout ?? "", complaint: stderr ?? "", failed: error !== undefined || status !== 0 };
};

/** `-C` for each folder on the way. */
export const through = (ways: readonly string[]): readonly string[] => ways.flatMap((way) => ["-C", way]);

/** No repository, or one that git does not use: then it shows nothing of it either. */
const NO_REPOSITORY =
  /^fatal: (?:not a git repository|detected dubious ownership|cannot use bare repository|cannot change to)/m;

export const hasNoRepository = ({ complaint }: GitAnswer): boolean => NO_REPOSITORY.test(complaint);
