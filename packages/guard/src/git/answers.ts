/** Questions about git's own paths and other repositories, which a git that sees a view would answer wrongly.
 *  Invariant: answered from what was read, in git's words, or refused. No git is started for them, except to abbreviate object ids.
 *  Answered here: `rev-parse` of git's folders, `worktree list`, `config --show-origin`. Refused: `submodule` if there are
 *  submodules, `notes` if there are notes. git answers all others through the view.
 *  Elsewhere: the view (view.ts), reading worktrees (worktrees.ts). */

import { dirname, relative } from "node:path";
import { realPath } from "../files/index.ts";
import type { GitInvocation } from "../rules/index.ts";
import { askGit } from "./ask-git.ts";
import { locate } from "./checkout.ts";
import { isGiven } from "./objects.ts";
import { isApprovalNeeded, orApprovalNeeded, type ReadRepository } from "./repository.ts";
import { isInclude, nameOf } from "./settings.ts";
import type { View, ViewProblem } from "./view.ts";
import { readWorktrees, type Worktree } from "./worktrees.ts";

/** A program that prints the answer. */
export type OwnAnswer = { readonly words: readonly string[]; readonly program: string };

const printed = (text: string): OwnAnswer => ({ program: "printf", words: ["%s", text] });

/** Undefined if git itself is to answer. */
export const ownAnswer = async (asked: GitInvocation, view: View): Promise<OwnAnswer | ViewProblem | undefined> => {
  const { repository } = view;
  if (repository === undefined) return undefined;
  const { verb, words: rest } = asked;
  if (verb === "rev-parse" && rest.some((word) => OWN_PATH.test(word))) return pathsOf(rest, view, repository);
  if (verb === "worktree" && rest[0] === "list") return worktrees(rest.slice(1), view, repository);
  if (verb === "config") return configAnswer(asked, repository);
  if ((verb === "notes" || isGiven(asked, "notes", "show-notes", "show-notes-by-default")) && hasNotes(repository))
    return { problem: `git ${verb}: a note may be any file of the repository, so it needs approval` };
  const [module] = repository.index?.repositories ?? [];
  if (verb === "submodule" && module !== undefined)
    return { problem: `git submodule would look into ${module}, a separate repository, so it needs approval` };
  return undefined;
};

const hasNotes = ({ records }: ReadRepository): boolean =>
  [...records.keys(), records.get("packed-refs")?.toString("latin1") ?? ""].some((text) =>
    text.includes("refs/notes/"),
  );

// --- rev-parse -----------------------------------------------------------------------------------------------------------

const OWN_PATH =
  /^--(?:git-dir|absolute-git-dir|git-common-dir|git-path|shared-index-path|show-superproject-working-tree|path-format)(?:=|$)/;

const pathsOf = (
  rest: readonly string[],
  view: View,
  { checkout, isBare }: ReadRepository,
): OwnAnswer | ViewProblem => {
  const { top, git, common, isFolder } = checkout;
  const here = realPath(view.folder);
  const below = relative(top, here);
  let isAbsolute = false;
  const shared = (): string => {
    if (git !== common || !isFolder || isAbsolute) return common;
    return here === top ? ".git" : relative(here, git);
  };
  const lines: string[] = [];
  for (let at = 0; at < rest.length; at += 1) {
    const word = rest[at] ?? "";
    if (/^--path-format=(?:absolute|relative)$/.test(word)) isAbsolute = word.endsWith("absolute");
    else if (word === "--git-dir") lines.push(here === top && isFolder && !isAbsolute ? ".git" : git);
    else if (word === "--absolute-git-dir") lines.push(git);
    else if (word === "--git-common-dir") lines.push(shared());
    else if (word === "--show-toplevel" && !isBare) lines.push(top);
    else if (word === "--show-prefix") lines.push(below === "" ? "" : `${below}/`);
    else if (word === "--show-cdup") lines.push("../".repeat(below === "" ? 0 : below.split("/").length));
    else if (word === "--is-inside-work-tree") lines.push(String(!isBare));
    else if (word === "--is-inside-git-dir") lines.push("false");
    else if (word === "--is-bare-repository") lines.push(String(isBare));
    else if (word === "--git-path" && git === common && rest[at + 1] !== undefined) {
      at += 1;
      lines.push(`${shared()}/${rest[at]}`);
    } else if (word === "--show-superproject-working-tree" && isAlone(top)) continue;
    else if (word !== "--shared-index-path")
      return OWN_PATH.test(word)
        ? { problem: `git rev-parse ${word} would search other folders, so it needs approval` }
        : { problem: `git rev-parse ${word}; ask for git's own paths alone: git rev-parse --git-dir` };
  }
  return printed(lines.map((line) => `${line}\n`).join(""));
};

/** No repository around it. */
const isAlone = (top: string): boolean => {
  const enclosing = dirname(top) === top ? undefined : orApprovalNeeded(() => locate(dirname(top)));
  return !isApprovalNeeded(enclosing) && enclosing?.kind !== "checkout";
};

// --- config --------------------------------------------------------------------------------------------------------------

/** Where a setting comes from. Files that the repository's settings include are not read. */
const configAnswer = (
  asked: GitInvocation,
  { checkout, settings }: ReadRepository,
): OwnAnswer | ViewProblem | undefined => {
  const texts = asked.operands.map(({ text }) => text);
  const [key = "", ...more] = texts[0] === "get" && texts.length > 1 ? texts.slice(1) : texts;
  const [, first = "", middle = "", last = ""] = /^([^.]*)(\..*)?\.([^.]*)$/s.exec(key) ?? [];
  const name = `${first.toLowerCase()}${middle}.${last.toLowerCase()}`;
  const found = settings.findLast((setting) => nameOf(setting) === name);
  if (found === undefined && settings.some(isInclude))
    return {
      problem: "the repository has git read settings from other files, which may contain secrets, so it needs approval",
    };
  if (!isGiven(asked, "show-origin")) return undefined;
  if (more.length > 0 || asked.options.some(({ name }) => name !== "get" && name !== "show-origin"))
    return { problem: "git config --show-origin takes one key: git config --show-origin --get KEY" };
  if (found === undefined) return { program: "false", words: [] };
  const file = `${checkout.isFolder && checkout.git === checkout.common ? ".git" : checkout.common}/config`;
  return printed(`file:${file}\t${found.value ?? ""}\n`);
};

// --- worktree ------------------------------------------------------------------------------------------------------------

type ListForm = "plain" | "verbose" | "porcelain";

const FORMS: Readonly<Record<string, ListForm>> = {
  "": "plain",
  "--porcelain": "porcelain",
  "-v": "verbose",
  "--verbose": "verbose",
};

const worktrees = async (
  rest: readonly string[],
  view: View,
  repository: ReadRepository,
): Promise<OwnAnswer | ViewProblem> => {
  const form = FORMS[rest.join(" ")];
  if (form === undefined) return { problem: "git worktree list takes --porcelain or -v alone" };
  const found = orApprovalNeeded(() => readWorktrees(repository));
  if (isApprovalNeeded(found)) return { problem: found.message };
  if (form === "porcelain") return printed(found.map(porcelain).join(""));
  const listed = await inColumns(found, form, view);
  return listed === undefined
    ? { problem: "git does not report the commits of the worktrees, so it needs approval" }
    : printed(listed);
};

const GONE = "gitdir file points to non-existent location";

const inColumns = async (found: readonly Worktree[], form: ListForm, view: View): Promise<string | undefined> => {
  const short = await shortened(view, found);
  const width = Math.max(...found.map(({ path }) => path.length));
  return (
    short &&
    found
      .map((one) => {
        const branch = one.branch ? `[${one.branch.replace(/^refs\/heads\//, "")}]` : "(detached HEAD)";
        const at = one.isBare ? "(bare)" : `${short.get(one.commit)} ${branch}`;
        return `${one.path.padEnd(width + 1)} ${at}${notes(one, form === "verbose")}\n`;
      })
      .join("")
  );
};

const notes = ({ locked, isGone }: Worktree, isVerbose: boolean): string => {
  const lock = locked === undefined ? "" : isVerbose && locked !== "" ? `\n\tlocked: ${locked}` : " locked";
  const gone = !isGone || locked !== undefined ? "" : isVerbose ? `\n\tprunable: ${GONE}` : " prunable";
  return lock + gone;
};

const porcelain = ({ path, isBare, branch, commit, locked, isGone }: Worktree): string =>
  [
    `worktree ${path}`,
    ...(isBare ? ["bare"] : [`HEAD ${commit}`, branch === undefined ? "detached" : `branch ${branch}`]),
    ...(locked === undefined ? [] : [`locked${locked === "" ? "" : ` ${locked}`}`]),
    ...(isGone && locked === undefined ? [`prunable ${GONE}`] : []),
    "\n",
  ].join("\n");

/** The abbreviated form of each object id, as git prints it. */
const shortened = async (view: View, found: readonly Worktree[]): Promise<ReadonlyMap<string, string> | undefined> => {
  const commits = [...new Set(found.filter(({ isBare }) => !isBare).map(({ commit }) => commit))];
  const known = new Map(commits.filter((one) => /^0+$/.test(one)).map((one) => [one, one.slice(0, 7)]));
  const asked = commits.filter((one) => !known.has(one));
  if (asked.length === 0) return known;
  const answer = await askGit({ view, words: ["log", "--no-walk=unsorted", "--format=%H %h", ...asked, "--"] });
  if (answer === undefined || answer.failed) return undefined;
  for (const line of answer.text.split("\n")) {
    const [whole = "", short = ""] = line.split(" ");
    known.set(whole, short);
  }
  return known;
};
