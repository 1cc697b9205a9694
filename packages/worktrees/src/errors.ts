/** The errors of this package, each with a message for the user.
 *  Invariant: `reason` is a closed union; when one of these is thrown, nothing has changed, or the message names the command
 *  that restores it.
 *  Elsewhere: conflicts are a result, not an error (merge-plan.ts). */

export type WorktreeFault =
  | "no-repository"
  | "not-ready"
  | "too-large"
  | "unknown-task"
  | "changed-meanwhile"
  | "unmerged"
  | "busy"
  | "disk-full"
  | "git"
  | "io";

export class WorktreeError extends Error {
  override readonly name = "WorktreeError";
  readonly reason: WorktreeFault;

  constructor(reason: WorktreeFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** "1 changed file", "2 changed files". */
export const changedFilesText = (count: number): string => `${count} changed ${count === 1 ? "file" : "files"}`;

const FULL = /No space left on device|Disk quota exceeded/;

export const isDiskFull = (error: unknown): boolean =>
  error instanceof Error &&
  (("code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT")) || FULL.test(error.message));

/** A WorktreeError for any error; `doing` says what was attempted. */
export const toWorktreeError = (error: unknown, doing: string): WorktreeError => {
  if (error instanceof WorktreeError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new WorktreeError(isDiskFull(error) ? "disk-full" : "io", `${doing}: ${message}`, { cause: error });
};

/** Turns system errors into a WorktreeError; other errors pass through. */
export const withWorktreeErrors = async <T>(work: () => Promise<T>, doing: string): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw error instanceof Error && "syscall" in error ? toWorktreeError(error, doing) : error;
  }
};
