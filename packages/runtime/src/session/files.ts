/** Which files belong to a point of the conversation, and how do they come back?
 *  Before each prompt the files are kept: in a repository as a hidden snapshot of the checkout, elsewhere as copies of
 *  what our tools write. A snapshot is taken while the request is on its way, and is complete before the first call that
 *  may change anything; one that cannot be taken in time is a notice, and the conversation goes on. Before files are restored, the journal names the present state; after a crash in between, the
 *  next run puts that back.
 *  Elsewhere: snapshots (@prefork/worktrees), copies (file-copies.ts), the conversation (rewind.ts). */

import { join } from "node:path";
import { InputError, type Json } from "@prefork/wire";
import { FileHistory, type FileSnapshot, WorktreeError } from "@prefork/worktrees";
import type { Effects } from "../agent/index.ts";
import { FILES_SLOT, type JournalWriter, type PlainEntry, type StoredEntry } from "../journal/index.ts";
import type { RewindPoint } from "../observe/index.ts";
import type { RestoredFiles } from "../ports.ts";
import { type Copies, copiesIn, copiesSince, copyEntry, FileCopies } from "./file-copies.ts";
import { SnapshotTimeoutError, withinLimit } from "./snapshot-limit.ts";

export type SessionFilesOptions = {
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly journal: JournalWriter;
  /** False: nothing is kept, and nothing can be restored. */
  readonly isOn: boolean;
  /** Something about files that the user should know. */
  readonly notice: (text: string) => void;
  /** How long a snapshot may take altogether. Default: 20 seconds. */
  readonly limitMs?: number;
};

const LIMIT_MS = 20_000;
/** The user waits for these, and can close the session. */
const RESTORE_MS = 5 * 60_000;
/** Then none are taken in this session any more: every prompt would wait for as long. */
const MAX_TIMEOUTS = 2;

/** What is written together with the entry that ends a restore. */
export type Restoration = { readonly files: RestoredFiles; readonly also: readonly PlainEntry[] };

/** While files are being restored: how to put the present ones back. Null when it is done. */
const RESTORING_SLOT = "restoring";

/** Files outside a repository are kept when a tool writes them. */
const COPIED: Json = { kind: "copies" };

export class SessionFiles {
  readonly #options: SessionFilesOptions;
  readonly #copies: FileCopies;
  /** Undefined outside a repository. */
  #history: Promise<FileHistory | undefined> | undefined;
  #taking: Promise<Json | undefined> | undefined;
  #recording: Promise<void> | undefined;
  /** Files of which this exchange's first content is kept. */
  readonly #kept = new Set<string>();
  #isNoticed = false;
  #timeouts = 0;
  readonly #closing = new AbortController();

  constructor(options: SessionFilesOptions) {
    this.#options = options;
    this.#copies = new FileCopies(this.#folder);
  }

  readonly effects: Effects = {
    before: async () => {
      await this.#taking;
    },
    beforeWrite: (path) => this.#keepCopy(path),
  };

  /** A prompt is about to be entered: the files as they are now belong to it. */
  beginExchange(signal: AbortSignal): void {
    if (!this.#options.isOn) return;
    this.#kept.clear();
    this.#taking = undefined;
    if (this.#timeouts >= MAX_TIMEOUTS) return;
    this.#taking = this.#take(signal).catch((error: unknown) => {
      if (error instanceof SnapshotTimeoutError) this.#timeouts += 1;
      if (signal.aborted || this.#closing.signal.aborted) return undefined; // the user ended it
      if (!this.#isNoticed)
        this.#options.notice(`The files before this prompt cannot be restored: ${messageOf(error)}`);
      this.#isNoticed = true;
      return undefined;
    });
  }

  /** The prompt is in the journal, and the snapshot belongs after it. */
  promptEntered(): void {
    this.#recording = this.#taking?.then((value) => {
      if (value !== undefined) this.#options.journal.append({ kind: "state", slot: FILES_SLOT, value });
    });
  }

  /** Nothing of the last prompt is still being written. */
  async settle(): Promise<void> {
    const recording = this.#recording;
    this.#recording = undefined;
    await recording;
  }

  /** Ends what is under way, and waits for its end. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#taking;
  }

  /** Restores the files of a point, or only says what that would change. */
  async restore(point: RewindPoint, entries: readonly StoredEntry[], isPreview: boolean): Promise<Restoration> {
    if (point.files === undefined) throw new InputError("no snapshot of the files was taken at that point");
    const copies = copiesSince(entries, point.after);
    const commit = commitIn(point.files);
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(RESTORE_MS)]);
    const history = await this.#openHistory(signal);
    if (commit !== undefined && !history)
      throw new InputError(`${this.#options.cwd} is no longer in the repository that has the snapshot`);
    if (isPreview) {
      const inside = commit === undefined ? undefined : await history?.preview(commit, signal);
      return { files: merge(await this.#copies.restore(copies, true), inside), also: [] };
    }
    const present = await this.#keepPresent(copies);
    const saved = commit === undefined ? undefined : await history?.take(signal);
    this.#writeIntent(present, saved);
    try {
      const inside =
        commit === undefined
          ? undefined
          : await history?.restore(commit, (now) => this.#writeIntent(present, now), signal);
      const outside = await this.#copies.restore(copies);
      const value = inside ? gitValue(inside.saved) : COPIED;
      const also = [
        { kind: "state", slot: FILES_SLOT, value } as const,
        ...[...present].map(([path, copy]) => copyEntry(path, copy)),
        done,
      ];
      const where = inside
        ? `commit ${inside.saved.commit} of ${join(this.#folder, "git")}`
        : join(this.#folder, "copies");
      return { files: { ...merge(outside, inside), saved: where }, also };
    } catch (error) {
      await this.#copies.restore(present);
      this.#options.journal.append(done);
      throw error instanceof WorktreeError ? new InputError(error.message, { cause: error }) : error;
    }
  }

  /** The files now, for a rewind that does not restore any: the line that is left can get them back. */
  async present(): Promise<readonly PlainEntry[]> {
    if (!this.#options.isOn) return [];
    const value = await this.#take(this.#closing.signal).catch(() => undefined);
    return value === undefined ? [] : [{ kind: "state", slot: FILES_SLOT, value }];
  }

  /** Puts files back that an interrupted restore had begun to replace. Returns whether there was one. */
  async recover(state: ReadonlyMap<string, Json>): Promise<boolean> {
    const intent = state.get(RESTORING_SLOT);
    if (typeof intent !== "object" || intent === null || Array.isArray(intent)) return false;
    const { commit, copies } = intent as Readonly<Record<string, Json>>;
    const signal = AbortSignal.timeout(RESTORE_MS);
    if (typeof commit === "string") await (await this.#openHistory(signal))?.restore(commit, () => {}, signal);
    await this.#copies.restore(copiesIn(copies));
    this.#options.journal.append(done);
    return true;
  }

  get #folder(): string {
    return join(this.#options.journal.outputs.path, "..", "rewind-files");
  }

  #take(signal: AbortSignal): Promise<Json | undefined> {
    const limit = { ms: this.#options.limitMs ?? LIMIT_MS, signal: AbortSignal.any([signal, this.#closing.signal]) };
    return withinLimit(limit, async (stop) => {
      const history = await this.#openHistory(stop);
      return history ? gitValue(await history.take(stop)) : COPIED;
    });
  }

  /** Tried again after a failure. */
  #openHistory(signal: AbortSignal): Promise<FileHistory | undefined> {
    const { cwd, environment, journal } = this.#options;
    this.#history ??= FileHistory.open({ cwd, environment, session: journal.id, folder: this.#folder, signal }).catch(
      (error: unknown) => {
        if (error instanceof WorktreeError && error.reason === "no-repository") return undefined;
        this.#history = undefined;
        throw error;
      },
    );
    return this.#history;
  }

  async #keepCopy(path: string): Promise<void> {
    const { isOn, journal } = this.#options;
    if (!isOn || this.#kept.has(path)) return;
    this.#kept.add(path);
    const history = await this.#openHistory(AbortSignal.timeout(LIMIT_MS)).catch(() => undefined);
    if (history?.covers(path)) return;
    journal.append(copyEntry(path, await this.#copies.keep(path)));
  }

  async #keepPresent(copies: Copies): Promise<Copies> {
    const present = new Map<string, Awaited<ReturnType<FileCopies["keep"]>>>();
    for (const path of copies.keys()) present.set(path, await this.#copies.keep(path));
    return present;
  }

  #writeIntent(present: Copies, saved: FileSnapshot | undefined): void {
    const copies = Object.fromEntries(present) as unknown as Json;
    const value: Json = { copies, ...(saved ? { commit: saved.commit } : {}) };
    this.#options.journal.append({ kind: "state", slot: RESTORING_SLOT, value });
  }
}

const done: PlainEntry = { kind: "state", slot: RESTORING_SLOT, value: null };

const gitValue = ({ commit, leftOut }: FileSnapshot): Json => ({ kind: "git", commit, leftOut: [...leftOut] });

const commitIn = (value: Json): string | undefined => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { kind, commit } = value as Readonly<Record<string, Json>>;
  return kind === "git" && typeof commit === "string" ? commit : undefined;
};

type Inside = Awaited<ReturnType<FileHistory["preview"]>>;

const merge = (outside: Omit<RestoredFiles, "saved">, inside: Inside | undefined): Omit<RestoredFiles, "saved"> => {
  const changed = (change: "restored" | "removed"): RestoredFiles["restored"] =>
    (inside?.files ?? []).flatMap(({ change: made, ...file }) => (made === change ? [file] : []));
  return {
    restored: [...changed("restored"), ...outside.restored],
    removed: [...changed("removed"), ...outside.removed],
    skipped: [...(inside?.skipped ?? []), ...outside.skipped],
  };
};

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
