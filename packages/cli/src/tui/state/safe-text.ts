/** Text from outside, made safe for a terminal: nothing in it can move the cursor, change colours or hide words.
 *  Invariant: the result has no control character but line feeds; one call per piece of a stream is enough, because no
 *  sequence survives without its first character.
 *  Elsewhere: the same for single lines of plain output (../../visible.ts). */

import { visible } from "../../visible.ts";

const TAB = "    ";
/** Far more than anybody reads on a screen. The journal has the whole text. */
const MAX_TEXT = 200_000;
/** More combining marks than any script stacks on one character; terminals draw them over the lines around. */
const STACKED_MARKS = /(\p{M}{8})\p{M}+/gu;
/** Characters without a width, which can hide inside a word, and what joins or varies emoji: terminals disagree about the
 *  width of the result, which would break lines. The parts are shown one by one. */
const WITHOUT_WIDTH = /\p{Default_Ignorable_Code_Point}|\p{Emoji_Modifier}/gu;
/** Characters that no terminal knows. */
const UNASSIGNED = /\p{Cn}/gu;
/** Two of these make a flag; their letters say the same. */
const FLAG_LETTERS = /[\u{1f1e6}-\u{1f1ff}]/gu;

const flagLetter = (sign: string): string => String.fromCharCode(65 + (sign.codePointAt(0) ?? 0) - 0x1f1e6);

export const safeText = (text: string): string => {
  const kept =
    text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}\n[${text.length - MAX_TEXT} more characters]` : text;
  return visible(kept.toWellFormed().replace(/\r(?=\n|$)/g, ""))
    .replaceAll("\t", TAB)
    .replace(STACKED_MARKS, "$1")
    .replace(WITHOUT_WIDTH, "")
    .replace(UNASSIGNED, "\ufffd")
    .replace(FLAG_LETTERS, flagLetter);
};

/** One line of at most `most` characters. */
export const safeLine = (text: string, most = 300): string => {
  const line = safeText(text.slice(0, most * 4))
    .replace(/\s+/g, " ")
    .trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
};
