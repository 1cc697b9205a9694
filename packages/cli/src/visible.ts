/** Makes outside text safe for a terminal: text from models, providers and files may contain control sequences.
 *  Invariant: line feeds and tabs stay; every other control character, and every bidirectional override, is escaped.
 *  Elsewhere: JSON lines, which have their own escapes (lines.ts). */

const CONTROL_CHARACTERS = /(?![\n\t])[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** For a name inside a line, which must stay one line. */
export const visibleName = (name: string): string => visible(name).replaceAll("\n", "\\n").replaceAll("\t", "\\t");

export const visible = (text: string): string =>
  text
    .replaceAll("\r\n", "\n")
    .replace(CONTROL_CHARACTERS, (sign) => `\\u${(sign.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`);
