/** How long may a snapshot of the files take?
 *  Invariant: what waits for one waits no longer than its limit, and after an interrupt only for a moment: git may wait
 *  for a file of a stranger's checkout, or read for minutes. A snapshot that is nearly done is not lost by an interrupt.
 *  Elsewhere: who takes one (files.ts), ending git (@prefork/worktrees). */

import { WorktreeError } from "@prefork/worktrees";

export type SnapshotLimit = {
  readonly ms: number;
  /** Of the exchange, or of the session's end. */
  readonly signal: AbortSignal;
};

export class SnapshotTimeoutError extends WorktreeError {
  constructor(ms: number) {
    super("git", `reading the checkout took longer than ${ms / 1_000} s`);
  }
}

/** After an interrupt. */
const GRACE_MS = 1_000;
/** For ending git and tidying up. What does not end then is left behind. */
const END_MS = 2_000;

/** Calls it with a signal that aborts in time. Rejects if it goes on nevertheless. */
export const withinLimit = async <T>(
  { ms, signal }: SnapshotLimit,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const stop = new AbortController();
  const timers: NodeJS.Timeout[] = [];
  const after = (wait: number, act: () => void): void => void timers.push(setTimeout(act, wait));
  const interrupted = (): void =>
    after(GRACE_MS, () => stop.abort(new WorktreeError("git", "it was interrupted before they were read")));
  const leftBehind = Promise.withResolvers<never>();
  stop.signal.addEventListener("abort", () => after(END_MS, () => leftBehind.reject(stop.signal.reason)));
  after(ms, () => stop.abort(new SnapshotTimeoutError(ms)));
  if (signal.aborted) interrupted();
  else signal.addEventListener("abort", interrupted, { once: true });
  try {
    return await Promise.race([work(stop.signal), leftBehind.promise]);
  } finally {
    signal.removeEventListener("abort", interrupted);
    for (const timer of timers) clearTimeout(timer);
  }
};
