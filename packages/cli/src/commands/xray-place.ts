/** Two places of two bodies, with a mark under the very letters that differ.
 *  Invariant: one line of text a place and one of marks, neither wider than 100 columns; what stands there cannot act on
 *  the terminal; the marks alone say what colour says.
 *  Elsewhere: finding the places (@prefork/wire), what is said around them (xray-report.ts). */

import type { XrayDivergence, XrayPlace } from "@prefork/xray";
import { formatTokens } from "../numbers.ts";
import { painter } from "../table.ts";
import { visible } from "../visible.ts";
import { fitting, terminalColumns, widthOf } from "../width.ts";

const WIDTH = 96;
const BEFORE = 34;
const DIFFERING = 44;
const NARROWEST = 40;

/** Text from a body in one line. */
export const inLine = (text: string): string =>
  visible(text.replaceAll("\r\n", "\n")).replaceAll("\n", "\\n").replaceAll("\t", "\\t");

/** As many letters as fit, from the start or from the end. */
const cut = (text: string, most: number, from: "start" | "end"): string => {
  const kept = fitting(text, most, from);
  if (kept === text) return text;
  return from === "start" ? `${kept}…` : `…${kept}`;
};

/** The text around a place and the marks below it. Where nothing stands, the mark is under what comes next. */
const pointed = ({ before, text, after }: XrayPlace, colour: boolean): string => {
  const paint = painter(colour);
  const room = Math.max(NARROWEST, Math.min(WIDTH, terminalColumns() ?? WIDTH));
  const left = cut(inLine(before), Math.floor((room * BEFORE) / WIDTH), "end");
  const middle = cut(inLine(text), Math.floor((room * DIFFERING) / WIDTH), "start");
  const right = cut(inLine(after), Math.max(0, room - 8 - widthOf(left) - widthOf(middle)), "start");
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
