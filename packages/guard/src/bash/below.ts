/** Reading all that is below a folder: where may such a walk begin, and what may it follow?
 *  Invariant: never at or above what holds keys, devices or other programs' memory; links met on the way are not
 *  followed, since a repository can plant one that leads anywhere.
 *  Elsewhere: single names (secrets.ts), asking again where a name really leads (../run). */

import type { CompiledRule } from "./options.ts";
import type { PlanWord } from "./plan.ts";

/** Folders that are no project: somewhere below them are keys, devices or the state of running programs. */
const BROAD: readonly RegExp[] = [
  /^\/$/,
  /^\/(proc|dev|sys|run|etc|var|boot|root|home|Users|mnt|media|snap)$/,
  /^\/etc\/(ssh|ssl|letsencrypt|wireguard|openvpn|NetworkManager|sudoers\.d|cron[\w.]*|docker)(\/|$)/,
  /^\/var\/(lib|run|backups|spool|mail)$/,
  /^\/(home|Users)\/[^/]+$/,
  /^~[^/]*$/,
  // What programs keep for a user, keys among it; but the copies that isolated forks work in are checkouts.
  /^(~[^/]*|\/root|\/(home|Users)\/[^/]+)\/(?!\.local\/state\/prefork\/worktrees\/[^/]+\/trees\/[^/])(\.[^/]+|Library)(\/|$)/,
];

/** Why all below a folder may not be read; the folder without doubled slashes and dots. */
export const belowProblem = (folder: string): string | undefined =>
  BROAD.some((form) => form.test(folder))
    ? `below ${folder} stand keys and no plain files; name a folder of the project`
    : undefined;

const GREPS: readonly string[] = ["grep", "egrep", "fgrep"];
/** `-d recurse` is one more way to say `-r`, alone or behind other letters. */
const GREP_BELOW = /^-[a-zA-Z]*[rRd]|^--(dereference-)?recursive$|^--directories(=|$)/;
const DIFF_BELOW = /^-[a-zA-Z]*r|^--recursive$/;

/** Where in its arguments the program stands that xargs runs: each option before it is one word (programs/xargs.ts). */
export const fedProgram = (args: readonly PlanWord[]): number => args.findIndex(({ text }) => !text.startsWith("-"));

type Walk = {
  /** The words that are no options; text to look for is not among them. */
  readonly starts: readonly PlanWord[];
};

/** The walk that a command makes through files' contents; undefined where it reads single files or only names. */
export const walkOf = (program: string, args: readonly PlanWord[]): Walk | undefined => {
  if (program === "xargs") {
    const at = fedProgram(args);
    return at < 0 ? undefined : walkOf(args[at]?.text ?? "", args.slice(at + 1));
  }
  const has = (sign: RegExp): boolean => args.some(({ text, sought }) => !sought && sign.test(text));
  const isPlain = ({ text, sought }: PlanWord): boolean => !sought && !text.startsWith("-");
  if (program === "rg" || (GREPS.includes(program) && has(GREP_BELOW))) return { starts: args.filter(isPlain) };
  if (program === "diff" && has(DIFF_BELOW)) return { starts: args.filter(isPlain) };
  const inner = program === "find" ? findRuns(args) : [];
  if (inner.length === 0) return undefined;
  const own = inner.flatMap(([name, ...words]) => walkOf(name?.text ?? "", words)?.starts ?? []);
  return { starts: [...findStarts(args), ...own.filter(({ text }) => text !== "{}")] };
};

/** The commands that find runs, each up to its `{}`. A program that is given its text by an option there looks for names
 *  in what it walks itself. */
const findRuns = (args: readonly PlanWord[]): readonly (readonly PlanWord[])[] =>
  args.flatMap(({ text }, at) => {
    if (text !== "-exec") return [];
    const rest = args.slice(at + 1);
    const end = rest.findIndex((word) => word.text === "{}");
    const words = end < 0 ? rest : rest.slice(0, end);
    return [/^(-[a-zA-Z]*e|--regexp)$/.test(words.at(-1)?.text ?? "") ? [...words, { text: "." }] : words];
  });

/** The folders that find begins in: what stands before its expression. */
export const findStarts = (args: readonly PlanWord[]): readonly PlanWord[] => {
  const first = args.findIndex(({ text }) => !/^-[HLP]$/.test(text));
  const from = first < 0 ? [] : args.slice(first);
  const end = from.findIndex(({ text }) => /^[-(!,)]/.test(text));
  return end < 0 ? from : from.slice(0, end);
};

/** Options as they stand, but for those that would follow links: `grep -R` is run as `grep -r`, `rg -L` as `rg`. */
export const withoutFollowing = (
  program: string,
  args: readonly PlanWord[],
  rule: CompiledRule | undefined,
): readonly PlanWord[] => {
  const isGrep = GREPS.includes(program);
  if ((!isGrep && program !== "rg") || !rule) return args;
  const end = args.findIndex(({ text, sought }) => text === "--" && !sought);
  return args.map((word, at) => {
    const { text } = word;
    if (word.sought || word.pattern || !text.startsWith("-") || (end >= 0 && at > end)) return word;
    if (text === "--dereference-recursive") return { text: "--recursive" };
    if (text === "--follow") return { text: "--no-follow" };
    if (text.startsWith("--")) return word;
    const [flags, rest] = flagsOf(text, rule);
    const kept = isGrep ? flags.replaceAll("R", "r") : flags.replaceAll("L", "");
    return kept === flags ? word : { text: kept + rest === "-" ? "--no-follow" : kept + rest };
  });
};

/** The letters before the first that takes a value are options; the rest is its value. */
const flagsOf = (text: string, rule: CompiledRule): readonly [string, string] => {
  const value = [...text].findIndex((letter, at) => at > 0 && rule.valued?.includes(letter));
  return value < 0 ? [text, ""] : [text.slice(0, value), text.slice(value)];
};
