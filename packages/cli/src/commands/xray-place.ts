/** Two places of two bodies, with a mark under the very letters that differ.
 *  Invariant: one line of text a place and one of marks, neither wider than 100 columns; what stands there cannot act on
 *  the terminal; the marks alone say what colour says.
 *  Elsewhere: finding the places (@prefork/wire), what is said around them (xray-report.ts). */

import type { XrayDivergence, XrayPlace } from "@prefork/wire";
import { formatTokens } from "../numbers.ts";
import { painter } from "../table.ts";
import { visible } from "../visible.ts";

const WIDTH = 96;
const BEFORE = 34;
const DIFFERING = 44;

/** Text from a body in one line. */
export const inLine = (text: string): string =>
  visible(text.replaceAll("\r\n", "\n")).replaceAll("\n", "\\n").replaceAll("\t", "\\t");

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;
const FLAT = /^[\p{Mn}\p{Me}\p{Cf}]$/u;

/** Columns on a terminal. */
const columns = (letter: string): number => (FLAT.test(letter) ? 0 : WIDE.test(letter) ? 2 : 1);
const widthOf = (text: string): number => [...text].reduce((sum, letter) => sum + columns(letter), 0);

/** As many letters as fit, from the start or from the end. */
const cut = (text: string, most: number, from: "start" | "end"): string => {
  const letters = from === "start" ? [...text] : [...text].toReversed();
  const kept: string[] = [];
  let width = 0;
  for (const letter of letters) {
    width += columns(letter);
    if (width > most) break;
    kept.push(letter);
  }
  if (kept.length === letters.length) return text;
  return from === "start" ? `${kept.join("")}…` : `…${kept.toReversed().join("")}`;
};

/** The text around a place and the marks below it. Where nothing stands, the mark is under what comes next. */
const pointed = ({ before, text, after }: XrayPlace, colour: boolean): string => {
  const paint = painter(colour);
  const left = cut(inLine(before), BEFORE, "end");
  const middle = cut(inLine(text), DIFFERING, "start");
  const right = cut(inLine(after), Math.max(0, WIDTH - 8 - widthOf(left) - widthOf(middle)), "start");
  const marks = "^".repeat(Math.max(1, widthOf(middle)));
  return `    ${left}${paint("bad", middle)}${right}\n    ${" ".repeat(widthOf(left))}${paint("bad", marks)}\n`;
};

const heading = (name: string, { path, offset, length }: XrayPlace): string => {
  const place = path === "" ? "the body" : path;
  const what = length === 0 ? "nothing there" : `${formatTokens(length)} ${length === 1 ? "byte" : "bytes"}`;
  return `  ${inLine(name)}  ${inLine(place)}  at byte ${formatTokens(offset)}, ${what}\n`;
};

export const placesAsText = (
  { a, b }: XrayDivergence,
  [first, second]: readonly [string, string],
  colour: boolean,
): string => `${heading(first, a)}${pointed(a, colour)}${heading(second, b)}${pointed(b, colour)}`;
