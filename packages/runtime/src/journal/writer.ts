/** The one writer of a session: everything that must survive goes through here before it has an effect.
 *  Invariant: entries stand in the order of the calls; those of one call are one write, and count together or not at
 *  all. Where a write fails it throws, and nothing of it is in the journal.
 *  Elsewhere: making and opening one (open.ts), what makes a prefix grow (growth.ts), the file (appender.ts). */

import { closeSync, fdatasync, fstatSync, ftruncateSync, writeSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Folder, Lock, LockHolder } from "@prefork/guard/internal";
import type { PlainEntry, SentBytes, WireEntry } from "./entry.ts";
import { JournalError, journalErrorOf } from "./errors.ts";
import type { Draft } from "./growth.ts";
import { encodeLine } from "./line.ts";
import { type MadeSessions, OUTPUTS_FOLDER } from "./place.ts";

export type WriterParts = {
  readonly id: string;
  readonly folder: Folder;
  readonly sessions: MadeSessions;
  readonly lock: Lock;
  readonly appender: Appender;
  readonly now: () => number;
  readonly lastSeq: number;
  readonly tips: Tips;
  /** Does it go on from another session's? */
  readonly isFork: boolean;
  /** Made just now: its folders are synced with its first flush. */
  readonly isNew: boolean;
  /** Closes `sessions` with it. */
  readonly ownsSessions: boolean;
};

/** Which entry was the last while a prefix with this chain hash was the tip: where a fork of that prefix branches off. */
export class Tips {
  readonly #seqs = new Map<string, number>();
  #tip: string | undefined;

  constructor(inherited?: string) {
    this.#tip = inherited;
  }

  /** `hash`: of the prefix that the entry made, where it made one. */
  passed(seq: number, hash?: string): void {
    this.#tip = hash ?? this.#tip;
    if (this.#tip !== undefined) this.#seqs.set(this.#tip, seq);
  }

  seqOf(hash: string): number | undefined {
    return this.#seqs.get(hash);
  }
}

/** What an agent needs of a journal, whether it is kept or not. */
export type Journal = Pick<
  JournalWriter,
  "id" | "outputs" | "seqOf" | "append" | "appendAll" | "flush" | "close" | typeof Symbol.asyncDispose
>;

export class JournalWriter implements AsyncDisposable {
  readonly id: string;
  /** The session's folder for what is too long for a message; made when it is first needed. */
  readonly outputs: { readonly path: string };
  readonly isFork: boolean;
  readonly #parts: WriterParts;
  #lastSeq: number;
  #isClosed = false;
  /** Its folders are on the disk, or on their way there with `#placed`. */
  #isPlaced: boolean;
  #placed: Promise<unknown> | undefined;

  /** Use `createJournal` or `openJournal`. */
  constructor(parts: WriterParts) {
    this.id = parts.id;
    this.outputs = { path: join(parts.folder.path.toString(), OUTPUTS_FOLDER) };
    this.isFork = parts.isFork;
    this.#parts = parts;
    this.#lastSeq = parts.lastSeq;
    this.#isPlaced = !parts.isNew;
  }

  /** Number of the last entry. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Number of the last entry while this was the prefix: what a fork of it points at. Undefined for one never written. */
  seqOf(hash: string): number | undefined {
    return this.#parts.tips.seqOf(hash);
  }

  /** Gives the entry's number. */
  append(entry: PlainEntry): number;
  append(entry: WireEntry, sent: SentBytes): number;
  append(entry: PlainEntry | WireEntry, sent?: SentBytes): number {
    return this.#write([sent === undefined ? { entry } : { entry, sent }]);
  }

  /** Entries that are true together. Gives the number of the last one. */
  appendAll(drafts: readonly Draft[]): number {
    return this.#write(drafts);
  }

  /** Who writes it: this process. */
  get holder(): LockHolder {
    return this.#parts.lock.holder;
  }
  /** Where it was made, and its forks are. */
  get sessions(): MadeSessions {
    return this.#parts.sessions;
  }

  /** Everything so far is on the disk, and can be found there. */
  async flush(): Promise<void> {
    const { appender, folder, sessions } = this.#parts;
    if (this.#isPlaced) return appender.flush();
    this.#placed ??= Promise.all([folder.handle.sync().catch(() => undefined), sessions.sync()]);
    await Promise.all([appender.flush(), this.#placed]);
    this.#isPlaced = true;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { appender, lock, folder, sessions, ownsSessions } = this.#parts;
    try {
      await this.flush();
    } finally {
      try {
        appender.close();
        await lock.release();
      } finally {
        await Promise.all([folder.close(), ownsSessions ? sessions.folder.close() : undefined]);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #write(drafts: readonly { readonly entry: PlainEntry | WireEntry; readonly sent?: SentBytes }[]): number {
    if (drafts.length === 0) return this.#lastSeq;
    const { appender, now, tips } = this.#parts;
    const at = now();
    const lines = drafts.map((draft, index) =>
      encodeLine({ seq: this.#lastSeq + 1 + index, at, more: drafts.length - 1 - index, ...draft }),
    );
    appender.append(lines.length === 1 && lines[0] ? lines[0] : Buffer.concat(lines));
    for (const { sent } of drafts) {
      this.#lastSeq += 1;
      tips.passed(this.#lastSeq, sent?.hash);
    }
    return this.#lastSeq;
  }
}

/** How do lines get to the end of the file?
 *  Invariant: one call, one write, whole or not at all: what a failed write left behind is cut off again, or, where that
 *  fails too, is closed by a newline before the next line. Whatever was there before a failure stays readable.
 *  Elsewhere: what the lines say (writer.ts), that nobody else writes (lock.ts). */

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

/** A journal that nobody keeps: for a run that is to leave no trace.
 *  Invariant: entries go nowhere; the folder for what is too long for a message is private, and gone with `close`.
 *  Elsewhere: journals that are kept (writer.ts). */

export const unkeptJournal = async (id: string): Promise<Journal> => {
  const path = await mkdtemp(join(tmpdir(), "prefork-unkept-"));
  const tips = new Tips();
  let seq = 0;
  let isClosed = false;
  const appendAll = (drafts: readonly Draft[]): number => {
    for (const { sent } of drafts) {
      seq += 1;
      tips.passed(seq, sent?.hash);
    }
    return seq;
  };
  const close = async (): Promise<void> => {
    if (isClosed) return;
    isClosed = true;
    await rm(path, { recursive: true, force: true });
  };
  return {
    id,
    outputs: { path },
    seqOf: (hash) => tips.seqOf(hash),
    append: (_entry: PlainEntry | WireEntry, sent?: SentBytes) => {
      seq += 1;
      tips.passed(seq, sent?.hash);
      return seq;
    },
    appendAll,
    flush: async () => {},
    close,
    [Symbol.asyncDispose]: close,
  };
};
