/** What does the cache hold, what does a request find in it, and why not more?
 *  Invariant: a read never exceeds what some earlier request wrote on the same hash chain; an entry that its writer
 *  has not yet begun to answer is invisible; time comes in as an argument.
 *  Elsewhere: hashes (../prompt), money (../bill.ts). */

import type { Ttl } from "../../request.ts";
import type { Rendered, RenderedBlock } from "../prompt/index.ts";
import type { CacheRules } from "../rules/index.ts";
import type { Breakpoint } from "./breakpoints.ts";

type Entry = {
  readonly tokens: number;
  /** The longest lifetime anyone paid for. */
  ttl: Ttl;
  expiresAt: number;
  /** Writers that have not begun to answer. */
  pending: number;
  readable: boolean;
  writtenBy: number;
};

export type MissCause = "expired" | "raced" | "look-back exceeded" | "no marker there" | "below minimum" | "diverged";
export type Miss = { readonly cause: MissCause; readonly words: string };

export type Lookup = {
  /** Tokens read; the block the read ends at, or -1. */
  readonly read: number;
  readonly readIndex: number;
  /** What the best entry ever written on this chain would give if it were live, readable and found. */
  readonly expected: number;
  readonly miss: Miss | undefined;
  /** Breakpoints past the read that will become entries. */
  readonly writes: readonly Breakpoint[];
};

export type Asked = {
  readonly rendered: Rendered;
  readonly breakpoints: readonly Breakpoint[];
  readonly rules: CacheRules;
  /** When the request started; lifetimes count from here. */
  readonly startedAt: number;
};

export class PrefixCache {
  readonly #entries = new Map<string, Entry>();

  /** Reads, and refreshes what was read. */
  lookup(asked: Asked): Lookup {
    const found = this.#find(asked);
    const readIndex = found?.index ?? -1;
    if (found !== undefined) this.#refresh(asked, found.index, found.through);
    const best = asked.rendered.blocks.findLastIndex((block) => this.#entries.has(block.hash));
    const writes = asked.breakpoints.filter(
      ({ index, end }) => index > readIndex && end >= asked.rules.minimumPrefix && end > 0,
    );
    return {
      read: blockAt(asked, readIndex)?.end ?? 0,
      readIndex,
      expected: blockAt(asked, best)?.end ?? 0,
      miss: best > readIndex ? this.#missAt(asked, best) : belowMinimum(asked, writes, readIndex),
      writes,
    };
  }

  /** The writer is on its way; its entries become readable at commit. */
  beginWrites(asked: Asked, writes: readonly Breakpoint[], sequence: number): PendingWrites {
    const keys = writes.map(({ index, ttl }) => {
      const block = asked.rendered.blocks[index] as RenderedBlock;
      const entry = this.#entries.get(block.hash);
      if (entry === undefined)
        this.#entries.set(block.hash, {
          tokens: block.end,
          ttl,
          expiresAt: 0,
          pending: 1,
          readable: false,
          writtenBy: sequence,
        });
      else entry.pending += 1;
      return { hash: block.hash, ttl };
    });
    return { keys, startedAt: asked.startedAt, lifetimes: asked.rules.ttls, sequence };
  }

  commit({ keys, startedAt, lifetimes, sequence }: PendingWrites): void {
    for (const { hash, ttl } of keys) {
      const entry = this.#entries.get(hash);
      if (entry === undefined) continue;
      entry.pending -= 1;
      const until = startedAt + (lifetimes[ttl] ?? 0);
      const wasLive = entry.readable && entry.expiresAt > startedAt;
      if (!wasLive || (lifetimes[ttl] ?? 0) > (lifetimes[entry.ttl] ?? 0)) entry.ttl = ttl;
      entry.expiresAt = wasLive ? Math.max(entry.expiresAt, until) : until;
      entry.readable = true;
      entry.writtenBy = sequence;
    }
  }

  /** A writer that failed before its first event leaves nothing behind. */
  abandon({ keys }: PendingWrites): void {
    for (const { hash } of keys) {
      const entry = this.#entries.get(hash);
      if (entry === undefined) continue;
      entry.pending -= 1;
      if (entry.pending === 0 && !entry.readable) this.#entries.delete(hash);
    }
  }

  #live(hash: string, now: number): Entry | undefined {
    const entry = this.#entries.get(hash);
    return entry?.readable && entry.expiresAt > now ? entry : undefined;
  }

  #find(asked: Asked): { readonly index: number; readonly through: Breakpoint } | undefined {
    for (const through of asked.breakpoints.toReversed())
      for (const index of lookbackFrom(through.index, asked))
        if (this.#live(blockAt(asked, index)?.hash ?? "", asked.startedAt) !== undefined) return { index, through };
    return undefined;
  }

  #refresh(asked: Asked, readIndex: number, through: Breakpoint): void {
    const { rules, startedAt } = asked;
    const refreshed = rules.refreshBelowRead
      ? asked.rendered.blocks.slice(0, readIndex + 1)
      : [blockAt(asked, readIndex)];
    for (const block of refreshed) {
      const entry = block && this.#live(block.hash, startedAt);
      if (entry === undefined) continue;
      const own = rules.ttls[entry.ttl] ?? 0;
      const lifetime = rules.mixedRefresh === "entry" ? own : Math.min(own, rules.ttls[through.ttl] ?? own);
      entry.expiresAt = Math.max(entry.expiresAt, startedAt + lifetime);
    }
  }

  #missAt(asked: Asked, index: number): Miss | undefined {
    const block = blockAt(asked, index);
    const entry = block && this.#entries.get(block.hash);
    if (entry === undefined) return undefined;
    const which = `the entry of ${entry.tokens} tokens at ${block?.path}, written by request ${entry.writtenBy},`;
    if (!entry.readable)
      return { cause: "raced", words: `${which} was not readable yet: its writer had not begun to answer` };
    if (entry.expiresAt <= asked.startedAt)
      return entry.pending > 0
        ? { cause: "raced", words: `${which} had expired and was being written again` }
        : { cause: "expired", words: `${which} had expired ${asked.startedAt - entry.expiresAt} ms before` };
    return asked.breakpoints.some((breakpoint) => breakpoint.index >= index)
      ? {
          cause: "look-back exceeded",
          words: `${which} lies more than ${asked.rules.lookbackPositions} positions before the next marker`,
        }
      : { cause: "no marker there", words: `${which} has no marker at or after it in this request` };
  }
}

export type PendingWrites = {
  readonly keys: readonly { readonly hash: string; readonly ttl: Ttl }[];
  readonly startedAt: number;
  readonly lifetimes: CacheRules["ttls"];
  readonly sequence: number;
};

const blockAt = (asked: Asked, index: number): RenderedBlock | undefined =>
  index < 0 ? undefined : asked.rendered.blocks[index];

const belowMinimum = (asked: Asked, writes: readonly Breakpoint[], readIndex: number): Miss | undefined => {
  const last = asked.breakpoints.at(-1);
  if (last === undefined || readIndex >= 0 || writes.length > 0) return undefined;
  return {
    cause: "below minimum",
    words: `the longest marked prefix has ${last.end} tokens; this model caches from ${asked.rules.minimumPrefix}`,
  };
};

const collapses = (kind: string): boolean => kind === "tool_use" || kind === "tool_result";

/** The blocks a breakpoint looks at, nearest first: itself is the first position. */
function* lookbackFrom(start: number, { rendered, rules }: Asked): Generator<number> {
  let left = rules.lookbackPositions;
  let previous = "";
  for (let index = start; index >= 0; index -= 1) {
    const block = rendered.blocks[index];
    if (block === undefined || block.kind === "settings") continue;
    const counts = block.level === "messages" || rules.headCountsAsPositions;
    const sameRun = rules.lookback === "runs" && collapses(block.kind) && block.kind === previous;
    if (counts && !sameRun) {
      if (left === 0) return;
      left -= 1;
    }
    previous = block.kind;
    yield index;
  }
}
