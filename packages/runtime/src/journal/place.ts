/** Where sessions are kept, and what of it is believed.
 *  Invariant: every folder is 0700, every file 0600 whatever the umask, all of it ours; a link, a further name, another
 *  owner or a file that others can change is refused, never followed or repaired.
 *  Elsewhere: the folders above (@prefork/guard), what is written (writer.ts), who may write (lock.ts). */

import { closeSync, constants, fchmodSync, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { join } from "node:path";
import { inspectPrivateFolder, openPrivateFolder, type Root } from "@prefork/guard";
import { acquireLock, Folder, firstLock, type Lock, type LockHolder } from "@prefork/guard/internal";
import { isCode, JournalError, journalErrorOf } from "./errors.ts";

export const JOURNAL_FILE = "journal.jsonl";
export const OUTPUTS_FOLDER = "outputs";

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

export const isSessionId = (id: string): boolean => SESSION_ID.test(id);

const self = (): number => process.getuid?.() ?? -1;

const octal = (mode: number): string => (mode & 0o7777).toString(8).padStart(4, "0");

type Purpose = "kept in" | "read from";

/** Opens a folder of our own, making it where there is none. */
export const openPrivate = async (path: string, purpose: Purpose = "kept in"): Promise<Root> => {
  const opened = await openPrivateFolder(path);
  if (opened.ok) return opened.root;
  throw new JournalError("insecure", `sessions cannot be ${purpose} ${path}: ${opened.reason}`);
};

/** The folder of all sessions, held open; made where there is none. */
export const makeSessions = async (state: string, purpose: Purpose = "kept in"): Promise<Folder> => {
  await using above = await openPrivate(state, purpose);
  await using root = await openPrivate(join(above.path, "sessions"), purpose);
  return await Folder.open(root.path);
};

/** The folder of all sessions, held open; undefined where nobody has made one. */
export const openSessions = async (state: string): Promise<Folder | undefined> => {
  const path = join(state, "sessions");
  const found = await inspectPrivateFolder(path);
  if (!found.ok) throw new JournalError("insecure", `sessions cannot be read from ${path}: ${found.reason}`);
  return found.mode === undefined ? undefined : await makeSessions(state, "read from");
};

/** The folder of all sessions, held by one that is written: its forks are made here, without walking there again. */
export class MadeSessions {
  readonly folder: Folder;
  #isSynced = true;
  #syncing: Promise<void> | undefined;

  constructor(folder: Folder) {
    this.folder = folder;
  }

  /** A session was made in it. */
  made(): void {
    this.#isSynced = false;
  }

  /** Every session that was made so far is on the disk; many that were made together are synced together. */
  async sync(): Promise<void> {
    if (!this.#isSynced) {
      this.#isSynced = true;
      this.#syncing = this.folder.handle.sync().catch(() => undefined); // not every file system can
    }
    await this.#syncing;
  }
}

/** The folder of one session, held open. Undefined where there is none. */
export const enterSession = async (sessions: Folder, id: string): Promise<Folder | undefined> => {
  if (!isSessionId(id)) return undefined;
  const path = join(sessions.path.toString(), id);
  let folder: Folder;
  try {
    folder = await sessions.enter(id);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw journalErrorOf(error, path);
  }
  try {
    const unsafe = unsafeReason(await folder.handle.stat(), path);
    if (unsafe !== undefined) throw new JournalError("insecure", unsafe);
    return folder;
  } catch (error) {
    await folder.close();
    throw journalErrorOf(error, path);
  }
};

const unsafeReason = (stats: Stats, path: string): string | undefined => {
  if (stats.uid !== self()) return `${path} belongs to another user (${stats.uid})`;
  return stats.mode & 0o022 ? `${path} can be changed by others (mode ${octal(stats.mode)})` : undefined;
};

const SAFELY = constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

export type JournalUse = "create" | "append" | "read";

const FLAGS: Readonly<Record<JournalUse, number>> = {
  create: constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL | SAFELY,
  append: constants.O_RDWR | constants.O_APPEND | SAFELY,
  read: constants.O_RDONLY | SAFELY,
};

/** Opens the journal of a session and gives its descriptor. */
export const openJournalFile = (folder: Folder, use: JournalUse): number => {
  const path = join(folder.path.toString(), JOURNAL_FILE);
  let fd: number;
  try {
    fd = openSync(folder.at(JOURNAL_FILE), FLAGS[use], 0o600);
  } catch (error) {
    throw journalErrorOf(error, path);
  }
  try {
    const stats = fstatSync(fd);
    const unsafe = notOrdinary(stats, path) ?? unsafeReason(stats, path);
    if (unsafe !== undefined) throw new JournalError("insecure", unsafe);
    if (use !== "read" && (stats.mode & 0o777) !== 0o600) fchmodSync(fd, 0o600);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw journalErrorOf(error, path);
  }
};

const notOrdinary = (stats: Stats, path: string): string | undefined => {
  if (!stats.isFile()) return `${path} is no ordinary file`;
  return stats.nlink > 1 ? `${path} has further names (hard links)` : undefined;
};

const MAX_AT_ONCE = 1 << 30;

/** All that is in the file now. */
export const readAll = (fd: number): Buffer => {
  const { size } = fstatSync(fd);
  const bytes = Buffer.allocUnsafe(size);
  let filled = 0;
  while (filled < size) {
    const read = readSync(fd, bytes, {
      offset: filled,
      length: Math.min(size - filled, MAX_AT_ONCE),
      position: filled,
    });
    if (read === 0) break; // it was cut meanwhile
    filled += read;
  }
  return bytes.subarray(0, filled);
};

/** The lock of a session: at most one process writes it.
 *  Invariant: whatever keeps a session from being locked is an error of its journal.
 *  Elsewhere: how a folder is locked (@prefork/guard). */

export const lockSession = async (folder: Folder, session: string, self: LockHolder): Promise<Lock> => {
  try {
    return await acquireLock(folder, `session ${session}`, self);
  } catch (error) {
    throw journalErrorOf(error, folder.path.toString());
  }
};

/** In a folder that was just made: nobody has been there. */
export const lockNewSession = async (folder: Folder, session: string, self: LockHolder): Promise<Lock> => {
  try {
    return await firstLock(folder, `session ${session}`, self);
  } catch (error) {
    throw journalErrorOf(error, folder.path.toString());
  }
};
