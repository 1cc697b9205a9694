/** Asking about many names, one after another, while other work goes on.
 *  Invariant: after every few hundred names the event loop gets a turn; what was ended asks no further.
 *  Elsewhere: what is asked (render-pipe.ts, run-pipe.ts). */

import { setImmediate as turn } from "node:timers/promises";

const AT_ONCE = 200;

/** The first answer that is a problem; none once the signal has ended the work, which its owner then says. */
export const firstProblem = async <T>(
  items: readonly T[],
  ask: (item: T) => string | undefined,
  signal?: AbortSignal,
): Promise<string | undefined> => {
  for (const [at, item] of items.entries()) {
    if (at % AT_ONCE === AT_ONCE - 1) await turn();
    if (signal?.aborted) return undefined;
    const problem = ask(item);
    if (problem !== undefined) return problem;
  }
  return undefined;
};

/** Those that pass. */
export const filterInTurns = async <T>(
  items: readonly T[],
  passes: (item: T) => boolean,
  signal?: AbortSignal,
): Promise<readonly T[]> => {
  const kept: T[] = [];
  const keep = (item: T): undefined => {
    if (passes(item)) kept.push(item);
  };
  await firstProblem(items, keep, signal);
  return kept;
};
