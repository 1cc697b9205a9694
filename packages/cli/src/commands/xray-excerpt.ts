/** Excerpts from two request bodies, with marks under the characters that differ.
 *  Invariant: one line of text and one of marks per body, neither wider than 100 columns; the text cannot control the
 *  terminal; the marks carry the same information as the colour.
 *  Elsewhere: finding the difference (@prefork/xray), the text around it (xray-report.ts). */

import type { XrayDivergence, XrayLocation } from "@prefork/xray";
import { formatTokens } from "../numbers.ts";
import { painter } from "../table.ts";
import { visible } from "../visible.ts";
import { takeColumns, terminalColumns, widthOf } from "../width.ts";

const WIDTH = 96;
const BEFORE = 34;
const DIFFERING = 44;
const NARROWEST = 40;

/** Text from a body in one line. */
export const escapeLine = (text: string): string =>
  visible(text.replaceAll("\r\n", "\n")).replaceAll("\n", "\\n").replaceAll("\t", "\\t");

/** Cuts text to a width, keeping its start or its end. */
const cut = (text: string, most: number, from: "start" | "end"): string => {
  const kept = takeColumns(text, most, from);
  if (kept === text) return text;
  return from === "start" ? `${kept}…` : `…${kept}`;
};

/** The text around a difference, and the marks below it. If there is no text, the mark is under what follows. */
const excerptWithMarks = ({ before, text, after }: XrayLocation, colour: boolean): string => {
  const paint = painter(colour);
  const room = Math.max(NARROWEST, Math.min(WIDTH, terminalColumns() ?? WIDTH));
  const left = cut(escapeLine(before), Math.floor((room * BEFORE) / WIDTH), "end");
  const middle = cut(escapeLine(text), Math.floor((room * DIFFERING) / WIDTH), "start");
  const right = cut(escapeLine(after), Math.max(0, room - 8 - widthOf(left) - widthOf(middle)), "start");
  const marks = "^".repeat(Math.max(1, widthOf(middle)));
  return `    ${left}${paint("bad", middle)}${right}\n    ${" ".repeat(widthOf(left))}${paint("bad", marks)}\n`;
};

const heading = (name: string, { path, offset, length }: XrayLocation): string => {
  const place = path === "" ? "the body" : path;
  const what = length === 0 ? "nothing" : `${formatTokens(length)} ${length === 1 ? "byte" : "bytes"}`;
  return `  ${escapeLine(name)}  ${escapeLine(place)}  at byte ${formatTokens(offset)}, ${what}\n`;
};

export const divergenceAsText = (
  { a, b }: XrayDivergence,
  [first, second]: readonly [string, string],
  colour: boolean,
): string => `${heading(first, a)}${excerptWithMarks(a, colour)}${heading(second, b)}${excerptWithMarks(b, colour)}`;
