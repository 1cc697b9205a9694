/** On which machine does a request look, where entries live on single machines?
 *  Invariant: requests of one prefix and key stay together up to a rate; those above it find what was written on
 *  their own machine alone.
 *  Elsewhere: what one machine holds (entries.ts). */

import type { RoutingRules } from "../rules/index.ts";
import { Entries } from "./entries.ts";

const MINUTE = 60_000;

export class Machines {
  readonly #entries: Entries[] = [];
  readonly #arrivals = new Map<string, number[]>();

  /** The machine of a request, by how many like it came in the minute before. */
  route(key: string, now: number, { perMinute }: RoutingRules): number {
    const recent = (this.#arrivals.get(key) ?? []).filter((at) => at > now - MINUTE);
    const machine = Math.floor(recent.length / perMinute);
    this.#arrivals.set(key, [...recent, now]);
    return machine;
  }

  at(machine: number): Entries {
    this.#entries[machine] ??= new Entries();
    return this.#entries[machine];
  }
}
