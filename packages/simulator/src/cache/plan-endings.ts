/** Where does a provider look and write that lets entries end at breakpoints and, by itself, at ends of messages?
 *  Invariant: what is written is among what is looked up, so the same request again reads all it wrote.
 *  Elsewhere: which messages have an end that counts (../wires), what is found and written (entries.ts). */

import type { Ttl } from "@prefork/wire";
import type { Rendered } from "../prompt/index.ts";
import type { CacheRules, EndingRules } from "../rules/index.ts";
import type { CachingAsked, Plan, Write } from "./plan.ts";
import { lifetime, markersIn } from "./plan-markers.ts";

export const planEndings = (
  rendered: Rendered,
  asked: CachingAsked,
  rules: CacheRules & { readonly endings: EndingRules },
): Plan => {
  const { endings: limits, minimumPrefix, defaultTtl } = rules;
  const implicit = asked.mode !== "explicit";
  const marks = markersIn(rendered);
  const ends = implicit ? endingsIn(rendered) : [];
  const ttlAt = new Map<number, Ttl>([
    ...ends.map((at) => [at, asked.ttl ?? defaultTtl] as const),
    ...marks.map(({ index, ttl }) => [index, ttl] as const),
  ]);
  const lookedUp = [
    ...firstAndLatest(
      marks.map(({ index }) => index),
      limits,
    ),
    ...ends.slice(-1 - limits.earlierEndings),
    // The end of the opening instructions is looked up however far back it is.
    ...ends.slice(0, 1).filter((at) => rendered.blocks[at]?.level === "system"),
  ];
  const own = marks.slice(implicit ? 1 - limits.maxWrites : -limits.maxWrites).map(({ index }) => index);
  const candidates = unique([...own, ...ends.slice(-1)]).map((at): Write => {
    const ttl = ttlAt.get(at) ?? defaultTtl;
    return { at, end: rendered.blocks[at]?.end ?? 0, ttl, lifetimeMs: lifetime(ttl, rules) };
  });
  const writes = candidates.filter(({ end }) => end >= minimumPrefix && end > 0);
  const longest = candidates.at(-1);
  return {
    places: rendered.blocks,
    looks: unique(lookedUp)
      .toReversed()
      .map((at) => ({ at, lifetimeMs: lifetime(ttlAt.get(at) ?? defaultTtl, rules) })),
    writes,
    reach: rendered.tokens,
    ...(longest !== undefined && writes.length === 0
      ? {
          below: {
            cause: "below minimum",
            words: `the longest prefix with an end has ${longest.end} tokens; this model caches from ${minimumPrefix}`,
          },
        }
      : {}),
    unseen: (at) =>
      ttlAt.has(at)
        ? { cause: "look-back exceeded", words: `ends before the ${lookedUp.length} places that are looked up` }
        : {
            cause: "no marker there",
            words: "ends where this request has neither a breakpoint nor an end that counts",
          },
  };
};

const endingsIn = ({ blocks }: Rendered): readonly number[] =>
  blocks.flatMap((block, index) => (block.ending ? [index] : []));

const firstAndLatest = (marks: readonly number[], { firstMarkers, latestMarkers }: EndingRules): readonly number[] =>
  marks.length <= firstMarkers + latestMarkers
    ? marks
    : [...marks.slice(0, firstMarkers), ...marks.slice(-latestMarkers)];

const unique = (indices: readonly number[]): readonly number[] => [...new Set(indices)].sort((a, b) => a - b);
