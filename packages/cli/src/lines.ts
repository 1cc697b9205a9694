/** Standard input as lines: what one is, and which of them say something.
 *  Invariant: a line ends at a line feed and nowhere else, since JSON may hold every other separator inside a text; bytes
 *  that are no text, and lines without end, are errors that name their place.
 *  Elsewhere: the stream itself (main.ts), what a line says (commands/). */

import { type Io, UsageError } from "./io.ts";

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const LINE_FEED = 0x0a;

/** Bytes, cut into lines. A carriage return before the line feed, and a byte order mark at the start, are left out. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let parts: Uint8Array[] = [];
  let bytes = 0;
  let number = 0;
  const finish = (): string => {
    number += 1;
    try {
      const line = decoder.decode(Buffer.concat(parts)).replace(/\r$/, "");
      return number === 1 ? line.replace(/^\ufeff/, "") : line;
    } catch (cause) {
      throw new UsageError(`line ${number}: not valid UTF-8`, { cause });
    } finally {
      parts = [];
      bytes = 0;
    }
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, from)) {
      parts.push(chunk.subarray(from, at));
      from = at + 1;
      yield finish();
    }
    parts.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > MAX_LINE_BYTES) throw new UsageError(`line ${number + 1}: longer than ${MAX_LINE_BYTES} bytes`);
  }
  if (bytes > 0) yield finish();
}

/** A value as JSON over many lines, for people and programs. */
export const jsonText = (value: object): string => `${JSON.stringify(tidied(value), null, 2)}\n`;

/** What a model wrote is handed on as it is. */
const VERBATIM = new Set(["input", "args", "arguments", "body"]);

/** Sums of money and shares without the noise of binary fractions: twelve digits, more than any bill has. */
const tidied = (value: unknown): unknown => {
  if (typeof value === "number") return Number.isInteger(value) ? value : Number(value.toPrecision(12));
  if (Array.isArray(value)) return value.map(tidied);
  if (typeof value !== "object" || value === null || "toJSON" in value) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, VERBATIM.has(key) ? inner : tidied(inner)]),
  );
};

/** A value as one line of JSON under every reading: also those that many languages end a line at are written as escapes. */
export const jsonLine = (value: object): string =>
  `${JSON.stringify(tidied(value)).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )}\n`;

export type GivenLine = { readonly line: string; readonly number: number };

/** The lines of standard input that are not empty. Ends with an error when the user interrupts. */
export async function* givenLines(io: Io): AsyncGenerator<GivenLine> {
  let number = 0;
  for await (const line of io.input()) {
    io.signal.throwIfAborted();
    number += 1;
    if (line.trim() !== "") yield { line, number };
  }
}
