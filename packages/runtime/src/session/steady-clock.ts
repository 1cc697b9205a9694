/** A clock for one process that never goes back, whatever happens to the machine's.
 *  Invariant: of two readings the later one is never less, so no duration is negative; while the machine's clock runs
 *  forward, also over a sleep of the machine, this one runs with it.
 *  Elsewhere: who is given it (options.ts); times of different processes are compared with a floor of 0 where they are. */

export type ClockSources = {
  /** Milliseconds since 1970; may be set back. */
  readonly wall: () => number;
  /** Milliseconds that only grow: how long a time that the wall clock lost has taken. */
  readonly ticks: () => number;
};

/** Gives milliseconds since 1970, ahead of the wall clock by as much as that was set back. */
export const steadyNow = ({ wall, ticks }: ClockSources): (() => number) => {
  const last = { wall: wall(), ticks: ticks(), now: Number.NEGATIVE_INFINITY };
  last.now = last.wall;
  return () => {
    const [seen, ticked] = [wall(), ticks()];
    const elapsed = seen >= last.wall ? seen - last.wall : Math.max(0, ticked - last.ticks);
    last.now += elapsed;
    last.wall = seen;
    last.ticks = ticked;
    return Math.round(last.now);
  };
};
