/** Reads a file that somebody else chose, without ever waiting for it.
 *  Invariant: a pipe has no writer and a device no end, so neither is read; nothing is thrown.
 *  Elsewhere: files of the user, held against swaps (../files). */

import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";

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
    return facts.size <= mostBytes ? readFileSync(descriptor) : "unreadable";
  } catch {
    return "unreadable";
  } finally {
    closeSync(descriptor);
  }
};
