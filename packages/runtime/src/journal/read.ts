/** What does a journal file say, and which parts cannot be read? Pure.
 *  Invariant: nothing after a bad line is lost. No line of an unfinished write counts; all remaining lines of a
 *  finished write do. A file of a newer version is refused before anybody changes it.
 *  Elsewhere: one line (line.ts), what the entries add up to (replay.ts), closing a torn end (writer.ts). */

import { JOURNAL_VERSION, type JournalProblem, type StoredEntry } from "./entry.ts";
import { JournalError } from "./errors.ts";
import { type DecodedLine, decodeLine, type LineStart } from "./line.ts";

const NEWLINE = 0x0a;

export type JournalReading = {
  readonly entries: readonly StoredEntry[];
  readonly problems: readonly JournalProblem[];
  /** Where the last complete write ends. What follows was torn. */
  readonly end: number;
  /** The last complete line lacks only its newline. */
  readonly unterminated: boolean;
  readonly lastSeq: number;
};

/** `name` is for messages. */
export const readEntries = (bytes: Buffer, name: string): JournalReading => {
  const reader = new JournalReader(name);
  let offset = 0;
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, offset)) {
    reader.line(bytes.subarray(offset, end), offset, end + 1);
    offset = end + 1;
  }
  return reader.finish(bytes.subarray(offset), offset);
};

/** A line of a write that is not complete yet; without `stored` if the line was skipped. */
type PendingLine = { readonly start: LineStart; readonly line: number; readonly stored?: StoredEntry };

class JournalReader {
  readonly #name: string;
  readonly #entries: StoredEntry[] = [];
  readonly #problems: JournalProblem[] = [];
  /** The lines of a write whose last line has not been read yet. */
  #batch: PendingLine[] = [];
  #line = 0;
  #end = 0;
  #lastSeq = 0;

  constructor(name: string) {
    this.#name = name;
  }

  line(bytes: Buffer, offset: number, next: number): void {
    this.#line += 1;
    // A failed append leaves a partial line, and the next append starts with a newline. An empty line is the other half
    // of that.
    if (bytes.length > 0) this.#take(decodeLine(bytes), offset);
    if (this.#batch.length === 0) this.#end = next;
  }

  /** `rest` is what comes after the last newline. */
  finish(rest: Buffer, offset: number): JournalReading {
    const decoded = rest.length > 0 ? decodeLine(rest) : undefined;
    const isWhole = decoded !== undefined && (decoded.ok || decoded.kind === "newer");
    if (isWhole) this.line(rest, offset, offset + rest.length);
    if (decoded !== undefined && !isWhole) {
      this.#line += 1;
      this.#report("torn", `the last write was torn after ${rest.length} bytes`);
    }
    const dropped = this.#batch.length;
    this.#dropBatch();
    const unterminated = isWhole && dropped === 0;
    return {
      entries: this.#entries,
      problems: this.#problems,
      end: this.#end,
      unterminated,
      lastSeq: this.#lastSeq,
    };
  }

  #take(decoded: DecodedLine, offset: number): void {
    const line = this.#line;
    if (decoded.ok) {
      const { entry, sent, seq, at, more } = decoded;
      const stored = { seq, at, line, offset, entry, ...(sent ? { sent } : {}) };
      this.#join({ start: { seq, at, more }, line, stored });
      return;
    }
    if (decoded.kind === "newer") throw this.#newer(decoded.version);
    this.#report(decoded.kind, decoded.detail);
    if (decoded.start) this.#join({ start: decoded.start, line });
  }

  #join(pending: PendingLine): void {
    const { seq, more } = pending.start;
    const last = this.#batch.at(-1)?.start;
    // An unfinished write gave its numbers to the next write. If the numbers continue instead, the write had finished
    // and lost a line.
    if (last && seq > last.seq + last.more) this.#commit(last.seq);
    else if (last && seq - last.seq !== last.more - more) this.#dropBatch();
    const expected = (this.#batch.at(-1)?.start.seq ?? this.#lastSeq) + 1;
    if (seq < expected) {
      this.#report("unreadable", `entry ${seq} follows entry ${expected - 1}`);
      return;
    }
    if (seq > expected) {
      const lost = seq - 1 > expected ? `entries ${expected} to ${seq - 1} are` : `entry ${expected} is`;
      this.#report("lost", `${lost} missing`);
    }
    this.#batch.push(pending);
    if (more === 0) this.#commit(seq);
  }

  #commit(seq: number): void {
    for (const { stored } of this.#batch) if (stored) this.#entries.push(stored);
    this.#lastSeq = seq;
    this.#batch = [];
  }

  #dropBatch(): void {
    const detail = "the write that this line belongs to was never finished";
    for (const { line, stored } of this.#batch) if (stored) this.#problems.push({ line, kind: "torn", detail });
    this.#batch = [];
  }

  #newer(version: number): JournalError {
    return new JournalError(
      "newer-version",
      `${this.#name} was written by a newer version (journal version ${version}, and this one reads up to ${JOURNAL_VERSION}): update prefork to open it; the file was not changed`,
    );
  }

  #report(kind: JournalProblem["kind"], detail: string): void {
    this.#problems.push({ line: this.#line, kind, detail });
  }
}
