/** How is an entry written as one line, and read back?
 *  Invariant: `wire` is the last member and holds the bytes that were sent. It is cut out by the lengths in `sizes`,
 *  and never parsed and written again. Bytes that contain a newline are written as a JSON string instead.
 *  Elsewhere: what an entry must say (schema.ts), many lines (read.ts).
 *
 *  {"v":1,"seq":7,"at":1760000000000,"kind":"message","sizes":[31],"hash":"…","message":{…},"wire":[{…}]} */

import {
  isWireEntry,
  JOURNAL_VERSION,
  type JournalEntry,
  type ProblemKind,
  type SentBytes,
  versionOf,
} from "./entry.ts";
import { checkEntry, isRecord } from "./schema.ts";

const NEWLINE = 0x0a;
const QUOTE = 0x22;
const COMMA = 0x2c;
const WIRE = Buffer.from(`,"wire":`);

export type LineStart = {
  readonly seq: number;
  readonly at: number;
  /** How many lines after this one belong to the same write. They count together or not at all. */
  readonly more: number;
};

/** Names of the line's own members: an entry with a member of such a name would be overwritten, so it does not
 *  compile. */
type LineMember = "v" | "seq" | "at" | "more" | "sizes" | "hash" | "wire";
type LineEntry = JournalEntry & { readonly [Name in LineMember]?: never };

export type LineContent = LineStart & { readonly entry: LineEntry; readonly sent?: SentBytes };

/** The line, including its newline. */
export const encodeLine = ({ seq, at, more, entry, sent }: LineContent): Buffer => {
  const batch = more > 0 ? `,"more":${more}` : "";
  const start = `{"v":${versionOf(entry)},"seq":${seq},"at":${at}${batch},`;
  if (sent === undefined) return Buffer.from(`${start}${JSON.stringify(entry).slice(1)}\n`);
  const { kind, ...fields } = entry;
  const { hash, pieces } = sent;
  const sizes = pieces.map(({ length }) => length).join(",");
  const rest = JSON.stringify(fields).slice(1, -1);
  const before = `${start}"kind":"${kind}","sizes":[${sizes}],"hash":"${hash}",${rest},"wire":`;
  const [opening, closing] = kind === "epoch" ? ["", ""] : ["[", "]"];
  if (!pieces.some((piece) => piece.includes(NEWLINE))) return joinPieces(pieces, before + opening, `${closing}}\n`);
  return Buffer.from(`${before}${JSON.stringify(joinPieces(pieces, opening, closing).toString("utf8"))}}\n`);
};

/** Joins the pieces with commas, between `before` and `after`. Each is copied once. */
const joinPieces = (pieces: readonly Buffer[], before: string, after: string): Buffer => {
  let size = Buffer.byteLength(before) + Math.max(0, pieces.length - 1) + after.length;
  for (const { length } of pieces) size += length;
  const bytes = Buffer.allocUnsafe(size);
  let at = bytes.write(before);
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) bytes[at++] = COMMA;
    at += piece.copy(bytes, at);
  }
  bytes.write(after, at);
  return bytes;
};

export type DecodedLine =
  | (LineContent & { readonly ok: true })
  | {
      readonly ok: false;
      readonly kind: Extract<ProblemKind, "unreadable" | "unknown">;
      readonly detail: string;
      /** Known if the start of the line can be read. */
      readonly start?: LineStart;
    }
  | { readonly ok: false; readonly kind: "newer"; readonly version: number };

const unreadable = (detail: string, start?: LineStart): DecodedLine => ({
  ok: false,
  kind: "unreadable",
  detail,
  ...(start ? { start } : {}),
});

/** `line` does not include its newline. */
export const decodeLine = (line: Buffer): DecodedLine => {
  const sizes = readSizes(line);
  try {
    return sizes === undefined ? decodePlain(line) : decodeSent(line, sizes);
  } catch (error) {
    if (error instanceof SyntaxError) return unreadable(`not JSON (${line.length} bytes)`);
    throw error;
  }
};

const START = /^\{"v":\d+,"seq":\d+,"at":[-+.\deE]+(?:,"more":\d+)?,"kind":"(epoch|message|blocks)","sizes":\[/;

/** The lengths are at the start of every line that carries bytes, and of no other. */
const readSizes = (line: Buffer): readonly number[] | undefined => {
  const found = START.exec(line.toString("latin1", 0, 200));
  if (!found) return undefined;
  const from = found[0].length;
  const listed = line.toString("latin1", from, line.indexOf("]", from));
  return listed === "" ? [] : listed.split(",").map(Number);
};

const decodePlain = (line: Buffer): DecodedLine => {
  const value: unknown = JSON.parse(line.toString("utf8"));
  if (!isRecord(value)) return unreadable("not a JSON object");
  const read = checkLine(value);
  if (!read.ok || !isWireEntry(read.entry)) return read;
  return unreadable("the lengths of what was sent are not at the start of the line", parseLineStart(value));
};

const decodeSent = (line: Buffer, sizes: readonly number[]): DecodedLine => {
  const [value, wire] = line[line.length - 2] === QUOTE ? readWireString(line) : readWireBySize(line, sizes);
  if (!isRecord(value)) return unreadable("not a JSON object");
  const read = checkLine(value);
  if (!read.ok) return read;
  const { hash } = value;
  const pieces = wire && splitPieces(wire, sizes, read.entry.kind === "epoch");
  if (pieces === undefined || typeof hash !== "string")
    return unreadable("the bytes that were sent do not have the length that the line says", parseLineStart(value));
  return { ...read, sent: { hash, pieces } };
};

const readWireString = (line: Buffer): readonly [unknown, Buffer | undefined] => {
  const value: unknown = JSON.parse(line.toString("utf8"));
  return [value, isRecord(value) && typeof value.wire === "string" ? Buffer.from(value.wire) : undefined];
};

/** Parses everything before `wire`. By the lengths, `wire` is what comes before the closing brace. */
const readWireBySize = (line: Buffer, sizes: readonly number[]): readonly [unknown, Buffer | undefined] => {
  const isHead = line.toString("latin1", 0, 200).includes(`"kind":"epoch","sizes"`);
  const length = sizes.reduce((sum, size) => sum + size, 0) + (isHead ? 0 : Math.max(2, sizes.length + 1));
  const start = line.length - 1 - length;
  const member = start - WIRE.length;
  if (member < 0 || !line.subarray(member, start).equals(WIRE)) throw new SyntaxError("no `wire` where it should be");
  if (line[line.length - 1] !== 0x7d) throw new SyntaxError("the line does not end");
  return [JSON.parse(`${line.toString("utf8", 0, member)}}`), line.subarray(start, line.length - 1)];
};

/** The pieces of `[…,…]`, or the single piece of a head. */
const splitPieces = (wire: Buffer, sizes: readonly number[], isHead: boolean): readonly Buffer[] | undefined => {
  if (isHead) return sizes.length === 1 && wire.length === sizes[0] ? [wire] : undefined;
  const pieces: Buffer[] = [];
  let at = 1;
  for (const size of sizes) {
    pieces.push(wire.subarray(at, at + size));
    at += size + 1;
  }
  return Math.max(at, 2) === wire.length ? pieces : undefined;
};

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

const parseLineStart = ({ seq, at, more = 0 }: Readonly<Record<string, unknown>>): LineStart | undefined =>
  isCount(seq) && typeof at === "number" && isCount(more) ? { seq, at, more } : undefined;

const checkLine = (
  value: Readonly<Record<string, unknown>>,
): Extract<DecodedLine, { readonly ok: false }> | (LineContent & { readonly ok: true }) => {
  const { v } = value;
  if (!isCount(v) || v === 0) return { ok: false, kind: "unreadable", detail: "the line has no version" };
  if (v > JOURNAL_VERSION) return { ok: false, kind: "newer", version: v };
  const start = parseLineStart(value);
  if (!start) return { ok: false, kind: "unreadable", detail: "the line has no number or no time" };
  const checked = checkEntry(value);
  return checked.ok ? { ok: true, ...start, entry: checked.entry } : { ...checked, start };
};
