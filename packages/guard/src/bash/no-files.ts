/** Does a plan open no file at all? Then it is just as harmless in a plain shell, where nobody checks names, links and
 *  repositories before it runs.
 *  Invariant: an allow-list of programs. A filter counts only if it is given no file, by the same rules that classified it.
 *  Elsewhere: running a plan, with every name checked (../run). */

import { walkOf } from "./classify.ts";
import { LISTS_NAMES } from "./indirect-reads.ts";
import { readOptions } from "./options.ts";
import type { CommandPlan, PlanCommand, PlanStep, PlanWord } from "./plan.ts";
import { programs } from "./programs/index.ts";

/** Whatever their arguments, they open nothing, or only tell that a file exists. */
const OPENS_NOTHING: readonly string[] = [
  ...LISTS_NAMES.filter((name) => name !== "du"), // an option has it read a file with names
  ...["true", "false", "pwd", "uname", "whoami", "seq", "sleep", "tr"],
];

const GREPS: readonly string[] = ["grep", "egrep", "fgrep"];

/** They read standard input if no file is named. */
const FILTERS: readonly string[] = [
  ...["cat", "head", "tail", "wc", "sort", "uniq", "cut", "tac", "nl", "rev", "column"],
  ...GREPS,
];

/** Options whose values are files; for grep, also `-f`. */
const FILE_OPTIONS = /^(?:file|exclude-from|files0-from)$/;

/** `sed -n 1,5p`, `awk '{print $2}'`. */
const SHORT_PROGRAM: Readonly<Record<string, RegExp>> = {
  sed: /^-n (?:\d+|\$)(?:,(?:\d+|\$))?p$/,
  awk: /^\{ ?print \$(?:\d+|NF) ?\}$/,
};

/** The runner hands no name over as an option; a plain shell does. */
const couldBeOption = ({ text, pattern }: PlanWord): boolean => pattern === true && /^[-*?[{]/.test(text);

const opensNothing = ({ program, args, redirects }: PlanCommand): boolean => {
  if (redirects.some(({ kind }) => kind === "input") || args.some(couldBeOption)) return false;
  if (OPENS_NOTHING.includes(program)) return true;
  if (program === "du") return args.every((word) => !word.pattern);
  if (SHORT_PROGRAM[program]?.test(args.map(({ text }) => text).join(" "))) return args.every((word) => !word.pattern);
  const known = programs.get(program);
  if (!FILTERS.includes(program) || !known || known.read || walkOf(program, args)) return false;
  const { options, operands } = readOptions(program, args, known.rule);
  const namesFile = options.some(({ name }) => FILE_OPTIONS.test(name) || (name === "f" && GREPS.includes(program)));
  return operands.every(({ searchText }) => searchText) && !namesFile;
};

const stepOpensNothing = ({ run }: PlanStep): boolean => {
  if (run.kind === "group") return run.steps.every(stepOpensNothing);
  return run.kind === "cd" || run.commands.every(opensNothing);
};

export const opensNoFile = ({ steps }: Pick<CommandPlan, "steps">): boolean => steps.every(stepOpensNothing);
