/** Where does a command that is about to run start to walk, and which files there may contain secrets?
 *  Invariant: a program that reads folders by default counts as one that walks. The working directory is always searched, so that no word
 *  taken for a folder can replace it.
 *  Elsewhere: searching folders (secret-walk.ts), excluding names (walk-limits.ts). */

import { lstatSync, statSync } from "node:fs";
import { basename, join, relative } from "node:path";
import type { PathJudge } from "../files/index.ts";
import { realPath, resolveName } from "../files/index.ts";
import type { View } from "../git/index.ts";
import { askGit, isDoubt, isGiven, linkedFolder, orDoubt, SHOWS_CHANGES, WITHOUT_HIDDEN } from "../git/index.ts";
import { fitsPattern, isSecret, secretPatterns } from "../paths/index.ts";
import { findStarts, type GitInvocation, type PlanCommand, walkOf } from "../rules/index.ts";
import { findPlaced, findSecrets, type SecretWalk } from "./secret-walk.ts";
import type { LeftOut, WalkStart } from "./walk-limits.ts";

/** More than that is left out by pattern. */
const MOST_LEFT_OUT = 200;

export const isFolder = (path: string): boolean => tells(() => statSync(path).isDirectory());

const isLink = (path: string): boolean => tells(() => lstatSync(path).isSymbolicLink());

/** No, where the system cannot tell: then no program can read it either. */
const tells = (look: () => boolean): boolean => {
  try {
    return look();
  } catch {
    return false;
  }
};

type Walk = Pick<LeftOut, "starts" | "here">;

type Command = Pick<PlanCommand, "program" | "args">;

type Given = {
  /** The words as they are handed over, patterns expanded. */
  readonly names: readonly string[];
  /** What an xargs hands over beside them. */
  readonly fed: readonly string[];
  readonly cwd: string;
};

export const walkAt = ({ program, args }: Command, { names, fed, cwd }: Given): Walk | undefined => {
  const foldersAmong = (words: readonly string[]): readonly string[] => {
    const end = words.indexOf("--"); // never a value
    const isName = (word: string, at: number): boolean => !word.startsWith("-") || (end >= 0 && at > end);
    return words.filter((word, at) => isName(word, at) && isFolder(resolveName(cwd, word)));
  };
  const walk = walkOf(program, args);
  const folders = foldersAmong(program === "find" ? innerWords(names) : [...names, ...fed]);
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

/** What one pipe has learned about folders: looking takes long, and twenty searches in a pipe ask the same. */
export type Known = {
  readonly judge: PathJudge;
  readonly walks: Map<string, SecretWalk>;
};

const walked = (folders: readonly string[], { walks, judge }: Pick<Known, "walks" | "judge">): SecretWalk => {
  const key = folders.join("\0");
  const keptBack = { isKey: judge.isSecret, inside: judge.rules.inside };
  const result = walks.get(key) ?? findSecrets(folders, { keptBack });
  walks.set(key, result);
  return result;
};

/** What stands there that may contain secrets, or that a rule names. What rules name is left out one by one: no pattern is known
 *  to say the same. */
export const lookThrough = (
  walk: Walk,
  known: Pick<Known, "walks" | "judge">,
): LeftOut | { readonly problem: string } => {
  const folders = [...new Set([walk.here, ...walk.starts].map(({ path }) => path))].sort();
  const { rules } = known.judge;
  const { found, isWhole } = walked(folders, known);
  const starts = walk.starts.length === 0 ? [walk.here] : walk.starts;
  const placed = findPlaced(
    starts.map(({ path }) => path),
    rules.towards,
  );
  const ruled = [...new Map([...found.filter(({ byRule }) => byRule), ...placed.found].map((one) => [one.path, one]))];
  const isHidden = !placed.isWhole || (!isWhole && starts.some(({ path }) => rules.isAnywhere(path)));
  if (isHidden || ruled.length > MOST_LEFT_OUT)
    return { problem: "rules name too many files below to exclude them; search a smaller folder" };
  const keys = found.filter(({ byRule }) => !byRule);
  const left = ruled.map(([, one]) => one);
  if (keys.length <= MOST_LEFT_OUT) return { ...walk, found: [...keys, ...left], isWhole };
  // No pattern names what holds keys only because of where it lies, as some settings in a home folder do.
  const unnamed = keys.filter(({ path }) => !isSecret(relative(walk.here.path, path)));
  if (unnamed.length > MOST_LEFT_OUT)
    return { problem: "too many files below may contain secrets to exclude them; search a smaller folder" };
  return { ...walk, found: [...unnamed, ...left], isWhole: false };
};

/** diff is told to follow no links, so a folder that it is named by a link is named as what is in it. */
export const reenter = (word: string, cwd: string, program: string): string => {
  const path = resolveName(cwd, word);
  return program === "diff" && !word.startsWith("-") && !word.endsWith("/") && isLink(path) && isFolder(path)
    ? `${word}/`
    : word;
};

/** What these put after a name where there is no such file. */
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

/** They print what is in files, as far as attributes let them. */
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

/** Reads tracked files by their names, also through a folder that became a link. */
const searchesFiles = (asked: GitInvocation): boolean => asked.verb === "grep" && !isGiven(asked, "cached");

/** Without a repository git compares whatever it is named, whole folders with all that is in them. */
export const gitProblem = async (
  asked: GitInvocation,
  view: View,
  judge: PathJudge,
): Promise<{ readonly problem: string } | undefined> => {
  const other = keysElsewhere(view, judge);
  if (other !== undefined)
    return { problem: `git would show files of ${other}, which may contain secrets there, so it needs approval` };
  const index = searchesFiles(asked) ? view.repository?.index : undefined;
  const link = index && orDoubt(() => linkedFolder(view.top, index));
  if (isDoubt(link)) return { problem: link.message };
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

/** No path of git's own form (`:/`, `:(top)`), none in full, and none that goes up. */
const staysBelow = (path: string): boolean => !/^[:/]|(?:^|\/)\.\.(?:\/|$)/.test(path);

/** They look for a text in what changed, and tell where it is: by one letter more at a time, all of a file comes out. */
const SEARCHES_CHANGES: readonly string[] = ["S", "pickaxe-regex", "pickaxe-all", "find-object"];

/** What rules name, and what may contain secrets, is left out of a search by git: that it holds the text is not told either.
 *  git searches what it does not keep only where it is told to; then what may contain secrets is left out by name. */
export const gitWithout = (
  { asked, words }: { readonly asked: GitInvocation; readonly words: readonly string[] },
  { folder, top, others, repository }: View,
  known: Known,
): readonly string[] | { readonly problem: string } => {
  // Without `--`: it would make revisions of the words before.
  const hiding = repository === undefined ? words : [...words, WITHOUT_HIDDEN];
  if (asked.verb !== "grep") {
    if (!isGiven(asked, ...SEARCHES_CHANGES) || !SHOWS_CHANGES.includes(asked.verb)) return words;
    return asked.verb === "stash"
      ? { problem: "git stash -S tells what hidden files contain; use git log -S" }
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

/** Does the name of a repository's own folder make keys of files in it?
 *  Invariant: git's attributes count from the top and do not know what it is called, so in a repository that is `.config`
 *  they do not hide `gh/hosts.yml`; such a file is found in what is kept now and in all that was kept before.
 *  Elsewhere: files that attributes do hide (../git/view.ts). */

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
const keysAt = (top: string, judge: Pick<PathJudge, "isSecret">): readonly string[] => {
  const isHome = judge.isSecret(join(top, ".mcp.json")); // some settings hold keys only in a home folder
  return [...(KEEPS_SETTINGS.test(top) ? restsBelow(top) : []), ...(isHome ? [".*"] : [])];
};

/** Another repository that files of this one may be of, and in which some are keys because of where it lies. */
export const keysElsewhere = ({ others }: View, judge: Pick<PathJudge, "isSecret">): string | undefined =>
  others.find((other) => keysAt(other, judge).length > 0);

/** A file of the repository that holds keys only because of where the repository lies. */
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
