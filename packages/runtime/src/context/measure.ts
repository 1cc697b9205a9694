/** How long is a text, and how is one that is too long cut?
 *  Invariant: bytes are those of UTF-8, no character is cut in two, and the same text is cut at the same place always.
 *  Elsewhere: which texts are cut (conventions.ts, replacement.ts, next-epoch.ts). */

import { Buffer } from "node:buffer";

export const bytesOfText = (text: string): number => Buffer.byteLength(text, "utf8");

/** No character takes more bytes for each of its units. Known at once, where `bytesOfText` looks at every letter. */
export const mostBytesOfText = (text: string): number => text.length * 3;

/** Code and prose give 3 to 4 bytes a token with the tokenizers in use; under-counting is what would hurt. */
const BYTES_PER_TOKEN = 3.5;

export const tokensOfBytes = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN);

export const bytesOfTokens = (tokens: number): number => Math.floor(tokens * BYTES_PER_TOKEN);

/** 10xxxxxx: a byte inside a character. */
const isInside = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

const NEWLINE = 0x0a;

/** A line is kept whole where that leaves at least this share of the room used. */
const LEAST_USED = 0.5;

/** The beginning of a text, ending with a line where one ends in the later half of the room. */
export const headOf = (text: string, most: number): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  let end = Math.max(0, most);
  while (end > 0 && isInside(bytes[end])) end -= 1;
  const line = bytes.lastIndexOf(NEWLINE, end - 1) + 1;
  return bytes.toString("utf8", 0, line >= most * LEAST_USED && line > 0 ? line : end);
};

/** The end of a text, beginning with a line where one begins in the earlier half of the room. */
export const tailOf = (text: string, most: number): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  let start = bytes.length - Math.max(0, most);
  while (start < bytes.length && isInside(bytes[start])) start += 1;
  const line = bytes.indexOf(NEWLINE, start) + 1;
  return bytes.toString("utf8", line > 0 && bytes.length - line >= most * LEAST_USED ? line : start);
};

/** 12,345 on every machine. */
export const figure = (value: number): string => {
  const [whole = "", fraction = "0"] = value.toFixed(1).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (fraction === "0" ? "" : `.${fraction}`);
};
