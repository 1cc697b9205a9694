/** The values of a body by their position in the bytes, and their normalised text.
 *  Invariant: two values have the same text exactly when a JSON reader sees the same value (in the same key order, if
 *  that matters); nothing here recurses deeper than a fixed number of levels.
 *  Elsewhere: finding where a value ends (@prefork/wire), where key order matters (anthropic.ts, openai.ts,
 *  gemini.ts). */

import { endOfValue, isArrayAt, isObjectAt, isStringAt, itemsOf, membersOf } from "@prefork/wire/internal";

/** One value of a body. */
export type BodyValue = {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  /** JSON path from the body's root; "" for the root. */
  readonly path: string;
};

export type BodyMember = { readonly key: string; readonly keyStart: number; readonly at: BodyValue };

const PLAIN_KEY = /^[A-Za-z_$][\w$-]*$/;

export const keyPath = (path: string, key: string): string => {
  if (!PLAIN_KEY.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
};

export const isObjectHere = ({ bytes, start }: BodyValue): boolean => isObjectAt(bytes, start);
export const isArrayHere = ({ bytes, start }: BodyValue): boolean => isArrayAt(bytes, start);
export const isStringHere = ({ bytes, start }: BodyValue): boolean => isStringAt(bytes, start);
export const isNullHere = ({ bytes, start, end }: BodyValue): boolean => end - start === 4 && bytes[start] === 0x6e;

/** The members of an object in their order. If a key occurs twice the last one counts, as for JSON readers. */
export const membersAt = (object: BodyValue): readonly BodyMember[] => {
  if (!isObjectHere(object)) return [];
  const { bytes, start, path } = object;
  const found = membersOf(bytes, start).map(({ key, keyStart, start: from, end }) => ({
    key,
    keyStart,
    at: { bytes, start: from, end, path: keyPath(path, key) },
  }));
  if (new Set(found.map(({ key }) => key)).size === found.length) return found;
  const last = new Map(found.map((member) => [member.key, member]));
  return found.filter((member) => last.get(member.key) === member);
};

/** The keys that an object has more than once. */
export const repeatedKeys = ({ bytes, start }: BodyValue): readonly string[] => {
  if (!isObjectAt(bytes, start)) return [];
  const seen = new Set<string>();
  const keys = membersOf(bytes, start).map(({ key }) => key);
  return [...new Set(keys.filter((key) => seen.size === seen.add(key).size))];
};

export const itemsAt = (array: BodyValue): readonly BodyValue[] => {
  if (!isArrayHere(array)) return [];
  const { bytes, start, path } = array;
  return itemsOf(bytes, start).map((item, index) => ({ bytes, ...item, path: `${path}[${index}]` }));
};

/** A member that is not null. */
export const memberAt = (members: readonly BodyMember[], key: string): BodyValue | undefined => {
  const found = members.find((member) => member.key === key)?.at;
  return found && !isNullHere(found) ? found : undefined;
};

/** The items of a list by its key; empty if there is no such list. */
export const listAt = (members: readonly BodyMember[], key: string): readonly BodyValue[] => {
  const list = memberAt(members, key);
  return list ? itemsAt(list) : [];
};

/** A member by the path of keys that lead to it. */
export const memberBelow = (
  members: readonly BodyMember[],
  [key = "", ...below]: readonly string[],
  find = memberAt,
): BodyValue | undefined => {
  const at = find(members, key);
  return at && below.length > 0 ? memberBelow(membersAt(at), below, find) : at;
};

/** The value as it is written. */
export const rawText = ({ bytes, start, end }: BodyValue): string => bytes.toString("utf8", start, end);

/** A string's own text, without quotes and escapes; undefined for any other value. */
export const stringAt = (at: BodyValue | undefined): string | undefined => {
  if (!at || !isStringHere(at)) return undefined;
  const written = at.bytes.toString("utf8", at.start + 1, at.end - 1);
  return written.includes("\\") ? unescapeString(written) : written;
};

/** A lone surrogate is not a character, and providers cannot tell two of them apart. */
const unescapeString = (written: string): string => (JSON.parse(`"${written}"`) as string).toWellFormed();

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
export const isStructure = (byte: number): boolean =>
  byte === 0x7b || byte === 0x7d || byte === 0x5b || byte === 0x5d || byte === 0x2c || byte === 0x3a;

/** The value without white space and with normalised strings and numbers; keys keep their order. Text that is already
 *  normalised, as nearly all is, is taken as a whole. */
export const orderedText = ({ bytes, start, end }: BodyValue): string => {
  const parts: string[] = [];
  let from = start;
  for (let at = start; at < end; ) {
    const byte = bytes[at] as number;
    const after = isSpace(byte) || isStructure(byte) ? at + 1 : endOfValue(bytes, at);
    const isPlain = byte === QUOTE ? !hasEscape(bytes, at, after) : !isSpace(byte) && !isOddNumber(bytes, at, after);
    if (!isPlain) {
      parts.push(bytes.toString("utf8", from, at));
      if (!isSpace(byte)) parts.push(scalarText(bytes.toString("utf8", at, after), byte === QUOTE));
      from = after;
    }
    at = after;
  }
  parts.push(bytes.toString("utf8", from, end));
  return parts.join("");
};

const hasEscape = (bytes: Buffer, from: number, to: number): boolean => {
  if (to - from > 64) return bytes.subarray(from, to).includes(BACKSLASH);
  for (let at = from; at < to; at += 1) if (bytes[at] === BACKSLASH) return true;
  return false;
};

/** 1.0, 1e3 and -0 can be written differently; integers and words cannot. */
const isOddNumber = (bytes: Buffer, from: number, to: number): boolean => {
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at];
    if (byte === 0x2e || byte === 0x2d || byte === 0x45 || (byte === 0x65 && (bytes[from] as number) < 0x61))
      return true;
  }
  return false;
};

/** The normalised text of a string, a number or a word. */
export const scalarText = (written: string, isString = written.startsWith('"')): string => {
  if (isString) return written.includes("\\") ? JSON.stringify(unescapeString(written.slice(1, -1))) : written;
  return /[.eE-]/.test(written) ? JSON.stringify(JSON.parse(written)) : written;
};

/** Below this many levels keys keep their order: no format nests its own objects this deep. */
export const DEEPEST = 10;

export type KeyOrderRule = {
  /** Members whose key order the model sees. */
  readonly ordered: ReadonlySet<string>;
  /** Members that are never part of the prompt. */
  readonly unseen: ReadonlySet<string>;
};

/** The members that count, sorted by key. */
export const sortedMembers = (object: BodyValue, { unseen }: KeyOrderRule): readonly BodyMember[] =>
  membersAt(object)
    .filter(({ key, at }) => !unseen.has(key) && !isNullHere(at))
    .sort((one, other) => (one.key < other.key ? -1 : 1));

/** The value's text if key order does not matter, except in the members that `rule` names. */
export const unorderedText = (at: BodyValue, rule: KeyOrderRule, depth = 0): string => {
  if (depth > DEEPEST) return orderedText(at);
  if (isArrayHere(at))
    return `[${itemsAt(at)
      .map((item) => unorderedText(item, rule, depth + 1))
      .join(",")}]`;
  if (!isObjectHere(at)) return orderedText(at);
  const members = sortedMembers(at, rule).map(({ key, at: value }) => {
    const text = rule.ordered.has(key) ? orderedText(value) : unorderedText(value, rule, depth + 1);
    return `${JSON.stringify(key)}:${text}`;
  });
  return `{${members.join(",")}}`;
};

/** The byte offset of a character (counted in UTF-16 units) in a string. */
export const offsetInString = ({ bytes, start, end }: BodyValue, unit: number): number => {
  const written = bytes.toString("utf8", start + 1, end - 1);
  if (!written.includes("\\")) return start + 1 + Buffer.byteLength(written.slice(0, unit));
  let at = 0;
  for (let passed = 0; passed < unit && at < written.length; passed += 1) {
    at += written[at] !== "\\" ? 1 : written[at + 1] === "u" ? 6 : 2;
  }
  return start + 1 + Buffer.byteLength(written.slice(0, at));
};
