/** Where are sessions stored, which files are trusted, and who may write?
 *  Invariant: every folder is 0700 and every file 0600 whatever the umask, and all of it belongs to us. A link, a hard
 *  link, another owner, or a file that others can change is refused, never followed or repaired. At most one process
 *  writes a session; a failure to lock it is a JournalError.
 *  Elsewhere: the folders above, and locking a folder (@prefork/guard), what is written (writer.ts). */

import { closeSync, constants, fchmodSync, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { join } from "node:path";
import { inspectPrivateFolder, openPrivateFolder, type Root } from "@prefork/guard";
import { acquireLock, Folder, firstLock, type Lock, type LockHolder } from "@prefork/guard/internal";
import { hasCode, JournalError, toJournalError } from "./errors.ts";

export const JOURNAL_FILE = "journal.jsonl";
export const OUTPUTS_FOLDER = "outputs";

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

export const isSessionId = (id: string): boolean => SESSION_ID.test(id);

const ownUserId = (): number => process.getuid?.() ?? -1;

const octal = (mode: number): string => (mode & 0o7777).toString(8).padStart(4, "0");

type Purpose = "kept in" | "read from";

/** Opens a private folder, and creates it if necessary. */
export const openOrCreatePrivate = async (path: string, purpose: Purpose = "kept in"): Promise<Root> => {
  const opened = await openPrivateFolder(path);
  if (opened.ok) return opened.root;
  throw new JournalError("insecure", `sessions cannot be ${purpose} ${path}: ${opened.reason}`);
};

/** The folder of all sessions, held open; created if necessary. */
export const openOrCreateSessions = async (state: string, purpose: Purpose = "kept in"): Promise<Folder> => {
  await using above = await openOrCreatePrivate(state, purpose);
  await using root = await openOrCreatePrivate(join(above.path, "sessions"), purpose);
  return await Folder.open(root.path);
};

/** The folder of all sessions, held open; undefined if there is none. */
export const openSessions = async (state: string): Promise<Folder | undefined> => {
  const path = join(state, "sessions");
  const found = await inspectPrivateFolder(path);
  if (!found.ok) throw new JournalError("insecure", `sessions cannot be read from ${path}: ${found.reason}`);
  return found.mode === undefined ? undefined : await openOrCreateSessions(state, "read from");
};

/** The folder of all sessions, held open by a session that is written. Its forks are created here without opening it
 *  again. */
export class SessionsFolder {
  readonly folder: Folder;
  #isSynced = true;
  #syncing: Promise<void> | undefined;

  constructor(folder: Folder) {
    this.folder = folder;
  }

  /** A session was created in it. */
  made(): void {
    this.#isSynced = false;
  }

  /** Resolves when all sessions created so far are on the disk. Sessions created together are synced together. */
  async sync(): Promise<void> {
    if (!this.#isSynced) {
      this.#isSynced = true;
      this.#syncing = this.folder.handle.sync().catch(() => undefined); // not every file system supports this
    }
    await this.#syncing;
  }
}

/** The folder of one session, held open. Undefined if there is none. */
export const openSessionFolder = async (sessions: Folder, id: string): Promise<Folder | undefined> => {
  if (!isSessionId(id)) return undefined;
  const path = join(sessions.path.toString(), id);
  let folder: Folder;
  try {
    folder = await sessions.enter(id);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw toJournalError(error, path);
  }
  try {
    const unsafe = describeUnsafe(await folder.handle.stat(), path);
    if (unsafe !== undefined) throw new JournalError("insecure", unsafe);
    return folder;
  } catch (error) {
    await folder.close();
    throw toJournalError(error, path);
  }
};

export const describeUnsafe = (stats: Stats, path: string): string | undefined => {
  if (stats.uid !== ownUserId()) return `${path} belongs to another user (${stats.uid})`;
  return stats.mode & 0o022 ? `${path} can be changed by others (mode ${octal(stats.mode)})` : undefined;
};

const SAFE_FLAGS = constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

export type JournalAccess = "create" | "append" | "read";

const FLAGS: Readonly<Record<JournalAccess, number>> = {
  create: constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL | SAFE_FLAGS,
  append: constants.O_RDWR | constants.O_APPEND | SAFE_FLAGS,
  read: constants.O_RDONLY | SAFE_FLAGS,
};

/** Opens the journal of a session. Returns its descriptor. */
export const openJournalFile = (folder: Folder, use: JournalAccess): number => {
  const path = join(folder.path.toString(), JOURNAL_FILE);
  let fd: number;
  try {
    fd = openSync(folder.at(JOURNAL_FILE), FLAGS[use], 0o600);
  } catch (error) {
    throw toJournalError(error, path);
  }
  try {
    const stats = fstatSync(fd);
    const unsafe = describeIrregular(stats, path) ?? describeUnsafe(stats, path);
    if (unsafe !== undefined) throw new JournalError("insecure", unsafe);
    if (use !== "read" && (stats.mode & 0o777) !== 0o600) fchmodSync(fd, 0o600);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw toJournalError(error, path);
  }
};

const describeIrregular = (stats: Stats, path: string): string | undefined => {
  if (!stats.isFile()) return `${path} is not a regular file`;
  return stats.nlink > 1 ? `${path} has other names (hard links)` : undefined;
};

const MAX_AT_ONCE = 1 << 30;

/** The current content of the file. */
export const readWholeFile = (fd: number): Buffer => {
  const { size } = fstatSync(fd);
  const bytes = Buffer.allocUnsafe(size);
  let filled = 0;
  while (filled < size) {
    const read = readSync(fd, bytes, {
      offset: filled,
      length: Math.min(size - filled, MAX_AT_ONCE),
      position: filled,
    });
    if (read === 0) break; // it was truncated in the meantime
    filled += read;
  }
  return bytes.subarray(0, filled);
};

/** Throws JournalError if another process holds the lock. */

export const lockSession = async (folder: Folder, session: string, self: LockHolder): Promise<Lock> => {
  try {
    return await acquireLock(folder, `session ${session}`, self);
  } catch (error) {
    throw toJournalError(error, folder.path.toString());
  }
};

/** For a folder that was just created: nobody else can hold the lock. */
export const lockNewSession = async (folder: Folder, session: string, self: LockHolder): Promise<Lock> => {
  try {
    return await firstLock(folder, `session ${session}`, self);
  } catch (error) {
    throw toJournalError(error, folder.path.toString());
  }
};
