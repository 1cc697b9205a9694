/** Does the name of a repository's own folder make keys of files in it?
 *  Invariant: git's attributes count from the top and do not know what it is called, so in a repository that is `.config`
 *  they do not hide `gh/hosts.yml`; such a file is found in what is kept now and in all that was kept before.
 *  Elsewhere: files that attributes do hide (git-attributes.ts). */

import { join } from "node:path";
import { fitsPattern, isSecret, secretPatterns } from "../paths/index.ts";
import { askGit } from "./ask-git.ts";
import type { View } from "./git-view.ts";
import type { PathJudge } from "./path-judge.ts";

const PATHS: readonly (readonly string[])[] = [
  ...[...secretPatterns.folders, ...secretPatterns.places, ...secretPatterns.placesUnlessSource],
]
  .map((path) => path.split("/"))
  .filter((names) => names.length > 1);

/** Settings of a person or of the machine. Elsewhere `pip` and `git` are names of projects. */
const KEEPS_SETTINGS = /\/\.[^/]|^\/etc(?:\/|$)/;

/** What is left of a path to keys below a folder of this name. */
const restsBelow = (top: string): readonly string[] => {
  const names = top.toLowerCase().split("/");
  return PATHS.flatMap((path) =>
    path.slice(1).flatMap((_, at) => {
      const [before, rest] = [path.slice(0, at + 1), path.slice(at + 1)];
      const last = names.slice(-before.length);
      return before.every((pattern, index) => fitsPattern(last[index] ?? "", pattern)) ? [rest.join("/")] : [];
    }),
  );
};

const MOST_PATTERNS = 400;

/** What may be a key below a folder and nowhere else, as patterns. */
const keysAt = (top: string, { isKey }: Pick<PathJudge, "isKey">): readonly string[] => {
  const isHome = isKey(join(top, ".mcp.json")); // some settings hold keys only in a home folder
  return [...(KEEPS_SETTINGS.test(top) ? restsBelow(top) : []), ...(isHome ? [".*"] : [])];
};

/** Another repository that files of this one may be of, and in which some are keys because of where it lies. */
export const keysElsewhere = ({ others }: View, judge: Pick<PathJudge, "isKey">): string | undefined =>
  others.find((other) => keysAt(other, judge).length > 0);

/** A file of the repository that holds keys only because of where the repository lies. */
export const keyBelowTop = async (view: View, { isKey }: Pick<PathJudge, "isKey">): Promise<string | undefined> => {
  const { top } = view;
  if (view.repository === undefined) return undefined;
  const rests = keysAt(top, { isKey });
  if (rests.length === 0) return undefined;
  const paths = rests
    .slice(0, MOST_PATTERNS)
    .flatMap((rest) => [rest, `${rest}/**`].map((one) => `:(top,icase,glob)${one}`));
  const kept = await askGit({ view, words: ["ls-files", "-z", "--full-name", "--", ...paths] });
  const history = ["log", "--all", "--reflog", "-m", "--format=", "--name-only", "--no-renames", "-z", "--", ...paths];
  const before = await askGit({ view, words: history });
  if (kept === undefined || before === undefined) return undefined; // no git
  if (kept.failed || before.failed) return top;
  return [...kept.text.split("\0"), ...before.text.split("\0")]
    .map((name) => name.trim())
    .filter((name) => name !== "")
    .find((name) => isKey(join(top, name)) && !isSecret(name));
};
