/** Builds shell commands from words of a prompt.
 *  Invariant: every outside word is one quoted shell word, and none can be taken for an option.
 *  Elsewhere: whether a command may run (@prefork/guard). */

/** Inside single quotes a shell takes every character literally. */
export const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** A path that no program takes for an option. */
const pathWord = (path: string): string => quoted(path.startsWith("-") ? `./${path}` : path);

const pathsAfterDashes = (paths: readonly string[]): string =>
  paths.length === 0 ? "" : ` -- ${paths.map(pathWord).join(" ")}`;

export const countLines = (paths: readonly string[]): string => `wc -l${pathsAfterDashes(paths)}`;

export const lastLines = (count: number, path: string): string => `tail -n ${count}${pathsAfterDashes([path])}`;

/** Files only, without those of git and package managers. */
export const countFiles = ({ folder = ".", name }: { readonly folder?: string; readonly name?: string }): string =>
  [
    `find ${pathWord(folder)} -type f`,
    ...(name === undefined ? [] : [`-name ${quoted(name)}`]),
    "-not -path '*/.git/*' -not -path '*/node_modules/*' | wc -l",
  ].join(" ");

/** The number of files in each folder, one folder per line. */
export const countFilesPerFolder = (folder = "."): string =>
  `find ${pathWord(folder)} -type f -not -path '*/.git/*' -not -path '*/node_modules/*' | sed 's|/[^/]*$||' | sort | uniq -c`;

/** Matches of the pattern that occur in more than one line. */
export const repeatedMatches = (pattern: string, folder = "."): string =>
  `grep -rhoE -e ${quoted(pattern)} --exclude-dir=.git --exclude-dir=node_modules -- ${pathWord(folder)} | sort | uniq -d`;

export const gitStatus = (): string => "git status --short --branch";

export const gitBranch = (): string => "git branch --show-current";

export const gitLog = (count: number, paths: readonly string[]): string =>
  `git log --oneline -n ${count}${pathsAfterDashes(paths)}`;

export const gitDiff = (staged: boolean, paths: readonly string[]): string =>
  `git diff${staged ? " --staged" : ""}${pathsAfterDashes(paths)}`;

export const gitShow = (revision: string): string =>
  /^[\w./~^]+$/.test(revision) ? `git show --stat ${quoted(revision)}` : "git show --stat HEAD";

export type Lines = { readonly from: number; readonly to: number };

export const gitBlame = (path: string, lines?: Lines): string =>
  `git blame${lines === undefined ? "" : ` -L ${lines.from},${lines.to}`}${pathsAfterDashes([path])}`;

export const gitAuthors = (): string => "git shortlog -s -n HEAD";
