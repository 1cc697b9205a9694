/** What does a request look for in the cache, in which order, and what would it leave there?
 *  Invariant: a plan is made only from the prompt and the rules; it does not know what is in the cache.
 *  Elsewhere: making one (plan-markers.ts, plan-endings.ts, plan-automatic.ts), executing it (entries.ts). */

import type { Ttl } from "@prefork/wire";
import type { PrefixEnd } from "../prompt/index.ts";

export type MissCause =
  | "expired"
  | "raced"
  | "look-back exceeded"
  | "no marker there"
  | "below minimum"
  | "diverged"
  | "overflowed"
  | "in another slot";

export type Miss = { readonly cause: MissCause; readonly words: string };

/** What the client asks for besides the markers on its blocks. */
export type CachingSettings = {
  /** Markers that the client wrote, including several that take effect at the same block. */
  readonly markers: number;
  /** One more on the last block that can carry it. */
  readonly last?: Ttl;
  /** Whether the last message end is written automatically, for providers that do so. */
  readonly mode?: "implicit" | "explicit";
  /** The lifetime of automatic entries. */
  readonly ttl?: Ttl;
  /** A lifetime by name. */
  readonly retention?: string;
  /** Neither looked up nor cached. */
  readonly off?: true;
  /** A key that separates entries: they are found only under the same key. */
  readonly cacheScope?: string;
  readonly slot?: number;
  /** Tokens at the start of the prompt that are stored by name, and so are certainly read. */
  readonly storedTokens?: number;
};

/** A position to try, as an index into the plan's places; a read there extends the entry by up to this time. */
export type PlannedLookup = { readonly at: number; readonly lifetimeMs: number };

export type PlannedWrite = {
  readonly at: number;
  readonly end: number;
  readonly lifetimeMs: number;
  /** Billed as a write of this lifetime; without one it is billed as uncached input. */
  readonly ttl?: Ttl;
};

export type CachePlan = {
  /** Everywhere an entry could end, in prompt order. */
  readonly places: readonly PrefixEnd[];
  readonly looks: Iterable<PlannedLookup>;
  /** What is left in the cache, unless it was read. */
  readonly writes: readonly PlannedWrite[];
  /** No read may be longer than this. */
  readonly reach: number;
  /** Why nothing of a short prompt is cached. */
  readonly below?: Miss;
  /** Why a live and readable entry at this position was not looked for. */
  readonly unseen: (at: number) => Miss;
};

export type CachePlanResult =
  | { readonly ok: true; readonly plan: CachePlan }
  | { readonly ok: false; readonly message: string };
