/** Splits standard input into lines, and writes values as JSON.
 *  Invariant: a line ends only at a line feed, since JSON strings may contain every other separator; invalid UTF-8 and
 *  overlong lines are errors that name the line.
 *  Elsewhere: the stream itself (main.ts), what a line means (commands/). */

import { type Io, UsageError } from "./io.ts";

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const LINE_FEED = 0x0a;

/** Splits bytes into lines. Drops a carriage return before the line feed, and a byte order mark at the start. */
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

/** A value as indented JSON, for people and programs. */
export const jsonText = (value: object): string => `${JSON.stringify(roundNumbers(value), null, 2)}\n`;

/** Fields with a model's own text are passed through unchanged. */
const VERBATIM = new Set(["input", "args", "arguments", "body"]);

/** Rounds away the noise of binary fractions: twelve digits are more than any bill has. */
const roundNumbers = (value: unknown): unknown => {
  if (typeof value === "number") return Number.isInteger(value) ? value : Number(value.toPrecision(12));
  if (Array.isArray(value)) return value.map(roundNumbers);
  if (typeof value !== "object" || value === null || "toJSON" in value) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, VERBATIM.has(key) ? inner : roundNumbers(inner)]),
  );
};

/** A value as one line of JSON. Characters at which other languages end a line are escaped. */
export const jsonLine = (value: object): string =>
  `${JSON.stringify(roundNumbers(value)).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )}\n`;

export type InputLine = { readonly line: string; readonly number: number };

/** The non-empty lines of standard input. Throws when the user interrupts. */
export async function* inputLines(io: Io): AsyncGenerator<InputLine> {
  let number = 0;
  for await (const line of io.input()) {
    io.signal.throwIfAborted();
    number += 1;
    if (line.trim() !== "") yield { line, number };
  }
}
