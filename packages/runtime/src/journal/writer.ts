/** How do entries get into a journal? Everything that must survive is written here before it has an effect.
 *  Invariant: entries are in the order of the calls. The entries of one call are one write, and count together or not
 *  at all. A failed write throws, and nothing of it is in the journal: its remains are truncated or, if that fails too,
 *  closed by a newline before the next line. Whatever was there before stays readable.
 *  Elsewhere: creating and opening a journal (open.ts), extending a prefix (growth.ts), that nobody else writes
 *  (storage.ts). */

import { closeSync, fdatasync, fstatSync, ftruncateSync, writeSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Folder, Lock, LockHolder } from "@prefork/guard/internal";
import { type PlainEntry, type SentBytes, tipAfter, type WireEntry } from "./entry.ts";
import { JournalError, toJournalError } from "./errors.ts";
import type { Draft } from "./growth.ts";
import { encodeLine } from "./line.ts";
import { type JournalReading, readEntries } from "./read.ts";
import { OUTPUTS_FOLDER, readWholeFile, type SessionsFolder } from "./storage.ts";

export type WriterParts = {
  readonly id: string;
  readonly folder: Folder;
  readonly sessions: SessionsFolder;
  readonly lock: Lock;
  readonly appender: Appender;
  readonly now: () => number;
  readonly lastSeq: number;
  readonly tips: TipIndex;
  /** Is it a fork of another session? */
  readonly isFork: boolean;
  /** Just created: its folders are synced with its first flush. */
  readonly isNew: boolean;
  /** Closes `sessions` when it is closed. */
  readonly ownsSessions: boolean;
};

/** For each chain hash, the last entry while the prefix with this hash was the tip: where a fork of that prefix
 *  branches off. */
export class TipIndex {
  readonly #seqs = new Map<string, number>();
  #tip: string | undefined;

  constructor(inherited?: string) {
    this.#tip = inherited;
  }

  /** `hash`: of the prefix that the entry created, if it created one. */
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
  /** The session's folder for outputs that are too long for a message. Created when it is first needed. */
  readonly outputs: { readonly path: string };
  readonly isFork: boolean;
  readonly #parts: WriterParts;
  #lastSeq: number;
  #isClosed = false;
  /** Its folders are on the disk, or being synced by `#syncingFolders`. */
  #areFoldersSynced: boolean;
  #syncingFolders: Promise<unknown> | undefined;

  /** Use `createJournal` or `openJournal`. */
  constructor(parts: WriterParts) {
    this.id = parts.id;
    this.outputs = { path: join(parts.folder.path.toString(), OUTPUTS_FOLDER) };
    this.isFork = parts.isFork;
    this.#parts = parts;
    this.#lastSeq = parts.lastSeq;
    this.#areFoldersSynced = !parts.isNew;
  }

  /** The number of the last entry. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The number of the last entry while this was the prefix: a fork of it points there. Undefined if it was never
   *  written. */
  seqOf(hash: string): number | undefined {
    return this.#parts.tips.seqOf(hash);
  }

  /** Returns the entry's number. */
  append(entry: PlainEntry): number;
  append(entry: WireEntry, sent: SentBytes): number;
  append(entry: PlainEntry | WireEntry, sent?: SentBytes): number {
    return this.#write([sent === undefined ? { entry } : { entry, sent }]);
  }

  /** Writes entries that are true together. Returns the number of the last one. */
  appendAll(drafts: readonly Draft[]): number {
    return this.#write(drafts);
  }

  /** Everything that was written so far, in this run and in earlier ones. */
  read(): JournalReading {
    return readEntries(this.#parts.appender.content(), `session ${this.id}`);
  }

  /** The process that writes it: this one. */
  get holder(): LockHolder {
    return this.#parts.lock.holder;
  }
  /** The folder in which it and its forks are created. */
  get sessions(): SessionsFolder {
    return this.#parts.sessions;
  }

  /** Resolves when everything so far is on the disk and can be found there. */
  async flush(): Promise<void> {
    const { appender, folder, sessions } = this.#parts;
    if (this.#areFoldersSynced) return appender.flush();
    this.#syncingFolders ??= Promise.all([folder.handle.sync().catch(() => undefined), sessions.sync()]);
    await Promise.all([appender.flush(), this.#syncingFolders]);
    this.#areFoldersSynced = true;
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
    for (const { entry, sent } of drafts) {
      this.#lastSeq += 1;
      tips.passed(this.#lastSeq, tipAfter(entry, sent));
    }
    return this.#lastSeq;
  }
}

/** Appends lines to the end of the file: one call, one write. */

const NEWLINE = Buffer.from("\n");
const syncData = promisify(fdatasync);

export type AppendTarget = {
  readonly fd: number;
  /** For messages. */
  readonly path: string;
  /** Where the last complete write ends. */
  readonly end: number;
  /** The last line lacks its newline. */
  readonly unterminated: boolean;
};

export class Appender {
  readonly #path: string;
  #fd: number | undefined;
  #end: number;
  #needsNewline: boolean;
  /** Bytes after `#end` that belong to a failed write. */
  #debris: number;
  /** Everything is on the disk, or being synced by `#syncing`. */
  #isSynced = true;
  #syncing: Promise<void> | undefined;

  constructor({ fd, path, end, unterminated }: AppendTarget) {
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
      // A write is only short if the next one fails and says why.
      while (written < bytes.length) written += writeSync(fd, bytes, written);
    } catch (error) {
      this.#debris += written;
      this.#cutDebris(fd);
      throw toJournalError(error, this.#path);
    }
    this.#end += this.#debris + written;
    this.#debris = 0;
    this.#needsNewline = false;
    this.#isSynced = false;
  }

  /** The whole file. */
  content(): Buffer {
    return readWholeFile(this.#open());
  }

  /** Resolves when everything appended so far is on the disk. */
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
      throw toJournalError(error, this.#path);
    }
  }

  /** Only removes what is known to be ours: if the file has another length, somebody else wrote to it too. */
  #cutDebris(fd: number): void {
    if (this.#debris === 0) return;
    try {
      if (fstatSync(fd).size !== this.#end + this.#debris) return;
      ftruncateSync(fd, this.#end);
      this.#debris = 0;
    } catch {
      // The next append tries this again, and otherwise starts with a newline.
    }
  }
}

/** A journal that is not kept, for a run that must leave no trace. Entries are dropped. The folder for long outputs
 *  is private, and deleted by `close`. */

export const ephemeralJournal = async (id: string): Promise<Journal> => {
  const path = await mkdtemp(join(tmpdir(), "prefork-unkept-"));
  const tips = new TipIndex();
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
