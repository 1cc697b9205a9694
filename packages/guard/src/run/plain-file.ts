/** Reads a file that somebody else chose, without ever waiting for it.
 *  Invariant: a pipe has no writer and a device no end, so neither is read; nor is more than was asked for, whatever size a
 *  file says it has; nothing is thrown.
 *  Elsewhere: files of the user, held against swaps (../files). */

import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

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
    const bytes = readUpTo(descriptor, facts.size, mostBytes + 1);
    return bytes.length > mostBytes ? "unreadable" : bytes;
  } catch {
    return "unreadable";
  } finally {
    closeSync(descriptor);
  }
};

/** Files of the system say that they have no bytes, and some of them have no end. */
const readUpTo = (descriptor: number, expected: number, most: number): Buffer => {
  let bytes = Buffer.alloc(Math.min(expected + 1, most));
  let length = 0;
  for (;;) {
    const count = readSync(descriptor, bytes, length, bytes.length - length, null);
    length += count;
    if (count === 0 || length === most) return bytes.subarray(0, length);
    if (length === bytes.length) bytes = Buffer.concat([bytes], Math.min(Math.max(2 * length, 4_096), most));
  }
};
