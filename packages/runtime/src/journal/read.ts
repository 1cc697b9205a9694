/** What does a journal's file say, and what of it cannot be read? Pure.
 *  Invariant: nothing after a bad line is lost; of a write that never ended no line counts, and of one that had ended all
 *  that are left do; a file of a newer version is refused before anybody changes it.
 *  Elsewhere: one line (line.ts), what the entries add up to (replay.ts), closing a torn end (appender.ts). */

import { JOURNAL_VERSION, type JournalProblem, type StoredEntry } from "./entry.ts";
import { JournalError } from "./errors.ts";
import { type DecodedLine, decodeLine, type LineStart } from "./line.ts";

const NEWLINE = 0x0a;

export type JournalReading = {
  readonly entries: readonly StoredEntry[];
  readonly problems: readonly JournalProblem[];
  /** Where the last whole write ends; what follows was torn. */
  readonly end: number;
  /** The last whole line is there but for its newline. */
  readonly unterminated: boolean;
  readonly lastSeq: number;
};

/** `name` is for messages. */
export const readEntries = (bytes: Buffer, name: string): JournalReading => {
  const reader = new Reader(name);
  let offset = 0;
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, offset)) {
    reader.line(bytes.subarray(offset, end), offset, end + 1);
    offset = end + 1;
  }
  return reader.finish(bytes.subarray(offset), offset);
};

/** A line of a write that has not ended yet; without `stored` where it was passed over. */
type Pending = { readonly start: LineStart; readonly line: number; readonly stored?: StoredEntry };

class Reader {
  readonly #name: string;
  readonly #entries: StoredEntry[] = [];
  readonly #problems: JournalProblem[] = [];
  /** The lines of a write whose last line has not come yet. */
  #batch: Pending[] = [];
  #line = 0;
  #end = 0;
  #lastSeq = 0;

  constructor(name: string) {
    this.#name = name;
  }

  line(bytes: Buffer, offset: number, next: number): void {
    this.#line += 1;
    // An append that failed halfway leaves its half behind a newline of its own; an empty line is the other half.
    if (bytes.length > 0) this.#take(decodeLine(bytes), offset);
    if (this.#batch.length === 0) this.#end = next;
  }

  /** `rest` stands after the last newline. */
  finish(rest: Buffer, offset: number): JournalReading {
    const decoded = rest.length > 0 ? decodeLine(rest) : undefined;
    const isWhole = decoded !== undefined && (decoded.ok || decoded.kind === "newer");
    if (isWhole) this.line(rest, offset, offset + rest.length);
    if (decoded !== undefined && !isWhole) {
      this.#line += 1;
      this.#report("torn", `the last write ended after ${rest.length} bytes`);
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

  #join(pending: Pending): void {
    const { seq, more } = pending.start;
    const last = this.#batch.at(-1)?.start;
    // A write that never ended gave its numbers to the next one; where they are passed, a line was lost after it had.
    if (last && seq > last.seq + last.more) this.#commit(last.seq);
    else if (last && seq - last.seq !== last.more - more) this.#dropBatch();
    const expected = (this.#batch.at(-1)?.start.seq ?? this.#lastSeq) + 1;
    if (seq < expected) {
      this.#report("unreadable", `entry ${seq} stands after entry ${expected - 1}`);
      return;
    }
    if (seq > expected) {
      const lost = seq - 1 > expected ? `entries ${expected} to ${seq - 1} are` : `entry ${expected} is`;
      this.#report("lost", `${lost} not there`);
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
    const detail = "the write that this line belongs to never ended";
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
