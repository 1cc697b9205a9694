/** Finds positions in JSON text without re-writing any of it, and writes our own JSON with a stable key order.
 *  Invariant: positions are only looked up in bytes that are known to be valid JSON (see `parseJson`), and values that
 *  are skipped are never allocated.
 *  Elsewhere: who slices with it (recorded/, protocols/), who names locations with it (prefix/). */

import { InputError } from "./errors.ts";
import type { Json, JsonObject, RawJson } from "./request.ts";

export type Span = { readonly start: number; readonly end: number };
export type Member = Span & { readonly key: string; readonly keyStart: number };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;

/** The parsed text, or an error that names the source. */
export const parseJson = (json: string, what: string): Json => {
  try {
    return JSON.parse(json) as Json;
  } catch (cause) {
    throw new InputError(`${what} is not valid JSON: ${(cause as Error).message}`, { cause });
  }
};

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const isArray = (value: Json | undefined): value is readonly Json[] => Array.isArray(value);

/** Lone surrogates cannot be written as UTF-8. They become U+FFFD once, at entry, so that every later encoding gives
 *  the same bytes. */
export const quote = (value: string): RawJson => JSON.stringify(value.toWellFormed());

/** JSON of our own objects, with keys in the order their author gave: the same value gives the same bytes, and a tool's
 *  parameters reach the model in the order they were written. */
export const authoredJson = (value: Json | undefined, depth = 0): RawJson => {
  if (depth > DEEPEST) throw new InputError(`a value is nested more than ${DEEPEST} levels deep`);
  if (typeof value === "string") return quote(value);
  if (isArray(value)) return `[${value.map((item) => authoredJson(item, depth + 1)).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value ?? null);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([key, member]) => `${quote(key)}:${authoredJson(member, depth + 1)}`).join(",")}}`;
};

/** Nobody writes values deeper than this, and they would overflow the stack. */
const DEEPEST = 200;

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

export const skipSpace = (bytes: Buffer, from: number): number => {
  let at = from;
  while (isSpace(bytes[at])) at += 1;
  return at;
};

const endOfString = (bytes: Buffer, from: number): number => {
  let at = from + 1;
  for (;;) {
    at = bytes.indexOf(QUOTE, at);
    let slashes = 0;
    while (bytes[at - 1 - slashes] === BACKSLASH) slashes += 1;
    at += 1;
    if (slashes % 2 === 0) return at;
  }
};

/** The offset just after the value that starts at `from` (no leading space). */
export const endOfValue = (bytes: Buffer, from: number): number => {
  const first = bytes[from];
  if (first === QUOTE) return endOfString(bytes, from);
  let at = from;
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) {
    while (at < bytes.length && !isSpace(bytes[at]) && !isDelimiter(bytes[at])) at += 1;
    return at;
  }
  let depth = 0;
  for (;;) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      continue;
    }
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth += 1;
    if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth -= 1;
    at += 1;
    if (depth === 0) return at;
  }
};

const isDelimiter = (byte: number | undefined): boolean =>
  byte === COMMA || byte === COLON || byte === CLOSE_OBJECT || byte === CLOSE_ARRAY;

/** The members of the object that starts at `from`, in their order in the text. */
export const membersOf = (bytes: Buffer, from: number): readonly Member[] => {
  const members: Member[] = [];
  let at = skipSpace(bytes, from + 1);
  while (bytes[at] === QUOTE) {
    const keyStart = at;
    const keyEnd = endOfString(bytes, at);
    const key = JSON.parse(bytes.toString("utf8", keyStart, keyEnd)) as string;
    const start = skipSpace(bytes, skipSpace(bytes, keyEnd) + 1);
    const end = endOfValue(bytes, start);
    members.push({ key, keyStart, start, end });
    at = skipSpace(bytes, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
  }
  return members;
};

/** The items of the array that starts at `from`. */
export const itemsOf = (bytes: Buffer, from: number): readonly Span[] => {
  const items: Span[] = [];
  let at = skipSpace(bytes, from + 1);
  while (bytes[at] !== CLOSE_ARRAY) {
    const end = endOfValue(bytes, at);
    items.push({ start: at, end });
    at = skipSpace(bytes, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
  }
  return items;
};

export const isObjectAt = (bytes: Buffer, at: number): boolean => bytes[at] === OPEN_OBJECT;
export const isArrayAt = (bytes: Buffer, at: number): boolean => bytes[at] === OPEN_ARRAY;
export const isStringAt = (bytes: Buffer, at: number): boolean => bytes[at] === QUOTE;

/** A location inside a value: `.input.files[2]`, or "" for the value itself. */
export type JsonLocation = {
  readonly path: string;
  /** False if the byte is between values; the path is then that of the next value. */
  readonly inside: boolean;
};

/** The location of the byte at `offset` inside the value at `from`. */
export const locateByte = (bytes: Buffer, from: number, offset: number): JsonLocation =>
  descend({ bytes, offset }, from, 0);

type SoughtByte = { readonly bytes: Buffer; readonly offset: number };

const descend = ({ bytes, offset }: SoughtByte, from: number, depth: number): JsonLocation => {
  if (depth > DEEPEST) return { path: "", inside: true };
  const children = isObjectAt(bytes, from)
    ? membersOf(bytes, from).map(({ key, keyStart, start, end }) => ({ name: `.${key}`, first: keyStart, start, end }))
    : isArrayAt(bytes, from)
      ? itemsOf(bytes, from).map(({ start, end }, index) => ({ name: `[${index}]`, first: start, start, end }))
      : undefined;
  if (!children) return { path: "", inside: true };
  const child = children.find(({ end }) => offset < end);
  if (!child) return { path: "", inside: false };
  if (offset < child.start) return { path: child.name, inside: offset >= child.first };
  const { path, inside } = descend({ bytes, offset }, child.start, depth + 1);
  return { path: child.name + path, inside };
};

/** The verbatim text of one member of an object. */
export const sliceMember = (json: RawJson, key: string): RawJson | undefined => {
  const bytes = Buffer.from(json);
  const member = membersOf(bytes, skipSpace(bytes, 0)).find((candidate) => candidate.key === key);
  return member && bytes.toString("utf8", member.start, member.end);
};

// --- writing members -------------------------------------------------------------------------------------------------

export type Field = readonly [string, Json | undefined];

/** Members of an object in the given order; undefined values are skipped. */
export const fields = (entries: readonly Field[]): string =>
  entries.flatMap(([key, value]) => (value === undefined ? [] : [`"${key}":${authoredJson(value)}`])).join(",");

/** A model can be cut off inside a call. Its input is then not an object, and must not break the whole conversation. */
export const inputJson = (input: RawJson): RawJson => (isInput(input) ? input : "{}");

export const isInput = (input: RawJson): boolean => {
  try {
    return isObject(JSON.parse(input));
  } catch {
    return false;
  }
};
