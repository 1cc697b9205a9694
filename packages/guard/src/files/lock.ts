/** Which process has locked this folder? At most one has.
 *  Invariant: a lock is the link `lock-<n>` with the highest n. It is created in one step with its holder as its text
 *  (nobody follows it); it is never changed, and never removed while it is the highest. A free or dead lock is passed
 *  by creating the next number, which the file system grants to one process only; a process that comes too late finds
 *  a higher number.
 *  Elsewhere: the folder it is in, which is ours alone (private-folder.ts), what is done under a lock (journals,
 *  worktrees). */

import { readFileSync, readlinkSync } from "node:fs";
import { readdir, readlink, symlink, unlink } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Folder } from "./folder.ts";

/** `locked`: another process holds it. `insecure`: something else has the lock's name. */
export class LockError extends Error {
  override readonly name = "LockError";
  readonly reason: "locked" | "insecure";

  constructor(reason: "locked" | "insecure", message: string) {
    super(message);
    this.reason = reason;
  }
}

const isCode = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code;

/** A process, distinguishable from a later one with the same pid. What a system does not report is null. */
export type LockHolder = {
  readonly pid: number;
  /** Start time, in ticks since boot. */
  readonly started: string | null;
  readonly boot: string | null;
  /** Pids mean nothing in another namespace, and little on another machine. */
  readonly namespace: string | null;
  readonly host: string;
};

const readOrNull = (path: string): string | null => {
  try {
    return readFileSync(path, "latin1").trim();
  } catch {
    return null;
  }
};

const namespaceOf = (): string | null => {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return null;
  }
};

/** State and start time; the name before them may contain spaces and parentheses. */
const statOf = (pid: number): { readonly state: string; readonly started: string } | undefined => {
  const text = readOrNull(`/proc/${pid}/stat`);
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, started] = [fields?.[0], fields?.[19]];
  return state !== undefined && started !== undefined ? { state, started } : undefined;
};

export const thisProcess = (): LockHolder => ({
  pid: process.pid,
  started: statOf(process.pid)?.started ?? null,
  boot: readOrNull("/proc/sys/kernel/random/boot_id"),
  namespace: namespaceOf(),
  host: hostname(),
});

/** `elsewhere`: we cannot see from here whether it still runs. */
type Liveness = "alive" | "dead" | "elsewhere";

export const livenessOf = (holder: LockHolder, self: LockHolder): Liveness => {
  if (holder.boot !== self.boot) return holder.host === self.host ? "dead" : "elsewhere";
  if (holder.boot === null && holder.host !== self.host) return "elsewhere";
  if (holder.namespace !== self.namespace) return "elsewhere";
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if (isCode(error, "ESRCH")) return "dead"; // any other error means that the process exists
  }
  const stat = holder.started === null ? undefined : statOf(holder.pid);
  if (stat === undefined) return "alive";
  return stat.started === holder.started && stat.state !== "Z" && stat.state !== "X" ? "alive" : "dead";
};

// --- the links -------------------------------------------------------------------------------------------------------

const FREE = "free";

const linkName = (turn: number): string => `lock-${turn}`;

const parseHolder = (text: string): LockHolder | undefined => {
  const [pid, started, boot, namespace, host] = text.split(" ").map(decodeURIComponent);
  if (!pid || host === undefined || !/^\d+$/.test(pid)) return undefined;
  return {
    pid: Number(pid),
    started: started || null,
    boot: boot || null,
    namespace: namespace || null,
    host,
  };
};

const encodeHolder = ({ pid, started, boot, namespace, host }: LockHolder): string =>
  [String(pid), started ?? "", boot ?? "", namespace ?? "", host].map(encodeURIComponent).join(" ");

const turnsIn = async (folder: Folder): Promise<readonly number[]> =>
  (await readdir(folder.at("."), { encoding: "utf8" }))
    .flatMap((name) => (/^lock-[1-9]\d{0,14}$/.test(name) ? [Number(name.slice(5))] : []))
    .sort((a, b) => a - b);

/** The holder of a lock; "free" if it was released or cannot be parsed, undefined if the link is gone. */
const holderAt = async (folder: Folder, turn: number): Promise<LockHolder | typeof FREE | undefined> => {
  try {
    return parseHolder(await readlink(folder.at(linkName(turn)))) ?? FREE;
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    if (isCode(error, "EINVAL"))
      throw new LockError("insecure", `${folder.path}/${linkName(turn)} is not a lock; remove it`);
    throw error;
  }
};

/** The live holder of the lock, if any. */
export const lockHolder = async (folder: Folder, self: LockHolder): Promise<LockHolder | undefined> => {
  const last = (await turnsIn(folder)).at(-1);
  const holder = last === undefined ? FREE : await holderAt(folder, last);
  return holder === undefined || holder === FREE || livenessOf(holder, self) === "dead" ? undefined : holder;
};

export type Lock = { readonly holder: LockHolder; readonly release: () => Promise<void> };

/** Each failed try means that another process made progress, so a few suffice. This many mean that something is wrong. */
const MAX_TRIES = 1_000;

/** `what` names the locked thing in messages: "session 4711". */
export const acquireLock = async (folder: Folder, what: string, self: LockHolder): Promise<Lock> => {
  for (let tried = 0; tried < MAX_TRIES; tried += 1) {
    const turn = await tryTurn(folder, what, self);
    if (turn !== undefined) return { holder: self, release: () => release(folder, turn) };
  }
  throw new LockError("locked", `${what}: other processes keep taking its lock; try again`);
};

/** For a folder that was just created: nobody else has been there, so there is nothing to look for. */
export const firstLock = async (folder: Folder, what: string, self: LockHolder): Promise<Lock> => {
  if (await createLink(folder, 1, encodeHolder(self))) return { holder: self, release: () => release(folder, 1) };
  throw new LockError("locked", `${what} was locked by another process while it was created`);
};

const tryTurn = async (folder: Folder, what: string, self: LockHolder): Promise<number | undefined> => {
  const last = (await turnsIn(folder)).at(-1);
  if (last !== undefined) {
    const holder = await holderAt(folder, last);
    if (holder === undefined) return undefined;
    if (holder !== FREE) refuseWhileAlive({ holder, self, what, path: join(folder.path.toString(), linkName(last)) });
  }
  const turn = (last ?? 0) + 1;
  if (!(await createLink(folder, turn, encodeHolder(self)))) return undefined;
  const turns = await turnsIn(folder);
  const lower = turns.filter((other) => other < turn);
  if (turns.some((other) => other > turn)) {
    await removeLinks(folder, [turn]);
    return undefined;
  }
  await removeLinks(folder, lower);
  return turn;
};

const createLink = (folder: Folder, turn: number, text: string): Promise<boolean> =>
  symlink(text, folder.at(linkName(turn))).then(
    () => true,
    (error: unknown) => {
      if (isCode(error, "EEXIST")) return false;
      throw error;
    },
  );

const removeLinks = async (folder: Folder, turns: readonly number[]): Promise<void> => {
  for (const turn of turns)
    await unlink(folder.at(linkName(turn))).catch((error: unknown) => {
      if (!isCode(error, "ENOENT")) throw error;
    });
};

/** Creates the next number first: without any link, the numbers would start over, and a process that came too late would not
 *  notice. */
const release = async (folder: Folder, turn: number): Promise<void> => {
  if (await createLink(folder, turn + 1, FREE)) await removeLinks(folder, [turn]);
};

type LockAttempt = {
  readonly holder: LockHolder;
  readonly self: LockHolder;
  readonly what: string;
  readonly path: string;
};

const refuseWhileAlive = ({ holder, self, what, path }: LockAttempt): void => {
  const liveness = livenessOf(holder, self);
  if (liveness === "dead") return;
  if (liveness === "elsewhere")
    throw new LockError(
      "locked",
      `${what} is in use by process ${holder.pid} on ${holder.host}, which cannot be seen from here; if it no longer runs, remove ${path}`,
    );
  const who = holder.pid === self.pid ? `this process (${holder.pid})` : `process ${holder.pid}`;
  throw new LockError("locked", `${what} is in use by ${who}; end it there, or start another session`);
};
