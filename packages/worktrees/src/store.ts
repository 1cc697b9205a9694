/** Stores the records of a repository's worktrees, and holds the lock for changing them.
 *  Invariant: each repository has one private folder; a record is on disk before its effect; only one process at a time
 *  merges, undoes or removes.
 *  Elsewhere: what the records mean (records.ts), the lock itself (@prefork/guard). */

import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openPrivateFolder } from "@prefork/guard";
import {
  acquireLock,
  Folder,
  LockError,
  type LockHolder,
  livenessOf,
  lockHolder,
  thisProcess,
} from "@prefork/guard/internal";
import { toWorktreeError, WorktreeError, withWorktreeErrors } from "./errors.ts";
import type { StepCallback } from "./git.ts";
import { tableOf, type Worktree, type WorktreeRecord, type WorktreeTable } from "./records.ts";

export type StoreOptions = {
  /** The user's state folder. */
  readonly state: string;
  readonly commonDir: string;
  readonly now: () => number;
  readonly step?: StepCallback;
  /** How long to wait for another process. Default: 30,000 ms. */
  readonly lockTimeoutMs?: number;
};

type Unstamped<R> = R extends WorktreeRecord ? Omit<R, "at"> : never;

const RECORDS = "records.jsonl";
const MAKING = "making";
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
const VERSION = 1;

export class WorktreeStore {
  readonly path: string;
  readonly self: LockHolder = thisProcess();
  readonly #options: StoreOptions;
  /** Locks that this store holds. */
  readonly #held = new Set<string>();

  private constructor(path: string, options: StoreOptions) {
    this.path = path;
    this.#options = options;
  }

  static async open(options: StoreOptions): Promise<WorktreeStore> {
    const key = createHash("sha256").update(options.commonDir).digest("hex").slice(0, 16);
    const all = join(options.state, "worktrees");
    const folders = [options.state, all, join(all, key), join(all, key, MAKING)];
    for (const path of folders) {
      const opened = await openPrivateFolder(path);
      if (!opened.ok) throw new WorktreeError("io", `worktrees cannot be stored in ${path}: ${opened.reason}`);
      await opened.root.close();
    }
    return new WorktreeStore(folders[2] ?? "", options);
  }

  /** Worktrees that this process is creating now, by their nonces. */
  readonly making = new Set<string>();

  /** Where worktrees are created by default. */
  get trees(): string {
    return join(this.path, "trees");
  }

  /** The record is on disk when this returns. */
  async append(record: Unstamped<WorktreeRecord>): Promise<void> {
    this.#options.step?.(`record ${record.kind}`);
    const line = `${JSON.stringify({ v: VERSION, at: this.#options.now(), ...record })}\n`;
    try {
      await using file = await open(join(this.path, RECORDS), APPEND, 0o600);
      // A line that a crash cut off is ended, so that this record is not appended to it.
      const { size } = await file.stat();
      const isTorn = size > 0 && (await lastByte(join(this.path, RECORDS), size)) !== 10;
      await file.appendFile(isTorn ? `\n${line}` : line); // writes everything, or throws
      await file.datasync();
    } catch (error) {
      throw toWorktreeError(error, `nothing was started, because it could not be recorded in ${this.path}`);
    }
  }

  async read(): Promise<WorktreeTable> {
    const text = await readFile(join(this.path, RECORDS), "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "";
      throw toWorktreeError(error, "the list of worktrees cannot be read");
    });
    return tableOf(text.split("\n").flatMap(recordIn));
  }

  /** Has its process ended, or given up without being able to record that? */
  isAbandoned({ state, nonce }: Worktree): boolean {
    if (!("by" in state)) return false;
    if (livenessOf(state.by, this.self) === "dead") return true;
    return state.kind === "creating" && this.#isSelf(state.by) && !this.making.has(nonce);
  }

  /** A scratch folder that is removed when `use` is done. */
  async scratch<T>(use: (path: string) => Promise<T>): Promise<T> {
    const folder = join(this.path, `scratch-${process.pid}-${randomBytes(4).toString("hex")}`);
    await mkdir(folder, { mode: 0o700 });
    try {
      return await use(folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Runs work under the lock: one at a time, over all processes. */
  exclusive<T>(work: () => Promise<T>, doing: string): Promise<T> {
    return this.#locked(this.path, work, doing);
  }

  /** The same for short changes of git's own list of worktrees: another git would read half-written files. */
  lockGitList<T>(work: () => Promise<T>): Promise<T> {
    return this.#locked(join(this.path, MAKING), work, "git worktree");
  }

  #isSelf({ pid, started }: LockHolder): boolean {
    return pid === this.self.pid && started === this.self.started;
  }

  async #locked<T>(path: string, work: () => Promise<T>, doing: string): Promise<T> {
    const { lockTimeoutMs: patienceMs = 30_000 } = this.#options;
    await using folder = await Folder.open(path);
    const until = performance.now() + patienceMs;
    for (;;) {
      const lock = await acquireLock(folder, doing, this.self).catch((error: unknown) => {
        if (error instanceof LockError && error.reason === "locked") return undefined;
        throw toWorktreeError(error, doing);
      });
      if (lock)
        try {
          this.#held.add(path);
          return await withWorktreeErrors(work, doing);
        } finally {
          this.#held.delete(path);
          await lock.release();
        }
      if (performance.now() > until) {
        const holder = await lockHolder(folder, this.self);
        if (this.#held.has(path)) {
          await sleep(50); // another task of this process holds it and will release it
          continue;
        }
        const who = holder ? `process ${holder.pid} on ${holder.host}` : "another process";
        throw new WorktreeError("busy", `${doing}: ${who} is changing the worktrees of this repository; try again`);
      }
      await sleep(50);
    }
  }
}

const lastByte = async (path: string, size: number): Promise<number | undefined> => {
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0];
};

const recordIn = (line: string): readonly WorktreeRecord[] => {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null || !("v" in value)) return [];
    if (typeof value.v === "number" && value.v > VERSION)
      throw new WorktreeError("io", "the list of worktrees was written by a newer version of prefork; use that one");
    return "kind" in value && typeof value.kind === "string" ? [value as unknown as WorktreeRecord] : [];
  } catch (error) {
    if (error instanceof WorktreeError) throw error;
    return []; // cut off by a crash, so its effect was not started
  }
};
