/** How is a long loop kept from blocking everything else?
 *  Invariant: the event loop gets a turn every few milliseconds, and an abort takes effect there.
 *  Elsewhere: the loops (glob.ts, grep.ts, search-text.ts, edit.ts). */

import { setImmediate } from "node:timers/promises";

const MAX_MS = 10;

/** Ask after every step whether it is time to yield. */
export class Turns {
  readonly #signal: AbortSignal;
  #start = performance.now();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  get isOver(): boolean {
    return performance.now() - this.#start > MAX_MS;
  }

  async yield(): Promise<void> {
    await setImmediate();
    this.#signal.throwIfAborted();
    this.#start = performance.now();
  }
}

export const filterInTurns = async <T>(
  items: readonly T[],
  isWanted: (item: T) => boolean,
  signal: AbortSignal,
): Promise<readonly T[]> => {
  const wanted: T[] = [];
  const turns = new Turns(signal);
  for (const item of items) {
    if (isWanted(item)) wanted.push(item);
    if (turns.isOver) await turns.yield();
  }
  return wanted;
};
