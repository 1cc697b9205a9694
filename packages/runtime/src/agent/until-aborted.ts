/** How long is something waited for that may not hear of an abort?
 *  Invariant: after an abort and a moment of grace there is always an outcome; nothing is left listening or ticking once
 *  there is one, and a late failure of what was given up is nobody's.
 *  Elsewhere: what is waited for (dispatch.ts). */

export type GivenUp<T> = {
  readonly signal: AbortSignal;
  /** Between the abort and giving up. */
  readonly graceMs: number;
  /** The outcome then. */
  readonly instead: T;
};

export const untilAborted = <T>(work: Promise<T>, { signal, graceMs, instead }: GivenUp<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    let grace: NodeJS.Timeout | undefined;
    const wait = (): void => {
      grace = setTimeout(() => resolve(instead), graceMs);
    };
    const done = (): void => {
      clearTimeout(grace);
      signal.removeEventListener("abort", wait);
    };
    if (signal.aborted) wait();
    else signal.addEventListener("abort", wait, { once: true });
    work.then(
      (outcome) => {
        done();
        resolve(outcome);
      },
      (error: unknown) => {
        done();
        reject(error);
      },
    );
  });
