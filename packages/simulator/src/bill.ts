/** What is billed for a prompt, in tokens and in money?
 *  Invariant: read + written + plain = prompt tokens. The arithmetic is the simulator's own, on purpose: it must not
 *  agree with wire's arithmetic by sharing code with it.
 *  Elsewhere: what was read (cache/), published prices (@prefork/wire). */

import type { Prices, Ttl, Usage } from "@prefork/wire";
import type { PlannedWrite } from "./cache/index.ts";
import type { ModelRules } from "./rules/index.ts";

const longestFirst: readonly Ttl[] = ["12h", "1h", "30m", "5m"];

/** A: where the read ends. B: the last long-lived write after it. C: the last write. The rest is uncached, and so is
 *  what is cached without a fee. */
export const usageOf = (prompt: number, read: number, writes: readonly PlannedWrite[]): Usage => {
  const written: Partial<Record<Ttl, number>> = {};
  let end = read;
  for (const ttl of longestFirst) {
    const last = Math.max(end, ...writes.filter((write) => write.ttl === ttl).map((write) => write.end));
    if (last > end) written[ttl] = last - end;
    end = last;
  }
  return { plain: prompt - end, read, written, output: 0 };
};

export type Billed = {
  /** Input side only, in tokens at the base input price; null without published prices. */
  readonly inputUnits: number | null;
  readonly usd: number | null;
};

export type BillTerms = {
  readonly rules: ModelRules;
  readonly startedAt: number;
  readonly fast: boolean;
  /** `inference_geo: "us"` costs a tenth more. */
  readonly usOnly: boolean;
  /** The client wrote markers, which some providers price differently from automatic caching. */
  readonly marked: boolean;
};

export const billOf = (usage: Usage, terms: BillTerms): Billed => {
  const { rules, fast, usOnly, marked } = terms;
  const writes = Object.entries(usage.written) as [Ttl, number][];
  if (rules.free) return { inputUnits: usage.plain + sum(writes), usd: 0 };
  const prices = pricesOf(usage, terms);
  if (prices === undefined || writes.some(([ttl, tokens]) => tokens > 0 && prices.write[ttl] === undefined))
    return { inputUnits: null, usd: null };
  const read = marked ? prices.read : (rules.facts?.unmarkedRead ?? prices.read);
  const priced = writes.reduce((total, [ttl, tokens]) => total + tokens * (prices.write[ttl] ?? 0), usage.read * read);
  const inputUnits = usage.plain + priced / prices.input;
  const speed = fast ? rules.facts?.fast : undefined;
  const perMillion = inputUnits * (speed?.input ?? prices.input) + usage.output * (speed?.output ?? prices.output);
  return { inputUnits: tidy(inputUnits, 1e6), usd: tidy((perMillion / 1e6) * (usOnly ? 1.1 : 1), 1e12) };
};

export type StoredPrompt = { readonly tokens: number; readonly from: number; readonly until: number };

/** A prompt that is stored by name: its input once, and its storage by the hour. */
export const storageBill = ({ tokens, from, until }: StoredPrompt, { facts }: ModelRules): Billed => {
  if (facts === undefined) return { inputUnits: null, usd: null };
  const { storage } = facts;
  const hours = Math.max(0, until - from) / HOUR;
  const perMillion = storage === undefined ? null : tokens * (facts.prices.input + storage * hours);
  return { inputUnits: tokens, usd: perMillion === null ? null : tidy(perMillion / 1e6, 1e12) };
};

const sum = (writes: readonly (readonly [Ttl, number])[]): number =>
  writes.reduce((total, [, tokens]) => total + tokens, 0);

const HOUR = 3_600_000;

/** By the hour, and for the whole request by the length of its prompt. */
const pricesOf = (usage: Usage, { rules, startedAt }: BillTerms): Prices | undefined => {
  const { facts } = rules;
  const peak = facts?.peak;
  const now = new Date(startedAt);
  const hour = (startedAt % (24 * HOUR)) / HOUR;
  if (peak?.days.includes(now.getUTCDay()) && peak.hours.some(([from, to]) => hour >= from && hour < to))
    return peak.prices;
  const prompt = usage.plain + usage.read + sum(Object.entries(usage.written) as [Ttl, number][]);
  return facts?.tiers?.findLast(({ above }) => prompt > above)?.prices ?? facts?.prices;
};

/** Sums of decimal prices carry binary noise far below any price's last digit. */
export const tidy = (value: number, steps: number): number => Math.round(value * steps) / steps;

/** Lifetimes as Anthropic's response names them. */
export const usageFields = (usage: Usage): { readonly short: number; readonly long: number; readonly all: number } => {
  const short = usage.written["5m"] ?? 0;
  const long = usage.written["1h"] ?? 0;
  return { short, long, all: short + long };
};

/** Tokens that an equal prefix could read after the request. */
export const cachedEnd = (usage: Usage): number => usage.read + sum(Object.entries(usage.written) as [Ttl, number][]);
