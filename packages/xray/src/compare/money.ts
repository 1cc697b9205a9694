/** What did it cost to pay again for what could have been read?
 *  Invariant: the difference of two bills of the same request; where no price is known there is no money, and the weight
 *  in plain tokens is counted by the usual multipliers.
 *  Elsewhere: how many tokens (verdict.ts), prices (../prices.ts). */

import { costOf, inputUnits, promptTokens, type Service, type Ttl, type Usage } from "@prefork/wire";
import { SHORTEST_FIRST } from "@prefork/wire/internal";
import { breakpointsOf, hasMarkers } from "./entries.ts";
import { endOf, type Footing } from "./footing.ts";
import type { Prompt } from "./piece.ts";
import { isUnasked } from "./rules.ts";
import type { SentFacts } from "./sent.ts";

export type XrayLoss = {
  readonly tokens: number;
  /** In tokens of plain input. */
  readonly units: number;
  /** Absent where the model has no known price. */
  readonly usd?: number;
};

/** A few tokens for less than a hundredth of a cent: counted in every sum, and nobody's to mend. */
export const isNegligibleLoss = ({ tokens, usd = 0 }: XrayLoss): boolean => tokens < 16 && usd < 0.000_1;

export const lossOf = (
  footing: Footing,
  tokens: number,
  terms: { readonly read: number; readonly sent: SentFacts },
): XrayLoss => {
  const { b } = footing;
  const { facts } = b.rules;
  const paid = terms.sent.usage ?? usageBy(footing, terms.read);
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

/** By the rules: read up to one place, written up to the last long-lived marker and up to the last of all, plain behind. */
const usageBy = ({ b, measure }: Footing, read: number): Usage => {
  const total = Math.round(measure.b(b.tokens));
  const { keeping, minimum } = b.rules;
  if (isUnasked(keeping)) return { plain: total - read, read, written: {}, output: 0 };
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

/** The same request, had it read so many tokens more: they are the first that it wrote. */
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
