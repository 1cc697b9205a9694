/** A file's name inside a line that a model or a person reads.
 *  Invariant: a name stays one word of its line: what would break the line, act on a terminal or turn the direction of
 *  writing is written out, so no name speaks for itself.
 *  Elsewhere: whole texts on a terminal (the command line's visible.ts). */

const ACTIVE_CHARACTERS = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

const escapeCharacter = (sign: string): string => {
  if (sign === "\n") return "\\n";
  if (sign === "\t") return "\\t";
  return `\\u${(sign.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
};

export const shownName = (name: string): string => name.replace(ACTIVE_CHARACTERS, escapeCharacter);
