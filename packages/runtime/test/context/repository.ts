/** A small real repository for one test, with git run as the other tests run it. */

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { type Scratch, scratch } from "@prefork/testing/scratch";

const GIT = {
  PATH: "/usr/bin:/bin:/usr/local/bin",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "Ada Lovelace",
  GIT_AUTHOR_EMAIL: "ada@example.com",
  GIT_AUTHOR_DATE: "2024-03-01T12:00:00Z",
  GIT_COMMITTER_NAME: "Ada Lovelace",
  GIT_COMMITTER_EMAIL: "ada@example.com",
  GIT_COMMITTER_DATE: "2024-03-01T12:00:00Z",
};

export type Ground = Scratch & {
  readonly home: string;
  readonly repo: string;
  readonly git: (...words: readonly string[]) => string;
};

/** An empty home, and a repository without commits. */
export const repository = (): Ground => {
  const base = scratch();
  const [home, repo] = [base.at("home"), base.at("repo")];
  for (const folder of [home, repo]) mkdirSync(folder);
  const git = (...words: readonly string[]): string =>
    execFileSync("git", words, { cwd: repo, env: GIT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  git("init", "-q", "-b", "main");
  return { ...base, home, repo, git };
};
