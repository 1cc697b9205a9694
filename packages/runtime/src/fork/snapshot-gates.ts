/** Forks that a program asks for one by one from the same bytes are one family: who leads it?
 *  Invariant: from the same bytes and for as long as their entry lives, all pass the same gate; nobody writes again what the
 *  first one is writing.
 *  Elsewhere: the gate (@prefork/wire), families of one turn (family.ts). */

import type { LaunchGate } from "@prefork/wire";
import type { LineageState } from "../agent/index.ts";
import type { TailChoice } from "../ports.ts";

type Kept = { readonly key: string; readonly gate: LaunchGate; readonly at: number };

export class SnapshotGates {
  #last: Kept | undefined;

  of(
    parent: LineageState,
    tail: TailChoice,
    { now, lifetimeMs }: { readonly now: number; readonly lifetimeMs: number },
  ): LaunchGate | undefined {
    const last = this.#last;
    return last?.key === keyOf(parent, tail) && now - last.at < lifetimeMs ? last.gate : undefined;
  }

  keep(
    parent: LineageState,
    tail: TailChoice,
    { gate, now }: { readonly gate: LaunchGate; readonly now: number },
  ): void {
    this.#last = { key: keyOf(parent, tail), gate, at: now };
  }
}

const keyOf = ({ prefix }: LineageState, { inFlight, placeholders }: TailChoice): string =>
  `${prefix.hash} ${inFlight} ${placeholders}`;
