/** A file's bytes as text, and the text as bytes again.
 *  Invariant: what decodes as "utf-8" encodes to the same bytes; a mark at the start and the line endings are facts of
 *  the file that an edit does not change. Text in another encoding can be shown, and is never written.
 *  Elsewhere: is it text at all (file-kind.ts), finding a place in it (apply-edits.ts). */

export type TextFile = {
  /** Without the mark at the start. */
  readonly text: string;
  readonly encoding: "utf-8" | "utf-16" | "latin-1";
  readonly hasMark: boolean;
  /** What most of its lines end with. */
  readonly ending: "\n" | "\r\n";
};

const MARK = "\ufeff";

const decode = (bytes: Buffer): Pick<TextFile, "text" | "encoding" | "hasMark"> => {
  if (bytes[0] === 0xff && bytes[1] === 0xfe)
    return { text: new TextDecoder("utf-16le").decode(bytes), encoding: "utf-16", hasMark: true };
  if (bytes[0] === 0xfe && bytes[1] === 0xff)
    return { text: new TextDecoder("utf-16be").decode(bytes), encoding: "utf-16", hasMark: true };
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.startsWith(MARK)
      ? { text: text.slice(1), encoding: "utf-8", hasMark: true }
      : { text, encoding: "utf-8", hasMark: false };
  } catch {
    return { text: bytes.toString("latin1"), encoding: "latin-1", hasMark: false };
  }
};

export const readText = (bytes: Buffer): TextFile => {
  const decoded = decode(bytes);
  const wide = decoded.text.split("\r\n").length - 1;
  const all = decoded.text.split("\n").length - 1;
  return { ...decoded, ending: wide > all - wide ? "\r\n" : "\n" };
};

export const writeText = (file: TextFile, text: string): Buffer => Buffer.from(`${file.hasMark ? MARK : ""}${text}`);

/** The lines, whatever they end with. A last line that is ended is no other line. */
export const linesOf = (text: string): readonly string[] => {
  if (text === "") return [];
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
};

export const countLines = (text: string): number => {
  if (text === "") return 0;
  let count = text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
};

/** Lines as Read shows them: number, tab, text. */
export const numbered = (lines: readonly string[], first: number, most = Number.POSITIVE_INFINITY): string =>
  lines.map((line, at) => `${first + at}\t${shortened(line, most)}`).join("\n");

export const shortened = (line: string, most: number): string =>
  line.length <= most
    ? line
    : `${line.slice(0, most).replace(/[\ud800-\udbff]$/, "")}… [${line.length - most} more characters]`;

/** What kind of file do these bytes make: text, a picture a model can see, or something else?
 *  Invariant: pure; judged by the bytes and never by the name. A picture's measures are read as well, since a provider
 *  that refuses one picture refuses every later request that holds it.
 *  Elsewhere: text with its line endings (text-file.ts), who asks (read.ts). */

export type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

export type FileKind =
  | { readonly kind: "text" }
  | { readonly kind: "image"; readonly type: ImageType; readonly width: number; readonly height: number }
  /** Begins like a picture and is cut off or damaged. */
  | { readonly kind: "broken-image"; readonly type: ImageType }
  | { readonly kind: "binary"; readonly what: string };

const begins = (bytes: Buffer, text: string, at = 0): boolean =>
  bytes.subarray(at, at + text.length).equals(Buffer.from(text, "latin1"));

/** How other kinds begin. */
const SIGNS: readonly (readonly [string, string])[] = [
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

const LOOKED_AT = 8_192;

/** A UTF-16 mark makes text of bytes that hold zeros. */
const isWideText = (bytes: Buffer): boolean => begins(bytes, "\xff\xfe") || begins(bytes, "\xfe\xff");

export const kindOfBytes = (bytes: Buffer): FileKind => {
  const picture = pictureType(bytes);
  if (picture !== undefined) {
    const measures = measure(bytes, picture);
    return measures ? { kind: "image", type: picture, ...measures } : { kind: "broken-image", type: picture };
  }
  if (begins(bytes, "%PDF-")) return { kind: "binary", what: "a PDF document" };
  if (!bytes.subarray(0, LOOKED_AT).includes(0) || isWideText(bytes)) return { kind: "text" };
  if (begins(bytes, "RIFF")) return { kind: "binary", what: "RIFF sound or video" };
  if (begins(bytes, "ftyp", 4)) return { kind: "binary", what: "MP4 or QuickTime video, or a HEIF picture" };
  const sign = SIGNS.find(([start]) => begins(bytes, start));
  return { kind: "binary", what: sign?.[1] ?? "binary data of an unknown kind" };
};

const pictureType = (bytes: Buffer): ImageType | undefined => {
  if (begins(bytes, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (begins(bytes, "\xff\xd8\xff")) return "image/jpeg";
  if (begins(bytes, "GIF87a") || begins(bytes, "GIF89a")) return "image/gif";
  return begins(bytes, "RIFF") && begins(bytes, "WEBP", 8) ? "image/webp" : undefined;
};

type Measures = { readonly width: number; readonly height: number };

const measure = (bytes: Buffer, type: ImageType): Measures | undefined => {
  try {
    const found = MEASURED[type](bytes);
    return found && found.width > 0 && found.height > 0 ? found : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined; // it ends before it says
    throw error;
  }
};

const measureJpeg = (bytes: Buffer): Measures | undefined => {
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

const measureWebp = (bytes: Buffer): Measures | undefined => {
  const form = bytes.toString("latin1", 12, 16);
  if (form === "VP8X") return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (form === "VP8L") {
    const bits = bytes.readUInt32LE(21);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  if (form !== "VP8 ") return undefined;
  return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
};

const MEASURED: Readonly<Record<ImageType, (bytes: Buffer) => Measures | undefined>> = {
  "image/png": (bytes) => ({ width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }),
  "image/gif": (bytes) => ({ width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }),
  "image/jpeg": measureJpeg,
  "image/webp": measureWebp,
};
