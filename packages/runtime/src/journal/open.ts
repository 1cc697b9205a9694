/** How is a session created, reopened, read, and forked?
 *  Invariant: whoever has a writer holds the session's lock until the writer is closed. Reading needs no lock and
 *  changes nothing. A fork is a pointer into its parent's journal plus its own entries; nothing of the parent is
 *  copied.
 *  Elsewhere: finding and deleting sessions (sessions.ts), folders and locks (storage.ts). */

import { closeSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Folder, type LockHolder, thisProcess } from "@prefork/guard/internal";
import type { FrozenPrefix, Protocol } from "@prefork/wire";
import { type OpenedEntry, tipAfter } from "./entry.ts";
import { hasCode, JournalError, toJournalError } from "./errors.ts";
import { type JournalReading, readEntries } from "./read.ts";
import { type Replayed, replay } from "./replay.ts";
import {
  isSessionId,
  JOURNAL_FILE,
  lockNewSession,
  lockSession,
  openJournalFile,
  openOrCreateSessions,
  openSessionFolder,
  openSessions,
  readWholeFile,
  SessionsFolder,
} from "./storage.ts";
import { Appender, JournalWriter, TipIndex } from "./writer.ts";

export type SessionStore = {
  /** The user's state folder. */
  readonly state: string;
  readonly now: () => number;
  readonly newId: () => string;
  /** Default: all protocols of the wire package. */
  readonly protocols?: readonly Protocol[];
};

export type NewSession = Omit<OpenedEntry, "kind" | "id">;

export const createJournal = async (store: SessionStore, session: NewSession): Promise<JournalWriter> => {
  const sessions = new SessionsFolder(await openOrCreateSessions(store.state));
  let journal: JournalWriter | undefined;
  try {
    journal = await createInFolder(sessions, store, { session, self: thisProcess(), ownsSessions: true });
    await journal.flush();
    return journal;
  } catch (error) {
    // The first failure is the one to report.
    if (journal) await rm(sessions.folder.at(journal.id), { recursive: true, force: true }).catch(() => undefined);
    await (journal ?? sessions.folder).close().catch(() => undefined);
    throw error;
  }
};

type CreateOptions = { readonly session: NewSession; readonly self: LockHolder; readonly ownsSessions: boolean };

/** The journal is on the disk after its first flush. */
const createInFolder = async (
  sessions: SessionsFolder,
  store: SessionStore,
  creating: CreateOptions,
): Promise<JournalWriter> => {
  const { session, self, ownsSessions } = creating;
  const id = store.newId();
  if (!isSessionId(id)) throw new TypeError(`"${id}" is not a valid session id`);
  const { folder: all } = sessions;
  const place = join(all.path.toString(), id);
  await mkdir(all.at(id), { mode: 0o700 }).catch((error: unknown) => {
    if (hasCode(error, "EEXIST")) throw new JournalError("exists", `session ${id} already exists`);
    throw toJournalError(error, place);
  });
  sessions.made();
  const undo: (() => void | Promise<void>)[] = [() => rm(all.at(id), { recursive: true, force: true })];
  try {
    const folder = await all.enter(id);
    undo.unshift(() => folder.close());
    await folder.handle.chmod(0o700); // in case the umask removed something
    const lock = await lockNewSession(folder, id, self);
    const fd = openJournalFile(folder, "create");
    undo.unshift(() => closeSync(fd));
    const appender = new Appender({ fd, path: join(place, JOURNAL_FILE), end: 0, unterminated: false });
    const tips = new TipIndex(session.parent?.hash);
    const journal = new JournalWriter({
      ...{ id, folder, sessions, ownsSessions, lock, appender, tips, now: store.now, lastSeq: 0 },
      isNew: true,
      isFork: session.parent !== undefined,
    });
    journal.append({ kind: "opened", id, ...session });
    return journal;
  } catch (error) {
    await undoAll(undo);
    throw toJournalError(error, place);
  }
};

/** A session to continue, and its replayed state. */
export type OpenedJournal = { readonly journal: JournalWriter; readonly replayed: Replayed };

/** `id` in full; `findSession` resolves shorter ones. */
export const openJournal = async (store: SessionStore, id: string): Promise<OpenedJournal> => {
  const sessions = new SessionsFolder(await requireSessions(store, id));
  try {
    return await openWriter(store, { id, folder: await requireSessionFolder(sessions.folder, id), sessions });
  } catch (error) {
    await sessions.folder.close();
    throw error;
  }
};

export type SessionReading = { readonly reading: JournalReading; readonly replayed: Replayed };

/** Reads a session without writing to it. */
export const readSession = async (store: SessionStore, id: string): Promise<SessionReading> => {
  await using sessions = await requireSessions(store, id);
  return await readWithParents(store, { sessions, id });
};

/** Only its own entries, without what a fork inherits: enough if the bytes are not needed. */
export const readJournal = async (store: SessionStore, id: string): Promise<JournalReading> => {
  await using sessions = await requireSessions(store, id);
  return readEntries(await readJournalBytes(sessions, id), `session ${id}`);
};

export type NewFork = Omit<NewSession, "parent"> & {
  /** The prefix that the fork starts from. It is in the parent's journal, but need not be the newest. */
  readonly prefix: FrozenPrefix;
};

/** Creates a journal that continues from a prefix of `parent`, and records it in the parent's journal. */
export const forkJournal = async (
  store: SessionStore,
  parent: JournalWriter,
  fork: NewFork,
): Promise<JournalWriter> => {
  const { prefix, ...session } = fork;
  const seq = parent.seqOf(prefix.hash);
  if (seq === undefined)
    throw new JournalError(
      "not-found",
      `session ${parent.id} holds no entry with the prefix that the fork starts from`,
    );
  const pointer = { session: parent.id, seq, hash: prefix.hash };
  const journal = await createInFolder(parent.sessions, store, {
    session: { ...session, parent: pointer },
    self: parent.holder,
    ownsSessions: false, // its parent outlives it
  });
  try {
    parent.append({ kind: "fork", session: journal.id, after: seq });
    return journal;
  } catch (error) {
    await journal.close();
    throw error;
  }
};

// --- inside ----------------------------------------------------------------------------------------------------------

export const sessionNotFound = (id: string): JournalError => new JournalError("not-found", `there is no session ${id}`);

export const requireSessions = async (store: SessionStore, id: string): Promise<Folder> => {
  const sessions = await openSessions(store.state);
  if (sessions) return sessions;
  throw sessionNotFound(id);
};

export const requireSessionFolder = async (sessions: Folder, id: string): Promise<Folder> => {
  const folder = await openSessionFolder(sessions, id);
  if (folder) return folder;
  throw sessionNotFound(id);
};

type Undo = readonly (() => void | Promise<void>)[];

/** Runs every step even if others fail: the first failure is the one to report, and no descriptor stays open. */
const undoAll = async (undo: Undo): Promise<void> => {
  for (const step of undo) {
    try {
      await step();
    } catch {}
  }
};

type WriterTarget = { readonly id: string; readonly folder: Folder; readonly sessions: SessionsFolder };

/** Takes ownership of `folder`: it is closed with the writer, or here on failure. */
const openWriter = async (store: SessionStore, writing: WriterTarget): Promise<OpenedJournal> => {
  const { id, folder, sessions } = writing;
  const undo: (() => void | Promise<void>)[] = [() => folder.close()];
  try {
    const lock = await lockSession(folder, id, thisProcess());
    undo.unshift(lock.release);
    const fd = openJournalFile(folder, "append");
    undo.unshift(() => closeSync(fd));
    const reading = readEntries(readWholeFile(fd), `session ${id}`);
    const replayed = await replayWithParents(store, { reading, sessions: sessions.folder, id });
    requireOpened(replayed, id);
    const path = folder.path.toString();
    const { end, unterminated, lastSeq } = reading;
    const appender = new Appender({ fd, path: join(path, JOURNAL_FILE), end, unterminated });
    const tips = indexTips(reading, replayed);
    const isFork = replayed.inherited !== undefined;
    const journal = new JournalWriter({
      ...{ id, folder, sessions, lock, appender, now: store.now, lastSeq, tips, isFork },
      ...{ isNew: false, ownsSessions: true },
    });
    return { journal, replayed };
  } catch (error) {
    await undoAll(undo);
    throw toJournalError(error, join(folder.path.toString(), JOURNAL_FILE));
  }
};

const indexTips = ({ entries }: JournalReading, { inherited }: Replayed): TipIndex => {
  const tips = new TipIndex(inherited?.prefix?.hash);
  for (const { seq, entry, sent } of entries) tips.passed(seq, tipAfter(entry, sent));
  return tips;
};

const requireOpened = ({ opened }: Replayed, id: string): void => {
  if (!opened) throw new JournalError("damaged", `session ${id} cannot be continued: its first entry cannot be read`);
};

type SessionToRead = {
  readonly sessions: Folder;
  readonly id: string;
  readonly until?: number;
  /** The sessions that led here. */
  readonly below?: readonly string[];
};

export const readJournalBytes = async (sessions: Folder, id: string): Promise<Buffer> => {
  await using folder = await requireSessionFolder(sessions, id);
  const fd = openJournalFile(folder, "read");
  try {
    return readWholeFile(fd);
  } finally {
    closeSync(fd);
  }
};

const readWithParents = async (store: SessionStore, lineage: SessionToRead): Promise<SessionReading> => {
  const reading = readEntries(await readJournalBytes(lineage.sessions, lineage.id), `session ${lineage.id}`);
  return { reading, replayed: await replayWithParents(store, { reading, ...lineage }) };
};

type SessionToReplay = Omit<SessionToRead, "sessions"> & {
  readonly reading: JournalReading;
  readonly sessions: Folder | undefined;
};

const replayWithParents = async (store: SessionStore, lineage: SessionToReplay): Promise<Replayed> => {
  const { reading, sessions, id, until, below = [] } = lineage;
  const first = reading.entries[0]?.entry;
  const pointer = first?.kind === "opened" ? first.parent : undefined;
  const options = {
    ...(store.protocols ? { protocols: store.protocols } : {}),
    ...(until === undefined ? {} : { until }),
  };
  const inherited =
    pointer && sessions ? await replayParent(store, { sessions, id, pointer, below: [...below, id] }) : undefined;
  const replayed = replay(reading.entries, inherited ? { ...options, inherited } : options);
  return { ...replayed, problems: [...reading.problems, ...replayed.problems].sort((a, b) => a.line - b.line) };
};

type ParentToReplay = {
  readonly sessions: Folder;
  readonly id: string;
  readonly pointer: NonNullable<OpenedEntry["parent"]>;
  readonly below: readonly string[];
};

const replayParent = async (
  store: SessionStore,
  { sessions, id, pointer, below }: ParentToReplay,
): Promise<Replayed> => {
  const { session, seq, hash } = pointer;
  const from = `session ${id} continues session ${session}`;
  if (below.includes(session)) throw new JournalError("damaged", `${from}, which continues it`);
  const { replayed } = await readWithParents(store, { sessions, id: session, until: seq, below }).catch(
    (error: unknown) => {
      if (!(error instanceof JournalError) || error.reason !== "not-found") throw error;
      throw new JournalError("damaged", `${from}, which does not exist`, { cause: error });
    },
  );
  if (replayed.lastSeq !== seq || replayed.prefix?.hash !== hash)
    throw new JournalError("damaged", `${from}, whose entries up to ${seq} have changed`);
  return replayed;
};
