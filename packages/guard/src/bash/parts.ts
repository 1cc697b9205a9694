/** The simple commands of a text, for rules that speak of commands.
 *  Invariant: all of them or none: a text that holds anything the small grammar does not know has no parts.
 *  Elsewhere: the grammar (syntax.ts). */

import type { PlanWord } from "./plan.ts";
import { Refusal } from "./refusal.ts";
import { commandsOf, readSteps } from "./syntax.ts";

/** Each simple command as words with their quotes resolved, quoted again only where a rule could misread them. */
export const splitCommands = (text: string): readonly string[] | undefined => {
  try {
    return commandsOf(readSteps(text)).map(({ assignments, words }) =>
      [...assignments.map(({ name, value }) => `${name}=${quoteWord(value)}`), ...words.map(wordOf)].join(" "),
    );
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
};

const wordOf = ({ text, pattern }: PlanWord): string => (pattern ? text : quoteWord(text));

const quoteWord = (text: string): string =>
  /^[\w@%+=:,./~^-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
