/** What should the provider's cache have held, by its own reports, and which entries stored by name could a request
 *  have read? Pure.
 *  Invariant: the length of an entry is the provider's own figure if any report states it: a request's cache reads and
 *  writes end at its last marker, and a read that ends between two known positions ends at the only marker between
 *  them. Only what no report states is estimated, by the bytes between known positions, and marked as estimated. An
 *  entry stored by name counts for requests that begin with its bytes, from its creation until it was released; a lost
 *  one still counts, and says since when.
 *  Elsewhere: who could read whose entry (families.ts), why less was read (miss-reason.ts), creating stored entries
 *  (../fork: stored-prefixes.ts). */

import {
  entryLifetimeMs,
  type FrozenPrefix,
  type Json,
  LIFETIME_MS,
  type ModelFacts,
  modelFacts,
  noUsage,
  type Segment,
  type Ttl,
  type Usage,
  writtenTokens,
} from "@prefork/wire";
import { isStartOf, STORED_SLOT } from "../fork/index.ts";
import { markedSegments, reportedUsage, type SentRequest } from "./requests.ts";
import type { AgentJournal } from "./timeline.ts";

/** Tokens of a prompt up to the end of a segment, and how many of them no provider has counted. */
export type PrefixLength = { readonly tokens: number; readonly estimated: number };

/** A request that wrote an entry, or read it and so extended its life. */
type EntryUse = { readonly by: SentRequest; readonly ttl: Ttl | undefined; readonly isWrite: boolean };

export type CacheEntry = PrefixLength & {
  readonly segment: Segment;
  /** The writers that count here. */
  readonly writers: readonly SentRequest[];
  readonly ttl: Ttl;
  /** When the last request that used it was sent, and when it expires after that. */
  readonly usedAt: number;
  readonly expiresAt: number;
};

export type CacheEntries = {
  readonly lengthAt: (prefix: FrozenPrefix, segment: Segment) => PrefixLength;
  /** The entries on a request's own bytes, longest first, from the writers that `counts` accepts. */
  readonly on: (request: SentRequest, counts: (writer: SentRequest) => boolean) => Generator<CacheEntry>;
};

/** Tokens up to the last marker: what was in the cache after this answer. */
export const cachedTokens = (usage: Usage): number => usage.read + writtenTokens(usage);

export const factsOf = ({ model }: Pick<SentRequest, "model">): ModelFacts | undefined => modelFacts(model);

export const inferEntries = (requests: readonly SentRequest[]): CacheEntries => {
  const kept = requests.filter((request) => cachedTokens(reportedUsage(request)?.usage ?? noUsage) > 0);
  const lengths = new LengthTable();
  for (const request of kept) lengths.learnEnd(request);
  for (const request of kept) lengths.learnRead(request);
  const uses = usesOf(kept, lengths);
  return {
    lengthAt: (prefix, segment) => lengths.at(prefix, segment),
    on: function* (request, counts) {
      for (let at = lastTrustedSegment(request); at; at = at.before) {
        const own = uses.get(at.hash)?.filter(({ by }) => by !== request && counts(by)) ?? [];
        const entry = own.length > 0 ? buildEntry(at, { request, uses: own, lengths }) : undefined;
        if (entry) yield entry;
      }
    },
  };
};

/** The last segment of a request that is known as it was sent. */
const lastTrustedSegment = ({ point, exactUpTo }: SentRequest): Segment | undefined => {
  let at = point.prefix?.tip;
  while (at && at.index >= exactUpTo) at = at.before;
  return at;
};

/** A typical density, until a provider has counted a prompt. */
const BYTES_PER_TOKEN = 4;

class LengthTable {
  readonly #known = new Map<string, number>();
  /** Segments that carried a marker. */
  readonly #marked = new Set<string>();

  /** Cache reads and writes end at the last marker. */
  learnEnd(request: SentRequest): void {
    const segments = markedSegments(request);
    for (const { hash } of segments) this.#marked.add(hash);
    const last = segments.at(-1);
    const isLast = last && last.index === Math.max(...(request.markers ?? []).map(({ segment }) => segment));
    const report = reportedUsage(request);
    if (last && isLast && report) this.#known.set(last.hash, cachedTokens(report.usage));
  }

  /** A read ends at a marker of an earlier request. If only one is possible, its length is known. */
  learnRead(request: SentRequest): void {
    const read = reportedUsage(request)?.usage.read ?? 0;
    let between: Segment[] = [];
    for (let at = lastTrustedSegment(request); at && read > 0; at = at.before) {
      const known = this.#known.get(at.hash);
      if (known === read) return;
      if (known !== undefined && known < read) break;
      if (known !== undefined) between = [];
      else if (this.#marked.has(at.hash)) between.push(at);
    }
    const [only, ...others] = between;
    if (only && others.length === 0 && read > 0) this.#known.set(only.hash, read);
  }

  /** The segment of a request that ends at this many tokens, if a report states it. */
  endingAt(request: SentRequest, tokens: number): Segment | undefined {
    for (let at = lastTrustedSegment(request); at; at = at.before) {
      const known = this.#known.get(at.hash);
      if (known === tokens) return at;
      if (known !== undefined && known < tokens) return undefined;
    }
    return undefined;
  }

  at(prefix: FrozenPrefix, segment: Segment): PrefixLength {
    const exact = this.#known.get(segment.hash);
    if (exact !== undefined) return { tokens: exact, estimated: 0 };
    const above = this.#above(prefix, segment);
    const below = this.#below(segment);
    const perByte = above
      ? (above.tokens - below.tokens) / Math.max(1, above.bytes - below.bytes)
      : below.tokens > 0
        ? below.tokens / below.bytes
        : 1 / BYTES_PER_TOKEN;
    const estimated = Math.max(0, Math.round((segment.end - below.bytes) * perByte));
    return { tokens: below.tokens + estimated, estimated };
  }

  #below(segment: Segment): { readonly bytes: number; readonly tokens: number } {
    for (let at = segment.before; at; at = at.before) {
      const tokens = this.#known.get(at.hash);
      if (tokens !== undefined) return { bytes: at.end, tokens };
    }
    return { bytes: 0, tokens: 0 };
  }

  #above(prefix: FrozenPrefix, segment: Segment): { readonly bytes: number; readonly tokens: number } | undefined {
    let nearest: { readonly bytes: number; readonly tokens: number } | undefined;
    for (let at = prefix.tip; at && at.index > segment.index; at = at.before) {
      const tokens = this.#known.get(at.hash);
      if (tokens !== undefined) nearest = { bytes: at.end, tokens };
    }
    return nearest;
  }
}

/** Who wrote and who read at each segment. Shorter entries below a read do not count as extended, which is the more
 *  expensive interpretation. */
const usesOf = (kept: readonly SentRequest[], lengths: LengthTable): ReadonlyMap<string, readonly EntryUse[]> => {
  const uses = new Map<string, EntryUse[]>();
  const add = (segment: Segment, use: EntryUse): void => {
    const known = uses.get(segment.hash);
    if (known) known.push(use);
    else uses.set(segment.hash, [use]);
  };
  for (const by of kept) {
    const { prefix } = by.point;
    const { markers = [] } = by;
    const report = reportedUsage(by);
    if (!prefix || !report) continue;
    const { read } = report.usage;
    const least = factsOf(by)?.minimumPrefix ?? 0;
    // A side request has no markers of its own, and writes again what has expired.
    const end = by.markers ? undefined : lengths.endingAt(by, cachedTokens(report.usage));
    for (const segment of end ? [end] : markedSegments(by)) {
      const { tokens } = lengths.at(prefix, segment);
      const ttl = markers.find((marker) => marker.segment === segment.index)?.ttl;
      if (tokens > read && tokens >= least) add(segment, { by, ttl, isWrite: true });
    }
    const found = read > 0 ? lengths.endingAt(by, read) : undefined;
    if (found) add(found, { by, ttl: markers.find(({ segment }) => segment >= found.index)?.ttl, isWrite: false });
  }
  return uses;
};

type EntryUses = { readonly request: SentRequest; readonly uses: readonly EntryUse[]; readonly lengths: LengthTable };

const buildEntry = (segment: Segment, { request, uses, lengths }: EntryUses): CacheEntry | undefined => {
  const { prefix } = request.point;
  const writes = uses.filter(({ isWrite }) => isWrite);
  const [first] = writes;
  const writer = first?.by.point.prefix;
  if (!first || !prefix || !writer) return undefined;
  const ttl = writes.reduce<Ttl>((longest, use) => longerTtl(longest, use.ttl ?? longest), first.ttl ?? "5m");
  const facts = factsOf(request);
  const lives = (use: EntryUse): number =>
    Math.min(entryLifetimeMs(ttl, facts), entryLifetimeMs(use.ttl ?? ttl, facts));
  return {
    ...lengths.at(writer, segment),
    segment,
    ttl,
    writers: writes.map(({ by }) => by),
    usedAt: Math.max(...uses.map(({ by }) => by.askedAt)),
    expiresAt: Math.max(...uses.map((use) => use.by.askedAt + lives(use))),
  };
};

const longerTtl = (a: Ttl, b: Ttl): Ttl => (LIFETIME_MS[b] > LIFETIME_MS[a] ? b : a);

/** An entry stored by name. */

export type NamedEntry = {
  readonly name: string;
  readonly tokens: number;
  /** What it contains. */
  readonly model: string;
  readonly segments: number;
  readonly hash: string;
  readonly createdAt: number;
  /** When the provider was found not to have it any more. */
  readonly lostAt?: number;
  /** When it was released. */
  readonly endedAt?: number;
};

export const namedEntries = (journals: readonly AgentJournal[]): readonly NamedEntry[] => {
  const found = new Map<string, NamedEntry>();
  for (const { entries } of journals)
    for (const { entry, at } of entries) {
      if (entry.kind !== "state" || !entry.slot.startsWith(STORED_SLOT)) continue;
      const before = found.get(entry.slot);
      const { endedAt, ...noted } = fieldsOf(entry.value);
      const named = parseNamedEntry(noted, before?.createdAt ?? at);
      if (named) found.set(entry.slot, named);
      else if (before) found.set(entry.slot, { ...before, endedAt: typeof endedAt === "number" ? endedAt : at });
    }
  return [...found.values()];
};

/** The requests of a family wait for it, so the time of the answer counts. */
export const findNamedEntry = (request: SentRequest, named: readonly NamedEntry[]): NamedEntry | undefined => {
  const { point, askedAt, answer, exactUpTo } = request;
  const { prefix } = point;
  return named.find((entry) => {
    const { createdAt, endedAt = Number.POSITIVE_INFINITY, segments } = entry;
    const isThere = (answer?.at ?? askedAt) > createdAt && askedAt < endedAt && segments <= exactUpTo;
    return prefix !== undefined && isThere && isStartOf(prefix, entry);
  });
};

type Fields = Readonly<Record<string, Json>>;

const fieldsOf = (value: Json): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

const parseNamedEntry = (
  { name, tokens, model, segments, hash, lostAt }: Fields,
  createdAt: number,
): NamedEntry | undefined => {
  if (typeof name !== "string" || typeof model !== "string" || typeof hash !== "string") return undefined;
  if (typeof tokens !== "number" || typeof segments !== "number") return undefined;
  return { name, tokens, model, segments, hash, createdAt, ...(typeof lostAt === "number" ? { lostAt } : {}) };
};
