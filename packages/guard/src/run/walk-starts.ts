/** Where does a command that is about to run start to walk, and which files there may contain secrets?
 *  Invariant: a program that reads folders by default counts as one that walks. The working directory is always
 *  searched, so that no word taken for a folder can replace it.
 *  Elsewhere: searching folders (secret-walk.ts), excluding names (walk-limits.ts). */

import { lstatSync } from "node:fs";
import { basename, join, relative } from "node:path";
import type { PathJudge } from "../files/index.ts";
import { isFolder, realPath, resolveName, unlessMissing } from "../files/index.ts";
import type { View } from "../git/index.ts";
import {
  askGit,
  isApprovalNeeded,
  isGiven,
  linkedFolder,
  orApprovalNeeded,
  SHOWS_CHANGES,
  WITHOUT_HIDDEN,
} from "../git/index.ts";
import { fitsPattern, isSecret, secretPatterns } from "../paths/index.ts";
import { findStarts, type GitInvocation, type PlanCommand, walkOf } from "../rules/index.ts";
import { findPlaced, findSecrets, type SecretWalk } from "./secret-walk.ts";
import type { Exclusions, WalkStart } from "./walk-limits.ts";

/** Above this number, files are excluded by pattern. */
const MAX_EXCLUDED = 200;

const isLink = (path: string): boolean => unlessMissing(path, () => lstatSync(path).isSymbolicLink()) ?? false;

type Walk = Pick<Exclusions, "starts" | "here">;

type Command = Pick<PlanCommand, "program" | "args">;

type ProgramWords = {
  /** The words that the program gets, with patterns expanded. */
  readonly names: readonly string[];
  /** The names that xargs adds to them. */
  readonly xargsNames: readonly string[];
  readonly cwd: string;
};

export const walkAt = ({ program, args }: Command, { names, xargsNames, cwd }: ProgramWords): Walk | undefined => {
  const foldersAmong = (words: readonly string[]): readonly string[] => {
    const end = words.indexOf("--"); // never a value
    const isName = (word: string, at: number): boolean => !word.startsWith("-") || (end >= 0 && at > end);
    return words.filter((word, at) => isName(word, at) && isFolder(resolveName(cwd, word)));
  };
  const walk = walkOf(program, args);
  const folders = foldersAmong(program === "find" ? innerWords(names) : [...names, ...xargsNames]);
  if (!walk && !(program === "diff" && folders.length > 0)) return undefined;
  const first = program === "find" ? findStarts(names.map((text) => ({ text }))).map(({ text }) => text) : [];
  const isHere = walk !== undefined && (walk.starts.length === 0 || program === "xargs");
  const starts = [...(isHere ? ["."] : []), ...first, ...folders].map(
    (word): WalkStart => ({ word, path: realPath(resolveName(cwd, word)) }),
  );
  return { starts, here: { word: ".", path: realPath(cwd) } };
};

/** The words of the commands that find runs. */
const innerWords = (words: readonly string[]): readonly string[] => {
  let isInside = false;
  return words.filter((word) => {
    isInside = word === "-exec" || (isInside && word !== ";" && word !== "+");
    return isInside;
  });
};

/** What one pipe has learned about folders, because searching takes long and twenty commands of a pipe may need the
 *  same answer. */
export type KnownFolders = {
  readonly judge: PathJudge;
  readonly walks: Map<string, SecretWalk>;
};

const walked = (folders: readonly string[], { walks, judge }: Pick<KnownFolders, "walks" | "judge">): SecretWalk => {
  const key = folders.join("\0");
  const keptBack = { isKey: judge.isSecret, inside: judge.rules.inside };
  const result = walks.get(key) ?? findSecrets(folders, { keptBack });
  walks.set(key, result);
  return result;
};

/** The files there that may contain secrets or that a rule names. Files that rules name are excluded one by one,
 *  because there is no pattern for them. */
export const lookThrough = (
  walk: Walk,
  known: Pick<KnownFolders, "walks" | "judge">,
): Exclusions | { readonly problem: string } => {
  const folders = [...new Set([walk.here, ...walk.starts].map(({ path }) => path))].sort();
  const { rules } = known.judge;
  const { found, isWhole } = walked(folders, known);
  const starts = walk.starts.length === 0 ? [walk.here] : walk.starts;
  const placed = findPlaced(
    starts.map(({ path }) => path),
    rules.insideLiteral,
  );
  const ruled = [...new Map([...found.filter(({ byRule }) => byRule), ...placed.found].map((one) => [one.path, one]))];
  const isHidden = !placed.isWhole || (!isWhole && starts.some(({ path }) => rules.isAnywhere(path)));
  if (isHidden || ruled.length > MAX_EXCLUDED)
    return { problem: "rules name too many files below to exclude them; search a smaller folder" };
  const keys = found.filter(({ byRule }) => !byRule);
  const ruledFiles = ruled.map(([, one]) => one);
  if (keys.length <= MAX_EXCLUDED) return { ...walk, found: [...keys, ...ruledFiles], isWhole };
  // No pattern matches files that are secret only because of their location, such as some settings in a home folder.
  const unnamed = keys.filter(({ path }) => !isSecret(relative(walk.here.path, path)));
  if (unnamed.length > MAX_EXCLUDED)
    return { problem: "too many files below may contain secrets to exclude them; search a smaller folder" };
  return { ...walk, found: [...unnamed, ...ruledFiles], isWhole: false };
};

/** diff is run without following links, so a link to a folder is replaced by its target. */
export const reenter = (word: string, cwd: string, program: string): string => {
  const path = resolveName(cwd, word);
  return program === "diff" && !word.startsWith("-") && !word.endsWith("/") && isLink(path) && isFolder(path)
    ? `${word}/`
    : word;
};

/** The extensions that these programs try if a file does not exist. */
const ADDED_ENDINGS: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    ["gzip", "gunzip", "zcat"].map((name) => [name, [".gz", ".z", "-gz", "-z", "_z", ".Z", ".tgz", ".taz"]]),
  ),
  ...Object.fromEntries(["unzip", "zipinfo"].map((name) => [name, [".zip", ".ZIP"]])),
};

/** Given a file and a folder, diff takes the file of that name in the folder. */
export const alsoOpened = (program: string, names: readonly string[], cwd: string): readonly string[] => {
  const endings = ADDED_ENDINGS[program];
  if (endings) return names.flatMap((name) => endings.map((ending) => name + ending));
  if (program !== "diff") return [];
  const folders = names.filter((name) => isFolder(resolveName(cwd, name)));
  return folders.flatMap((folder) => names.map((name) => `${folder}/${basename(name)}`));
};

/** Where git runs: after each `-C`. */
export const gitFolder = (words: readonly string[], cwd: string): string => {
  let folder = cwd;
  for (let at = 0; words[at]?.startsWith("-"); at += /^-[Cc]$/.test(words[at] ?? "") ? 2 : 1)
    if (words[at] === "-C") folder = realPath(resolveName(folder, words[at + 1] ?? ""));
  return folder;
};

/** The same words with one `-C`, to the canonical folder that was checked: git cannot get anywhere else. */
export const standingIn = (folder: string, words: readonly string[]): readonly string[] => {
  const kept: string[] = [];
  let at = 0;
  let isMoved = false;
  while (words[at]?.startsWith("-")) {
    const size = /^-[Cc]$/.test(words[at] ?? "") ? 2 : 1;
    if (words[at] === "-C") isMoved = true;
    else kept.push(...words.slice(at, at + size));
    at += size;
  }
  return isMoved ? ["-C", folder, ...kept, ...words.slice(at)] : words;
};

/** They print the contents of files, unless attributes forbid it. */
const SHOWING: readonly string[] = [
  ...[
    "diff",
    "log",
    "show",
    "whatchanged",
    "diff-tree",
    "diff-index",
    "diff-files",
    "range-diff",
    "stash",
    "reflog",
    "grep",
  ],
];

/** `git status -v` shows what is about to be committed. */
const showsFiles = (asked: GitInvocation): boolean =>
  SHOWING.includes(asked.verb) || (asked.verb === "status" && isGiven(asked, "v", "verbose"));

/** Reads tracked files by name, even through a folder that has become a link. */
const searchesFiles = (asked: GitInvocation): boolean => asked.verb === "grep" && !isGiven(asked, "cached");

/** Outside a repository, git compares any paths that it is given, including whole folders. */
export const gitProblem = async (
  asked: GitInvocation,
  view: View,
  judge: PathJudge,
): Promise<{ readonly problem: string } | undefined> => {
  const other = keysElsewhere(view, judge);
  if (other !== undefined)
    return { problem: `git would show files of ${other}, which may contain secrets there, so it needs approval` };
  const index = searchesFiles(asked) ? view.repository?.index : undefined;
  const link = index && orApprovalNeeded(() => linkedFolder(view.top, index));
  if (isApprovalNeeded(link)) return { problem: link.message };
  if (link) return { problem: `git grep would read tracked files through ${link}, which is a link; add --cached` };
  const below = showsFiles(asked) ? await keyBelowTop(view, judge) : undefined;
  if (below !== undefined)
    return { problem: `the repository keeps ${below}, which may contain secrets there, so it needs approval` };
  if (asked.verb !== "diff" || !asked.operands.some(({ text }) => isFolder(resolveName(view.folder, text))))
    return undefined;
  const asIs = isGiven(asked, "no-index") || view.repository === undefined;
  return asIs
    ? { problem: "outside a repository git diff would read whole folders; use diff -r for folders" }
    : undefined;
};

/** No git pathspec with a prefix (`:/`, `:(top)`), no absolute path, and none with `..`. */
const staysBelow = (path: string): boolean => !/^[:/]|(?:^|\/)\.\.(?:\/|$)/.test(path);

/** They search for a text in changes and report where it is. By adding one letter at a time, a caller could learn a
 *  whole file. */
const SEARCHES_CHANGES: readonly string[] = ["S", "pickaxe-regex", "pickaxe-all", "find-object"];

/** Files that rules name or that may contain secrets are excluded from git's searches, so that not even a match is
 *  reported. git searches untracked files only if asked; then such files are excluded by name. */
export const gitWithout = (
  { asked, words }: { readonly asked: GitInvocation; readonly words: readonly string[] },
  { folder, top, others, repository }: View,
  known: KnownFolders,
): readonly string[] | { readonly problem: string } => {
  // Without `--`, which would turn the words before it into revisions.
  const hiding = repository === undefined ? words : [...words, WITHOUT_HIDDEN];
  if (asked.verb !== "grep") {
    if (!isGiven(asked, ...SEARCHES_CHANGES) || !SHOWS_CHANGES.includes(asked.verb)) return words;
    return asked.verb === "stash"
      ? { problem: "git stash -S reveals what hidden files contain; use git log -S" }
      : hiding;
  }
  const { rules } = known.judge;
  const ruled = rules.isEmpty ? [] : [...new Set([top, ...others].flatMap(rules.below))];
  const searched = [...hiding, ...ruled.map((path) => `:(exclude,top,icase,glob)${path.replace(/^\//, "")}`)];
  if (!isGiven(asked, "untracked")) return searched;
  const start = asked.operands.every(({ text }) => staysBelow(text)) ? realPath(folder) : top;
  const broad = known.judge.folderProblem(start);
  if (broad !== undefined) return { problem: broad };
  const looked = lookThrough({ starts: [], here: { word: ".", path: start } }, known);
  if ("problem" in looked) return looked;
  const { found, isWhole } = looked;
  const names = found.map(({ path }) => `:(exclude,top,literal)${relative(top, path)}`);
  const { files, folders, places, placesUnlessSource } = secretPatterns;
  const paths = [...files, ...folders, ...folders.map((name) => `${name}/**`), ...places, ...placesUnlessSource];
  const patterns = isWhole ? [] : paths.map((path) => `:(exclude,top,icase,glob)**/${path}`);
  return [...searched, ...names, ...patterns];
};

/** Does a repository's folder name make files in it secret?
 *  Invariant: git's attributes are relative to the top folder and ignore its name, so in a repository named `.config`
 *  they do not hide `gh/hosts.yml`. Such a file is found in the index and in the whole history.
 *  Elsewhere: files that attributes do hide (../git/view.ts). */

const PATHS: readonly (readonly string[])[] = [
  ...[...secretPatterns.folders, ...secretPatterns.places, ...secretPatterns.placesUnlessSource],
]
  .map((path) => path.split("/"))
  .filter((names) => names.length > 1);

/** Folders with a user's or the machine's settings. Elsewhere, `pip` and `git` are names of projects. */
const KEEPS_SETTINGS = /\/\.[^/]|^\/etc(?:\/|$)/;

/** The rest of a secret path, below a folder with this name. */
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

/** Patterns for files that are secret only below this folder. */
const keysAt = (top: string, judge: Pick<PathJudge, "isSecret">): readonly string[] => {
  const isHome = judge.isSecret(join(top, ".mcp.json")); // some settings contain secrets only in a home folder
  return [...(KEEPS_SETTINGS.test(top) ? restsBelow(top) : []), ...(isHome ? [".*"] : [])];
};

/** Another repository that this one's files may belong to, in which some are secret because of its location. */
export const keysElsewhere = ({ others }: View, judge: Pick<PathJudge, "isSecret">): string | undefined =>
  others.find((other) => keysAt(other, judge).length > 0);

/** A file of the repository that is secret only because of the repository's location. */
export const keyBelowTop = async (view: View, judge: Pick<PathJudge, "isSecret">): Promise<string | undefined> => {
  const { top } = view;
  if (view.repository === undefined) return undefined;
  const rests = keysAt(top, judge);
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
    .find((name) => judge.isSecret(join(top, name)) && !isSecret(name));
};
