/** Which entries stored by name could a request have read? Pure.
 *  Invariant: an entry counts for requests that begin with its bytes, from the time it was there until it was let go; one
 *  that was gone before still counts, and says since when.
 *  Elsewhere: making and noting them (stored-prefixes.ts of ../fork), what is expected (ledger.ts). */

import type { Json } from "@prefork/wire";
import { beginsWith, STORED_SLOT } from "../fork/index.ts";
import type { AgentJournal } from "./line.ts";
import type { SentRequest } from "./requests.ts";

export type NamedEntry = {
  readonly name: string;
  readonly tokens: number;
  /** What stands in it. */
  readonly model: string;
  readonly segments: number;
  readonly hash: string;
  readonly createdAt: number;
  /** When the provider was found not to know it any more. */
  readonly lostAt?: number;
  /** When it was let go. */
  readonly endedAt?: number;
};

export const namedEntries = (journals: readonly AgentJournal[]): readonly NamedEntry[] => {
  const found = new Map<string, NamedEntry>();
  for (const { entries } of journals)
    for (const { entry, at } of entries) {
      if (entry.kind !== "state" || !entry.slot.startsWith(STORED_SLOT)) continue;
      const before = found.get(entry.slot);
      const { endedAt, ...noted } = fieldsOf(entry.value);
      const named = namedIn(noted, before?.createdAt ?? at);
      if (named) found.set(entry.slot, named);
      else if (before) found.set(entry.slot, { ...before, endedAt: typeof endedAt === "number" ? endedAt : at });
    }
  return [...found.values()];
};

/** Those of a family wait until it is there, so it counts by the time of the answer. */
export const namedFor = (request: SentRequest, named: readonly NamedEntry[]): NamedEntry | undefined => {
  const { point, askedAt, answer, exactUpTo } = request;
  const { prefix } = point;
  return named.find((entry) => {
    const { createdAt, endedAt = Number.POSITIVE_INFINITY, segments } = entry;
    const isThere = (answer?.at ?? askedAt) > createdAt && askedAt < endedAt && segments <= exactUpTo;
    return prefix !== undefined && isThere && beginsWith(prefix, entry);
  });
};

type Fields = Readonly<Record<string, Json>>;

const fieldsOf = (value: Json): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

const namedIn = (
  { name, tokens, model, segments, hash, lostAt }: Fields,
  createdAt: number,
): NamedEntry | undefined => {
  if (typeof name !== "string" || typeof model !== "string" || typeof hash !== "string") return undefined;
  if (typeof tokens !== "number" || typeof segments !== "number") return undefined;
  return { name, tokens, model, segments, hash, createdAt, ...(typeof lostAt === "number" ? { lostAt } : {}) };
};
