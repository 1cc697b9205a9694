/** Names that only turn up at run time: who may hand them to a program that prints what files hold?
 *  Invariant: they come from a program that lists names of the project, and nothing on the way can make up others; the
 *  runner looks at each of them again before it is handed over.
 *  Elsewhere: the inner command by itself (programs/wrappers.ts), looking at the names (../run). */

import { fedProgram, findStarts } from "./below.ts";
import type { PlanCommand, PlanWord } from "./plan.ts";
import { Refusal } from "./refusal.ts";

/** They tell of names, never of what is in a file. */
export const LISTS_NAMES: readonly string[] = [
  ...["ls", "dir", "du", "stat", "echo", "printf", "basename", "dirname", "realpath", "readlink", "which", "test"],
];

/** Whatever words they get, they print them or parts of them. */
export const PRINTS_WORDS: readonly string[] = ["echo", "printf", "basename", "dirname"];

/** No word, be it an option, makes them tell what is in a file. */
const FED_FREELY: readonly string[] = [...PRINTS_WORDS, "ls", "dir", "stat", "realpath", "readlink", "which"];

/** Programs with options that write or run: they get names only whole, and only such as begin with a folder. */
export const NEEDS_WHOLE_NAMES: readonly string[] = ["sed", "awk", "gawk", "mawk", "file", "rg", "sort"];

const PASS_ON: readonly string[] = ["head", "tail", "sort", "uniq", "cut", "tac", "shuf"];
/** Take one field, or take something away: no name comes out that did not go in. */
const ONE_FIELD = /^\s*(?:\/[\w .^$-]*\/\s*)?\{\s*print\s+\$(?:\d+|NF)\s*(?:;\s*)?\}\s*$/;
const TAKES_AWAY = /^s([/|,#:@])(?:(?!\1).)*\1\1g?$/;

const LISTED_BY_GIT = /^(ls-files|ls-tree)$|^--name-only$|^-(?=[a-km-zA-Z]*l)[a-zA-Z]+$|^--files-with-matches$/;
const LISTED_BY_GREP = /^-[a-zA-Z]*[lL]|^--files-(with-matches|without-match)$/;
const LISTED_BY_RG = /^-[a-zA-Z.0]*l|^--files$|^--files-with(out)?-match(es)?$/;

const hasOption = (args: readonly PlanWord[], sign: RegExp): boolean =>
  args.some(({ text, sought }) => !sought && sign.test(text));

const listsNames = ({ program, args }: PlanCommand): boolean => {
  switch (program) {
    case "find":
      return !args.some(({ text }) => text === "-printf" || text === "-exec");
    case "ls":
      return true;
    case "xargs": {
      const at = fedProgram(args);
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

const passesOn = ({ program, args, redirects }: PlanCommand): boolean => {
  if (redirects.some(({ kind }) => kind === "input")) return false;
  const plain = args.filter(({ text }) => !text.startsWith("-"));
  if (program === "awk" || program === "gawk" || program === "mawk")
    return plain.length === 1 && plain.every(({ text }) => ONE_FIELD.test(text));
  if (program === "sed") return plain.length === 1 && plain.every(({ text }) => TAKES_AWAY.test(text));
  if (program === "grep" || program === "egrep" || program === "fgrep")
    return plain.every(({ sought }) => sought === true) && !hasOption(args, /^-[a-zA-Z]*o|^--only-matching$/);
  return PASS_ON.includes(program) && plain.every(({ text }) => /^\d+$/.test(text));
};

/** Refuses a pipe that hands names of unknown origin to a reader. `broad`: may all below a folder be listed for it? */
export const checkFeeding = (
  commands: readonly PlanCommand[],
  broad: (start: PlanWord) => string | undefined,
): void => {
  commands.forEach(({ program, args, redirects }, at) => {
    if (program !== "xargs") return;
    const inner = args[fedProgram(args)]?.text ?? "echo";
    // Only what comes through the pipe is looked at by the runner.
    if (redirects.some(({ kind }) => kind === "input") && !PRINTS_WORDS.includes(inner))
      throw new Refusal(
        `names from a file may not be given to ${inner}; list them with find, ls, rg -l or git ls-files`,
      );
    if (FED_FREELY.includes(inner)) return;
    if (at === 0) return; // reads nothing: there is no standard input
    const source = commands.slice(0, at).findLastIndex((command) => !passesOn(command));
    const lister = commands[Math.max(source, 0)] as PlanCommand;
    const isWhole =
      lister.program === "find" && lister.args.some(({ text }) => text === "-print0") && source === at - 1;
    if (NEEDS_WHOLE_NAMES.includes(inner) && !isWhole)
      throw new Refusal(`${inner} could take a name for an option; use find DIR … -exec ${inner} … {} +`);
    if (!listsNames(lister))
      throw new Refusal(
        `names that ${lister.program} makes up may not be given to ${inner}; list them with find, ls, rg -l or git ls-files`,
      );
    const problem = lister.program === "find" ? findStarts(lister.args).map(broad).find(Boolean) : undefined;
    if (problem) throw new Refusal(problem);
  });
};
