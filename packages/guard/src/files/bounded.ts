/** Reads a file that somebody else may have put there: whole and within a bound, or not at all.
 *  Invariant: never waits for a pipe, and never reads on where a file of the system says that it has no bytes.
 *  Elsewhere: files inside a held folder (root.ts). */

import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  opendirSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const CHUNK_BYTES = 256 * 1024;

export const readUpTo = async (handle: FileHandle, limit: number): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let total = 0;
  while (total < limit) {
    const chunk = Buffer.allocUnsafe(Math.min(limit - total, CHUNK_BYTES));
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

/** Reads a file that somebody else chose, without ever waiting for it.
 *  Invariant: a pipe has no writer and a device no end, so neither is read; nor is more than was asked for, whatever size a
 *  file says it has; nothing is thrown.
 *  Elsewhere: files of the user, held against swaps (../files). */

/** `missing`: no plain file is there. `unreadable`: one is, but it is too large or not ours to read. */
export type PlainFile = Buffer | "missing" | "unreadable";

export const readPlainFile = (path: string | Buffer, mostBytes: number): PlainFile => {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? "missing" : "unreadable";
  }
  try {
    const facts = fstatSync(descriptor);
    if (!facts.isFile()) return "missing";
    if (facts.size > mostBytes) return "unreadable";
    const bytes = readUpToSync(descriptor, facts.size, mostBytes + 1);
    return bytes.length > mostBytes ? "unreadable" : bytes;
  } catch {
    return "unreadable";
  } finally {
    closeSync(descriptor);
  }
};

/** Files of the system say that they have no bytes, and some of them have no end. */
const readUpToSync = (descriptor: number, expected: number, most: number): Buffer => {
  let bytes = Buffer.alloc(Math.min(expected + 1, most));
  let length = 0;
  for (;;) {
    const count = readSync(descriptor, bytes, length, bytes.length - length, null);
    length += count;
    if (count === 0 || length === most) return bytes.subarray(0, length);
    if (length === bytes.length) bytes = Buffer.concat([bytes], Math.min(Math.max(2 * length, 4_096), most));
  }
};

/** The names in a folder, up to a bound.
 *  Invariant: a folder of a million names takes no longer than one that fills the bound.
 *  Elsewhere: what is done with them (secret-walk.ts, ../git/links.ts, waiting-files.ts). */

const NAMES_PER_READ = 128;

/** What file systems give as the size of a folder grows with its names. Reading one at a time takes twice as long. */
const LARGE_BYTES = 65_536;

/** One more than `most` where there are more. Throws where the folder cannot be listed. */
export const listFolder = (path: string | Buffer, most: number, encoding: BufferEncoding = "utf8"): Dirent[] => {
  if (statSync(path).size < LARGE_BYTES) return readdirSync(path, { withFileTypes: true, encoding }).slice(0, most + 1);
  const folder = opendirSync(path as string, { bufferSize: NAMES_PER_READ, encoding });
  const found: Dirent[] = [];
  try {
    while (found.length <= most) {
      const entry = folder.readSync();
      if (entry === null) break;
      found.push(entry);
    }
  } finally {
    folder.closeSync();
  }
  return found;
};
