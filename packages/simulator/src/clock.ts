/** What time is it for the cache and the ledger?
 *  Invariant: time is read only through SimClock, and a manual clock never moves backwards by itself. Real time enters
 *  the simulator only here, as a default that can be replaced.
 *  Elsewhere: real delays between events (server.ts), how long an entry lives (cache/). */

export interface SimClock {
  now(): number;
  advance(ms: number): void;
  set(ms: number): void;
}

/** Stands still until a test moves it. It starts at a fixed moment, so that two runs give the same ledger. */
export class ManualClock implements SimClock {
  #now: number;

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  advance(ms: number): void {
    this.#now += ms;
  }

  set(ms: number): void {
    this.#now = ms;
  }
}

/** Runs with a source of time, plus whatever a test has added to it. */
export class RunningClock implements SimClock {
  readonly #source: () => number;
  #offset = 0;

  constructor(source: () => number) {
    this.#source = source;
  }

  now(): number {
    return this.#source() + this.#offset;
  }

  advance(ms: number): void {
    this.#offset += ms;
  }

  set(ms: number): void {
    this.#offset = ms - this.#source();
  }
}

export const realClock = (): SimClock => new RunningClock(Date.now);
