/** How much of repositories may be read at once, while this process is blocked?
 *  Invariant: one budget for everything that is read: bytes, names and time. Beyond it, reading ends with a reason to ask. Time is CPU
 *  time, so a busy machine gives the same answers.
 *  Elsewhere: limits for single files, which tell what is too large to be real (records.ts, index-file.ts). */

export type ReadLimits = {
  readonly bytes?: number; // default: 64,000,000
  /** Looked at in folders, the index and lists. Default: 1,000,000. */
  readonly names?: number;
  readonly milliseconds?: number; // default: 1,000
  /** Milliseconds of the processor so far. Default: of this process. */
  readonly now?: () => number;
};

/** Opening a file takes about as long as reading so many names. */
const OPENING = 20;

/** Asking for the time takes as long as looking at a name. */
const BETWEEN_LOOKS = 500;

const ofThisProcess = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

export class ReadBudget {
  #bytes: number;
  #names: number;
  #milliseconds: number;
  readonly #now: () => number;
  #since: number | undefined;
  #sinceLook = 0;

  constructor({ bytes = 64_000_000, names = 1_000_000, milliseconds = 1_000, now = ofThisProcess }: ReadLimits = {}) {
    this.#bytes = bytes;
    this.#names = names;
    this.#milliseconds = milliseconds;
    this.#now = now;
  }

  /** Only what happens inside takes time off. */
  timed<T>(read: () => T): T {
    this.#since = this.#now();
    try {
      return read();
    } finally {
      this.#look();
      this.#since = undefined;
    }
  }

  #look(): void {
    this.#sinceLook = 0;
    if (this.#since === undefined) return;
    const now = this.#now();
    this.#milliseconds -= now - this.#since;
    this.#since = now;
  }

  /** Throws where the place, or what was read before it, goes beyond the bounds. */
  names(count: number, place: string): void {
    this.#names -= count;
    this.#sinceLook += count;
    if (this.#sinceLook >= BETWEEN_LOOKS) this.#look();
    if (this.#names < 0) throw new Doubt(`the repository has too many names to check; the last were in ${place}`);
    if (this.#milliseconds < 0) throw new Doubt(`reading the repository takes too long; the last read was ${place}`);
  }

  /** One file that is about to be read takes no more than this. */
  get bytesLeft(): number {
    return Math.max(this.#bytes, 0);
  }

  file(bytes: number, path: string): void {
    this.#bytes -= bytes;
    this.names(OPENING, path);
  }
}

/** Why a repository is not read unasked.
 *  Invariant: thrown while it is read, and a value outside (`orDoubt`, `viewProblem`).
 *  Elsewhere: reading (checkout.ts). */

export class Doubt extends Error {}
