/** Finds the first difference of two values whose key order matters, in one pass over both.
 *  Invariant: the time depends on the number of bytes and not on the nesting depth; white space and the formatting of
 *  strings and numbers are not differences.
 *  Elsewhere: values whose key order does not matter (locate.ts). */

import { endOfValue } from "@prefork/wire/internal";
import {
  gapAt,
  gapInside,
  type LocatedDifference,
  locateLetters,
  wholeLocation,
  type XrayLocation,
} from "./location.ts";
import {
  type BodyMember,
  type BodyValue,
  isSpace,
  isStructure,
  keyPath,
  membersAt,
  scalarText,
  stringAt,
} from "./values.ts";

const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const OPEN_ARRAY = 0x5b;

/** An object or array that both sides are inside of, and the value that is being read in it. */
type OpenContainer = {
  readonly starts: readonly [number, number];
  readonly isArray: boolean;
  index: number;
  key: string;
  atKey: boolean;
};

/** The current position on both sides. */
type Reader = {
  readonly sides: readonly [BodyValue, BodyValue];
  readonly at: [number, number];
  readonly open: OpenContainer[];
};

/** Longer paths are not more helpful. */
const NAMED = 64;

const pathIn = (root: string, open: readonly OpenContainer[]): string =>
  open
    .slice(0, NAMED)
    .reduce((path, { isArray, index, key }) => (isArray ? `${path}[${index}]` : keyPath(path, key)), root);

const byteAt = ({ sides, at }: Reader, side: 0 | 1): number => {
  const { bytes, end } = sides[side];
  while (at[side] < end && isSpace(bytes[at[side]])) at[side] += 1;
  return at[side] < end ? (bytes[at[side]] as number) : -1;
};

export const locateInOrder = (a: BodyValue, b: BodyValue): LocatedDifference => {
  const reader: Reader = { sides: [a, b], at: [a.start, b.start], open: [] };
  for (;;) {
    const [one, other] = [byteAt(reader, 0), byteAt(reader, 1)];
    if (one === -1 || other === -1) return { path: b.path, a: wholeLocation(a), b: wholeLocation(b) };
    const top = reader.open.at(-1);
    if (isStructure(one) && one === other) {
      passStructure(reader, one, top);
      continue;
    }
    if (isStructure(one) || isStructure(other)) return differentKinds(reader, [one, other]);
    const found = top !== undefined && !top.isArray && top.atKey ? passKey(reader, top) : passScalar(reader);
    if (found) return found;
  }
};

const passStructure = ({ at, open }: Reader, byte: number, top: OpenContainer | undefined): void => {
  if (byte === OPEN_OBJECT || byte === OPEN_ARRAY)
    open.push({ starts: [at[0], at[1]], isArray: byte === OPEN_ARRAY, index: 0, key: "", atKey: true });
  else if (byte === COMMA && top) {
    top.index += 1;
    top.atKey = true;
  } else if (byte === COLON && top) top.atKey = false;
  else open.pop();
  at[0] += 1;
  at[1] += 1;
};

const valueAt = ({ sides, at, open }: Reader, side: 0 | 1): BodyValue => {
  const { bytes } = sides[side];
  return { bytes, start: at[side], end: endOfValue(bytes, at[side]), path: pathIn(sides[side].path, open) };
};

const passScalar = (reader: Reader): LocatedDifference | undefined => {
  const [one, other] = [valueAt(reader, 0), valueAt(reader, 1)];
  const [ours, theirs] = [stringAt(one), stringAt(other)];
  if (ours !== undefined && theirs !== undefined) {
    if (ours !== theirs) return locateLetters(one, other, [ours, theirs]);
  } else if (scalar(one) !== scalar(other)) return { path: other.path, a: wholeLocation(one), b: wholeLocation(other) };
  reader.at[0] = one.end;
  reader.at[1] = other.end;
  return undefined;
};

const scalar = ({ bytes, start, end }: BodyValue): string => scalarText(bytes.toString("utf8", start, end));

const passKey = (reader: Reader, top: OpenContainer): LocatedDifference | undefined => {
  const [one, other] = [valueAt(reader, 0), valueAt(reader, 1)];
  const [ours, theirs] = [stringAt(one) ?? "", stringAt(other) ?? ""];
  if (ours !== theirs) return differentKey(reader, top, [ours, theirs]);
  top.key = ours;
  reader.at[0] = one.end;
  reader.at[1] = other.end;
  return undefined;
};

/** The object or array on one side that both are inside of. */
const holder = ({ sides, open }: Reader, { starts }: OpenContainer, side: 0 | 1): BodyValue => {
  const { bytes, path } = sides[side];
  const start = starts[side];
  return { bytes, start, end: endOfValue(bytes, start), path: pathIn(path, open.slice(0, -1)) };
};

/** A different key at this position: added, removed, or the same keys in a different order. */
const differentKey = (
  reader: Reader,
  top: OpenContainer,
  [ours, theirs]: readonly [string, string],
): LocatedDifference => {
  const [inA, inB] = [holder(reader, top, 0), holder(reader, top, 1)];
  const [mine, others] = [membersAt(inA), membersAt(inB)];
  const named = (members: readonly BodyMember[], key: string): BodyMember | undefined =>
    members.find((member) => member.key === key);
  const [gone, added] = [named(others, ours) === undefined, named(mine, theirs) === undefined];
  const [one, other] = [named(mine, ours), named(others, theirs)];
  if (gone && !added && one) return { path: one.at.path, a: withKey(one), b: gapAt(inB, reader.at[1]) };
  if (added && !gone && other) return { path: other.at.path, a: gapAt(inA, reader.at[0]), b: withKey(other) };
  const places = [one ? withKey(one) : wholeLocation(inA), other ? withKey(other) : wholeLocation(inB)] as const;
  return { path: other?.at.path ?? inB.path, a: places[0], b: places[1] };
};

const withKey = ({ keyStart, at }: BodyMember): XrayLocation => wholeLocation({ ...at, start: keyStart });

const closes = (byte: number): boolean => byte === 0x7d || byte === 0x5d;

/** Values of different kinds, or a value that only one side has. */
const differentKinds = (reader: Reader, [one, other]: readonly [number, number]): LocatedDifference => {
  const top = reader.open.at(-1);
  const isEnd = (byte: number): boolean => closes(byte) || byte === COMMA;
  if (top && isEnd(one) !== isEnd(other)) return extraValue(reader, top, isEnd(one) ? 1 : 0);
  if (top && isEnd(one)) return extraValue(reader, top, one === COMMA ? 0 : 1);
  const [a, b] = [valueAt(reader, 0), valueAt(reader, 1)];
  return { path: b.path, a: wholeLocation(a), b: wholeLocation(b) };
};

/** One side continues where the other's object or array ends. */
const extraValue = (reader: Reader, top: OpenContainer, side: 0 | 1): LocatedDifference => {
  if (reader.sides[side].bytes[reader.at[side]] === COMMA) {
    reader.at[side] += 1;
    top.index += 1;
    byteAt(reader, side);
  }
  const [inA, inB] = [holder(reader, top, 0), holder(reader, top, 1)];
  const member = membersAt(side === 0 ? inA : inB).find(({ keyStart }) => keyStart === reader.at[side]);
  const place = member ? withKey(member) : wholeLocation(valueAt(reader, side));
  const { path } = place;
  return side === 0 ? { path, a: place, b: gapInside(inB) } : { path, a: gapInside(inA), b: place };
};
