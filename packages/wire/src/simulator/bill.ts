/** What is billed for a prompt, in tokens and in money?
 *  Invariant: read + written + plain = prompt tokens. The arithmetic is the simulator's own, on purpose:
 *  it must not agree with the package's economics by sharing code with it.
 *  Elsewhere: what was read (cache/), published prices (models.ts of the package). */

import type { ModelFacts } from "../models.ts";
import type { Ttl } from "../request.ts";
import type { Usage } from "../usage.ts";
import type { Breakpoint } from "./cache/index.ts";

/** A: where the read ends. B: the last long-lived breakpoint after it. C: the last breakpoint. The rest is plain. */
export const usageOf = (prompt: number, read: number, writes: readonly Breakpoint[]): Usage => {
  const longEnd = Math.max(read, ...writes.filter(({ ttl }) => ttl === "1h").map(({ end }) => end));
  const lastEnd = Math.max(longEnd, ...writes.map(({ end }) => end));
  const written: Partial<Record<Ttl, number>> = { "5m": lastEnd - longEnd, "1h": longEnd - read };
  return { plain: prompt - lastEnd, read, written, output: 0 };
};

export type Billed = {
  /** Input side only, in tokens at the base input price; null without published prices. */
  readonly inputUnits: number | null;
  readonly usd: number | null;
};

export type BillTerms = {
  readonly facts: ModelFacts | undefined;
  readonly fast: boolean;
  /** `inference_geo: "us"` costs a tenth more. */
  readonly inUs: boolean;
};

export const billOf = (usage: Usage, { facts, fast, inUs }: BillTerms): Billed => {
  if (facts === undefined) return { inputUnits: null, usd: null };
  const short = usage.written["5m"] ?? 0;
  const long = usage.written["1h"] ?? 0;
  const prompt = usage.plain + usage.read + short + long;
  const tier = facts.tiers?.findLast(({ above }) => prompt > above);
  const prices = tier?.prices ?? facts.prices;
  const inputUnits =
    usage.plain +
    (usage.read * prices.read + short * (prices.write["5m"] ?? 0) + long * (prices.write["1h"] ?? 0)) / prices.input;
  const speed = fast ? facts.fast : undefined;
  const perMillion = inputUnits * (speed?.input ?? prices.input) + usage.output * (speed?.output ?? prices.output);
  return { inputUnits: tidy(inputUnits, 1e6), usd: tidy((perMillion / 1e6) * (inUs ? 1.1 : 1), 1e12) };
};

/** Sums of decimal prices carry binary noise far below any price's last digit. */
const tidy = (value: number, steps: number): number => Math.round(value * steps) / steps;

/** Lifetimes in the words of the response. */
export const usageFields = (usage: Usage): { readonly short: number; readonly long: number; readonly all: number } => {
  const short = usage.written["5m"] ?? 0;
  const long = usage.written["1h"] ?? 0;
  return { short, long, all: short + long };
};

/** Tokens in cached reach after the request: what an equal prefix could read. */
export const cachedEnd = (usage: Usage): number => usage.read + usageFields(usage).all;
