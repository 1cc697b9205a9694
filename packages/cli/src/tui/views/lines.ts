/** Fitting text into columns: the few operations that all views share.
 *  Invariant: a returned line is never wider than asked, styles included; wide and combining characters count as a terminal
 *  draws them.
 *  Elsewhere: Markdown (markdown.ts). */

import { stripVTControlCharacters } from "node:util";
import { truncateToWidth, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui";

export const widthOf = visibleWidth;

export const cut = (text: string, width: number): string =>
  visibleWidth(text) <= width ? text : truncateToWidth(text, Math.max(0, width), "…");

export const wrap = (text: string, width: number): readonly string[] => wrapTextWithAnsi(text, Math.max(1, width));

/** Wrapped, with the first line's prefix and an indent of the same width below it. */
export const hanging = (prefix: string, text: string, width: number): readonly string[] => {
  const indent = " ".repeat(visibleWidth(prefix));
  return wrap(text, Math.max(1, width - indent.length)).map((line, index) => (index === 0 ? prefix : indent) + line);
};

/** Left and right text on one line. The left one is cut first. */
export const spread = (left: string, right: string, width: number): string => {
  const room = width - visibleWidth(right) - 1;
  if (room < 8) return cut(left, width);
  const fitted = cut(left, room);
  return `${fitted}${" ".repeat(Math.max(1, width - visibleWidth(fitted) - visibleWidth(right)))}${right}`;
};

/** The whole line in one paint: colours inside it would end the paint in the middle. */
export const paintLine = (line: string, width: number, paint: (text: string) => string): string => {
  const plain = stripVTControlCharacters(line);
  return paint(`${plain}${" ".repeat(Math.max(0, width - visibleWidth(plain)))}`);
};

/** The last `count` lines, with a line that says how many are not shown. */
export const lastLines = (
  lines: readonly string[],
  count: number,
  say: (hidden: number) => string,
): readonly string[] => (lines.length <= count ? lines : [say(lines.length - count + 1), ...lines.slice(-(count - 1))]);

/** 83_000 → "1 min 23 s". */
export const duration = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};

/** 31_390 → "31k". */
export const shortTokens = (tokens: number): string => {
  if (tokens < 1_000) return String(tokens);
  if (tokens < 100_000) return `${(tokens / 1_000).toFixed(tokens < 10_000 ? 1 : 0)}k`;
  return tokens < 1_000_000 ? `${Math.round(tokens / 1_000)}k` : `${(tokens / 1_000_000).toFixed(1)}M`;
};

/** 0.9954 → "99.5 %"; never rounded up to 100. */
export const percent = (share: number): string => {
  const tenths = Math.floor(share * 1000) / 10;
  return `${tenths >= 100 ? "100" : tenths.toFixed(tenths === Math.floor(tenths) ? 0 : 1)} %`;
};
