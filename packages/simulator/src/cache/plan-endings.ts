/** Where does a provider look and write if entries end at breakpoints and, automatically, at message ends?
 *  Invariant: everything that is written is also looked up, so the same request reads all it wrote when it is sent
 *  again.
 *  Elsewhere: which message ends count (../wires), what is found and written (entries.ts). */

import type { Ttl } from "@prefork/wire";
import type { Rendered } from "../prompt/index.ts";
import type { CacheRules, EndingRules } from "../rules/index.ts";
import type { CachePlan, CachingSettings, PlannedWrite } from "./plan.ts";
import { lifetime, markersIn } from "./plan-markers.ts";

export const planEndings = (
  rendered: Rendered,
  requested: CachingSettings,
  rules: CacheRules & { readonly endings: EndingRules },
): CachePlan => {
  const { endings: limits, minimumPrefix, defaultTtl } = rules;
  const implicit = requested.mode !== "explicit";
  const marks = markersIn(rendered);
  const ends = implicit ? endingsIn(rendered) : [];
  const ttlAt = new Map<number, Ttl>([
    ...ends.map((at) => [at, requested.ttl ?? defaultTtl] as const),
    ...marks.map(({ index, ttl }) => [index, ttl] as const),
  ]);
  const lookedUp = [
    ...firstAndLatest(
      marks.map(({ index }) => index),
      limits,
    ),
    ...ends.slice(-1 - limits.earlierEndings),
    // The end of the opening instructions is always looked up, however far back it is.
    ...ends.slice(0, 1).filter((at) => rendered.blocks[at]?.level === "system"),
  ];
  const own = marks.slice(implicit ? 1 - limits.maxWrites : -limits.maxWrites).map(({ index }) => index);
  const candidates = unique([...own, ...ends.slice(-1)]).map((at): PlannedWrite => {
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
