/** How many bytes of large files may be read into memory at the same time?
 *  Invariant: readers of large files wait in line until there is room; a reader that is alone always gets it. Small
 *  files never wait.
 *  Elsewhere: how large one file may be (root.ts), how many calls read at the same time (the runtime's tools). */

const SMALL_BYTES = 1_000_000;

export class ByteBudget {
  readonly #max: number;
  #taken = 0;
  readonly #waiting: { readonly bytes: number; readonly admit: () => void }[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /** Waits for room. Disposal gives it back once the caller had a turn to use the bytes. */
  async take(bytes: number): Promise<Disposable> {
    if (bytes <= SMALL_BYTES) return { [Symbol.dispose]: () => {} };
    if (this.#waiting.length > 0 || !this.#fits(bytes))
      await new Promise<void>((admit) => {
        this.#waiting.push({ bytes, admit });
      });
    else this.#taken += bytes;
    return {
      [Symbol.dispose]: () => {
        setImmediate(() => this.#giveBack(bytes));
      },
    };
  }

  #fits(bytes: number): boolean {
    return this.#taken === 0 || this.#taken + bytes <= this.#max;
  }

  #giveBack(bytes: number): void {
    this.#taken -= bytes;
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#taken += next.bytes;
      next.admit();
    }
  }
}
