/** Which sessions are there, which one is meant, and how is one deleted?
 *  Invariant: listing changes nothing. A session is not deleted while somebody writes it or a fork still needs it.
 *  Elsewhere: what one session says (open.ts, survey.ts), folders and locks (storage.ts). */

import { closeSync } from "node:fs";
import { lstat, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Folder, type Lock, type LockHolder, lockHolder, thisProcess } from "@prefork/guard/internal";
import type { ParentPointer, StartedBy } from "./entry.ts";
import { hasCode, JournalError, toJournalError } from "./errors.ts";
import { requireSessionFolder, requireSessions, type SessionStore, sessionNotFound } from "./open.ts";
import { isSessionId, lockSession, OUTPUTS_FOLDER, openJournalFile, openSessions, readWholeFile } from "./storage.ts";
import { surveyJournal } from "./survey.ts";

export type ListedSession = {
  readonly kind: "session";
  readonly id: string;
  readonly cwd: string;
  readonly model: string;
  readonly createdAt: number;
  readonly usedAt: number;
  /** The user's first prompt, in one short line. */
  readonly firstPrompt: string;
  /** The number of answered requests. */
  readonly turns: number;
  /** The number of damaged locations in its journal, as far as a quick survey can tell. */
  readonly problems: number;
  /** Journal and outputs. */
  readonly bytes: number;
  /** The process that writes it now. */
  readonly holder?: LockHolder;
  readonly parent?: ParentPointer;
  /** For an agent that starts empty: who started it. */
  readonly startedBy?: StartedBy;
};

/** A session that cannot be read, and why. */
export type UnreadableSession = { readonly kind: "unreadable"; readonly id: string; readonly reason: string };

export type ListOptions = {
  /** Only sessions that were started in this folder. */
  readonly cwd?: string;
  /** Include forks and other agents of sessions. Default: false. */
  readonly forks?: boolean;
};

/** Most recently used first; unreadable sessions last. */
export const listSessions = async (
  store: SessionStore,
  { cwd, forks = false }: ListOptions = {},
): Promise<readonly (ListedSession | UnreadableSession)[]> => {
  await using sessions = await openSessions(store.state);
  const all = sessions ? await surveyAll(sessions) : [];
  const wanted = all.filter(
    (session) =>
      session.kind === "unreadable" || ((cwd === undefined || session.cwd === cwd) && (forks || !isChild(session))),
  );
  const usedAt = (session: ListedSession | UnreadableSession): number =>
    session.kind === "session" ? session.usedAt : Number.NEGATIVE_INFINITY;
  return wanted.toSorted((a, b) => usedAt(b) - usedAt(a) || (a.id < b.id ? -1 : 1));
};

/** Started by another session: a fork, or an agent that started empty. */
export const isChild = ({ parent, startedBy }: Pick<ListedSession, "parent" | "startedBy">): boolean =>
  parent !== undefined || startedBy !== undefined;

/** The session of this folder that was used last; forks do not count. Fails if it might be one of the unreadable
 *  sessions. */
export const latestSession = async (store: SessionStore, cwd: string): Promise<ListedSession | undefined> => {
  const listed = await listSessions(store, { cwd });
  const latest = listed.find((session) => session.kind === "session");
  if (latest) return latest;
  requireAllReadable(listed, `no readable session belongs to ${cwd}`);
  return undefined;
};

/** What was not found may be in a session that cannot be read. */
export const requireAllReadable = (listed: readonly (ListedSession | UnreadableSession)[], notFound: string): void => {
  const [first, ...others] = listed.filter((session) => session.kind === "unreadable");
  if (first === undefined) return;
  const rest = others.length === 0 ? "" : ` (and ${others.length} more)`;
  throw new JournalError("io", `${notFound}, but session ${first.id}${rest} cannot be read: ${first.reason}`);
};

/** The session whose id is `given`, or the only one whose id starts with it. */
export const findSession = async (store: SessionStore, given: string): Promise<string> => {
  await using sessions = await requireSessions(store, given);
  const ids = await sessionIds(sessions);
  if (ids.includes(given)) return given;
  const matching = given === "" ? [] : ids.filter((id) => id.startsWith(given));
  const [only, ...others] = matching;
  if (only === undefined) throw sessionNotFound(given);
  if (others.length === 0) return only;
  const shown = matching.slice(0, 5).join(", ");
  const rest = matching.length > 5 ? ` and ${matching.length - 5} more` : "";
  throw new JournalError("ambiguous", `${matching.length} sessions begin with ${given}: ${shown}${rest}`);
};

export type DeleteOptions = {
  /** Also delete the session's forks. Default: false; a session with forks is then not deleted. */
  readonly forks?: boolean;
};

/** Returns the deleted ids, in order. */
export const deleteSession = async (
  store: SessionStore,
  id: string,
  { forks = false }: DeleteOptions = {},
): Promise<readonly string[]> => {
  await using sessions = await requireSessions(store, id);
  const below = descendantsOf(id, await surveyAll(sessions));
  if (below.length > 0 && !forks)
    throw new JournalError(
      "has-forks",
      `session ${id} is needed by ${below.length === 1 ? "its fork" : "its forks"} ${below.join(", ")}: delete ${below.length === 1 ? "it" : "them"} too, or keep it`,
    );
  const ids = [...below.toReversed(), id];
  const held: LockedSession[] = [];
  try {
    for (const each of ids) held.push(await lockForDeletion(sessions, each));
    for (const each of ids) await removeSession(sessions, each);
    return ids;
  } finally {
    for (const { lock, folder } of held) {
      await lock.release().catch(() => undefined); // the lock is gone if its folder was deleted
      await folder.close();
    }
  }
};

// --- inside ----------------------------------------------------------------------------------------------------------

type LockedSession = { readonly folder: Folder; readonly lock: Lock };

const lockForDeletion = async (sessions: Folder, id: string): Promise<LockedSession> => {
  const folder = await requireSessionFolder(sessions, id);
  try {
    return { folder, lock: await lockSession(folder, id, thisProcess()) };
  } catch (error) {
    await folder.close();
    throw error;
  }
};

/** Not a valid id: half-deleted sessions are invisible, and the next deletion removes them. */
const REMOVED = ".removed-";

const removeSession = async (sessions: Folder, id: string): Promise<void> => {
  try {
    await rename(sessions.at(id), sessions.at(`${REMOVED}${id}`));
    for (const name of await readdir(sessions.at("."), { encoding: "utf8" }))
      if (name.startsWith(REMOVED)) await rm(sessions.at(name), { recursive: true, force: true });
  } catch (error) {
    throw toJournalError(error, join(sessions.path.toString(), id));
  }
};

export const sessionIds = async (sessions: Folder): Promise<readonly string[]> =>
  (await readdir(sessions.at("."), { encoding: "utf8" })).filter(isSessionId).sort();

const surveyAll = async (sessions: Folder): Promise<readonly (ListedSession | UnreadableSession)[]> => {
  const all: (ListedSession | UnreadableSession)[] = [];
  const self = thisProcess();
  for (const id of await sessionIds(sessions)) {
    try {
      all.push(await surveySession(sessions, id, self));
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      all.push({ kind: "unreadable", id, reason: error.message });
    }
  }
  return all;
};

const surveySession = async (
  sessions: Folder,
  id: string,
  self: LockHolder,
): Promise<ListedSession | UnreadableSession> => {
  await using folder = await requireSessionFolder(sessions, id);
  const fd = openJournalFile(folder, "read");
  let bytes: Buffer;
  try {
    bytes = readWholeFile(fd);
  } finally {
    closeSync(fd);
  }
  const found = surveyJournal(bytes);
  if (!found.ok) return { kind: "unreadable", id, reason: `session ${id} ${found.reason}` };
  const { opened, createdAt, usedAt, firstPrompt, turns, problems } = found;
  const holder = await lockHolder(folder, self);
  return {
    kind: "session",
    id,
    cwd: opened.cwd,
    model: opened.model,
    createdAt,
    usedAt,
    firstPrompt,
    turns,
    problems,
    bytes: bytes.length + (await sizeOfOutputs(folder)),
    ...(holder ? { holder } : {}),
    ...(opened.parent ? { parent: opened.parent } : {}),
    ...(opened.startedBy ? { startedBy: opened.startedBy } : {}),
  };
};

export const sizeOfOutputs = async (folder: Folder): Promise<number> => {
  try {
    await using outputs = await folder.enter(OUTPUTS_FOLDER);
    let sum = 0;
    for (const name of await readdir(outputs.at("."), { encoding: "buffer" }))
      sum += await lstat(outputs.at(name)).then(
        ({ size }) => size,
        () => 0,
      );
    return sum;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return 0;
    throw toJournalError(error, join(folder.path.toString(), OUTPUTS_FOLDER));
  }
};

/** All sessions that need this one, each after the one it needs itself. */
const descendantsOf = (
  id: string,
  all: readonly (ListedSession | UnreadableSession)[],
  passed: readonly string[] = [],
): readonly string[] => {
  if (passed.includes(id)) return [];
  const children = all.flatMap((session) =>
    session.kind === "session" && (session.parent ?? session.startedBy)?.session === id ? [session.id] : [],
  );
  return children.flatMap((child) => [child, ...descendantsOf(child, all, [...passed, id])]);
};
