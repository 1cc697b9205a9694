/** Files that contain secrets, and special files: reading them is not harmless.
 *  Invariant: judged by name alone, here as the name is written and again by the runner as it is resolved.
 *  Elsewhere: what patterns stand for and where a relative name leads (../run). */

import { couldBeSecret, fitsPattern, isPrivatePlace, isSecret } from "../paths/index.ts";
import type { PlanWord } from "./plan.ts";
import { Refusal } from "./refusal.ts";

/** These folders contain links, so what follows `..` is a different folder than the text says. */
const leadsThroughLinks = (path: string): boolean => {
  const names = path.split("/");
  const first = names.findIndex((name) => /^(dev|proc|sys)$/.test(name));
  return first >= 0 && names.lastIndexOf("..") > first;
};

const SPECIAL_FILE =
  /^\/dev(\/(?!null$|stdin$|fd\/0$)|$)|^\/proc(\/(?!cpuinfo$|meminfo$|version$|loadavg$|uptime$|filesystems$|mounts$|stat$)|$)|^\/sys\/kernel\/(debug|tracing|security)|(^|\/)(dev\/(tcp|udp)|proc\/(self|thread-self|\d+))(\/|$)/;

/** Why a path may not be read; undefined if it may. */
export const pathProblem = (path: string): string | undefined =>
  isPrivatePlace(normalizePath(path)) ? secretProblem(path) : namedProblem(path);

/** The same for files of a workspace, which may itself be below a hidden folder: only their names count. */
export const namedProblem = (path: string): string | undefined =>
  isSecret(normalizePath(path)) ? secretProblem(path) : specialFileProblem(path);

const secretProblem = (path: string): string => `${path} may contain secrets, so reading it needs approval`;

/** Why a path is not a file to read: devices, connections, and what the system reports about running programs. */
export const specialFileProblem = (path: string): string | undefined =>
  SPECIAL_FILE.test(normalizePath(path)) || leadsThroughLinks(path) ? `${path} is not a regular file` : undefined;

/** Removes doubled slashes, `.`, and each `..` after a name. */
export const normalizePath = (path: string): string => {
  if (!path.includes("/")) return path === "." ? "" : path;
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part === ".." && parts.length > 0 && parts.at(-1) !== "..") parts.pop();
    else if (part !== ".." || !path.startsWith("/")) parts.push(part);
  }
  return (path.startsWith("/") ? "/" : "") + parts.join("/");
};

/** The paths that a word may contain: itself, the value of an option, or what follows some letters. */
const pathsIn = (text: string): readonly string[] => {
  if (!text.startsWith("-")) return [text];
  const value = /^--?[\w-]+=(.*)$/s.exec(text)?.[1];
  return value === undefined ? [text, ...gluedValues(text)] : [value];
};

/** No file name is longer. */
const LONGEST_NAME = 255;

/** The paths that may be glued to the letters of an option: `-nf.netrc` may name `f.netrc` or `.netrc`. The value may start
 *  after any number of letters, digits and dots (a flag of rg), or after up to five characters of any kind. */
export const gluedValues = (option: string): readonly string[] => {
  const { first, count } = gluedRange(option);
  return Array.from({ length: count }, (_, at) => option.slice(first + at));
};

/** What checking all of these costs: their total length, plus a constant for each. */
export const gluedWork = (word: string): number => {
  if (!word.startsWith("-")) return 0;
  const { first, count } = gluedRange(word);
  return count * (word.length - first + 16);
};

const gluedRange = (option: string): { readonly first: number; readonly count: number } => {
  const letters = /^-[A-Za-z0-9.]*/.exec(option)?.[0].length ?? 0;
  const slash = option.indexOf("/");
  const first = Math.max(2, (slash < 0 ? option.length : slash) - LONGEST_NAME);
  const last = Math.min(Math.max(letters, 5), option.length - 1);
  return { first, count: Math.max(0, last - first + 1) };
};

/** Folders that a command may run in, as far as the text tells: `""` is where it started. */
export type PossibleFolders = readonly string[];

/** `folders`: a relative name is resolved against each of them. */
export const checkSecrets = (
  words: readonly PlanWord[],
  folders: PossibleFolders = [""],
  { listsOnly = false }: { readonly listsOnly?: boolean } = {},
): void => {
  const problemOf = listsOnly ? namedProblem : pathProblem; // the names in a private place are no secret
  for (const { text, pattern, home } of words) {
    for (const path of pathsIn(text).flatMap((one) =>
      home ? [one] : folders.map((folder) => joinPath(folder, one)),
    )) {
      const problem = problemOf(path) ?? (pattern ? patternProblem(path) : undefined);
      if (problem !== undefined) throw new Refusal(problem);
    }
  }
};

/** Folders where an automounter looks up a host of any name on the network, as soon as a path is looked up. */
const NETWORK = /^\/(?:net|afs|Network)\/[^/]/;

/** Refuses names there, whatever the command does with them: looking one up is enough. */
export const checkNetwork = (words: readonly PlanWord[], folders: PossibleFolders): void => {
  for (const { text, home } of words) {
    if (home || !/net|afs/i.test(text + folders.join())) continue;
    const paths = pathsIn(text).flatMap((one) => folders.map((folder) => normalizePath(joinPath(folder, one))));
    if (paths.some((path) => NETWORK.test(path)))
      throw new Refusal(
        `${text} may be on another host, which is contacted as soon as the path is looked up, so it needs approval`,
      );
  }
};

/** A name resolved against a folder. */
export const joinPath = (folder: string, name: string): string =>
  folder === "" || name.startsWith("/") || name.startsWith("~")
    ? name
    : `${folder}${folder.endsWith("/") ? "" : "/"}${name}`;

/** A pattern written to match secrets or `/proc`. Patterns that only happen to match them are caught at expansion. */
const patternProblem = (path: string): string | undefined => {
  const parts = path.split("/");
  const keys = parts.some(couldBeSecret);
  const system =
    parts[0] === "" && parts.length > 2 && ["proc", "dev"].some((name) => fitsPattern(name, parts[1] ?? ""));
  return keys || system ? `${path} may match secrets or special files; name the files` : undefined;
};
