/** Does a command name an object of git in a way that hides which file it was?
 *  Invariant: what a file holds is shown only where its path is known, because the path says whether it may hold keys: a
 *  file by its number or a tag is not shown, nor is such a folder compared or searched.
 *  Elsewhere: paths as they are written (../guard/bash), attributes by path (git-attributes.ts). */

import { leadsToSecrets } from "../paths/index.ts";
import { askGit } from "./ask-git.ts";

const COMPARES: readonly string[] = ["diff", "diff-tree", "diff-index", "log", "whatchanged"];

/** The folder without files, which people compare with to see all of a commit. */
const EMPTY =
  /^(?:4b825dc642cb6eb9a060e54bf8d69288fbee4904|6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321)$/i;

type Asked = { readonly verb: string; readonly words: readonly string[] };

/** The verb, and what stands behind it up to `--`. */
const readAsked = (words: readonly string[]): Asked => {
  let at = 0;
  while (words[at]?.startsWith("-")) at += /^-[Cc]$/.test(words[at] ?? "") ? 2 : 1;
  const rest = words.slice(at + 1);
  const end = rest.indexOf("--");
  return { verb: words[at] ?? "", words: end < 0 ? rest : rest.slice(0, end) };
};

export const verbOf = (words: readonly string[]): string => readAsked(words).verb;

/** The words that may be objects. */
const candidatesOf = ({ verb, words }: Asked): readonly string[] => {
  const plain = words.filter((word) => !word.startsWith("-") && !word.includes("\n"));
  if (verb === "grep") return words.some((word) => /^-[a-zA-Z]*[ef]/.test(word)) ? plain : plain.slice(1);
  if (verb === "cat-file" && !words.includes("-p") && !words.includes("blob")) return [];
  if (verb !== "show" && verb !== "cat-file" && !COMPARES.includes(verb)) return [];
  return plain.flatMap((word) => word.split(/\.{2,3}/)).map((word) => word.replace(/^\^/, ""));
};

/** What is asked about: what a path counts from (`HEAD` of `HEAD:FILE`), or the word itself. What a tag stands for counts,
 *  and so does what stands before `^{tree}`: the top folder of a commit is known, that of a folder's number is not. */
const questionOf = (verb: string, word: string): string => {
  const colon = word.indexOf(":");
  if (colon >= 0 && verb === "grep") return word;
  const named = colon > 0 ? word.slice(0, colon) : word;
  return `${verb === "grep" ? named : named.replace(/(?:\^\{(?:tree|object)?\})+$/, "")}^{}`;
};

const problemOf = (verb: string, word: string, type: string): string | undefined => {
  const folder = COMPARES.includes(verb) ? word.slice(word.indexOf(":") + 1 || word.length) : "";
  if (folder !== "" && type === "commit" && leadsToSecrets(folder))
    return `git ${verb} ${word}: some files below hold keys, and without their folder they cannot be told; name commits: git diff HEAD~1 HEAD -- DIR`;
  if (type === "blob" && !(verb === "grep" && word.includes(":")))
    return `git ${verb} ${word}: which file this was is not known; name it: git show HEAD:FILE`;
  if (type !== "tree" || EMPTY.test(word)) return undefined;
  if (verb === "grep") return `git grep ${word}: name a commit, and the folder after it: git grep TEXT HEAD -- DIR`;
  return COMPARES.includes(verb) || word.includes(":")
    ? `git ${verb} ${word}: where this folder was is not known; name commits: git diff HEAD~1 HEAD -- DIR`
    : undefined;
};

/** Options that stand for many names at once. */
const EVERYTHING = /^--(?:all|tags|branches|remotes|glob)(?:=|$)/;

/** Is something tagged that is no commit? */
const hasLooseTags = (folder: string): boolean => {
  const format = "--format=%(if)%(*objecttype)%(then)%(*objecttype)%(else)%(objecttype)%(end)";
  return /^(?:blob|tree)$/m.test(askGit({ folder, words: ["for-each-ref", format] })?.text ?? "");
};

/** `folder`: where git runs. */
export const objectProblem = (words: readonly string[], folder: string): { readonly problem: string } | undefined => {
  const asked = readAsked(words);
  if (asked.verb === "show" && asked.words.some((word) => EVERYTHING.test(word)) && hasLooseTags(folder))
    return { problem: "git show: among all that is tagged are files whose paths are not known; name a commit" };
  const candidates = candidatesOf(asked).filter((word) => word !== "");
  if (candidates.length === 0) return undefined;
  const input = candidates.map((word) => `${questionOf(asked.verb, word)}\n`).join("");
  const answer = askGit({ folder, words: ["cat-file", "--batch-check=%(objecttype)"], input });
  const types = answer?.text.split("\n") ?? [];
  const problem = candidates
    .map((word, at) => problemOf(asked.verb, word, types[at] ?? ""))
    .find((one) => one !== undefined);
  return problem === undefined ? undefined : { problem };
};
