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
