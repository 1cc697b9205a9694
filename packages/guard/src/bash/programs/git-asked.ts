/** What is a command of git asked for? Its verb, options and operands, for those who look at it before it runs.
 *  Invariant: read by the rules that it was judged by; nobody behind the classifier looks for an option among all words.
 *  Elsewhere: those rules (git.ts). */

import { compileRule, type ParsedArguments, readOptions } from "../options.ts";
import { Refusal } from "../refusal.ts";
import { SUBCOMMANDS } from "./git.ts";

/** A command of git as it was understood when it was judged. */
export type GitInvocation = ParsedArguments & {
  readonly verb: string;
  /** All words behind the verb. */
  readonly words: readonly string[];
};

/** What the rules themselves add to a command. */
const ADDED = "no-ext-diff no-textconv ignore-submodules? no-text";

/** Options end where git ends them: grep knows none behind its first operand. */
const READING = new Map(
  Object.entries(SUBCOMMANDS).map(([name, sub]) => [
    name,
    compileRule({ ...sub, long: `${sub.long ?? ""} ${ADDED}`, ...(name === "grep" ? { optionsFirst: true } : {}) }),
  ]),
);

/** The final words of a command that passed, read once more by the same rules: who looks for an option among all words
 *  takes a pattern, a path or a value for one. */
export const readGitInvocation = (all: readonly string[]): GitInvocation | { readonly problem: string } => {
  let at = 0;
  while (all[at]?.startsWith("-")) at += /^-[Cc]$/.test(all[at] ?? "") ? 2 : 1;
  const [verb = "", words] = [all[at], all.slice(at + 1)];
  const rule = READING.get(verb);
  const isUsage = words.length === 1 && words[0] === "-h";
  if (rule === undefined || isUsage) return { verb, words, options: [], operands: [] };
  const given = words.map((text) => ({ text }));
  try {
    return { ...readOptions(`git ${verb}`, given, rule), verb, words };
  } catch (error) {
    if (error instanceof Refusal) return { problem: error.message };
    throw error;
  }
};
