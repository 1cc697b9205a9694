/** Every way in which work on worktrees can say no, with a sentence for the user.
 *  Invariant: `reason` is a closed union; where one of these is thrown, everything is as it was before, or the sentence
 *  names the command that makes it so.
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

/** "1 file", "2 files". */
export const filesOf = (count: number): string => `${count} changed ${count === 1 ? "file" : "files"}`;

const FULL = /No space left on device|Disk quota exceeded/;

export const isDiskFull = (error: unknown): boolean =>
  error instanceof Error &&
  (("code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT")) || FULL.test(error.message));

/** An error of the system on the way to something, in words. */
export const worktreeErrorOf = (error: unknown, doing: string): WorktreeError => {
  if (error instanceof WorktreeError) return error;
  const said = error instanceof Error ? error.message : String(error);
  return new WorktreeError(isDiskFull(error) ? "disk-full" : "io", `${doing}: ${said}`, { cause: error });
};

/** Errors of the system as one of these; all else is passed on as it is. */
export const inWords = async <T>(work: () => Promise<T>, doing: string): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw error instanceof Error && "syscall" in error ? worktreeErrorOf(error, doing) : error;
  }
};
