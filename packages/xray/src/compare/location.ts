/** A location in a body with the text around it, and the characters in which two strings differ.
 *  Invariant: offsets refer to the given bytes; no character is cut in half, and at most a line is quoted.
 *  Elsewhere: finding the two values (locate.ts, lockstep.ts), showing the location (the command line). */

import { type BodyValue, offsetInString } from "./values.ts";

/** A location in one of the two bodies. */
export type XrayLocation = {
  /** JSON path; for something absent, the path of what would contain it. */
  readonly path: string;
  /** Byte offset of the first difference; for something absent, where it would be. */
  readonly offset: number;
  /** How many bytes differ from there. */
  readonly length: number;
  /** The differing text and its surroundings; long texts are cut. */
  readonly before: string;
  readonly text: string;
  readonly after: string;
};

export type LocatedDifference = { readonly path: string; readonly a: XrayLocation; readonly b: XrayLocation };

const AROUND = 60;
const QUOTED = 200;

/** A value as a whole. */
export const wholeLocation = ({ bytes, start, end, path }: BodyValue): XrayLocation => ({
  path,
  offset: start,
  length: end - start,
  ...aroundBytes(bytes, start, end),
});

/** Where something that is missing would be. */
export const gapAt = ({ bytes, path }: Pick<BodyValue, "bytes" | "path">, offset: number): XrayLocation => ({
  path,
  offset,
  length: 0,
  ...aroundBytes(bytes, offset, offset),
});

const aroundBytes = (bytes: Buffer, start: number, end: number): Pick<XrayLocation, "before" | "text" | "after"> => ({
  before: bytes.toString("utf8", Math.max(0, start - AROUND), start).replace(/^\ufffd+/, ""),
  text: bytes.toString("utf8", start, Math.min(end, start + QUOTED)).replace(/\ufffd+$/, ""),
  after: bytes.toString("utf8", end, Math.min(bytes.length, end + AROUND)).replace(/\ufffd+$/, ""),
});

/** An empty location at the end of an object or array. */
export const gapInside = (at: BodyValue): XrayLocation => gapAt(at, Math.max(at.start, at.end - 1));

// --- letters ---------------------------------------------------------------------------------------------------------

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

export const commonStart = (a: string, b: string): number => {
  const shorter = Math.min(a.length, b.length);
  let at = 0;
  while (at < shorter && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  // Never between the two halves of a character.
  return at > 0 && (isLowSurrogate(a.charCodeAt(at)) || isLowSurrogate(b.charCodeAt(at))) ? at - 1 : at;
};

export const commonEnd = (a: string, b: string, from: number): number => {
  const most = Math.min(a.length, b.length) - from;
  let length = 0;
  while (length < most && a.charCodeAt(a.length - 1 - length) === b.charCodeAt(b.length - 1 - length)) length += 1;
  return length > 0 && isLowSurrogate(a.charCodeAt(a.length - length)) ? length - 1 : length;
};

const locationInString = (at: BodyValue, text: string, [from, to]: readonly [number, number]): XrayLocation => {
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

export const locateLetters = (
  a: BodyValue,
  b: BodyValue,
  [one, other]: readonly [string, string],
): LocatedDifference => {
  const from = commonStart(one, other);
  const same = commonEnd(one, other, from);
  return {
    path: b.path,
    a: locationInString(a, one, [from, one.length - same]),
    b: locationInString(b, other, [from, other.length - same]),
  };
};
