/** Asks git a question about a repository.
 *  Invariant: git sees a view of it; an answer that takes too long or too much memory, or is too large, counts as failed. Other
 *  work continues meanwhile, because git may have a long history to search.
 *  Elsewhere: the view (view.ts), what is asked (objects.ts, ../run/walk-starts.ts). */

import { execFile } from "node:child_process";
import { cleanEnvironment, findProgram, withMemoryLimit } from "../process/index.ts";
import type { View } from "./view.ts";

export type GitQuestion = {
  readonly view: View;
  readonly words: readonly string[];
  readonly input?: string;
};

export type GitAnswer = { readonly text: string; readonly complaint: string; readonly failed: boolean };

/** Undefined if git is not installed, and so cannot run either. */
export const askGit = async ({ view, words, input }: GitQuestion): Promise<GitAnswer | undefined> => {
  const git = findProgram("git");
  if (git === undefined) return undefined;
  const env = { ...cleanEnvironment(), ...view.variables() };
  const bounds = { timeout: 5_000, maxBuffer: 4_000_000, killSignal: "SIGKILL", signal: view.signal } as const;
  return new Promise((answered) => {
    const [program = "", ...args] = withMemoryLimit([git, ...words]);
    const child = execFile(
      program,
      args,
      { cwd: view.folder, env, encoding: "utf8", ...bounds },
      (error, text, complaint) => answered({ text, complaint, failed: error !== null }),
    );
    child.stdin?.on("error", () => {}); // git may exit before it has read everything
    child.stdin?.end(input ?? "");
  });
};
