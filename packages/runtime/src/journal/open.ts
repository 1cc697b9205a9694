/** How is a session made, opened again, read, and branched?
 *  Invariant: whoever gets a writer holds the session's lock until it is closed; reading needs no lock and changes
 *  nothing. A fork is a pointer into its parent's journal and its own entries: nothing of the parent is copied.
 *  Elsewhere: finding and removing sessions (sessions.ts), the folders (place.ts). */

import { closeSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Folder, type LockHolder, thisProcess } from "@prefork/guard/internal";
import type { FrozenPrefix, Protocol } from "@prefork/wire";
import type { OpenedEntry } from "./entry.ts";
import { isCode, JournalError, journalErrorOf } from "./errors.ts";
import {
  enterSession,
  isSessionId,
  JOURNAL_FILE,
  lockNewSession,
  lockSession,
  MadeSessions,
  makeSessions,
  openJournalFile,
  openSessions,
  readAll,
} from "./place.ts";
import { type JournalReading, readEntries } from "./read.ts";
import { type Replayed, replay } from "./replay.ts";
import { Appender, JournalWriter, Tips } from "./writer.ts";

export type SessionStore = {
  /** The user's state folder. */
  readonly state: string;
  readonly now: () => number;
  readonly newId: () => string;
  /** Default: all that the wire knows. */
  readonly protocols?: readonly Protocol[];
};

export type NewSession = Omit<OpenedEntry, "kind" | "id">;

export const createJournal = async (store: SessionStore, session: NewSession): Promise<JournalWriter> => {
  const sessions = new MadeSessions(await makeSessions(store.state));
  let journal: JournalWriter | undefined;
  try {
    journal = await createIn(sessions, store, { session, self: thisProcess(), ownsSessions: true });
    await journal.flush();
    return journal;
  } catch (error) {
    // The first failure is the one to tell.
    if (journal) await rm(sessions.folder.at(journal.id), { recursive: true, force: true }).catch(() => undefined);
    await (journal ?? sessions.folder).close().catch(() => undefined);
    throw error;
  }
};

type Creating = { readonly session: NewSession; readonly self: LockHolder; readonly ownsSessions: boolean };

/** On the disk with its first flush. */
const createIn = async (sessions: MadeSessions, store: SessionStore, creating: Creating): Promise<JournalWriter> => {
  const { session, self, ownsSessions } = creating;
  const id = store.newId();
  if (!isSessionId(id)) throw new TypeError(`"${id}" cannot be the id of a session`);
  const { folder: all } = sessions;
  const place = join(all.path.toString(), id);
  await mkdir(all.at(id), { mode: 0o700 }).catch((error: unknown) => {
    if (isCode(error, "EEXIST")) throw new JournalError("exists", `there is a session ${id} already`);
    throw journalErrorOf(error, place);
  });
  sessions.made();
  const undo: (() => void | Promise<void>)[] = [() => rm(all.at(id), { recursive: true, force: true })];
  try {
    const folder = await all.enter(id);
    undo.unshift(() => folder.close());
    await folder.handle.chmod(0o700); // what the umask took away
    const lock = await lockNewSession(folder, id, self);
    const fd = openJournalFile(folder, "create");
    undo.unshift(() => closeSync(fd));
    const appender = new Appender({ fd, path: join(place, JOURNAL_FILE), end: 0, unterminated: false });
    const tips = new Tips(session.parent?.hash);
    const journal = new JournalWriter({
      ...{ id, folder, sessions, ownsSessions, lock, appender, tips, now: store.now, lastSeq: 0 },
      isNew: true,
      isFork: session.parent !== undefined,
    });
    journal.append({ kind: "opened", id, ...session });
    return journal;
  } catch (error) {
    await undoAll(undo);
    throw journalErrorOf(error, place);
  }
};

/** A session to go on with, and what it has come to. */
export type OpenedJournal = { readonly journal: JournalWriter; readonly replayed: Replayed };

/** `id` in full; `findSession` knows shorter ones. */
export const openJournal = async (store: SessionStore, id: string): Promise<OpenedJournal> => {
  const sessions = new MadeSessions(await mustHaveSessions(store, id));
  try {
    return await write(store, { id, folder: await mustEnter(sessions.folder, id), sessions });
  } catch (error) {
    await sessions.folder.close();
    throw error;
  }
};

export type SessionReading = { readonly reading: JournalReading; readonly replayed: Replayed };

/** What a session says, for somebody who does not write in it. */
export const readSession = async (store: SessionStore, id: string): Promise<SessionReading> => {
  await using sessions = await mustHaveSessions(store, id);
  return await readWithParents(store, { sessions, id });
};

/** Its own entries alone, without what a fork inherits: enough for whoever does not need its bytes. */
export const readJournal = async (store: SessionStore, id: string): Promise<JournalReading> => {
  await using sessions = await mustHaveSessions(store, id);
  return readEntries(await readFile(sessions, id), `session ${id}`);
};

export type NewFork = Omit<NewSession, "parent"> & {
  /** The prefix that the fork starts from: one that stands in the parent's journal, not necessarily its newest. */
  readonly prefix: FrozenPrefix;
};

/** A journal that goes on from a prefix of `parent`, which remembers it. */
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
  const journal = await createIn(parent.sessions, store, {
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

export const noSession = (id: string): JournalError => new JournalError("not-found", `there is no session ${id}`);

export const mustHaveSessions = async (store: SessionStore, id: string): Promise<Folder> => {
  const sessions = await openSessions(store.state);
  if (sessions) return sessions;
  throw noSession(id);
};

export const mustEnter = async (sessions: Folder, id: string): Promise<Folder> => {
  const folder = await enterSession(sessions, id);
  if (folder) return folder;
  throw noSession(id);
};

type Undo = readonly (() => void | Promise<void>)[];

/** Every step, whatever becomes of the others: the first failure is the one to tell, and no descriptor stays open. */
const undoAll = async (undo: Undo): Promise<void> => {
  for (const step of undo) {
    try {
      await step();
    } catch {}
  }
};

type Writing = { readonly id: string; readonly folder: Folder; readonly sessions: MadeSessions };

/** Takes over `folder`: it is closed with the writer, or here on failure. */
const write = async (store: SessionStore, writing: Writing): Promise<OpenedJournal> => {
  const { id, folder, sessions } = writing;
  const undo: (() => void | Promise<void>)[] = [() => folder.close()];
  try {
    const lock = await lockSession(folder, id, thisProcess());
    undo.unshift(lock.release);
    const fd = openJournalFile(folder, "append");
    undo.unshift(() => closeSync(fd));
    const reading = readEntries(readAll(fd), `session ${id}`);
    const replayed = await replayWithParents(store, { reading, sessions: sessions.folder, id });
    mustHaveBegun(replayed, id);
    const path = folder.path.toString();
    const { end, unterminated, lastSeq } = reading;
    const appender = new Appender({ fd, path: join(path, JOURNAL_FILE), end, unterminated });
    const tips = tipsOf(reading, replayed);
    const isFork = replayed.inherited !== undefined;
    const journal = new JournalWriter({
      ...{ id, folder, sessions, lock, appender, now: store.now, lastSeq, tips, isFork },
      ...{ isNew: false, ownsSessions: true },
    });
    return { journal, replayed };
  } catch (error) {
    await undoAll(undo);
    throw journalErrorOf(error, join(folder.path.toString(), JOURNAL_FILE));
  }
};

const tipsOf = ({ entries }: JournalReading, { inherited }: Replayed): Tips => {
  const tips = new Tips(inherited?.prefix?.hash);
  for (const { seq, sent } of entries) tips.passed(seq, sent?.hash);
  return tips;
};

const mustHaveBegun = ({ opened }: Replayed, id: string): void => {
  if (!opened) throw new JournalError("damaged", `session ${id} cannot be continued: its first entry cannot be read`);
};

type Lineage = {
  readonly sessions: Folder;
  readonly id: string;
  readonly until?: number;
  /** Sessions that were passed on the way here. */
  readonly below?: readonly string[];
};

export const readFile = async (sessions: Folder, id: string): Promise<Buffer> => {
  await using folder = await mustEnter(sessions, id);
  const fd = openJournalFile(folder, "read");
  try {
    return readAll(fd);
  } finally {
    closeSync(fd);
  }
};

const readWithParents = async (store: SessionStore, lineage: Lineage): Promise<SessionReading> => {
  const reading = readEntries(await readFile(lineage.sessions, lineage.id), `session ${lineage.id}`);
  return { reading, replayed: await replayWithParents(store, { reading, ...lineage }) };
};

type Replaying = Omit<Lineage, "sessions"> & {
  readonly reading: JournalReading;
  readonly sessions: Folder | undefined;
};

const replayWithParents = async (store: SessionStore, lineage: Replaying): Promise<Replayed> => {
  const { reading, sessions, id, until, below = [] } = lineage;
  const first = reading.entries[0]?.entry;
  const pointer = first?.kind === "opened" ? first.parent : undefined;
  const options = {
    ...(store.protocols ? { protocols: store.protocols } : {}),
    ...(until === undefined ? {} : { until }),
  };
  const inherited =
    pointer && sessions ? await inheritedFrom(store, { sessions, id, pointer, below: [...below, id] }) : undefined;
  const replayed = replay(reading.entries, inherited ? { ...options, inherited } : options);
  return { ...replayed, problems: [...reading.problems, ...replayed.problems].sort((a, b) => a.line - b.line) };
};

type Inheriting = {
  readonly sessions: Folder;
  readonly id: string;
  readonly pointer: NonNullable<OpenedEntry["parent"]>;
  readonly below: readonly string[];
};

const inheritedFrom = async (store: SessionStore, { sessions, id, pointer, below }: Inheriting): Promise<Replayed> => {
  const { session, seq, hash } = pointer;
  const from = `session ${id} goes on from session ${session}`;
  if (below.includes(session)) throw new JournalError("damaged", `${from}, which goes on from it`);
  const { replayed } = await readWithParents(store, { sessions, id: session, until: seq, below }).catch(
    (error: unknown) => {
      if (!(error instanceof JournalError) || error.reason !== "not-found") throw error;
      throw new JournalError("damaged", `${from}, which is not there`, { cause: error });
    },
  );
  if (replayed.lastSeq !== seq || replayed.prefix?.hash !== hash)
    throw new JournalError("damaged", `${from}, whose entries up to ${seq} are not what they were`);
  return replayed;
};
