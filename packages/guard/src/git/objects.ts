/** Does a command name a git object in a way that hides which file it was?
 *  Invariant: of the words that git takes as objects, only three forms pass: a commit, `COMMIT:PATH`, and `:PATH` of
 *  the index, with a path that is not secret. Anything else that refers to a file, or to a folder that is compared or
 *  searched, is refused. If git does not answer, the command is refused too.
 *  Elsewhere: paths as they are written (../bash), attributes by path (view.ts). */

import { join, relative } from "node:path";
import type { PathJudge } from "../files/index.ts";
import { realPath } from "../files/index.ts";
import { leadsToSecrets } from "../paths/index.ts";
import type { GitInvocation } from "../rules/index.ts";
import { askGit } from "./ask-git.ts";
import { holdsPassword, nameOf, type Setting } from "./settings.ts";
import type { View } from "./view.ts";

/** They show the files of their folder operands; the others list names. */
const COMPARES: readonly string[] = [
  ...["diff", "diff-tree", "diff-index", "diff-files", "range-diff", "log", "whatchanged", "reflog", "stash"],
  ...["blame", "annotate"],
];

const PRINTS: readonly string[] = [...COMPARES, "show", "cat-file", "grep"];

/** The empty tree, which people compare with to see all of a commit. */
const EMPTY =
  /^(?:4b825dc642cb6eb9a060e54bf8d69288fbee4904|6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321)$/i;

type Asked = GitInvocation;

/** Whether one of these options was given as an option; the same word may be a pattern, a path or a value. */
export const isGiven = ({ options }: Asked, ...names: readonly string[]): boolean =>
  options.some(({ name }) => names.includes(name));

/** These have no paths after `--`, or take objects there too. */
const OBJECTS_TO_THE_END: readonly string[] = ["cat-file", "blame", "annotate", "stash"];

/** The words that may be objects, including values of options. For most subcommands, paths follow `--`. */
const objectWords = (asked: Asked): readonly string[] => {
  const { verb, words, operands } = asked;
  if (verb === "grep") {
    const texts = operands.map(({ text }) => text);
    return isGiven(asked, "e", "f") ? texts : texts.slice(1); // the first is what is looked for
  }
  if (verb === "cat-file" && isGiven(asked, "t", "s", "e") && !isGiven(asked, "p")) return [];
  const end = OBJECTS_TO_THE_END.includes(verb) ? -1 : words.indexOf("--"); // never a value
  const plain = (end < 0 ? words : words.slice(0, end)).filter((word) => !word.startsWith("-"));
  return verb === "show" ? ["HEAD", ...plain] : plain;
};

/** A word by itself, and as the two ends of a range. */
export const namesIn = (word: string): readonly string[] => {
  const dots = word.indexOf("..");
  const ends = dots < 0 ? [] : [word.slice(0, dots), word.slice(dots + 2), word.slice(dots + 3)];
  return [word, ...ends].map((name) => name.replace(/^\^/, "").replace(/\^(?:[!@]|-\d*)$/, ""));
};

/** Where git separates a revision from its path: at the first colon outside of braces. */
const colonIn = (name: string): number => {
  let depth = 0;
  for (let at = 0; at < name.length; at += 1) {
    if (name[at] === "{") depth += 1;
    else if (name[at] === "}" && depth > 0) depth -= 1;
    else if (name[at] === ":" && depth === 0) return at;
  }
  return -1;
};

/** A tag counts as the object it refers to, and `X^{tree}` as X: the path of a commit's top folder is known, that of a
 *  tree id is not. */
export const peeled = (revision: string): string =>
  `${revision.replace(/(?<!\^\{(?:tree|object)?\})(?:\^\{(?:tree|object)?\})+$/, "")}^{}`;

type Named = {
  readonly name: string;
  /** The object's type according to git, and the type of the revision in its name. */
  readonly type: string;
  readonly revision: string;
  /** After the colon. */
  readonly path: string | undefined;
};

const pathIn = (name: string): string | undefined => {
  const colon = colonIn(name);
  if (colon < 0) return undefined;
  return colon === 0 ? name.replace(/^:(?:[0-3]:)?/, "") : name.slice(colon + 1);
};

const UNANSWERED = {
  problem: "git does not report what the command names; name a commit and a path: git show HEAD:FILE",
};

export const lookUp = async (names: readonly string[], view: View): Promise<readonly Named[] | typeof UNANSWERED> => {
  const questions = names.flatMap((name) => {
    const colon = colonIn(name);
    return [name, peeled(colon > 0 ? name.slice(0, colon) : name)];
  });
  if (view.repository === undefined) return [];
  const answer = await askGit({
    view,
    words: ["cat-file", "--batch-check=%(objecttype)"],
    input: questions.map((question) => `${question}\n`).join(""),
  });
  if (answer === undefined) return []; // no git
  const types = answer.text.split("\n");
  if (answer.failed || types.length !== questions.length + 1) return UNANSWERED;
  return names.map((name, at) => ({
    name,
    type: types[2 * at] ?? "",
    revision: types[2 * at + 1] ?? "",
    path: pathIn(name),
  }));
};

/** `…-g1234abc`, as git describes commits: git uses the id at the end and ignores the rest. */
const DESCRIBED = /-g[0-9a-f]{4,}(?=$|[\^~])/i;

type ObjectContext = { readonly verb: string; readonly view: View; readonly judge: PathJudge };

const problemOf = ({ name, type, revision, path }: Named, { verb, view, judge }: ObjectContext): string | undefined => {
  if (!/^(?:blob|tree|tag)$/.test(type)) return undefined; // a commit, or nothing
  const isIndex = name.startsWith(":");
  if (path === undefined && revision === "commit")
    return verb === "grep" && type === "tree" ? folderProblem(verb, name) : undefined;
  if (path === undefined || DESCRIBED.test(name) || (!isIndex && revision !== "commit")) {
    const isFolder = type === "tree" || (type === "tag" && revision === "tree");
    if (!isFolder || path !== undefined)
      return `git ${verb} ${name}: its path is unknown; name the file: git show HEAD:FILE`;
    return EMPTY.test(name) || verb === "show" || verb === "cat-file" ? undefined : folderProblem(verb, name);
  }
  const { top } = view;
  const place = join(baseOf(path, realPath(view.folder), top), path);
  const places = [place, ...view.others.map((other) => join(other, relative(top, place)))];
  const keys = places.map(judge.problem).find((problem) => problem !== undefined);
  if (keys !== undefined || type !== "tree") return keys;
  if (verb === "grep") return folderProblem(verb, name);
  const hidesFiles =
    leadsToSecrets(relative(top, place)) ||
    (place !== top && places.some((one) => judge.rules.inside(one) !== undefined));
  return COMPARES.includes(verb) && hidesFiles
    ? `git ${verb} ${name}: some files below may not be shown, and without their folder they cannot be recognized; name commits: git diff HEAD~1 HEAD -- DIR`
    : undefined;
};

const folderProblem = (verb: string, name: string): string =>
  verb === "grep"
    ? `git grep ${name}: name a commit, and the folder after it: git grep TEXT HEAD -- DIR`
    : `git ${verb} ${name}: the path of this folder is unknown; name commits: git diff HEAD~1 HEAD -- DIR`;

/** The folder that a path in a commit is relative to: the folder where git runs for `./` and `../`, otherwise the
 *  top. */
const baseOf = (path: string, folder: string, top: string): string => (/^\.\.?\//.test(path) ? folder : top);

/** Files of a commit that a command names from the folder it runs in: those of blame, and `-L1,5:FILE`. They need not
 *  exist now. */
const namedFiles = ({ verb, words, operands }: Asked): readonly string[] => {
  if (verb === "blame" || verb === "annotate") return operands.map(({ text }) => text);
  return words
    .map((word, at) => (/^-[a-zA-Z]*L$/.test(words[at - 1] ?? "") ? `-L${word}` : word))
    .filter((word) => /^-[a-zA-Z]*L/.test(word))
    .flatMap((word) => word.split(":").flatMap((_, at, parts) => (at === 0 ? [] : [parts.slice(at).join(":")])));
};

/** Options that select many objects at once: refs, including those of other worktrees, and everything in a reflog. */
const EVERYTHING = /^--(?:all|tags|branches|remotes|glob|bisect|reflog|stdin)(?:=|$)/;

/** These walk through commits and ignore every other object; the rest print it. */
const walksCommits = ({ verb, words }: Asked): boolean =>
  ["log", "whatchanged", "reflog", "grep", "blame", "annotate", "cat-file"].includes(verb) ||
  (verb === "stash" && words.find((word) => !word.startsWith("-")) === "list");

/** The newest commit whose message matches a pattern. Only plain text without repetitions and back-references passes,
 *  because git could search for others for hours. */
const SEARCHES = /^:\/|\^\{\//;
const SEARCHES_PLAINLY = /^(?::\/|[^{}]*\^\{\/)[\w\u0080-\uffff .,:;|'"!?#@/=<>&%~^$-]{0,200}\}?$/;

/** `view`: of the folder that git runs in. */
export const objectProblem = async (
  asked: GitInvocation,
  view: View,
  judge: PathJudge,
): Promise<{ readonly problem: string } | undefined> => {
  const { verb } = asked;
  if (!PRINTS.includes(verb)) return undefined;
  const everything = walksCommits(asked) ? undefined : asked.words.find((word) => EVERYTHING.test(word));
  if (everything !== undefined)
    return { problem: `git ${verb} ${everything} may print files whose paths are unknown; use git log -p` };
  const here = realPath(view.folder);
  const file = namedFiles(asked)
    .map((name) => judge.problem(join(here, name)))
    .find((problem) => problem !== undefined);
  if (file !== undefined) return { problem: file };
  const objects = objectWords(asked);
  const broken = objects.find((word) => word.includes("\n"));
  if (broken !== undefined)
    return { problem: `git ${verb}: ${JSON.stringify(broken)} contains a line break; leave it out` };
  const names = [...new Set(objects.flatMap(namesIn))].filter((name) => name !== "");
  const slow = names.find((name) => SEARCHES.test(name) && !SEARCHES_PLAINLY.test(name));
  if (slow !== undefined)
    return { problem: `git ${verb} ${slow} may search for very long; use git log --grep, and name the commit` };
  if (names.length === 0) return undefined;
  const found = await lookUp(names, view);
  if ("problem" in found) return found;
  const problem = found.map((one) => problemOf(one, { verb, view, judge })).find((one) => one !== undefined);
  return problem === undefined ? undefined : { problem };
};

/** When would git show a file under an earlier name, without checking the attributes of that name?
 *  Invariant: in a combined diff of a merge and in a line history, git checks only the attributes of the new name, or
 *  none, so renames are switched off there. Everywhere else it checks the attributes of both names.
 *  Elsewhere: attributes (view.ts). */

/** Subcommands that print changes and share the same options. */
export const SHOWS_CHANGES: readonly string[] = [
  ...["diff", "log", "show", "whatchanged", "diff-tree", "diff-index", "diff-files", "stash", "reflog"],
];

/** Compared with one parent at a time, or not at all. */
const ONE_PARENT = /^(?:off|none|first-parent|1|separate|m)$/;

const asksForIt = (asked: GitInvocation): boolean =>
  isGiven(asked, "c", "cc", "combined-all-paths", "L") ||
  asked.options.some(({ name, value = "" }) => name === "diff-merges" && !ONE_PARENT.test(value));

/** Options that print names and counts instead of changes. */
const COUNTS: readonly string[] = [
  ...["stat", "numstat", "shortstat", "name-only", "name-status", "summary", "compact-summary", "no-patch", "s"],
];
const HARMLESS_WITH_COUNTS: readonly string[] = [
  ...["oneline", "format", "pretty", "date", "abbrev-commit", "no-decorate", "decorate", "color", "no-color"],
  ...["no-ext-diff", "no-textconv", "ignore-submodules"],
];

const countsOnly = ({ options }: GitInvocation): boolean =>
  options.some(({ name }) => COUNTS.includes(name)) &&
  options.every(({ name }) => COUNTS.includes(name) || HARMLESS_WITH_COUNTS.includes(name));

/** May select any number of commits: ranges, parents, a search for a message. */
const ANY_COMMITS = /\.\.|^\^|\^[@-]|^:\//;

/** Whether the command shows a merge by default. */
const showsMerge = async ({ verb, words, operands }: GitInvocation, view: View): Promise<boolean> => {
  const end = words.indexOf("--"); // never a value
  const named = operands
    .slice(0, end < 0 ? undefined : operands.length - (words.length - end - 1))
    .map((one) => one.text);
  if (verb === "diff") {
    if (named.some((word) => /\^[!@-]/.test(word))) return true;
    const found = named.length < 3 ? [] : await lookUp(named, view);
    return "problem" in found || found.filter(({ type }) => /^(?:commit|tree|tag)$/.test(type)).length > 2;
  }
  if (verb !== "show") return false;
  const names = named.flatMap(namesIn).filter((name) => name !== "");
  if (named.some((word) => ANY_COMMITS.test(word) || word.includes("\n"))) return true;
  // A commit with a second parent is a merge. If only paths are named, HEAD is shown.
  const found = await lookUp(
    ["HEAD", ...names].flatMap((name) => [name, `${peeled(name)}^2`]),
    view,
  );
  if ("problem" in found) return true;
  const isMerge = (at: number): boolean => found[2 * at + 1]?.type === "commit";
  const isHead = !names.some((_, at) => found[2 * at + 2]?.revision === "commit");
  return names.some((_, at) => isMerge(at + 1)) || (isHead && isMerge(0));
};

const SEEKS_RENAMES: readonly string[] = ["M", "C", "find-renames", "find-copies", "find-copies-harder"];

/** The words of a command, with renames switched off where they would show too much. */
export const withoutRenames = async (
  { asked, words }: { readonly asked: GitInvocation; readonly words: readonly string[] },
  view: View,
): Promise<readonly string[] | { readonly problem: string }> => {
  const { verb } = asked;
  if (view.repository === undefined || !SHOWS_CHANGES.includes(verb)) return words;
  if (!asksForIt(asked) && (countsOnly(asked) || !(await showsMerge(asked, view)))) return words;
  if (isGiven(asked, ...SEEKS_RENAMES))
    return {
      problem: `git ${verb}: renames in merges and in histories of lines (-L) may show files under other names; leave -M and -C out`,
    };
  // These two have their own subcommand first.
  const isVerb = (verb === "stash" || verb === "reflog") && !asked.words[0]?.startsWith("-");
  const at = words.length - asked.words.length + (isVerb ? 1 : 0);
  return [...words.slice(0, at), "--no-renames", ...words.slice(at)];
};

/** Would a command of git print a password? People put them into the addresses of remotes.
 *  Invariant: only URLs with a password or a token count; a user name is neither.
 *  Elsewhere: settings whose names suggest passwords (../bash), the settings file itself (../paths). */

/** `view`: of the folder that git runs in. */
export const remoteProblem = (asked: GitInvocation, view: View): { readonly problem: string } | undefined => {
  const { verb, words, operands } = asked;
  const sections = words.map((word) => /^\^?([\w-]+)/.exec(word)?.[1]?.toLowerCase());
  const tellsAddresses = verb === "remote" && (isGiven(asked, "v", "verbose") || operands[0]?.text === "get-url");
  if (!tellsAddresses && verb !== "config") return undefined;
  const isPrinted = (setting: Setting): boolean => {
    const name = nameOf(setting);
    return verb === "remote" ? /^(?:remote|url)\./.test(name) : sections.includes(name.slice(0, name.indexOf(".")));
  };
  const found = view.repository?.settings.find((setting) => isPrinted(setting) && holdsPassword(setting));
  return (
    found && { problem: `${nameOf(found)} may contain a password, so it needs approval; list names only: git remote` }
  );
};
