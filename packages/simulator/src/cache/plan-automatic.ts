/** Where does an automatic cache look and write: at token counts or at the ends of blocks?
 *  Invariant: prefixes below the minimum are neither read nor cached.
 *  Elsewhere: positions inside blocks (../prompt), what is found and written (entries.ts). */

import { cutsOf, type PrefixEnd, type Rendered, type RenderedBlock, type Start } from "../prompt/index.ts";
import type { AutomaticRules, CacheRules } from "../rules/index.ts";
import type { CachePlan, CachingSettings, PlannedWrite } from "./plan.ts";

export type AutomaticCache = CacheRules & { readonly automatic: AutomaticRules };

/** Everywhere an entry could end in these blocks. */
export const endsIn = (
  blocks: readonly RenderedBlock[],
  start: Start,
  { step }: AutomaticRules,
): readonly PrefixEnd[] => (step === "block" ? blocks.filter(({ tokens }) => tokens > 0) : cutsOf(blocks, start, step));

export const planAutomatic = (rendered: Rendered, requested: CachingSettings, rules: AutomaticCache): CachePlan => {
  const { automatic, minimumPrefix } = rules;
  const places = endsIn(rendered.blocks, { hash: rendered.root, end: 0 }, automatic);
  const reach = automatic.lastTokenComputed ? rendered.tokens - 1 : rendered.tokens;
  const lifetimeMs = lifetimeOf(automatic, requested);
  const looks = places
    .map(({ end }, at) => ({ at, end, lifetimeMs }))
    .filter(({ end }) => end <= reach && end >= minimumPrefix)
    .toReversed();
  return {
    places,
    looks,
    writes: writesFor(places, { automatic, lifetimeMs }).filter(({ end }) => end >= minimumPrefix),
    reach,
    ...(rendered.tokens < minimumPrefix
      ? {
          below: {
            cause: "below minimum",
            words: `the prompt has ${rendered.tokens} tokens; this model caches from ${minimumPrefix}`,
          },
        }
      : {}),
    // Everything that was cached is looked for, unless the minimum has been raised since.
    unseen: () => ({ cause: "below minimum", words: `is shorter than ${minimumPrefix} tokens` }),
  };
};

export const lifetimeOf = (
  { lifetimeMs, retention }: AutomaticRules,
  { retention: requested }: CachingSettings,
): number => (requested === undefined ? undefined : retention[requested]) ?? lifetimeMs;

type KeptTerms = { readonly automatic: AutomaticRules; readonly lifetimeMs: number };

/** Every position; for units only the last one and those at fixed intervals. */
export const writesFor = (
  places: readonly PrefixEnd[],
  { automatic, lifetimeMs }: KeptTerms,
): readonly PlannedWrite[] => {
  const { keeps, interval } = automatic;
  const all = places.map(({ end }, at) => ({ at, end, lifetimeMs }));
  if (keeps === "all") return all;
  return all.filter(({ at, end }) => at === places.length - 1 || (interval !== "none" && end % interval === 0));
};
