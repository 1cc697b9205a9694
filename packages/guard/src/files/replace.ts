/** How does a file get new content? Completely or not at all, in the folder we hold and nowhere else.
 *  Invariant: no existing file is opened for writing. A new file (a draft) is filled, synced, then renamed over the name, and a
 *  rename replaces what has that name without following it. Before a draft is created, its path is noted in a folder of ours
 *  under the identity of the process; it is removed only if that process is gone. Nothing else is ever removed.
 *  Elsewhere: holding the folder (folder.ts), who may write what (root.ts). */

import { createHash, randomBytes } from "node:crypto";
import { type BigIntStats, constants, readFileSync, readlinkSync } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, readlink, rename, symlink, unlink } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Folder, isSame, SwappedError } from "./folder.ts";

export type Replacement = {
  readonly folder: Folder;
  readonly name: string;
  readonly content: string | Uint8Array;
  /** The file when it was checked; undefined: there was none. */
  readonly before: BigIntStats | undefined;
  /** Permission bits of a new file; undefined: from the umask. An existing file keeps its own. */
  readonly mode: number | undefined;
  /** Where drafts are noted, so that the draft of a process that dies is removed later. */
  readonly drafts?: string | undefined;
};

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

const hasChanged = (before: BigIntStats | undefined, now: BigIntStats | undefined): boolean =>
  before === undefined || now === undefined ? before !== now : versionOf(before) !== versionOf(now);

/** Equal versions mean equal bytes: the kernel updates the change time. */
export const versionOf = (stats: BigIntStats): string =>
  [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(":");

/** Keeps permission bits and owner, except for setuid and setgid, because the content is no longer the owner's. */
const keepAttributes = async (handle: FileHandle, { before, mode }: Replacement): Promise<void> => {
  if (before === undefined) {
    if (mode !== undefined) await handle.chmod(mode); // the umask applied at creation; the caller's mode overrides it
    return;
  }
  const made = await handle.stat({ bigint: true });
  if (made.uid !== before.uid || made.gid !== before.gid)
    await handle.chown(Number(before.uid), Number(before.gid)).catch(() => undefined); // only the superuser may change the owner
  await handle.chmod(Number(before.mode) & 0o777);
};

/** Runs before the first byte is written: without descriptors, the file may have been created in another folder. */
const verifyCreatedIn = async (folder: Folder, name: string, handle: FileHandle): Promise<void> => {
  await folder.verify();
  const [seen, held] = await Promise.all([folder.look(name), handle.stat({ bigint: true })]);
  if (seen === undefined || !isSame(seen, held)) throw new SwappedError("a folder of the path was replaced meanwhile");
};

/** Returns the stats of the new file. */
export const replaceFile = async (wanted: Replacement): Promise<BigIntStats> => {
  const { folder } = wanted;
  const draft = newDraftName();
  await folder.verify();
  const forget = await noteDraft(wanted.drafts, Buffer.concat([folder.path, Buffer.from(`/${draft}`)]));
  try {
    return await fillAndRename(wanted, draft);
  } finally {
    await forget();
  }
};

const fillAndRename = async (wanted: Replacement, draft: string): Promise<BigIntStats> => {
  const { folder, name, content, before } = wanted;
  const handle = await open(folder.at(draft), CREATE, wanted.mode ?? (before === undefined ? 0o666 : 0o600));
  try {
    await verifyCreatedIn(folder, draft, handle);
    await handle.writeFile(content);
    await keepAttributes(handle, wanted);
    await handle.sync();
    const made = await handle.stat({ bigint: true });
    await folder.verify();
    if (hasChanged(before, await folder.look(name)))
      throw new SwappedError("the file was changed meanwhile; read it again");
    await rename(folder.at(draft), folder.at(name));
    await folder.handle.sync().catch(() => undefined); // some file systems cannot sync a folder; the file itself is synced
    const now = await folder.look(name);
    if (now === undefined || !isSame(made, now)) throw new SwappedError("the file was replaced while it was written");
    return now;
  } catch (error) {
    await unlink(folder.at(draft)).catch(() => undefined);
    throw error;
  } finally {
    await handle.close();
  }
};

// --- drafts of processes that died -------------------------------------------------------------------------------------

export const newDraftName = (): string => `.prefork-${randomBytes(9).toString("base64url")}.tmp`;

const DRAFT = /(?:^|\/)\.prefork-[\w-]{12}\.tmp$/;
/** Notes of processes on other hosts can be judged only by age. */
const ABANDONED_MS = 24 * 60 * 60_000;

type Holder = {
  readonly pid: number;
  /** Start time in ticks since boot; 0 if unknown. */
  readonly started: string;
  readonly boot: string;
  /** Host and process namespace: pids mean nothing elsewhere. */
  readonly host: string;
};

const readOrZero = (read: () => string): string => {
  try {
    return read();
  } catch {
    return "0"; // not on this system
  }
};

const startOf = (pid: number): string | undefined => {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
};

const thisHolder = (): Holder => {
  const namespace = readOrZero(() => readlinkSync("/proc/self/ns/pid"));
  return {
    pid: process.pid,
    started: startOf(process.pid) ?? "0",
    boot: readOrZero(() => readFileSync("/proc/sys/kernel/random/boot_id", "latin1").slice(0, 8)),
    host: createHash("sha256").update(`${hostname()} ${namespace}`).digest("hex").slice(0, 12),
  };
};

const encodeHolder = ({ pid, started, boot, host }: Holder): string => [pid, started, boot, host].join(".");

const parseHolder = (name: string): Holder | undefined => {
  const [, pid, started, boot, host] = /^(\d+)\.(\d+)\.(\w+)\.([0-9a-f]{12})-[0-9a-f]{8}$/.exec(name) ?? [];
  if (pid === undefined || started === undefined || boot === undefined || host === undefined) return undefined;
  return { pid: Number(pid), started, boot, host };
};

const isGone = ({ pid, started, boot, host }: Holder, { self, ageMs }: { self: Holder; ageMs: number }): boolean => {
  if (host !== self.host) return ageMs > ABANDONED_MS;
  if (boot !== self.boot) return true;
  if (started !== "0") return startOf(pid) !== started;
  try {
    return !process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
};

/** Returns a function that removes the note. If the note cannot be created, writing continues without it. */
export const noteDraft = async (ledger: string | undefined, draft: Buffer): Promise<() => Promise<void>> => {
  if (ledger === undefined) return async () => {};
  const note = join(ledger, `${encodeHolder(thisHolder())}-${randomBytes(4).toString("hex")}`);
  const make = (): Promise<void> => symlink(draft, note);
  try {
    await make().catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
      await mkdir(ledger, { mode: 0o700 });
      await make();
    });
  } catch {
    return async () => {};
  }
  return () => unlink(note).catch(() => undefined);
};

/** Removes the drafts that dead processes left behind. */
export const removeAbandonedDrafts = async (ledger: string): Promise<void> => {
  const notes = await readdir(ledger).catch(() => []);
  if (notes.length === 0) return;
  const self = thisHolder();
  for (const name of notes) {
    const holder = parseHolder(name);
    const note = join(ledger, name);
    const stats = await lstat(note).catch(() => undefined);
    if (!holder || !stats?.isSymbolicLink() || !isGone(holder, { self, ageMs: Date.now() - stats.mtimeMs })) continue;
    const draft = await readlink(note, { encoding: "buffer" }).catch(() => undefined);
    if (draft !== undefined && DRAFT.test(draft.toString("latin1"))) await unlink(draft).catch(() => undefined);
    await unlink(note).catch(() => undefined);
  }
};
