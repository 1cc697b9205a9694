/** What did it cost to pay again for what could have been read?
 *  Invariant: the difference between two bills of the same request; without a known price there is no money, and
 *  uncached tokens are counted with the usual multipliers.
 *  Elsewhere: how many tokens (verdict.ts), prices (@prefork/wire). */

import { costOf, inputUnits, promptTokens, type Service, type Ttl, type Usage } from "@prefork/wire";
import { SHORTEST_FIRST } from "@prefork/wire/internal";
import { breakpointsOf, hasMarkers } from "./entries.ts";
import { type CacheLookup, endOf } from "./lookup.ts";
import type { Prompt } from "./piece.ts";
import { isAutomatic } from "./rules.ts";
import type { SentFacts } from "./sent.ts";

export type XrayLoss = {
  readonly tokens: number;
  /** In uncached tokens. */
  readonly units: number;
  /** Absent if the model has no known price. */
  readonly usd?: number;
};

/** A few tokens for less than a hundredth of a cent: included in every sum, but not worth fixing. */
export const isNegligibleLoss = ({ tokens, usd = 0 }: XrayLoss): boolean => tokens < 16 && usd < 0.000_1;

export const lossOf = (
  lookup: CacheLookup,
  tokens: number,
  terms: { readonly read: number; readonly sent: SentFacts },
): XrayLoss => {
  const { b } = lookup;
  const { facts } = b.rules;
  const paid = terms.sent.usage ?? usageBy(lookup, terms.read);
  const mended = moveToRead(paid, tokens);
  const service = serviceOf(b, terms.sent.startedAt);
  const [cost, less] = [costOf(withoutOutput(paid), facts, service), costOf(withoutOutput(mended), facts, service)];
  return {
    tokens,
    units: Math.round((inputUnits(paid, facts) - inputUnits(mended, facts)) * 1e6) / 1e6,
    ...(cost && less ? { usd: Math.round((cost.total - less.total) * 1e12) / 1e12 } : {}),
  };
};

export const serviceOf = (prompt: Prompt, at?: number): Service => ({
  ...(prompt.fast ? { speed: "fast" } : {}),
  ...(prompt.inUs ? { geoUs: true } : {}),
  ...(!hasMarkers(prompt) ? { unmarked: true } : {}),
  ...(at === undefined ? {} : { at }),
});

const withoutOutput = (usage: Usage): Usage => ({ ...usage, output: 0 });

/** By the rules: a cache read up to one position, a write up to the last long-lived marker and then up to the last
 *  marker, the rest uncached. */
const usageBy = ({ b, measure }: CacheLookup, read: number): Usage => {
  const total = Math.round(measure.b(b.tokens));
  const { keeping, minimum } = b.rules;
  if (isAutomatic(keeping)) return { plain: total - read, read, written: {}, output: 0 };
  const written: Partial<Record<Ttl, number>> = {};
  const ends = breakpointsOf(b).map(({ index, ttl = "5m" }) => ({ ttl, end: Math.round(measure.b(endOf(b, index))) }));
  let from = read;
  for (const ttl of SHORTEST_FIRST.toReversed()) {
    const last = Math.max(
      from,
      ...ends.filter((each) => each.ttl === ttl && each.end >= minimum).map(({ end }) => end),
    );
    if (last > from) written[ttl] = last - from;
    from = last;
  }
  return { plain: total - from, read, written, output: 0 };
};

/** The same request if it had read this many more tokens: the first ones that it wrote. */
const moveToRead = (usage: Usage, tokens: number): Usage => {
  const written: Partial<Record<Ttl, number>> = { ...usage.written };
  let left = Math.min(tokens, promptTokens(usage) - usage.read);
  const read = usage.read + left;
  for (const ttl of SHORTEST_FIRST.toReversed()) {
    const moved = Math.min(left, written[ttl] ?? 0);
    if (moved > 0) written[ttl] = (written[ttl] ?? 0) - moved;
    left -= moved;
  }
  return { ...usage, read, written, plain: usage.plain - left };
};
