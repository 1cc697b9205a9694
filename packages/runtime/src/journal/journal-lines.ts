/** The lines of a journal, one at a time, in memory that does not grow with the journal.
 *  Invariant: a line longer than the limit is skipped as a whole; what follows it is read as usual.
 *  Elsewhere: what a line says (line.ts), reading a whole journal (read.ts). */

import { readSync } from "node:fs";

const NEWLINE = 0x0a;
const CHUNK = 1 << 20;

/** Longer than any text that people search: such a line holds pictures or output. */
const MAX_LINE = 8 << 20;

/** Without their newlines. A line is valid only until the next one is requested. */
export function* journalLines(fd: number, { chunk = CHUNK, most = MAX_LINE } = {}): Generator<Buffer> {
  const bytes = Buffer.allocUnsafe(chunk);
  let parts: Buffer[] = []; // the start of a line whose end has not been read yet
  let length = 0;
  const take = (rest: Buffer): Buffer | undefined => {
    const line = length + rest.length > most ? undefined : parts.length === 0 ? rest : Buffer.concat([...parts, rest]);
    parts = [];
    length = 0;
    return line;
  };
  for (let read = readSync(fd, bytes); read > 0; read = readSync(fd, bytes)) {
    let from = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1 && end < read; end = bytes.indexOf(NEWLINE, from)) {
      const line = take(bytes.subarray(from, end));
      from = end + 1;
      if (line && line.length > 0) yield line;
    }
    length += read - from;
    if (length > most) parts = [];
    else if (from < read) parts.push(Buffer.from(bytes.subarray(from, read)));
  }
  const last = take(Buffer.alloc(0));
  if (last && last.length > 0) yield last;
}
