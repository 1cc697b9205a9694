/** Asks git a question about a repository.
 *  Invariant: git sees a view of it; an answer that takes too long or is too large has failed.
 *  Elsewhere: the view (git-view.ts), what is asked (git-objects.ts, git-top.ts). */

import { spawnSync } from "node:child_process";
import { cleanEnvironment } from "./environment.ts";
import type { View } from "./git-view.ts";
import { findProgram } from "./programs.ts";

export type GitQuestion = {
  readonly view: View;
  readonly words: readonly string[];
  readonly input?: string;
};

export type GitAnswer = { readonly text: string; readonly complaint: string; readonly failed: boolean };

/** Undefined where there is no git, which then cannot be run either. */
export const askGit = ({ view, words, input }: GitQuestion): GitAnswer | undefined => {
  const git = findProgram("git");
  if (git === undefined) return undefined;
  const { stdout, stderr, error, status } = spawnSync(git, [...words], {
    cwd: view.folder,
    env: { ...cleanEnvironment(), ...view.variables() },
    encoding: "utf8",
    timeout: 5_000,
    maxBuffer: 4_000_000,
    stdio: ["pipe", "pipe", "pipe"],
    input: input ?? "",
  });
  return { text: stdout ?? "", complaint: stderr ?? "", failed: error !== undefined || status !== 0 };
};
