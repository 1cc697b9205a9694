/** When would git show a file under an earlier name, without checking the attributes of that name?
 *  Invariant: git looks for no renames where it compares a merge with all its parents at once, nor in a line history: there it checks the
 *  attributes of the new name, or of none. Everywhere else it checks those of both.
 *  Elsewhere: attributes (view.ts). */

import type { GitInvocation } from "../rules/index.ts";
import { isGiven, lookUp, namesIn, peeled } from "./objects.ts";
import { holdsPassword, nameOf, type Setting } from "./settings.ts";
import type { View } from "./view.ts";

/** They print changes by the same options. */
export const SHOWS_CHANGES: readonly string[] = [
  ...["diff", "log", "show", "whatchanged", "diff-tree", "diff-index", "diff-files", "stash", "reflog"],
];

/** Compared with one parent at a time, or not at all. */
const ONE_PARENT = /^(?:off|none|first-parent|1|separate|m)$/;

const asksForIt = (asked: GitInvocation): boolean =>
  isGiven(asked, "c", "cc", "combined-all-paths", "L") ||
  asked.options.some(({ name, value = "" }) => name === "diff-merges" && !ONE_PARENT.test(value));

/** Names and counts in place of changes. */
const COUNTS: readonly string[] = [
  ...["stat", "numstat", "shortstat", "name-only", "name-status", "summary", "compact-summary", "no-patch", "s"],
];
const BESIDE_COUNTS: readonly string[] = [
  ...["oneline", "format", "pretty", "date", "abbrev-commit", "no-decorate", "decorate", "color", "no-color"],
  ...["no-ext-diff", "no-textconv", "ignore-submodules"],
];

const countsOnly = ({ options }: GitInvocation): boolean =>
  options.some(({ name }) => COUNTS.includes(name)) &&
  options.every(({ name }) => COUNTS.includes(name) || BESIDE_COUNTS.includes(name));

/** May stand for any number of commits: ranges, parents, a search for a message. */
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
  // What has a second parent is a merge. Where only paths are named, HEAD is shown.
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
  // These two have a verb of their own first.
  const isVerb = (verb === "stash" || verb === "reflog") && !asked.words[0]?.startsWith("-");
  const at = words.length - asked.words.length + (isVerb ? 1 : 0);
  return [...words.slice(0, at), "--no-renames", ...words.slice(at)];
};

/** Would a command of git print a password? People put them into the addresses of remotes.
 *  Invariant: only addresses with a password or a token in them count, a user's name is none.
 *  Elsewhere: settings that hold passwords by their names (../bash), the file of settings itself (../paths). */

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
