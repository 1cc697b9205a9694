/** The files of a checkout as they were at several moments of a session, and restoring them.
 *  Invariant: nothing is written into the user's repository, and no hook or filter runs: changes are found with a private
 *  index, and contents are stored byte for byte in commits of a private repository. Ignored files and files over the size
 *  limit are not included, so they are never changed either. Before the first file is restored, everything that will be
 *  replaced is in a snapshot. A restore that fails puts everything back. A checkout in which git would wait or that is too
 *  large is refused, and a signal ends every git call.
 *  Elsewhere: the private repository (snapshot-store.ts), reading a checkout (snapshot.ts), swapping files (apply.ts), when snapshots are taken (@prefork/runtime). */

import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { Swap, stageNew } from "./apply.ts";
import { Checkout, type FileState } from "./checkout.ts";
import { toWorktreeError, WorktreeError } from "./errors.ts";
import { bytesOf, displayPath, fieldsOf, inputOf, messagePath, type StepCallback, type TreePath } from "./git.ts";
import type { FileChange, TreeEntry } from "./merge-plan.ts";
import { copyIndex } from "./private-index.ts";
import { dropRefs, requireTaskName, rewindRef } from "./refs.ts";
import { openRepository, type Repository } from "./repository.ts";
import { blob, blobsOf, crashReports, writeFileState } from "./save.ts";
import {
  clearMarks,
  commitTree,
  type ListLimits,
  listChanged,
  listIndex,
  overLimit,
  placeholdersIn,
  requireReadable,
} from "./snapshot.ts";
import { SnapshotStore } from "./snapshot-store.ts";
import { dropStage, stageFolder } from "./stage.ts";

export type FileHistoryOptions = {
  /** A folder in the checkout. */
  readonly cwd: string;
  /** Its name becomes part of a ref. */
  readonly session: string;
  /** A private folder of the session. It is created when it is needed. */
  readonly folder: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly step?: StepCallback;
  /** For opening it. Taking and restoring have their own. */
  readonly signal?: AbortSignal;
};

export type FileSnapshot = {
  readonly commit: string;
  /** Files that are not in it: too large, or in nested repositories. */
  readonly leftOut: readonly string[];
};

export type RestoredFile = {
  readonly path: string;
  readonly change: "restored" | "removed";
  /** Lines; absent for files that are not text. */
  readonly added?: number;
  readonly deleted?: number;
};

export type FileRestoration = {
  readonly files: readonly RestoredFile[];
  /** Files that stay as they are, and why. */
  readonly skipped: readonly string[];
  /** The files just before. */
  readonly saved: FileSnapshot;
};

/** All changed and untracked files of one snapshot together. The largest are left out. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Of the index. Every prompt reads it, and a few kilobytes of a download unpack to any number of names. */
const MAX_INDEX_BYTES = 64 * 1024 * 1024;
const LIMITS: ListLimits = { maxBytes: 64 * 1024 * 1024, maxNames: 500_000 };

/** Paths that were stored byte for byte, with their modes. Others are stored as git stores them. */
type RawFiles = ReadonlyMap<TreePath, number>;

type Tip = { readonly commit: string; readonly raw: RawFiles; readonly leftOut: readonly TreePath[] };

type Change = FileChange & Pick<RestoredFile, "added" | "deleted">;

export class FileHistory {
  readonly #options: FileHistoryOptions;
  readonly #store: SnapshotStore;
  #repository: Repository;
  /** The last snapshot of this process. */
  #tip: Tip | undefined;
  #isJustOpened = true;
  #signal: AbortSignal | undefined;
  /** One at a time: they share an index. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(options: FileHistoryOptions, repository: Repository) {
    this.#options = options;
    this.#repository = repository;
    this.#store = new SnapshotStore(join(options.folder, "git"));
  }

  /** Throws a WorktreeError if there is no repository with files. */
  static async open(options: FileHistoryOptions): Promise<FileHistory> {
    requireTaskName(options.session);
    return new FileHistory(options, await openRepository(options.cwd, options));
  }

  get ref(): string {
    return rewindRef(this.#options.session);
  }

  /** Is this path in the checkout? */
  covers(path: string): boolean {
    return path.startsWith(`${this.#repository.top}/`);
  }

  /** The files now. If nothing has changed since the last snapshot, that one is returned. */
  async take(signal?: AbortSignal): Promise<FileSnapshot> {
    return toSnapshot(await this.#alone(signal, () => this.#take()));
  }

  /** What `restore` would do. */
  preview(commit: string, signal?: AbortSignal): Promise<FileRestoration> {
    return this.#alone(signal, async () => {
      const { tip, changes, skipped } = await this.#changesTo(commit);
      return { files: changes.map(toRestored), skipped, saved: toSnapshot(tip) };
    });
  }

  /** Restores the files of a snapshot. Files that did not exist then are removed. `begin` is called with the snapshot of
   *  the present state before the first file changes; if it throws, nothing changes. From then on the signal is ignored. */
  restore(commit: string, begin: (saved: FileSnapshot) => void, signal?: AbortSignal): Promise<FileRestoration> {
    return this.#alone(signal, async () => {
      const { tip, changes, skipped, raw } = await this.#changesTo(commit);
      const saved = toSnapshot(tip);
      if (changes.length > 0) await this.#swap(changes, raw, () => begin(saved));
      else await dropStage(this.#repository, this.#stageName); // of a restore that was killed
      return { files: changes.map(toRestored), skipped, saved };
    });
  }

  /** Deletes the snapshots that an earlier version kept in the repository itself. Others are in the session's folder. */
  static async drop({ cwd, session, signal }: Pick<FileHistoryOptions, "cwd" | "session" | "signal">): Promise<void> {
    requireTaskName(session);
    await dropRefs(await openRepository(cwd, { signal }), [{ ref: rewindRef(session) }]);
  }

  #alone<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    const begin = async (): Promise<T> => {
      signal?.throwIfAborted();
      this.#signal = signal;
      await this.#store.prepare(this.#repository);
      this.#repository = this.#bound(this.#repository);
      requireReadable(this.#repository);
      return await work();
    };
    const run = this.#last.then(begin).catch((error: unknown) => {
      this.#tip = undefined; // the index may be ahead of what was stored
      throw toWorktreeError(error, "the files of the checkout could not be read or restored");
    });
    this.#last = run.catch(() => undefined);
    return run;
  }

  /** Its git writes objects into the private repository. */
  #bound(repository: Repository): Repository {
    return { ...repository, git: this.#store.writing(repository).until(this.#signal) };
  }

  get #stageName(): string {
    return `rewind-${this.#options.session}`;
  }

  get #index(): string {
    return join(this.#options.folder, "index");
  }

  async #take(also: readonly TreePath[] = []): Promise<Tip> {
    // Read again: a command may have changed the repository's settings, and with them what must be switched off.
    if (!this.#isJustOpened) {
      const how = { ...this.#options, before: this.#repository, signal: this.#signal };
      this.#repository = this.#bound(await openRepository(this.#options.cwd, how));
    }
    this.#isJustOpened = false;
    const repository = this.#repository;
    const git = repository.git.indexed(this.#index);
    if (!this.#tip) {
      await mkdir(this.#options.folder, { recursive: true, mode: 0o700 });
      for (const name of [this.#index, `${this.#index}.lock`]) await rm(name, { force: true });
      await copyIndex(repository.index, this.#index, MAX_INDEX_BYTES);
      // In a checkout that was copied or restored, every file looks changed until its content was compared.
      await git.ask(["update-index", "-q", "--refresh", "--ignore-submodules"], { okCodes: [0, 1] });
    }
    const listed = await listIndex(git, LIMITS);
    await clearMarks(repository, git, listed);
    if (listed.unmerged.length > 0) await git.out(REMOVE, { input: removals(repository, listed.unmerged) });
    const changed = await listChanged(git, LIMITS);
    const placeholders = await placeholdersIn(repository.top, listed.untracked);
    const untracked = listed.untracked.filter((path) => !path.endsWith("/") && !placeholders.has(path));
    const there = [...new Set([...changed.there, ...untracked, ...listed.unmerged, ...also])].filter(isOrdinary);
    const over = await overLimit(repository.top, there, { bytes: MAX_BYTES, over: "leave-out" });
    const written = there.filter((path) => !over.has(path));
    const nested = listed.untracked.filter((path) => path.endsWith("/"));
    const isWritten = new Set(written);
    const leftOut = [
      ...new Set([...(this.#tip?.leftOut ?? []).filter((path) => !isWritten.has(path)), ...over, ...nested]),
    ];
    const base = this.#tip ?? (await this.#begin(git));
    if (written.length === 0 && changed.gone.length === 0) {
      this.#tip = { ...base, leftOut };
      return this.#tip;
    }
    // The index first: what changes after it was read is found again by the next snapshot.
    if (changed.gone.length > 0) await git.out(REMOVE, { input: removals(repository, changed.gone) });
    if (written.length > 0)
      await git.out(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], { input: inputOf(written) });
    this.#tip = { ...(await this.#write(base, { written, gone: changed.gone })), leftOut };
    return this.#tip;
  }

  /** A commit of what the index says. It continues the snapshots of earlier processes. */
  async #begin(git: Repository["git"]): Promise<Tip> {
    const tree = await git.line(["write-tree"]);
    const own = this.#store.own(this.#repository).until(this.#signal);
    const before = await own.line(["for-each-ref", "--format=%(objectname)", this.ref]);
    const commit = await commitTree(this.#repository, tree, {
      parent: before === "" ? undefined : before,
      message: messageOf(new Map()),
    });
    await own.out(["update-ref", "--no-deref", this.ref, commit]);
    return { commit, raw: new Map(), leftOut: [] };
  }

  async #write(base: Tip, { written, gone }: Written): Promise<Omit<Tip, "leftOut">> {
    const repository = this.#repository;
    await using checkout = await Checkout.open(repository.top);
    const states = new Map<TreePath, FileState>();
    for (const path of written) {
      this.#signal?.throwIfAborted();
      states.set(path, await checkout.fileState(path).catch(() => ABSENT));
    }
    const raw = new Map(base.raw);
    for (const path of gone) raw.delete(path);
    for (const [path, state] of states) {
      if (state.kind === "absent") raw.delete(path);
      else raw.set(path, state.mode);
    }
    const words = ["fast-import", "--quiet", "--done", "--force", "--date-format=now"];
    const own = this.#store.own(repository).until(this.#signal);
    try {
      const input = importStream({ checkout, states, gone, raw, ref: this.ref, from: base.commit });
      return { commit: await own.line(words, { input }), raw };
    } catch (error) {
      for (const name of await crashReports({ gitDir: this.#store.folder }))
        await rm(join(this.#store.folder, name), { force: true });
      throw error;
    }
  }

  async #changesTo(commit: string): Promise<Planned> {
    const raw = await this.#rawFilesOf(commit);
    let tip = await this.#take();
    let changes = await this.#compare(tip.commit, commit);
    // Ignored files that would be overwritten are not in a snapshot yet.
    const unsaved = await this.#existing(changes.filter(({ before }) => before === undefined));
    if (unsaved.length > 0) {
      tip = await this.#take(unsaved);
      changes = await this.#compare(tip.commit, commit);
    }
    const skipped: string[] = [];
    const leftOut = new Set(tip.leftOut);
    const filtered = await this.#filtered(changes.filter(({ path, after }) => after && !raw.has(path)));
    const kept = changes.filter(({ path, before, after }) => {
      if (!isOrdinary(path)) skipped.push(`${displayPath(path)}: git's own`);
      else if (before?.mode === MODULE || after?.mode === MODULE) skipped.push(`${displayPath(path)}: a submodule`);
      else if (leftOut.has(path)) skipped.push(`${displayPath(path)}: too large for a snapshot`);
      else if (filtered.has(path)) skipped.push(`${displayPath(path)}: git stores it through a filter`);
      else return true;
      return false;
    });
    return { tip, raw, changes: kept, skipped };
  }

  async #rawFilesOf(commit: string): Promise<RawFiles> {
    if (!/^[0-9a-f]{40,64}$/.test(commit)) throw new WorktreeError("unknown-task", `${commit} is not a snapshot`);
    const { code, out } = await this.#repository.git.ask(["cat-file", "commit", commit], { okCodes: [0, 128] });
    if (code !== 0)
      throw new WorktreeError("unknown-task", `the snapshot ${commit.slice(0, 12)} is no longer in this repository`);
    const text = out.toString("latin1");
    return rawFilesIn(text.slice(text.indexOf("\n\n") + 2));
  }

  async #compare(from: string, to: string): Promise<readonly Change[]> {
    const how = ["-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"];
    const fields = fieldsOf(await this.#repository.git.out(["diff-tree", ...how, "--raw", "--numstat", from, to]));
    return parseChanges(fields);
  }

  async #existing(changes: readonly Change[]): Promise<readonly TreePath[]> {
    await using checkout = await Checkout.open(this.#repository.top);
    const found: TreePath[] = [];
    for (const { path } of changes) if ((await checkout.fileState(path)).kind !== "absent") found.push(path);
    return found;
  }

  /** Files that the repository stores through a filter, such as git-lfs. Without the filter they cannot be restored. */
  async #filtered(changes: readonly Change[]): Promise<ReadonlySet<TreePath>> {
    const { git, filters } = this.#repository;
    if (filters.length === 0 || changes.length === 0) return new Set();
    const input = inputOf(changes.map(({ path }) => path));
    const fields = fieldsOf(await git.out(["check-attr", "-z", "--stdin", "filter"], { input }));
    const found = new Set<TreePath>();
    for (let at = 0; at + 2 < fields.length; at += 3)
      if (filters.includes(fields[at + 2] ?? "")) found.add(fields[at] ?? "");
    return found;
  }

  async #swap(changes: readonly Change[], raw: RawFiles, begin: () => void): Promise<void> {
    const repository = this.#repository;
    const { step = () => {} } = this.#options;
    const name = this.#stageName;
    const stage = await stageFolder(repository, name);
    await using checkout = await Checkout.open(repository.top);
    const swap = new Swap(checkout, stage, CHANGED);
    await dropStage(repository, name);
    try {
      const states = new Map<TreePath, FileState>();
      for (const { path } of changes) states.set(path, await checkout.fileState(path));
      await this.#requireUnchanged(changes);
      await this.#stage(changes, raw, stage);
      begin();
      step("restore begins");
      for (const { path } of changes) await swap.takeOut(path, states.get(path));
      step("restore half done");
      for (const { path, after } of changes) if (after) await swap.clear(path);
      for (const change of changes) {
        await swap.putIn(change, states.get(change.path));
        const mode = change.after?.mode.startsWith("100") ? raw.get(change.path) : undefined;
        if (mode !== undefined) await checkout.chmod(change.path, mode);
      }
      await swap.dropEmpty();
      step("restore ends");
    } catch (error) {
      await swap.rollBack();
      throw error;
    } finally {
      await dropStage(repository, name);
    }
  }

  /** Nothing of this changed after the present state was read. */
  async #requireUnchanged(changes: readonly Change[]): Promise<void> {
    const { gone, there } = await listChanged(this.#repository.git.indexed(this.#index), LIMITS);
    const changed = new Set([...gone, ...there]);
    const found = changes.find(({ path }) => changed.has(path));
    if (found) throw new WorktreeError("changed-meanwhile", `${messagePath(found.path)} changed ${CHANGED}`);
  }

  async #stage(changes: readonly Change[], raw: RawFiles, stage: string): Promise<void> {
    for (const folder of ["new", "old"]) await mkdir(join(stage, folder), { recursive: true, mode: 0o700 });
    const into = join(stage, "new");
    const stored = changes.filter(({ path, after }) => after && !raw.has(path));
    const staging = join(this.#options.folder, "staging");
    await rm(staging, { force: true });
    await stageNew(this.#repository.git.indexed(staging), stored, into);
    await rm(staging, { force: true });
    const exact = changes.filter(({ path, after }) => after && raw.has(path));
    for (let from = 0; from < exact.length; from += BATCH) {
      const batch = exact.slice(from, from + BATCH);
      const contents = await blobsOf(
        this.#repository,
        batch.map(({ after }) => after?.id ?? ""),
      );
      for (const [at, { path, after }] of batch.entries()) {
        const target = Buffer.concat([Buffer.from(`${into}/`), bytesOf(path)]);
        const parent = target.subarray(0, target.lastIndexOf(47));
        await mkdir(parent, { recursive: true, mode: 0o700 });
        const kind = after?.mode === LINK ? "link" : "file";
        const state = { kind, mode: raw.get(path) ?? 0o644, version: "", mtimeMs: Date.now() } as const;
        await writeFileState(target, contents[at] ?? Buffer.alloc(0), state);
      }
    }
  }
}

type Written = { readonly written: readonly TreePath[]; readonly gone: readonly TreePath[] };

type Planned = {
  readonly tip: Tip;
  readonly raw: RawFiles;
  readonly changes: readonly Change[];
  readonly skipped: readonly string[];
};

/** A forged index may name git's own files, which git itself would not check out. */
const isOrdinary = (path: TreePath): boolean =>
  !path.split("/").some((part) => /^(?:|\.|\.\.|\.git|git~1)$/i.test(part));

const MODULE = "160000";
const LINK = "120000";
const BATCH = 200;
const ABSENT: FileState = { kind: "absent" };
const CHANGED = "during the rewind; nothing was restored";
const REMOVE: readonly string[] = ["update-index", "-z", "--index-info"];

const removals = ({ noObject }: Repository, paths: readonly TreePath[]): Buffer =>
  inputOf(paths.map((path) => `0 ${noObject}\t${path}`));

const toSnapshot = ({ commit, leftOut }: Tip): FileSnapshot => ({ commit, leftOut: leftOut.map(displayPath) });

const toRestored = ({ path, after, added, deleted }: Change): RestoredFile => ({
  path: displayPath(path),
  change: after ? "restored" : "removed",
  ...(added === undefined ? {} : { added }),
  ...(deleted === undefined ? {} : { deleted }),
});

/** `:100644 100755 <id> <id> M`, then the path; after all of these `<added>\t<deleted>\t<path>`. */
const parseChanges = (fields: readonly string[]): readonly Change[] => {
  const changes = new Map<TreePath, Change>();
  for (let at = 0; at < fields.length; at += 1) {
    const field = fields[at] ?? "";
    const [, was = "", is = "", from = "", to = ""] = /^:(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) /.exec(field) ?? [];
    if (was !== "") {
      at += 1;
      const path = fields[at] ?? "";
      changes.set(path, { path, before: entryOf(was, from), after: entryOf(is, to) });
      continue;
    }
    const [, added = "", deleted = "", path = ""] = /^(\d+|-)\t(\d+|-)\t(.*)$/s.exec(field) ?? [];
    const change = changes.get(path);
    if (change && added !== "-") changes.set(path, { ...change, added: Number(added), deleted: Number(deleted) });
  }
  return [...changes.values()];
};

const entryOf = (mode: string, id: string): TreeEntry | undefined => (mode === "000000" ? undefined : { mode, id });

const TITLE = "The files of a session before a prompt\n\nCreated by prefork; it is on none of your branches.\n\n";

/** Paths have one character per byte, so the message is latin1. */
const messageOf = (raw: RawFiles): string => `${TITLE}${JSON.stringify([...raw])}\n`;

const rawFilesIn = (message: string): RawFiles => {
  const value: unknown = JSON.parse(message.startsWith(TITLE) ? message.slice(TITLE.length) : "[]");
  return new Map(Array.isArray(value) ? (value as [TreePath, number][]) : []);
};

type Import = {
  readonly checkout: Checkout;
  readonly states: ReadonlyMap<TreePath, FileState>;
  readonly gone: readonly TreePath[];
  readonly raw: RawFiles;
  readonly ref: string;
  readonly from: string;
};

async function* importStream({ checkout, states, gone, raw, ref, from }: Import): AsyncGenerator<Buffer> {
  const lines = gone.map((path) => `D ${quoted(path)}\n`);
  const added: string[] = [];
  for (const [path, state] of states) {
    if (state.kind === "absent") {
      lines.push(`D ${quoted(path)}\n`);
      continue;
    }
    const mark = added.length + 1;
    if (state.kind === "link") {
      yield* blob(mark, await checkout.read(path, "link"));
      added.push(`M ${LINK} :${mark} ${quoted(path)}\n`);
      continue;
    }
    const size = Number(state.version.split(":")[2]);
    yield Buffer.from(`blob\nmark :${mark}\ndata ${size}\n`);
    yield* checkout.pieces(path, size);
    yield Buffer.from("\n");
    added.push(`M ${state.mode & 0o100 ? "100755" : "100644"} :${mark} ${quoted(path)}\n`);
  }
  const message = Buffer.from(messageOf(raw), "latin1");
  const mark = added.length + 1;
  yield Buffer.from(
    `commit ${ref}\nmark :${mark}\ncommitter Prefork <prefork@localhost> now\ndata ${message.length}\n`,
  );
  yield message;
  yield Buffer.from(`\nfrom ${from}\n`);
  yield Buffer.from([...lines, ...added].join(""), "latin1");
  yield Buffer.from(`\nget-mark :${mark}\ndone\n`);
}

/** As in C, so that any byte can be in a name. */
const quoted = (path: TreePath): string =>
  `"${path.replace(/["\\]/g, "\\$&").replace(/[^ -~]/g, (sign) => `\\${sign.charCodeAt(0).toString(8).padStart(3, "0")}`)}"`;
