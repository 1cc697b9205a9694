/** Which of very many items are wanted, without blocking everything else?
 *  Invariant: the event loop gets a turn every few milliseconds, an abort takes effect there, and after a while it is
 *  enough.
 *  Elsewhere: what is asked about each item (glob.ts, search-text.ts). */

import { Turns } from "@prefork/guard/internal";

const MAX_MS = 30_000;

export type Filtered<T> = {
  readonly items: readonly T[];
  /** It took too long, so not all items were looked at. */
  readonly isCut: boolean;
};

export const filterInTurns = async <T>(
  items: readonly T[],
  isWanted: (item: T) => boolean,
  signal: AbortSignal,
): Promise<Filtered<T>> => {
  const wanted: T[] = [];
  const turns = new Turns();
  const start = performance.now();
  for (const item of items) {
    if (isWanted(item)) wanted.push(item);
    if (!turns.isOver) continue;
    await turns.next();
    signal.throwIfAborted();
    if (performance.now() - start > MAX_MS) return { items: wanted, isCut: true };
  }
  return { items: wanted, isCut: false };
};
