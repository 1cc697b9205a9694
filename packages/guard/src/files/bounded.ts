/** Reads a file that somebody else may have put there: whole and within a bound, or not at all.
 *  Invariant: never waits for a pipe, and never reads on where a file of the system says that it has no bytes.
 *  Elsewhere: files inside a held folder (root.ts). */

import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const AT_ONCE = 256 * 1024;

export const readUpTo = async (handle: FileHandle, limit: number): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let total = 0;
  while (total < limit) {
    const chunk = Buffer.allocUnsafe(Math.min(limit - total, AT_ONCE));
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, null);
    if (bytesRead === 0) break;
    chunks.push(chunk.subarray(0, bytesRead));
    total += bytesRead;
  }
  return Buffer.concat(chunks);
};

/** Undefined where it is not a regular file, has more than `most` bytes, or cannot be read. Links are followed. */
export const readBounded = async (path: string, most: number): Promise<Buffer | undefined> => {
  try {
    await using handle = await open(path, READ);
    const facts = await handle.stat();
    if (!facts.isFile() || facts.size > most) return undefined;
    const bytes = await readUpTo(handle, most + 1);
    return bytes.length > most ? undefined : bytes;
  } catch {
    return undefined;
  }
};
