/** Where does a provider look and write that caches by itself, at counts of tokens or at ends of blocks?
 *  Invariant: places below the minimum are neither read nor kept.
 *  Elsewhere: places inside blocks (../prompt), what is found and written (entries.ts). */

import { cutsOf, type Place, type Rendered, type RenderedBlock, type Start } from "../prompt/index.ts";
import type { AutomaticRules, CacheRules } from "../rules/index.ts";
import type { CachingAsked, Plan, Write } from "./plan.ts";

export type AutomaticCache = CacheRules & { readonly automatic: AutomaticRules };

/** Everywhere an entry could end in these blocks. */
export const placesIn = (blocks: readonly RenderedBlock[], start: Start, { step }: AutomaticRules): readonly Place[] =>
  step === "block" ? blocks.filter(({ tokens }) => tokens > 0) : cutsOf(blocks, start, step);

export const planAutomatic = (rendered: Rendered, asked: CachingAsked, rules: AutomaticCache): Plan => {
  const { automatic, minimumPrefix } = rules;
  const places = placesIn(rendered.blocks, { hash: rendered.root, end: 0 }, automatic);
  const reach = automatic.lastTokenComputed ? rendered.tokens - 1 : rendered.tokens;
  const lifetimeMs = lifetimeOf(automatic, asked);
  const looks = places
    .map(({ end }, at) => ({ at, end, lifetimeMs }))
    .filter(({ end }) => end <= reach && end >= minimumPrefix)
    .toReversed();
  return {
    places,
    looks,
    writes: keptOf(places, { automatic, lifetimeMs }).filter(({ end }) => end >= minimumPrefix),
    reach,
    ...(rendered.tokens < minimumPrefix
      ? {
          below: {
            cause: "below minimum",
            words: `the prompt has ${rendered.tokens} tokens; this model caches from ${minimumPrefix}`,
          },
        }
      : {}),
    // Whatever was kept is looked for, unless the minimum has been raised since.
    unseen: () => ({ cause: "below minimum", words: `is shorter than ${minimumPrefix} tokens` }),
  };
};

export const lifetimeOf = ({ lifetimeMs, retention }: AutomaticRules, { retention: asked }: CachingAsked): number =>
  (asked === undefined ? undefined : retention[asked]) ?? lifetimeMs;

type KeptTerms = { readonly automatic: AutomaticRules; readonly lifetimeMs: number };

/** Every place, or of units the last one and those at fixed intervals. */
export const keptOf = (places: readonly Place[], { automatic, lifetimeMs }: KeptTerms): readonly Write[] => {
  const { keeps, interval } = automatic;
  const all = places.map(({ end }, at) => ({ at, end, lifetimeMs }));
  if (keeps === "all") return all;
  return all.filter(({ at, end }) => at === places.length - 1 || (interval !== "none" && end % interval === 0));
};
