/** What a fork inherits: the parent's prefix and everything that can change how it is rendered, after a main turn.
 *  Invariant: all of it by reference, so taking one costs nothing; only the main line and library callers write the slot,
 *  everybody else reads.
 *  Elsewhere: growing from one (family.ts), the line itself (../loop). */

import type { FrozenPrefix, Head } from "@prefork/wire";
import type { LineageState } from "../loop/index.ts";

/** Named as the literature does: the parameters that a child must share with its parent to read its cache. */
export type CacheSafeParams = LineageState & {
  /** Not in the key, but inherited too. */
  readonly maxTokens: number;
};

/** Equal for two snapshots exactly if one could read all that the other wrote. Markers and temperature are not in it. */
export const cacheKeyHash = ({ prefix }: { readonly prefix: FrozenPrefix }): string => prefix.hash;

export type { Head };

const WRITERS: readonly string[] = ["main", "sdk"];

export class SnapshotSlot {
  #params: CacheSafeParams | undefined;

  /** False where this source may only read: then nothing has changed. */
  save(params: CacheSafeParams, querySource: string): boolean {
    if (!WRITERS.includes(querySource)) return false;
    this.#params = params;
    return true;
  }

  get(): CacheSafeParams | undefined {
    return this.#params;
  }

  clear(): void {
    this.#params = undefined;
  }
}
