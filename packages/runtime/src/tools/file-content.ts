/** What do a file's bytes contain: text, an image that a model can see, or something else? And how is text decoded and
 *  encoded again?
 *  Invariant: pure; judged by the bytes and never by the name. What decodes as "utf-8" encodes to the same bytes. The
 *  byte order mark and the line endings are properties of the file that an edit does not change. Text in another
 *  encoding can be shown but is never written. The size of an image is read as well, because a provider that refuses
 *  one image refuses every later request that contains it.
 *  Elsewhere: who asks (read.ts, edit.ts, search-text.ts). */

export type TextFile = {
  /** Without the byte order mark. */
  readonly text: string;
  readonly encoding: "utf-8" | "utf-16" | "latin-1";
  readonly hasBom: boolean;
  /** The ending of most lines. */
  readonly lineEnding: "\n" | "\r\n";
};

const BOM = "\ufeff";

const decode = (bytes: Buffer): Pick<TextFile, "text" | "encoding" | "hasBom"> => {
  if (bytes[0] === 0xff && bytes[1] === 0xfe)
    return { text: new TextDecoder("utf-16le").decode(bytes), encoding: "utf-16", hasBom: true };
  if (bytes[0] === 0xfe && bytes[1] === 0xff)
    return { text: new TextDecoder("utf-16be").decode(bytes), encoding: "utf-16", hasBom: true };
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.startsWith(BOM)
      ? { text: text.slice(1), encoding: "utf-8", hasBom: true }
      : { text, encoding: "utf-8", hasBom: false };
  } catch {
    return { text: bytes.toString("latin1"), encoding: "latin-1", hasBom: false };
  }
};

export const decodeText = (bytes: Buffer): TextFile => {
  const decoded = decode(bytes);
  return { ...decoded, lineEnding: commonLineEnding(decoded.text) };
};

const [LINE_FEED, CARRIAGE_RETURN] = [10, 13];

const commonLineEnding = (text: string): TextFile["lineEnding"] => {
  let [crlf, all] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    if (text.charCodeAt(at) !== LINE_FEED) continue;
    all += 1;
    if (at > 0 && text.charCodeAt(at - 1) === CARRIAGE_RETURN) crlf += 1;
  }
  return crlf > all - crlf ? "\r\n" : "\n";
};

export const encodeText = (file: TextFile, text: string): Buffer => Buffer.from(`${file.hasBom ? BOM : ""}${text}`);

/** The lines without their endings. A newline at the end of the text does not start another line. */
export const splitLines = (text: string): readonly string[] => {
  if (text === "") return [];
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
};

export const countLines = (text: string): number => {
  let count = text === "" || text.endsWith("\n") ? 0 : 1;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) === LINE_FEED) count += 1;
  return count;
};

/** Reads single lines, each below the one before. For texts with millions of lines of which a few are wanted. */
export class LineReader {
  readonly #text: string;
  #line = 0;
  #from = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Counted from 0. Undefined after the last line. */
  line(index: number): string | undefined {
    for (; this.#line < index && this.#from < this.#text.length; this.#line += 1) this.#from = this.#lineEnd() + 1;
    if (this.#from >= this.#text.length) return undefined;
    const end = this.#lineEnd();
    const isCrlf = end > this.#from && end < this.#text.length && this.#text.charCodeAt(end - 1) === CARRIAGE_RETURN;
    return this.#text.slice(this.#from, isCrlf ? end - 1 : end);
  }

  #lineEnd(): number {
    let at = this.#from;
    while (at < this.#text.length && this.#text.charCodeAt(at) !== LINE_FEED) at += 1;
    return at;
  }
}

/** Lines as Read shows them: number, tab, text. */
export const numberLines = (lines: readonly string[], first: number, most = Number.POSITIVE_INFINITY): string =>
  lines.map((line, at) => `${first + at}\t${truncateLine(line, most)}`).join("\n");

export const truncateLine = (line: string, most: number): string =>
  line.length <= most
    ? line
    : `${line.slice(0, most).replace(/[\ud800-\udbff]$/, "")}… [${line.length - most} more characters]`;

export type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

export type FileKind =
  | { readonly kind: "text" }
  | { readonly kind: "image"; readonly type: ImageType; readonly width: number; readonly height: number }
  /** Begins like an image but is truncated or damaged. */
  | { readonly kind: "broken-image"; readonly type: ImageType }
  | { readonly kind: "binary"; readonly what: string };

const startsWithText = (bytes: Buffer, text: string, at = 0): boolean =>
  bytes.subarray(at, at + text.length).equals(Buffer.from(text, "latin1"));

/** How files of other kinds begin. */
const SIGNATURES: readonly (readonly [string, string])[] = [
  ["%PDF-", "a PDF document"],
  ["PK\x03\x04", "a zip archive (also office documents, jar and apk files)"],
  ["PK\x05\x06", "an empty zip archive"],
  ["\x1f\x8b", "gzip-compressed data"],
  ["BZh", "bzip2-compressed data"],
  ["\xfd7zXZ\x00", "xz-compressed data"],
  ["\x28\xb5\x2f\xfd", "zstd-compressed data"],
  ["7z\xbc\xaf\x27\x1c", "a 7z archive"],
  ["Rar!", "a rar archive"],
  ["\x7fELF", "an ELF program or library"],
  ["\xcf\xfa\xed\xfe", "a Mach-O program or library"],
  ["\xca\xfe\xba\xbe", "a Java class or a Mach-O program"],
  ["MZ", "a Windows program or library"],
  ["\x00asm", "a WebAssembly module"],
  ["SQLite format 3\x00", "an SQLite database"],
  ["OggS", "Ogg sound or video"],
  ["ID3", "MP3 sound"],
  ["fLaC", "FLAC sound"],
  ["\x1aE\xdf\xa3", "Matroska or WebM video"],
  ["BM", "a BMP picture"],
  ["II*\x00", "a TIFF picture"],
  ["MM\x00*", "a TIFF picture"],
  ["wOF2", "a font"],
  ["wOFF", "a font"],
  ["\x00\x01\x00\x00", "a font"],
];

const SNIFFED_BYTES = 8_192;

/** A UTF-16 byte order mark: such text contains zero bytes. */
const isWideText = (bytes: Buffer): boolean => startsWithText(bytes, "\xff\xfe") || startsWithText(bytes, "\xfe\xff");

export const detectFileKind = (bytes: Buffer): FileKind => {
  const picture = detectImageType(bytes);
  if (picture !== undefined) {
    const measures = readImageSize(bytes, picture);
    return measures ? { kind: "image", type: picture, ...measures } : { kind: "broken-image", type: picture };
  }
  if (startsWithText(bytes, "%PDF-")) return { kind: "binary", what: "a PDF document" };
  if (!bytes.subarray(0, SNIFFED_BYTES).includes(0) || isWideText(bytes)) return { kind: "text" };
  if (startsWithText(bytes, "RIFF")) return { kind: "binary", what: "RIFF sound or video" };
  if (startsWithText(bytes, "ftyp", 4)) return { kind: "binary", what: "MP4 or QuickTime video, or a HEIF picture" };
  const sign = SIGNATURES.find(([start]) => startsWithText(bytes, start));
  return { kind: "binary", what: sign?.[1] ?? "binary data of an unknown kind" };
};

const detectImageType = (bytes: Buffer): ImageType | undefined => {
  if (startsWithText(bytes, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (startsWithText(bytes, "\xff\xd8\xff")) return "image/jpeg";
  if (startsWithText(bytes, "GIF87a") || startsWithText(bytes, "GIF89a")) return "image/gif";
  return startsWithText(bytes, "RIFF") && startsWithText(bytes, "WEBP", 8) ? "image/webp" : undefined;
};

type ImageSize = { readonly width: number; readonly height: number };

const readImageSize = (bytes: Buffer, type: ImageType): ImageSize | undefined => {
  try {
    const found = SIZE_READERS[type](bytes);
    return found && found.width > 0 && found.height > 0 ? found : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined; // the file ends before its size is given
    throw error;
  }
};

const readJpegSize = (bytes: Buffer): ImageSize | undefined => {
  for (let at = 2; at + 4 <= bytes.length; ) {
    if (bytes.readUInt8(at) !== 0xff) return undefined;
    const marker = bytes.readUInt8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    const isBare = marker === 0xff || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    at += marker === 0xff ? 1 : isBare ? 2 : 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
};

const readWebpSize = (bytes: Buffer): ImageSize | undefined => {
  const form = bytes.toString("latin1", 12, 16);
  if (form === "VP8X") return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (form === "VP8L") {
    const bits = bytes.readUInt32LE(21);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  if (form !== "VP8 ") return undefined;
  return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
};

const SIZE_READERS: Readonly<Record<ImageType, (bytes: Buffer) => ImageSize | undefined>> = {
  "image/png": (bytes) => ({ width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }),
  "image/gif": (bytes) => ({ width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }),
  "image/jpeg": readJpegSize,
  "image/webp": readWebpSize,
};
