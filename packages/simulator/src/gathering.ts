/** How are requests made truly simultaneous, without timing?
 *  Invariant: nobody of a gathering goes on before all its members have arrived, or it is released.
 *  Elsewhere: asking for it (faults.ts). */

import type { Fault } from "./faults.ts";

type Group = { missing: number; readonly all: Promise<void>; readonly open: () => void };

export class Gathering {
  readonly #groups = new Map<Fault, Group>();

  /** Resolves when all members have joined or left. */
  join(fault: Fault): Promise<void> {
    return this.#count(fault).all;
  }

  leave(fault: Fault): void {
    this.#count(fault);
  }

  release(): void {
    for (const group of this.#groups.values()) group.open();
    this.#groups.clear();
  }

  #count(fault: Fault): Group {
    const group = this.#groups.get(fault) ?? this.#start(fault);
    group.missing -= 1;
    if (group.missing === 0) {
      this.#groups.delete(fault);
      group.open();
    }
    return group;
  }

  #start(fault: Fault): Group {
    const { promise: all, resolve: open } = Promise.withResolvers<void>();
    const group = { missing: fault.times ?? 1, all, open };
    this.#groups.set(fault, group);
    return group;
  }
}
