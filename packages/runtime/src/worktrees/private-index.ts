/** An index of ours made from a checkout's, and put in its place.
 *  Invariant: a copy never makes a file look unchanged that is not; an index is replaced the way git does it, by whoever
 *  holds its lock.
 *  Elsewhere: what is done with a copy (snapshot.ts). */

import { chmod, copyFile, readFile, rename, stat, unlink, utimes, writeFile } from "node:fs/promises";

/** Git takes a file for unchanged that is older than the index. A copy is younger than its original, so it is given the
 *  age of the original, and a little more: then files that changed in the same moment are read. */
export const copyIndex = async (from: string, to: string): Promise<void> => {
  const facts = await stat(from).catch(() => undefined);
  if (!facts) return; // nothing was ever added
  await copyFile(from, to);
  const age = Math.max(1, Math.floor(facts.mtimeMs / 1_000));
  await utimes(to, age, age);
};

/** False where git itself is at work on it. */
export const putIndex = async (index: string, content: Buffer): Promise<boolean> => {
  const lock = `${index}.lock`;
  const mode = (await stat(index).catch(() => undefined))?.mode;
  try {
    await writeFile(lock, content, { flag: "wx" });
    if (mode !== undefined) await chmod(lock, mode & 0o777);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    await unlink(lock).catch(() => undefined);
    throw error;
  }
  await rename(lock, index);
  return true;
};

/** A lock that a crash left behind, known by what it was to bring. */
export const dropIndexLock = async (index: string, content: Buffer): Promise<void> => {
  const lock = `${index}.lock`;
  const left = await readFile(lock).catch(() => undefined);
  if (left && content.subarray(0, left.length).equals(left)) await unlink(lock);
};
