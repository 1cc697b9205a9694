/** How much may all reading calls of this process do at the same time?
 *  Invariant: a cost that is bounded for each call is bounded for all of them: whoever finds no free slot waits in line,
 *  and an abort ends the wait. A call in a slot waits for nothing that needs a slot of the same kind.
 *  Elsewhere: processes of parallel commands and memory of their programs (@prefork/guard). */

export class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a slot; disposal frees it. Throws after an abort. */
  async enter(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#untilFreed(signal);
    let isFreed = false;
    return {
      [Symbol.dispose]: () => {
        if (isFreed) return;
        isFreed = true;
        this.#release();
      },
    };
  }

  /** A freed slot goes to the first in line. */
  #release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }

  #untilFreed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        reject(signal.reason);
      };
      this.#waiting.push(take);
      signal.addEventListener("abort", leave, { once: true });
    });
  }
}

/** Calls of Read, Glob and Grep. Each may hold a file of 32 MB several times. */
export const READING_CALLS = new Slots(8);

/** Programs that search, each with its own limit of memory. */
export const SEARCH_PROGRAMS = new Slots(4);

/** Searches without ripgrep; each reads several files at once. */
export const OWN_SEARCHES = new Slots(2);
