/** What does a request look for in the cache, in which order, and what would it leave there?
 *  Invariant: a plan is made from the prompt and the rules alone; it does not know what the cache holds.
 *  Elsewhere: making one (plan-markers.ts, plan-endings.ts, plan-automatic.ts), carrying it out (entries.ts). */

import type { Ttl } from "@prefork/wire";
import type { Place } from "../prompt/index.ts";

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

/** What the client says of caching, beside the markers on its blocks. */
export type CachingAsked = {
  /** Markers the client wrote, also those that take effect at one and the same block. */
  readonly markers: number;
  /** One more on the last block that can carry it. */
  readonly last?: Ttl;
  /** Whether the last ending is written by itself, where endings are. */
  readonly mode?: "implicit" | "explicit";
  /** Of what ends by itself. */
  readonly ttl?: Ttl;
  /** A lifetime by name. */
  readonly retention?: string;
  /** Neither looked up nor kept. */
  readonly off?: true;
  /** Whom the client keeps apart: entries are found under the same words only. */
  readonly apart?: string;
  readonly slot?: number;
  /** Tokens at the start of the prompt that are held by name, and so read for certain. */
  readonly held?: number;
};

/** A place to try, as an index into the plan's places; a read there extends the entry by up to this time. */
export type Look = { readonly at: number; readonly lifetimeMs: number };

export type Write = {
  readonly at: number;
  readonly end: number;
  readonly lifetimeMs: number;
  /** Billed as a write of this lifetime; without one it is billed as plain input. */
  readonly ttl?: Ttl;
};

export type Plan = {
  /** Everywhere an entry could end, in prompt order. */
  readonly places: readonly Place[];
  readonly looks: Iterable<Look>;
  /** What is left behind, unless it was read. */
  readonly writes: readonly Write[];
  /** The rules let no read be longer than this. */
  readonly reach: number;
  /** Why nothing of a short prompt is kept. */
  readonly below?: Miss;
  /** Why an entry at this place, live and readable, was not looked for. */
  readonly unseen: (at: number) => Miss;
};

export type Planned = { readonly ok: true; readonly plan: Plan } | { readonly ok: false; readonly message: string };
