/** What does an error of the kernel mean to a model that asked for a file?
 *  Invariant: an error of the operating system becomes one line; anything else is a bug and is rethrown.
 *  Elsewhere: refusals of our own (../paths, root.ts). */

import type { BigIntStats } from "node:fs";
import type { Refused } from "../paths/index.ts";
import { SwappedError } from "./folder.ts";

export const refuse = (reason: string): Refused => ({ ok: false, reason });

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  ENOTDIR: "a part of the path is a link or a file, not a folder",
  ELOOP: "a part of the path is a link, and links are not followed",
  EISDIR: "this is a folder, not a file",
  EACCES: "the file system does not permit it",
  EPERM: "the file system does not permit it",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EMFILE: "too many files are open; try again",
  ENFILE: "too many files are open; try again",
  ENAMETOOLONG: "the path is too long",
  EEXIST: "something else was put there meanwhile",
  ENOTEMPTY: "the folder is not empty",
  ENXIO: "this is a device or a socket, not a file",
  EBUSY: "it is in use",
};

export const refusalOf = (error: unknown): Refused => {
  if (error instanceof SwappedError) return refuse(error.message);
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) throw error;
  return refuse(Object.hasOwn(REASONS, code) ? (REASONS[code] ?? code) : `the file system answered ${code}`);
};

export type Kind = "file" | "folder" | "link" | "other";

export const kindOf = (stats: Pick<BigIntStats, "isFile" | "isDirectory" | "isSymbolicLink">): Kind =>
  stats.isFile() ? "file" : stats.isDirectory() ? "folder" : stats.isSymbolicLink() ? "link" : "other";

/** Why this is not an ordinary file; undefined if it is. */
export const fileProblem = (stats: BigIntStats): string | undefined => {
  const kind = kindOf(stats);
  if (kind === "link") return "this is a link, and links are not followed";
  if (kind === "folder") return "this is a folder, not a file";
  return kind === "other" ? "this is a device, a pipe or a socket, not a file" : undefined;
};

/** Why a file with hard links is not written: the write would change it under its other names too. */
export const hardLinkProblem = (stats: BigIntStats): string | undefined =>
  stats.nlink === 1n ? undefined : "this file has further names (hard links), which a write would change as well";
