/** Repeatable random choices: the same seed gives the same choices. */

export type SeededRandom = {
  /** An integer from 0 up to, but not including, `limit`. */
  readonly below: (limit: number) => number;
  readonly one: <T>(of: readonly T[]) => T;
  readonly happens: (probability: number) => boolean;
};

export const seededRandom = (seed: number): SeededRandom => {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    below,
    one: <T>(of: readonly T[]): T => {
      if (of.length === 0) throw new RangeError("there is nothing to choose from");
      return of[below(of.length)] as T;
    },
    happens: (probability) => next() < probability,
  };
};
