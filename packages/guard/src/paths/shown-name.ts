/** A file's name inside a line that a model or a person reads.
 *  Invariant: a name stays one word of its line. Characters that would break the line, control a terminal or change the writing
 *  direction are escaped, so a name cannot pass as text of ours.
 *  Elsewhere: whole texts on a terminal (@prefork/cli: visible.ts). */

const ACTIVE_CHARACTERS = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

const escapeCharacter = (sign: string): string => {
  if (sign === "\n") return "\\n";
  if (sign === "\t") return "\\t";
  return `\\u${(sign.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
};

export const shownName = (name: string): string => name.replace(ACTIVE_CHARACTERS, escapeCharacter);
