/** In which ways can a journal fail? Each has a sentence for the user.
 *  Invariant: `reason` is a closed union. Whatever was in a journal before a failure is still in it afterwards.
 *  Elsewhere: damage that does not stop reading is a problem, not an error (read.ts, replay.ts). */

import { LockError } from "@prefork/guard/internal";

export type JournalFault =
  | "disk-full"
  | "locked"
  | "newer-version"
  | "not-found"
  | "ambiguous"
  | "exists"
  | "has-forks"
  | "insecure"
  | "damaged"
  | "closed"
  | "io";

export class JournalError extends Error {
  override readonly name = "JournalError";
  readonly reason: JournalFault;

  constructor(reason: JournalFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

const FAULTS: Readonly<Record<string, readonly [JournalFault, string]>> = {
  ENOSPC: ["disk-full", "the disk is full"],
  EDQUOT: ["disk-full", "the disk quota is used up"],
  EFBIG: ["disk-full", "the file has reached its size limit"],
  ENOENT: ["not-found", "there is no such file or folder"],
  ELOOP: ["insecure", "it is a symbolic link"],
  ENOTDIR: ["insecure", "a link or a file is in place of a folder"],
  EROFS: ["io", "the file system is read-only"],
  EACCES: ["io", "the file system does not permit it"],
  EPERM: ["io", "the file system does not permit it"],
  EIO: ["io", "the disk reports an error"],
};

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;

/** Converts an error of the operating system. Anything else is a bug and is thrown again. */
export const toJournalError = (error: unknown, place: string): JournalError => {
  if (error instanceof JournalError) return error;
  if (error instanceof LockError) return new JournalError(error.reason, error.message, { cause: error });
  const code = codeOf(error);
  if (code === undefined) throw error;
  const [reason, sentence] = FAULTS[code] ?? ["io", `the file system reported ${code}`];
  return new JournalError(reason, `${place}: ${sentence}`, { cause: error });
};

export const hasCode = (error: unknown, ...codes: readonly string[]): boolean => codes.includes(codeOf(error) ?? "");
