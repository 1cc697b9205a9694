/** Is one of git's own files a link to keys? git prints from such files as they are, if only in a complaint.
 *  Invariant: only names are looked at, and where they lead.
 *  Elsewhere: its settings (git-probe.ts), attributes that have it show keys (git-attributes.ts). */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathProblem } from "../guard/index.ts";
import { askGit, through } from "./ask-git.ts";
import { canonical, reached } from "./reached.ts";

/** The first such link in the repository that git finds from `folder` and the `-C` it is given there. */
export const linkHazard = (folder: string, within: readonly string[]): string | undefined => {
  const words = [...through(within), "rev-parse", "--git-dir", "--git-common-dir"];
  const [own, common] = askGit({ folder, words })?.text.split("\n") ?? [];
  const base = within.reduce(reached, folder);
  return [own, common]
    .filter((path) => path !== undefined && path !== "")
    .map((path) => linkToKeys(canonical(reached(base, path ?? ""))))
    .find((path) => path !== undefined);
};

/** Folders of git with files that it prints from, or repeats in a complaint. */
const PRINTED_FROM: readonly string[] = [
  ...["", "info", "objects/info", "logs", "refs", "refs/heads", "rebase-merge", "rebase-apply", "sequencer"],
];

const linkToKeys = (git: string): string | undefined =>
  PRINTED_FROM.flatMap((name) => linksIn(join(git, name))).find(
    // Its settings lie elsewhere in some checkouts, and are never printed.
    (path) => !/\/config(?:\.worktree)?$/.test(path) && pathProblem(canonical(path)) !== undefined,
  );

const linksIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isSymbolicLink())
      .map(({ name }) => join(folder, name));
  } catch {
    return [];
  }
};
