/** Text from elsewhere as it may stand on a terminal: models, providers and files write what terminals act on.
 *  Invariant: line ends and tabs stay; every other control, and what turns the direction of writing, is shown as letters.
 *  Elsewhere: JSON lines, which have an escape of their own (lines.ts). */

const ACTS = /(?![\n\t])[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** A name inside a line, which it must not break. */
export const visibleName = (name: string): string => visible(name).replaceAll("\n", "\\n").replaceAll("\t", "\\t");

export const visible = (text: string): string =>
  text
    .replaceAll("\r\n", "\n")
    .replace(ACTS, (sign) => `\\u${(sign.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`);
