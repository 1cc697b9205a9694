/** An index of ours made from a checkout's, and put in its place.
 *  Invariant: a copy never makes a file look unchanged that is not; an index is replaced the way git does it, by whoever
 *  holds its lock.
 *  Elsewhere: what is done with a copy (snapshot.ts). */

import { chmod, link, lstat, rename, stat, unlink, utimes, writeFile } from "node:fs/promises";
import { readBounded } from "@prefork/guard/internal";
import { WorktreeError } from "./errors.ts";

const MOST_BYTES = 1 << 30;

/** Git takes a file for unchanged that is older than the index. A copy is younger than its original, so it is given the
 *  age of the original, and a little more: then files that changed in the same moment are read. */
export const copyIndex = async (from: string, to: string): Promise<void> => {
  const facts = await lstat(from).catch(() => undefined);
  if (!facts) return; // nothing was ever added
  // A pipe in its place would keep one of the few threads that open files waiting for ever.
  const content = await readBounded(from, MOST_BYTES);
  if (content === undefined || !facts.isFile())
    throw new WorktreeError("not-ready", `${from} is no plain file, or too large`);
  await writeFile(to, content, { mode: 0o600 });
  const age = Math.max(1, Math.floor(facts.mtimeMs / 1_000));
  await utimes(to, age, age);
};

/** False where git itself is at work on it. The lock comes whole, with a name beside it that tells whose it is. */
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

/** After a crash. A lock of git's own stays. */
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
