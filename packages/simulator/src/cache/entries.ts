/** What is in the cache, what does a request find there, and what is the miss reason?
 *  Invariant: a read never exceeds what some earlier request wrote on the same hash chain; an entry that is not
 *  readable yet is invisible; time comes in as an argument.
 *  Elsewhere: what is looked for (plan.ts), hashes (../prompt), money (../bill.ts). */

import type { PrefixEnd } from "../prompt/index.ts";
import type { CachePlan, Miss, PlannedLookup, PlannedWrite } from "./plan.ts";

type Entry = {
  readonly tokens: number;
  /** The longest lifetime anyone asked for. */
  lifetimeMs: number;
  expiresAt: number;
  /** Writers that have not made it readable yet. */
  pending: number;
  /** Undefined until it is readable. */
  readableFrom: number | undefined;
  writtenBy: number;
};

export type Lookup = {
  /** Tokens read; the index at which the read ends, or -1. */
  readonly read: number;
  readonly at: number;
  /** What the best entry ever written on this chain would give if it were live, readable and found. */
  readonly expected: number;
  readonly miss: Miss | undefined;
};

export type LookupTerms = {
  /** When the request started; lifetimes count from here. */
  readonly startedAt: number;
  readonly mixedRefresh: "shorter" | "entry";
  readonly refreshBelowRead: boolean;
  readonly readable: "at-once" | "first-event" | "complete";
};

export type PendingWrites = {
  readonly keys: readonly { readonly hash: string; readonly lifetimeMs: number }[];
  readonly startedAt: number;
  readonly sequence: number;
};

export class Entries {
  readonly #entries = new Map<string, Entry>();

  /** Reads, and refreshes what was read. */
  lookup(plan: CachePlan, terms: LookupTerms): Lookup {
    const found = this.#find(plan, terms.startedAt);
    const at = found?.at ?? -1;
    if (found !== undefined) this.#refresh(plan, found, terms);
    const best = this.#best(plan);
    return {
      read: placeAt(plan, at)?.end ?? 0,
      at,
      expected: placeAt(plan, best)?.end ?? 0,
      miss: best > at ? this.#missAt(plan, best, terms) : at < 0 ? plan.below : undefined,
    };
  }

  /** What the best entry ever written would give, without reading it. */
  expected(plan: CachePlan): number {
    return placeAt(plan, this.#best(plan))?.end ?? 0;
  }

  #best({ places, reach }: CachePlan): number {
    return places.findLastIndex(({ hash, end }) => end <= reach && this.#entries.has(hash));
  }

  /** The writer is in flight; its entries become readable at commit. */
  beginWrites(
    places: readonly PrefixEnd[],
    writes: readonly PlannedWrite[],
    by: Omit<PendingWrites, "keys">,
  ): PendingWrites {
    const keys = writes.flatMap(({ at, lifetimeMs }) => {
      const place = places[at];
      if (place === undefined) return [];
      const entry = this.#entries.get(place.hash);
      if (entry === undefined)
        this.#entries.set(place.hash, {
          tokens: place.end,
          lifetimeMs,
          expiresAt: 0,
          pending: 1,
          readableFrom: undefined,
          writtenBy: by.sequence,
        });
      else entry.pending += 1;
      return [{ hash: place.hash, lifetimeMs }];
    });
    return { keys, ...by };
  }

  commit({ keys, startedAt, sequence }: PendingWrites, readableFrom: number): void {
    for (const { hash, lifetimeMs } of keys) {
      const entry = this.#entries.get(hash);
      if (entry === undefined) continue;
      entry.pending -= 1;
      const until = startedAt + lifetimeMs;
      const wasLive = entry.readableFrom !== undefined && entry.expiresAt > startedAt;
      if (!wasLive || lifetimeMs > entry.lifetimeMs) entry.lifetimeMs = lifetimeMs;
      entry.expiresAt = wasLive ? Math.max(entry.expiresAt, until) : until;
      entry.readableFrom = wasLive ? Math.min(entry.readableFrom ?? readableFrom, readableFrom) : readableFrom;
      entry.writtenBy = sequence;
    }
  }

  /** A writer that failed before that leaves nothing behind. */
  abandon({ keys }: PendingWrites): void {
    for (const { hash } of keys) {
      const entry = this.#entries.get(hash);
      if (entry === undefined) continue;
      entry.pending -= 1;
      if (entry.pending === 0 && entry.readableFrom === undefined) this.#entries.delete(hash);
    }
  }

  #live(hash: string, now: number): Entry | undefined {
    const entry = this.#entries.get(hash);
    return entry?.readableFrom !== undefined && entry.readableFrom <= now && entry.expiresAt > now ? entry : undefined;
  }

  #find(plan: CachePlan, now: number): PlannedLookup | undefined {
    for (const look of plan.looks) if (this.#live(placeAt(plan, look.at)?.hash ?? "", now) !== undefined) return look;
    return undefined;
  }

  #refresh(plan: CachePlan, found: PlannedLookup, { startedAt, mixedRefresh, refreshBelowRead }: LookupTerms): void {
    const refreshed = refreshBelowRead ? plan.places.slice(0, found.at + 1) : [placeAt(plan, found.at)];
    for (const place of refreshed) {
      const entry = place && this.#live(place.hash, startedAt);
      if (entry === undefined) continue;
      const lifetime = mixedRefresh === "entry" ? entry.lifetimeMs : Math.min(entry.lifetimeMs, found.lifetimeMs);
      entry.expiresAt = Math.max(entry.expiresAt, startedAt + lifetime);
    }
  }

  #missAt(plan: CachePlan, at: number, { startedAt: now, readable }: LookupTerms): Miss | undefined {
    const place = placeAt(plan, at);
    const entry = place && this.#entries.get(place.hash);
    if (entry === undefined) return undefined;
    const which = `the entry of ${entry.tokens} tokens at ${place?.path}, written by request ${entry.writtenBy},`;
    if (entry.readableFrom === undefined)
      return { cause: "raced", words: `${which} was not readable yet: its writer had not ${progress[readable]}` };
    if (entry.readableFrom > now)
      return { cause: "raced", words: `${which} was still being built, for another ${entry.readableFrom - now} ms` };
    if (entry.expiresAt <= now)
      return entry.pending > 0
        ? { cause: "raced", words: `${which} had expired and was being written again` }
        : { cause: "expired", words: `${which} had expired ${now - entry.expiresAt} ms before` };
    const { cause, words } = plan.unseen(at);
    return { cause, words: `${which} ${words}` };
  }
}

const progress = { "at-once": "arrived", "first-event": "begun to answer", complete: "finished its answer" };

const placeAt = (plan: CachePlan, at: number): PrefixEnd | undefined => (at < 0 ? undefined : plan.places[at]);
