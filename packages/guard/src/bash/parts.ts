/** The simple commands of a text, for rules about commands.
 *  Invariant: all of them or none. A text with anything outside the small grammar has no parts.
 *  Elsewhere: the grammar (syntax.ts). */

import type { PlanWord } from "./plan.ts";
import { Refusal } from "./refusal.ts";
import { commandsOf, readSteps } from "./syntax.ts";

/** Each simple command as words with their quotes resolved. A word is quoted again only if a rule could misread it.
 *  Undefined if the text cannot be split. */
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
