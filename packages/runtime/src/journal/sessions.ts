/** Which sessions are there, which one is meant, and how does one go?
 *  Invariant: looking changes nothing; nothing is removed that somebody writes in, or that a fork still needs.
 *  Elsewhere: what one session says (open.ts, survey.ts), the folders (place.ts). */

import { closeSync } from "node:fs";
import { lstat, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Folder, type Lock, type LockHolder, lockHolder, thisProcess } from "@prefork/guard/internal";
import type { ParentPointer, StartedBy } from "./entry.ts";
import { isCode, JournalError, journalErrorOf } from "./errors.ts";
import { mustEnter, mustHaveSessions, noSession, type SessionStore } from "./open.ts";
import { isSessionId, lockSession, OUTPUTS_FOLDER, openJournalFile, openSessions, readAll } from "./place.ts";
import { survey } from "./survey.ts";

export type ListedSession = {
  readonly kind: "session";
  readonly id: string;
  readonly cwd: string;
  readonly model: string;
  readonly createdAt: number;
  readonly usedAt: number;
  /** The first words of the user, in one short line. */
  readonly firstPrompt: string;
  /** Requests that were answered. */
  readonly turns: number;
  /** Places where its journal is damaged, as far as a quick look tells. */
  readonly problems: number;
  /** Journal and outputs. */
  readonly bytes: number;
  /** Who writes in it now. */
  readonly holder?: LockHolder;
  readonly parent?: ParentPointer;
  /** Of an agent that starts empty: who started it. */
  readonly startedBy?: StartedBy;
};

/** A session that cannot be read, and why. */
export type UnreadableSession = { readonly kind: "unreadable"; readonly id: string; readonly reason: string };

export type ListOptions = {
  /** Only those that were started in this folder. */
  readonly cwd?: string;
  /** Forks and other agents of sessions too. Default: false. */
  readonly forks?: boolean;
};

/** The one used last comes first, what cannot be read last. */
export const listSessions = async (
  store: SessionStore,
  { cwd, forks = false }: ListOptions = {},
): Promise<readonly (ListedSession | UnreadableSession)[]> => {
  await using sessions = await openSessions(store.state);
  const all = sessions ? await lookAtAll(sessions) : [];
  const wanted = all.filter(
    (session) =>
      session.kind === "unreadable" || ((cwd === undefined || session.cwd === cwd) && (forks || !isChild(session))),
  );
  const usedAt = (session: ListedSession | UnreadableSession): number =>
    session.kind === "session" ? session.usedAt : Number.NEGATIVE_INFINITY;
  return wanted.toSorted((a, b) => usedAt(b) - usedAt(a) || (a.id < b.id ? -1 : 1));
};

/** Started by another session: a fork, or an agent that started empty. */
const isChild = ({ parent, startedBy }: ListedSession): boolean => parent !== undefined || startedBy !== undefined;

/** The session of this folder that was used last; forks do not count. Fails where only sessions that cannot be read
 *  could be the one. */
export const latestSession = async (store: SessionStore, cwd: string): Promise<ListedSession | undefined> => {
  const listed = await listSessions(store, { cwd });
  const latest = listed.find((session) => session.kind === "session");
  if (latest) return latest;
  mustAllBeReadable(listed, `no readable session belongs to ${cwd}`);
  return undefined;
};

/** What was not found may be in what cannot be read. */
export const mustAllBeReadable = (listed: readonly (ListedSession | UnreadableSession)[], notFound: string): void => {
  const [first, ...others] = listed.filter((session) => session.kind === "unreadable");
  if (first === undefined) return;
  const rest = others.length === 0 ? "" : ` (and ${others.length} more)`;
  throw new JournalError("io", `${notFound}, but session ${first.id}${rest} cannot be read: ${first.reason}`);
};

/** The id that `given` is, or that alone begins with it. */
export const findSession = async (store: SessionStore, given: string): Promise<string> => {
  await using sessions = await mustHaveSessions(store, given);
  const ids = await idsIn(sessions);
  if (ids.includes(given)) return given;
  const matching = given === "" ? [] : ids.filter((id) => id.startsWith(given));
  const [only, ...others] = matching;
  if (only === undefined) throw noSession(given);
  if (others.length === 0) return only;
  const shown = matching.slice(0, 5).join(", ");
  const rest = matching.length > 5 ? ` and ${matching.length - 5} more` : "";
  throw new JournalError("ambiguous", `${matching.length} sessions begin with ${given}: ${shown}${rest}`);
};

export type DeleteOptions = {
  /** Delete the session's forks with it. Default: false, and a session that has some stays. */
  readonly forks?: boolean;
};

/** Gives the ids that were deleted, in that order. */
export const deleteSession = async (
  store: SessionStore,
  id: string,
  { forks = false }: DeleteOptions = {},
): Promise<readonly string[]> => {
  await using sessions = await mustHaveSessions(store, id);
  const below = descendantsOf(id, await lookAtAll(sessions));
  if (below.length > 0 && !forks)
    throw new JournalError(
      "has-forks",
      `session ${id} is needed by ${below.length === 1 ? "its fork" : "its forks"} ${below.join(", ")}: delete ${below.length === 1 ? "it" : "them"} too, or keep it`,
    );
  const ids = [...below.toReversed(), id];
  const held: Held[] = [];
  try {
    for (const each of ids) held.push(await hold(sessions, each));
    for (const each of ids) await remove(sessions, each);
    return ids;
  } finally {
    for (const { lock, folder } of held) {
      await lock.release().catch(() => undefined); // gone with its folder, where that was deleted
      await folder.close();
    }
  }
};

// --- inside ----------------------------------------------------------------------------------------------------------

type Held = { readonly folder: Folder; readonly lock: Lock };

const hold = async (sessions: Folder, id: string): Promise<Held> => {
  const folder = await mustEnter(sessions, id);
  try {
    return { folder, lock: await lockSession(folder, id, thisProcess()) };
  } catch (error) {
    await folder.close();
    throw error;
  }
};

/** A name that is no id: half-deleted sessions are seen by nobody and are gone with the next deletion. */
const REMOVED = ".removed-";

const remove = async (sessions: Folder, id: string): Promise<void> => {
  try {
    await rename(sessions.at(id), sessions.at(`${REMOVED}${id}`));
    for (const name of await readdir(sessions.at("."), { encoding: "utf8" }))
      if (name.startsWith(REMOVED)) await rm(sessions.at(name), { recursive: true, force: true });
  } catch (error) {
    throw journalErrorOf(error, join(sessions.path.toString(), id));
  }
};

const idsIn = async (sessions: Folder): Promise<readonly string[]> =>
  (await readdir(sessions.at("."), { encoding: "utf8" })).filter(isSessionId).sort();

const lookAtAll = async (sessions: Folder): Promise<readonly (ListedSession | UnreadableSession)[]> => {
  const all: (ListedSession | UnreadableSession)[] = [];
  const self = thisProcess();
  for (const id of await idsIn(sessions)) {
    try {
      all.push(await lookAt(sessions, id, self));
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      all.push({ kind: "unreadable", id, reason: error.message });
    }
  }
  return all;
};

const lookAt = async (sessions: Folder, id: string, self: LockHolder): Promise<ListedSession | UnreadableSession> => {
  await using folder = await mustEnter(sessions, id);
  const fd = openJournalFile(folder, "read");
  let bytes: Buffer;
  try {
    bytes = readAll(fd);
  } finally {
    closeSync(fd);
  }
  const found = survey(bytes);
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

const sizeOfOutputs = async (folder: Folder): Promise<number> => {
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
    if (isCode(error, "ENOENT")) return 0;
    throw journalErrorOf(error, join(folder.path.toString(), OUTPUTS_FOLDER));
  }
};

/** All that need this session, each after what it needs itself. */
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
