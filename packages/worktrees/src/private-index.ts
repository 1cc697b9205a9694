/** Copies a checkout's index, and replaces an index.
 *  Invariant: a copy never makes a changed file look unchanged; an index is replaced as git does it, under its lock.
 *  Elsewhere: what a copy is used for (snapshot.ts). */

import { chmod, link, lstat, rename, stat, unlink, utimes, writeFile } from "node:fs/promises";
import { readBounded } from "@prefork/guard/internal";
import { WorktreeError } from "./errors.ts";

const DEFAULT_BYTES = 1 << 30;

/** Git assumes that a file older than the index is unchanged. A copy would be newer than the original, so it gets the
 *  original's time and a little less: then files that changed in the same moment are read. */
export const copyIndex = async (from: string, to: string, maxBytes = DEFAULT_BYTES): Promise<void> => {
  const facts = await lstat(from).catch(() => undefined);
  if (!facts) return; // nothing was ever added
  // A pipe in its place would block one of the few threads that open files.
  const content = await readBounded(from, maxBytes);
  if (content === undefined || !facts.isFile())
    throw new WorktreeError("not-ready", `${from} is not a regular file, or is larger than ${maxBytes >> 20} MiB`);
  await writeFile(to, content, { mode: 0o600 });
  const age = Math.max(1, Math.floor(facts.mtimeMs / 1_000));
  await utimes(to, age, age);
};

/** False if git itself holds the lock. Our lock is linked from a file of ours, so that a crash leaves it recognisable. */
export const putIndex = async (index: string, content: Buffer): Promise<boolean> => {
  await dropOurLock(index);
  const [lock, ours] = [`${index}.lock`, `${index}${OURS}`];
  const mode = (await stat(index).catch(() => undefined))?.mode ?? 0o644;
  try {
    await unlink(ours).catch(unlessGone);
    await writeFile(ours, content, { flag: "wx" });
    await chmod(ours, mode & 0o777);
    await link(ours, lock);
    await rename(lock, index);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await unlink(ours).catch(unlessGone);
  }
};

/** After a crash. A lock of git itself stays. */
export const dropOurLock = async (index: string): Promise<void> => {
  const [lock, ours] = await Promise.all(
    [`${index}.lock`, `${index}${OURS}`].map((path) => lstat(path).catch(() => undefined)),
  );
  if (!ours) return;
  if (lock && lock.ino === ours.ino && lock.dev === ours.dev) await unlink(`${index}.lock`);
  await unlink(`${index}${OURS}`);
};

const OURS = ".prefork";

const unlessGone = (error: NodeJS.ErrnoException): void => {
  if (error.code !== "ENOENT") throw error;
};
