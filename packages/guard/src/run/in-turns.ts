/** Checks many names one after another while other work continues.
 *  Invariant: the event loop gets a turn after every few hundred names; after an abort, no more names are checked.
 *  Elsewhere: what is checked (render-pipe.ts, run-pipe.ts). */

import { setImmediate as turn } from "node:timers/promises";

const MAX_MS = 10;

/** Call it after every step of a long loop: it says whether it is time to yield to other work. */
export class Turns {
  #start = performance.now();

  get isOver(): boolean {
    return performance.now() - this.#start > MAX_MS;
  }

  async next(): Promise<void> {
    await turn();
    this.#start = performance.now();
  }
}

/** Gives each caller an iteration of the event loop of its own, in the order of their calls. Otherwise many callers
 *  that wait for a turn would all run in the same one. */
class TurnQueue {
  #last: Promise<void> = Promise.resolve();

  next(): Promise<void> {
    this.#last = this.#last.then(() => turn());
    return this.#last;
  }
}

/** One per process, because all callers share one event loop. */
const TURNS = new TurnQueue();

/** Call it before work that blocks the event loop: signals, timers and other calls get their turn first. */
export const nextTurn = (): Promise<void> => TURNS.next();

/** The first problem. Returns none after an abort, which the caller reports itself. */
export const firstProblem = async <T>(
  items: readonly T[],
  ask: (item: T) => string | undefined,
  signal?: AbortSignal,
): Promise<string | undefined> => {
  const turns = new Turns();
  for (const item of items) {
    if (turns.isOver) await turns.next();
    if (signal?.aborted) return undefined;
    const problem = ask(item);
    if (problem !== undefined) return problem;
  }
  return undefined;
};

/** The names that pass the check. */
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
