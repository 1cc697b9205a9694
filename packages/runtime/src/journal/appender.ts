/** How do lines get to the end of the file?
 *  Invariant: one call, one write, whole or not at all: what a failed write left behind is cut off again, or, where that
 *  fails too, is closed by a newline before the next line. Whatever was there before a failure stays readable.
 *  Elsewhere: what the lines say (writer.ts), that nobody else writes (lock.ts). */

import { closeSync, fdatasync, fstatSync, ftruncateSync, writeSync } from "node:fs";
import { promisify } from "node:util";
import { JournalError, journalErrorOf } from "./errors.ts";

const NEWLINE = Buffer.from("\n");
const syncData = promisify(fdatasync);

export type AppendTo = {
  readonly fd: number;
  /** For messages. */
  readonly path: string;
  /** Where the last whole write ends. */
  readonly end: number;
  /** The last line lacks its newline. */
  readonly unterminated: boolean;
};

export class Appender {
  readonly #path: string;
  #fd: number | undefined;
  #end: number;
  #needsNewline: boolean;
  /** Bytes after `#end` that belong to a write that failed. */
  #debris: number;
  /** Everything is on the disk, or on its way there with `#syncing`. */
  #isSynced = true;
  #syncing: Promise<void> | undefined;

  constructor({ fd, path, end, unterminated }: AppendTo) {
    this.#fd = fd;
    this.#path = path;
    this.#end = end;
    this.#needsNewline = unterminated;
    this.#debris = fstatSync(fd).size - end;
    this.#cutDebris(fd);
  }

  append(lines: Buffer): void {
    const fd = this.#open();
    this.#cutDebris(fd);
    const bytes = this.#needsNewline || this.#debris > 0 ? Buffer.concat([NEWLINE, lines]) : lines;
    let written = 0;
    try {
      // A write comes back short only where the next one fails and says why.
      while (written < bytes.length) written += writeSync(fd, bytes, written);
    } catch (error) {
      this.#debris += written;
      this.#cutDebris(fd);
      throw journalErrorOf(error, this.#path);
    }
    this.#end += this.#debris + written;
    this.#debris = 0;
    this.#needsNewline = false;
    this.#isSynced = false;
  }

  /** Everything appended so far is on the disk. */
  async flush(): Promise<void> {
    const fd = this.#open();
    if (!this.#isSynced) this.#syncing = this.#sync(fd);
    await this.#syncing;
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #open(): number {
    if (this.#fd === undefined) throw new JournalError("closed", `${this.#path}: this journal was closed`);
    return this.#fd;
  }

  async #sync(fd: number): Promise<void> {
    this.#isSynced = true;
    try {
      await syncData(fd);
    } catch (error) {
      this.#isSynced = false;
      throw journalErrorOf(error, this.#path);
    }
  }

  /** Only what is known to be ours: a file that has another length was written by somebody else too. */
  #cutDebris(fd: number): void {
    if (this.#debris === 0) return;
    try {
      if (fstatSync(fd).size !== this.#end + this.#debris) return;
      ftruncateSync(fd, this.#end);
      this.#debris = 0;
    } catch {
      // The next append starts with a newline instead, and tries this again before.
    }
  }
}
