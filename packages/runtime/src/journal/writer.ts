/** The one writer of a session: everything that must survive goes through here before it has an effect.
 *  Invariant: entries stand in the order of the calls; those of one call are one write, and count together or not at
 *  all. Where a write fails it throws, and nothing of it is in the journal.
 *  Elsewhere: making and opening one (open.ts), what makes a prefix grow (growth.ts), the file (appender.ts). */

import { join } from "node:path";
import type { Folder, Lock, LockHolder } from "@prefork/guard/internal";
import type { Appender } from "./appender.ts";
import type { PlainEntry, SentBytes, WireEntry } from "./entry.ts";
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
