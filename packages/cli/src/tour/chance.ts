/** What a seed decides: the same seed gives the same draws, on every machine.
 *  Invariant: no other source of chance; whole numbers of 32 bits only, so that no rounding differs anywhere.
 *  Elsewhere: what is drawn (sample.ts). */

export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 up to, and not with, `count`. */
  below(count: number): number {
    // Weyl steps through all 32 bits, then mixed by multiply and shift: neighbouring seeds give unlike draws.
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return Math.floor((((mixed ^ (mixed >>> 15)) >>> 0) / 0x1_0000_0000) * count);
  }

  one<T>(list: readonly [T, ...(readonly T[])]): T {
    return list[this.below(list.length)] ?? list[0];
  }

  /** So many of them, in the order of the list. */
  some<T>(list: readonly T[], count: number): readonly T[] {
    const left = list.map((_, index) => index);
    const drawn = Array.from({ length: Math.min(count, list.length) }, () => left.splice(this.below(left.length), 1));
    return drawn
      .flat()
      .toSorted((a, b) => a - b)
      .flatMap((index) => list.slice(index, index + 1));
  }
}
