/** One place in a body, with the letters around it, and the letters in which two strings differ.
 *  Invariant: offsets are of the bytes that were given; no letter is cut in half, and no more than a line is quoted.
 *  Elsewhere: finding the two values (locate.ts, lockstep.ts), showing the place (the command line). */

import { type At, offsetInString } from "./places.ts";

/** A place in one of the two bodies. */
export type XrayPlace = {
  /** JSON path; of something absent, of what would hold it. */
  readonly path: string;
  /** Byte of the first difference; of something absent, where it would stand. */
  readonly offset: number;
  /** How many bytes differ from there. */
  readonly length: number;
  /** What differs, and what stands around it; long texts are cut. */
  readonly before: string;
  readonly text: string;
  readonly after: string;
};

export type Located = { readonly path: string; readonly a: XrayPlace; readonly b: XrayPlace };

const AROUND = 60;
const QUOTED = 200;

/** A value as a whole. */
export const wholePlace = ({ bytes, start, end, path }: At): XrayPlace => ({
  path,
  offset: start,
  length: end - start,
  ...aroundBytes(bytes, start, end),
});

/** Where something would stand that is not there. */
export const gapAt = ({ bytes, path }: Pick<At, "bytes" | "path">, offset: number): XrayPlace => ({
  path,
  offset,
  length: 0,
  ...aroundBytes(bytes, offset, offset),
});

const aroundBytes = (bytes: Buffer, start: number, end: number): Pick<XrayPlace, "before" | "text" | "after"> => ({
  before: bytes.toString("utf8", Math.max(0, start - AROUND), start).replace(/^\ufffd+/, ""),
  text: bytes.toString("utf8", start, Math.min(end, start + QUOTED)).replace(/\ufffd+$/, ""),
  after: bytes.toString("utf8", end, Math.min(bytes.length, end + AROUND)).replace(/\ufffd+$/, ""),
});

/** An empty place at the end of an object or array. */
export const gapInside = (at: At): XrayPlace => gapAt(at, Math.max(at.start, at.end - 1));

// --- letters ---------------------------------------------------------------------------------------------------------

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

export const commonStart = (a: string, b: string): number => {
  const shorter = Math.min(a.length, b.length);
  let at = 0;
  while (at < shorter && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  // Never between the two halves of one letter.
  return at > 0 && (isLowSurrogate(a.charCodeAt(at)) || isLowSurrogate(b.charCodeAt(at))) ? at - 1 : at;
};

export const commonEnd = (a: string, b: string, from: number): number => {
  const most = Math.min(a.length, b.length) - from;
  let length = 0;
  while (length < most && a.charCodeAt(a.length - 1 - length) === b.charCodeAt(b.length - 1 - length)) length += 1;
  return length > 0 && isLowSurrogate(a.charCodeAt(a.length - length)) ? length - 1 : length;
};

const placeInString = (at: At, text: string, [from, to]: readonly [number, number]): XrayPlace => {
  const offset = offsetInString(at, from);
  return {
    path: at.path,
    offset,
    length: offsetInString(at, to) - offset,
    before: text.slice(Math.max(0, from - AROUND), from),
    text: text.slice(from, Math.min(to, from + QUOTED)),
    after: text.slice(to, to + AROUND),
  };
};

export const locateLetters = (a: At, b: At, [one, other]: readonly [string, string]): Located => {
  const from = commonStart(one, other);
  const same = commonEnd(one, other, from);
  return {
    path: b.path,
    a: placeInString(a, one, [from, one.length - same]),
    b: placeInString(b, other, [from, other.length - same]),
  };
};
