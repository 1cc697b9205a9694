/** Reads files and folders that somebody else may have chosen: within a bound, or not at all.
 *  Invariant: never waits for a pipe or a device, and never reads more than the bound, whatever size a file claims to have.
 *  Elsewhere: files inside a pinned folder, protected against swaps (root.ts). */

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

/** Undefined if it is not a regular file, has more than `most` bytes, or cannot be read. Links are followed. */
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

// --- without await -----------------------------------------------------------------------------------------------------

/** `missing`: there is no regular file. `unreadable`: there is one, but it is too large or we may not read it. */
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

/** Files in /proc report a size of zero, and some of them never end. */
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

// --- folders -----------------------------------------------------------------------------------------------------------

const NAMES_PER_READ = 128;

/** The size that file systems report for a folder grows with its names. Reading names in chunks takes twice as long. */
const LARGE_BYTES = 65_536;

/** Returns at most `most + 1` entries, so the caller can tell that there are more. Throws if the folder cannot be listed. */
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
