/** Half-written files of processes that died: how are they found again?
 *  Invariant: before a draft is made its path is noted, in a folder of ours, under the name of the process that makes it;
 *  a draft is taken away only where that process is gone. Nothing that was not noted is ever touched.
 *  Elsewhere: writing them (replace.ts). */

import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { lstat, mkdir, readdir, readlink, symlink, unlink } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";

export const newDraftName = (): string => `.prefork-${randomBytes(9).toString("base64url")}.tmp`;

const DRAFT = /(?:^|\/)\.prefork-[\w-]{12}\.tmp$/;
/** What a process elsewhere noted can be judged by its age alone. */
const ABANDONED_MS = 24 * 60 * 60_000;

type Holder = {
  readonly pid: number;
  /** In ticks since the start of the system; 0 where that is not shown. */
  readonly started: string;
  readonly boot: string;
  /** Machine and process namespace: numbers mean nothing elsewhere. */
  readonly place: string;
};

const shown = (read: () => string): string => {
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
  const namespace = shown(() => readlinkSync("/proc/self/ns/pid"));
  return {
    pid: process.pid,
    started: startOf(process.pid) ?? "0",
    boot: shown(() => readFileSync("/proc/sys/kernel/random/boot_id", "latin1").slice(0, 8)),
    place: createHash("sha256").update(`${hostname()} ${namespace}`).digest("hex").slice(0, 12),
  };
};

const spelled = ({ pid, started, boot, place }: Holder): string => [pid, started, boot, place].join(".");

const holderIn = (name: string): Holder | undefined => {
  const [, pid, started, boot, place] = /^(\d+)\.(\d+)\.(\w+)\.([0-9a-f]{12})-[0-9a-f]{8}$/.exec(name) ?? [];
  if (pid === undefined || started === undefined || boot === undefined || place === undefined) return undefined;
  return { pid: Number(pid), started, boot, place };
};

const isGone = ({ pid, started, boot, place }: Holder, { self, ageMs }: { self: Holder; ageMs: number }): boolean => {
  if (place !== self.place) return ageMs > ABANDONED_MS;
  if (boot !== self.boot) return true;
  if (started !== "0") return startOf(pid) !== started;
  try {
    return !process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
};

/** Gives what takes the note away again. A note that cannot be made keeps nobody from writing. */
export const noteDraft = async (ledger: string | undefined, draft: Buffer): Promise<() => Promise<void>> => {
  if (ledger === undefined) return async () => {};
  const note = join(ledger, `${spelled(thisHolder())}-${randomBytes(4).toString("hex")}`);
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

/** Takes away what dead processes left half-written. */
export const removeAbandonedDrafts = async (ledger: string): Promise<void> => {
  const notes = await readdir(ledger).catch(() => []);
  if (notes.length === 0) return;
  const self = thisHolder();
  for (const name of notes) {
    const holder = holderIn(name);
    const note = join(ledger, name);
    const stats = await lstat(note).catch(() => undefined);
    if (!holder || !stats?.isSymbolicLink() || !isGone(holder, { self, ageMs: Date.now() - stats.mtimeMs })) continue;
    const draft = await readlink(note, { encoding: "buffer" }).catch(() => undefined);
    if (draft !== undefined && DRAFT.test(draft.toString("latin1"))) await unlink(draft).catch(() => undefined);
    await unlink(note).catch(() => undefined);
  }
};
