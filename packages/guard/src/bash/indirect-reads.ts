/** Which files may a command read that its text does not name? It walks everything below a folder, or it receives names through
 *  a pipe.
 *  Invariant: no walk starts at or above a folder with secrets, devices or other programs' memory. Links met on a walk are not
 *  followed, because a repository can plant one that leads anywhere. Piped names come from a program that lists names of the
 *  project, and nothing in between can make up others; the runner checks each name again before it passes it on.
 *  Elsewhere: names in the text (secrets.ts), the inner command itself (programs/xargs.ts), where a name really leads (../run). */

import type { CompiledRule } from "./options.ts";
import type { PlanCommand, PlanWord } from "./plan.ts";
import { Refusal } from "./refusal.ts";

/** Folders that are not a project: somewhere below them are secrets, devices or the state of running programs. */
const BROAD_FOLDERS: readonly RegExp[] = [
  /^\/$/,
  /^\/(proc|dev|sys|run|etc|var|boot|root|home|Users|mnt|media|snap)$/,
  /^\/etc\/(ssh|ssl|letsencrypt|wireguard|openvpn|NetworkManager|sudoers\.d|cron[\w.]*|docker)(\/|$)/,
  /^\/var\/(lib|run|backups|spool|mail)$/,
  /^\/(home|Users)\/[^/]+$/,
  /^~[^/]*$/,
  // Programs keep a user's data here, including secrets. The worktrees of isolated forks are checkouts, so they are excepted.
  /^(~[^/]*|\/root|\/(home|Users)\/[^/]+)\/(?!\.local\/state\/prefork\/worktrees\/[^/]+\/trees\/[^/])(\.[^/]+|Library)(\/|$)/,
];

/** Why everything below a folder may not be read. Expects a normalized path. */
export const broadFolderProblem = (folder: string): string | undefined =>
  BROAD_FOLDERS.some((form) => form.test(folder))
    ? `${folder} contains secrets or special files; name a folder of the project instead`
    : undefined;

const GREPS: readonly string[] = ["grep", "egrep", "fgrep"];
/** `-d recurse` is another way to write `-r`, alone or after other letters. */
const GREP_RECURSIVE = /^-[a-zA-Z]*[rRd]|^--(dereference-)?recursive$|^--directories(=|$)/;
const DIFF_RECURSIVE = /^-[a-zA-Z]*r|^--recursive$/;

/** The index of the program that xargs runs. Each option before it is a single word (programs/xargs.ts). */
export const innerProgramIndex = (args: readonly PlanWord[]): number =>
  args.findIndex(({ text }) => !text.startsWith("-"));

type Walk = {
  /** Operands that are not text to search for. */
  readonly starts: readonly PlanWord[];
};

/** The walk that a command makes through the contents of files; undefined if it reads single files or only names. */
export const walkByOptions = (program: string, args: readonly PlanWord[]): Walk | undefined => {
  if (program === "xargs") {
    const at = innerProgramIndex(args);
    return at < 0 ? undefined : walkByOptions(args[at]?.text ?? "", args.slice(at + 1));
  }
  const has = (sign: RegExp): boolean => args.some(({ text, searchText }) => !searchText && sign.test(text));
  const isPlain = ({ text, searchText }: PlanWord): boolean => !searchText && !text.startsWith("-");
  if (program === "rg" || (GREPS.includes(program) && has(GREP_RECURSIVE))) return { starts: args.filter(isPlain) };
  if (program === "diff" && has(DIFF_RECURSIVE)) return { starts: args.filter(isPlain) };
  const inner = program === "find" ? findRuns(args) : [];
  if (inner.length === 0) return undefined;
  const own = inner.flatMap(([name, ...words]) => walkByOptions(name?.text ?? "", words)?.starts ?? []);
  return { starts: [...findStarts(args), ...own.filter(({ text }) => text !== "{}")] };
};

/** The commands that find runs, each up to its `{}`. If the `{}` is the text to search for, the program walks the working
 *  directory instead. */
const findRuns = (args: readonly PlanWord[]): readonly (readonly PlanWord[])[] =>
  args.flatMap(({ text }, at) => {
    if (text !== "-exec") return [];
    const rest = args.slice(at + 1);
    const end = rest.findIndex((word) => word.text === "{}");
    const words = end < 0 ? rest : rest.slice(0, end);
    return [/^(-[a-zA-Z]*e|--regexp)$/.test(words.at(-1)?.text ?? "") ? [...words, { text: "." }] : words];
  });

/** The folders that find starts in: the words before its expression. */
export const findStarts = (args: readonly PlanWord[]): readonly PlanWord[] => {
  const first = args.findIndex(({ text }) => !/^-[HLP]$/.test(text));
  const from = first < 0 ? [] : args.slice(first);
  const end = from.findIndex(({ text }) => /^[-(!,)]/.test(text));
  return end < 0 ? from : from.slice(0, end);
};

/** Replaces options that follow links: `grep -R` runs as `grep -r`, `rg -L` as `rg`. */
export const withoutFollowingLinks = (
  program: string,
  args: readonly PlanWord[],
  rule: CompiledRule | undefined,
): readonly PlanWord[] => {
  const isGrep = GREPS.includes(program);
  if ((!isGrep && program !== "rg") || !rule) return args;
  const end = args.findIndex(({ text, searchText }) => text === "--" && !searchText);
  return args.map((word, at) => {
    const { text } = word;
    if (word.searchText || word.pattern || !text.startsWith("-") || (end >= 0 && at > end)) return word;
    if (text === "--dereference-recursive") return { text: "--recursive" };
    if (text === "--follow") return { text: "--no-follow" };
    if (text.startsWith("--")) return word;
    const [flags, rest] = splitFlags(text, rule);
    const kept = isGrep ? flags.replaceAll("R", "r") : flags.replaceAll("L", "");
    return kept === flags ? word : { text: kept + rest === "-" ? "--no-follow" : kept + rest };
  });
};

/** Splits a group of short options: the letters before the first that takes a value, and the rest. */
const splitFlags = (text: string, rule: CompiledRule): readonly [string, string] => {
  const value = [...text].findIndex((letter, at) => at > 0 && rule.valued?.includes(letter));
  return value < 0 ? [text, ""] : [text.slice(0, value), text.slice(value)];
};

// --- names that come through a pipe ----------------------------------------------------------------------------------

/** They report names, never the contents of a file. */
export const LISTS_NAMES: readonly string[] = [
  ...["ls", "dir", "du", "stat", "echo", "printf", "basename", "dirname", "realpath", "readlink", "which", "test"],
];

/** They print the words they get, or parts of them. */
export const PRINTS_WORDS: readonly string[] = ["echo", "printf", "basename", "dirname"];

/** No word, not even an option, makes them print the contents of a file. */
const TAKES_ANY_NAME: readonly string[] = [...PRINTS_WORDS, "ls", "dir", "stat", "realpath", "readlink", "which"];

/** Programs with options that write or run. They only get whole names that start with a folder. */
export const NEEDS_WHOLE_NAMES: readonly string[] = ["sed", "awk", "gawk", "mawk", "file", "rg", "sort"];

const LINE_FILTERS: readonly string[] = ["head", "tail", "sort", "uniq", "cut", "tac", "shuf"];
/** Programs that select one field or delete text, so no name comes out that did not go in. */
const ONE_FIELD = /^\s*(?:\/[\w .^$-]*\/\s*)?\{\s*print\s+\$(?:\d+|NF)\s*(?:;\s*)?\}\s*$/;
const ONLY_DELETES = /^s([/|,#:@])(?:(?!\1).)*\1\1g?$/;

const LISTED_BY_GIT = /^(ls-files|ls-tree)$|^--name-only$|^-(?=[a-km-zA-Z]*l)[a-zA-Z]+$|^--files-with-matches$/;
const LISTED_BY_GREP = /^-[a-zA-Z]*[lL]|^--files-(with-matches|without-match)$/;
const LISTED_BY_RG = /^-[a-zA-Z.0]*l|^--files$|^--files-with(out)?-match(es)?$/;

const hasOption = (args: readonly PlanWord[], sign: RegExp): boolean =>
  args.some(({ text, searchText }) => !searchText && sign.test(text));

const listsNames = ({ program, args }: PlanCommand): boolean => {
  switch (program) {
    case "find":
      return !args.some(({ text }) => text === "-printf" || text === "-exec");
    case "ls":
      return true;
    case "xargs": {
      const at = innerProgramIndex(args);
      return listsNames({ program: args[at]?.text ?? "", args: args.slice(at + 1), redirects: [] });
    }
    case "git":
      return hasOption(args, LISTED_BY_GIT);
    case "rg":
      return hasOption(args, LISTED_BY_RG);
    case "grep":
    case "egrep":
    case "fgrep":
      return hasOption(args, LISTED_BY_GREP);
    default:
      return false;
  }
};

const onlyFiltersLines = ({ program, args, redirects }: PlanCommand): boolean => {
  if (redirects.some(({ kind }) => kind === "input")) return false;
  const plain = args.filter(({ text }) => !text.startsWith("-"));
  if (program === "awk" || program === "gawk" || program === "mawk")
    return plain.length === 1 && plain.every(({ text }) => ONE_FIELD.test(text));
  if (program === "sed") return plain.length === 1 && plain.every(({ text }) => ONLY_DELETES.test(text));
  if (program === "grep" || program === "egrep" || program === "fgrep")
    return plain.every(({ searchText }) => searchText === true) && !hasOption(args, /^-[a-zA-Z]*o|^--only-matching$/);
  return LINE_FILTERS.includes(program) && plain.every(({ text }) => /^\d+$/.test(text));
};

/** Refuses a pipe that passes names of unknown origin to a program that reads files. `startProblem`: why everything below a
 *  folder may not be listed for it. */
export const checkPipedNames = (
  commands: readonly PlanCommand[],
  startProblem: (start: PlanWord) => string | undefined,
): void => {
  commands.forEach(({ program, args, redirects }, at) => {
    if (program !== "xargs") return;
    const inner = args[innerProgramIndex(args)]?.text ?? "echo";
    // The runner only checks names that come through the pipe.
    if (redirects.some(({ kind }) => kind === "input") && !PRINTS_WORDS.includes(inner))
      throw new Refusal(
        `names from a file may not be passed to ${inner}; list them with find, ls, rg -l or git ls-files`,
      );
    if (TAKES_ANY_NAME.includes(inner)) return;
    if (at === 0) return; // nothing to read: there is no standard input
    const source = commands.slice(0, at).findLastIndex((command) => !onlyFiltersLines(command));
    const lister = commands[Math.max(source, 0)] as PlanCommand;
    const isWhole =
      lister.program === "find" && lister.args.some(({ text }) => text === "-print0") && source === at - 1;
    if (NEEDS_WHOLE_NAMES.includes(inner) && !isWhole)
      throw new Refusal(`${inner} could mistake a name for an option; use find DIR … -exec ${inner} … {} +`);
    if (!listsNames(lister))
      throw new Refusal(
        `names printed by ${lister.program} may not be passed to ${inner}; list them with find, ls, rg -l or git ls-files`,
      );
    const problem = lister.program === "find" ? findStarts(lister.args).map(startProblem).find(Boolean) : undefined;
    if (problem) throw new Refusal(problem);
  });
};
