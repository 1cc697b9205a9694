/** What we know about each model, as data: prices, cache minimum, what it does with earlier thinking.
 *  Invariant: a figure is listed only if a vendor or a published list states it; what is unknown stays absent.
 *  Elsewhere: arithmetic with these figures (the other files of this folder), user overrides (the price file of the
 *  command line). */

import type { Ttl } from "../request.ts";

/** US dollars per million tokens. */
export type Prices = {
  readonly input: number;
  /** By lifetime. Empty: writing has no fee, and whatever is not read is billed as input. */
  readonly write: Readonly<Partial<Record<Ttl, number>>>;
  readonly read: number;
  readonly output: number;
};

/** Prices that apply during some hours, to whole requests that begin then. */
export type PeakPrices = {
  readonly prices: Prices;
  /** From and to, in hours of UTC. */
  readonly hours: readonly (readonly [from: number, to: number])[];
  /** 0 is Sunday. */
  readonly days: readonly number[];
};

/** Prices for the whole request once its prompt is longer than `above` tokens. */
export type PriceTier = { readonly above: number; readonly prices: Prices };

export type ModelFacts = {
  readonly id: string;
  readonly prices: Prices;
  readonly tiers?: readonly PriceTier[];
  /** Price of the faster service class, input and output; cache multipliers stay those of the model. */
  readonly fast?: { readonly input: number; readonly output: number };
  readonly peak?: PeakPrices;
  /** Price of a cache read without a marker in the request, if it differs. */
  readonly unmarkedRead?: number;
  /** Tokens that a request and its answer may have together. Absent: not published. */
  readonly window?: number;
  /** Prompts shorter than this are not cached at all. */
  readonly minimumPrefix: number;
  /** Cache reads are counted in whole steps of this many tokens, and the rest of a prefix is never read. Absent: to the
   *  token. */
  readonly readStep?: number;
  /** US dollars for storing a million tokens for an hour, if entries can be stored by name. Creating an entry is billed
   *  as input. */
  readonly storage?: number;
  /** How long a prompt lives after its last use if the vendor keeps it unasked and states a time. Absent: as long as
   *  was asked for, or unknown. */
  readonly keptMs?: number;
  /** "keep-all": earlier thinking stays in the prompt. "last-turn": new user text strips it, and the cache with it. */
  readonly earlierThinking: "keep-all" | "last-turn";
};

const perMillion = (input: number, readMultiplier: number, output: number): Prices => ({
  input,
  write: { "5m": exact(input * 1.25), "1h": exact(input * 2) },
  read: exact(input * readMultiplier),
  output,
});

/** Prices are printed with at most five decimals; binary rounding below that is noise. */
const exact = (price: number): number => Math.round(price * 1e5) / 1e5;

/** Models that share every figure. Thinking is kept unless stated otherwise. */
type Family = Omit<ModelFacts, "id" | "earlierThinking"> &
  Partial<Pick<ModelFacts, "earlierThinking">> & { readonly ids: readonly string[] };

const HOUR_MS = 3_600_000;

const MILLION = { window: 1_000_000 } as const;
const MEBI = { window: 1_048_576 } as const;
const TWO_HUNDRED_THOUSAND = { window: 200_000 } as const;

// --- Anthropic -------------------------------------------------------------------------------------------------------

const anthropic: readonly Family[] = [
  {
    ids: ["claude-fable-5", "claude-mythos-5"],
    prices: perMillion(10, 0.1, 50),
    minimumPrefix: 512,
  },
  {
    ids: ["claude-fable-5-1", "claude-mythos-5-1"],
    ...MILLION,
    prices: perMillion(10, 0.025, 50),
    minimumPrefix: 512,
  },
  {
    ids: ["claude-opus-5-5"],
    ...MILLION,
    prices: perMillion(4, 0.05, 20),
    minimumPrefix: 512,
    fast: { input: 8, output: 40 },
  },
  { ids: ["claude-opus-5"], ...MILLION, prices: perMillion(5, 0.1, 25), minimumPrefix: 512 },
  {
    ids: ["claude-opus-4-8"],
    ...MILLION,
    prices: perMillion(5, 0.1, 25),
    minimumPrefix: 1_024,
    fast: { input: 10, output: 50 },
  },
  { ids: ["claude-opus-4-7"], prices: perMillion(5, 0.1, 25), minimumPrefix: 2_048 },
  { ids: ["claude-opus-4-6"], ...MILLION, prices: perMillion(5, 0.1, 25), minimumPrefix: 4_096 },
  { ids: ["claude-opus-4-5"], ...TWO_HUNDRED_THOUSAND, prices: perMillion(5, 0.1, 25), minimumPrefix: 4_096 },
  {
    ids: ["claude-opus-4-1", "claude-opus-4"],
    ...TWO_HUNDRED_THOUSAND,
    prices: perMillion(15, 0.1, 75),
    minimumPrefix: 1_024,
    earlierThinking: "last-turn",
  },
  { ids: ["claude-sonnet-5-5"], prices: perMillion(2, 0.05, 10), minimumPrefix: 512 },
  { ids: ["claude-sonnet-5"], ...MILLION, prices: perMillion(2, 0.1, 10), minimumPrefix: 1_024 },
  { ids: ["claude-sonnet-4-6"], prices: perMillion(3, 0.1, 15), minimumPrefix: 1_024 },
  {
    ids: ["claude-sonnet-4-5", "claude-sonnet-4"],
    ...TWO_HUNDRED_THOUSAND,
    prices: perMillion(3, 0.1, 15),
    minimumPrefix: 1_024,
    earlierThinking: "last-turn",
  },
  {
    ids: ["claude-haiku-5-5"],
    prices: perMillion(0.1, 0.1, 0.5),
    tiers: [{ above: 100_000, prices: perMillion(0.5, 0.1, 2.5) }],
    minimumPrefix: 512,
  },
  {
    ids: ["claude-haiku-4-5"],
    ...TWO_HUNDRED_THOUSAND,
    prices: perMillion(1, 0.1, 5),
    minimumPrefix: 4_096,
    earlierThinking: "last-turn",
  },
  {
    ids: ["claude-haiku-3-5"],
    ...TWO_HUNDRED_THOUSAND,
    prices: perMillion(0.8, 0.1, 4),
    minimumPrefix: 2_048,
    earlierThinking: "last-turn",
  },
];

// --- OpenAI ----------------------------------------------------------------------------------------------------------

/** An entry costs nothing beyond its tokens, once, as input. */
const NO_WRITE_FEE: Prices["write"] = {};

/** Input, cache read and output as published. Entries of 30 minutes cost 1.25 × input to write; the price of a 12-hour
 *  entry is not published. */
const breakpointPrices = (input: number, read: number, output: number): Prices => ({
  input,
  write: { "30m": exact(input * 1.25) },
  read,
  output,
});

/** The provider caches by itself, without a fee. */
const automaticPrices = (input: number, read: number, output: number): Prices => ({
  input,
  write: NO_WRITE_FEE,
  read,
  output,
});

const doubled = (write: Prices["write"]): Prices["write"] =>
  Object.fromEntries(Object.entries(write).map(([ttl, price]) => [ttl, exact(price * 2)]));

/** Above 272K tokens the whole request costs twice as much, and its output 1.5 times as much. */
const higherWhenLong = (prices: Prices): Pick<ModelFacts, "prices" | "tiers"> => ({
  prices,
  tiers: [
    {
      above: 272_000,
      prices: {
        input: exact(prices.input * 2),
        write: doubled(prices.write),
        read: exact(prices.read * 2),
        output: exact(prices.output * 1.5),
      },
    },
  ],
});

/** Kept for a day unless the user has asked OpenAI for less, and read in steps of 128 tokens. */
const KEPT_A_DAY = { keptMs: 24 * HOUR_MS, readStep: 128 } as const;

/** Before GPT-5.6 only the reasoning of the current turn stays in the prompt; models before GPT-5 have none. */
const openai: readonly Family[] = [
  { ids: ["gpt-6-astra"], ...higherWhenLong(breakpointPrices(10, 1, 50)), minimumPrefix: 1_024 },
  { ids: ["gpt-6-sol"], ...higherWhenLong(breakpointPrices(2, 0.2, 10)), minimumPrefix: 1_024 },
  { ids: ["gpt-6-luna"], ...higherWhenLong(breakpointPrices(0.1, 0.01, 0.5)), minimumPrefix: 1_024 },
  { ids: ["gpt-6.1-sol"], ...higherWhenLong(breakpointPrices(2, 0.1, 10)), minimumPrefix: 1_024 },
  { ids: ["gpt-6.1-terra"], ...higherWhenLong(breakpointPrices(1, 0.05, 5)), minimumPrefix: 1_024 },
  { ids: ["gpt-5.6-sol"], window: 1_050_000, ...higherWhenLong(breakpointPrices(4, 0.4, 20)), minimumPrefix: 1_024 },
  { ids: ["gpt-5.6-terra"], window: 1_050_000, ...higherWhenLong(breakpointPrices(2, 0.2, 12)), minimumPrefix: 1_024 },
  {
    ids: ["gpt-5.6-luna"],
    window: 1_050_000,
    ...higherWhenLong(breakpointPrices(0.2, 0.02, 1.2)),
    minimumPrefix: 1_024,
  },
  {
    // Cache hits are counted in steps of 2,048 tokens, so nothing shorter is a hit.
    ids: ["gpt-5.5"],
    ...higherWhenLong(automaticPrices(5, 0.5, 30)),
    ...KEPT_A_DAY,
    readStep: 2_048,
    minimumPrefix: 2_048,
    earlierThinking: "last-turn",
  },
  {
    ids: ["gpt-5.4"],
    ...higherWhenLong(automaticPrices(2.5, 0.25, 15)),
    ...KEPT_A_DAY,
    minimumPrefix: 1_024,
    earlierThinking: "last-turn",
  },
  {
    ids: ["gpt-5.2"],
    prices: automaticPrices(1.75, 0.175, 14),
    ...KEPT_A_DAY,
    minimumPrefix: 1_024,
    earlierThinking: "last-turn",
  },
  {
    ids: ["gpt-5.1", "gpt-5"],
    prices: automaticPrices(1.25, 0.125, 10),
    ...KEPT_A_DAY,
    minimumPrefix: 1_024,
    earlierThinking: "last-turn",
  },
  { ids: ["gpt-4.1"], prices: automaticPrices(2, 0.5, 8), ...KEPT_A_DAY, minimumPrefix: 1_024 },
  { ids: ["gpt-4o"], prices: automaticPrices(2.5, 1.25, 10), ...KEPT_A_DAY, minimumPrefix: 1_024 },
  // The first GPT-4o caches nothing, and its date must not give it the prices of the later ones.
  { ids: ["gpt-4o-2024-05-13"], prices: automaticPrices(5, 5, 15), minimumPrefix: 1_024 },
];

// --- Google ----------------------------------------------------------------------------------------------------------

/** Storage prices are published for two of them. From 2027-01-01 gemini-3.8-flash costs 1.50 and 7.50; the price of a
 *  cache read from then on is not published. */
const google: readonly Family[] = [
  { ids: ["gemini-4-argon"], ...MEBI, prices: automaticPrices(2, 0.1, 10), minimumPrefix: 4_096 },
  { ids: ["gemini-3.8-flash"], prices: automaticPrices(0.75, 0.075, 3.75), minimumPrefix: 4_096, storage: 0.5 },
  { ids: ["gemini-3.7-flash", "gemini-3.6-flash"], prices: automaticPrices(0.75, 0.075, 3.75), minimumPrefix: 4_096 },
  { ids: ["gemini-3.5-flash"], prices: automaticPrices(1.5, 0.15, 9), minimumPrefix: 4_096 },
  {
    ids: ["gemini-3.1-pro"],
    prices: automaticPrices(2, 0.2, 12),
    tiers: [{ above: 200_000, prices: automaticPrices(4, 0.4, 18) }],
    minimumPrefix: 4_096,
    storage: 4.5,
  },
  {
    ids: ["gemini-2.5-pro"],
    ...MEBI,
    prices: automaticPrices(1.25, 0.125, 10),
    tiers: [{ above: 200_000, prices: automaticPrices(2.5, 0.25, 15) }],
    minimumPrefix: 2_048,
  },
  { ids: ["gemini-2.5-flash"], ...MEBI, prices: automaticPrices(0.3, 0.03, 2.5), minimumPrefix: 2_048 },
];

// --- DeepSeek --------------------------------------------------------------------------------------------------------

/** Twice the price from 01 to 04 and from 06 to 10 UTC, Monday to Friday. */
const higherAtPeak = (input: number, read: number, output: number): Pick<ModelFacts, "prices" | "peak"> => ({
  prices: automaticPrices(input, read, output),
  peak: {
    prices: automaticPrices(exact(input * 2), exact(read * 2), exact(output * 2)),
    hours: [
      [1, 4],
      [6, 10],
    ],
    days: [1, 2, 3, 4, 5],
  },
});

const UNITS = { minimumPrefix: 64, readStep: 64 } as const;

/** Kept on disk in units of 64 tokens, for "hours to days"; we count on two hours. */
const deepseek: readonly Family[] = [
  { ids: ["deepseek-flash"], ...higherAtPeak(0.15, 0.003, 0.6), keptMs: 2 * HOUR_MS, ...UNITS },
  { ids: ["deepseek-v4-pro"], ...MEBI, ...higherAtPeak(0.66, 0.022, 1.98), keptMs: 2 * HOUR_MS, ...UNITS },
];

// --- MiniMax ---------------------------------------------------------------------------------------------------------

/** The documentation says a marked prefix is read for a tenth of the input price, the price list says a fifth. We use
 *  the list. */
const minimax: readonly Family[] = [
  {
    ids: ["MiniMax-M3"],
    prices: automaticPrices(0.3, 0.06, 1.2),
    tiers: [{ above: 512_000, prices: automaticPrices(0.6, 0.12, 2.4) }],
    minimumPrefix: 512,
  },
  { ids: ["MiniMax-M3.1-Flash"], prices: automaticPrices(0.15, 0.015, 0.6), minimumPrefix: 512 },
  {
    ids: ["MiniMax-M2.7"],
    prices: { input: 0.3, write: { "5m": 0.375 }, read: 0.06, output: 1.2 },
    minimumPrefix: 512,
  },
];

// --- Alibaba ---------------------------------------------------------------------------------------------------------

type Listed = { readonly input: number; readonly write: number; readonly read: number; readonly output: number };

/** A marked prefix is read for a tenth of the input price; the list has the price of a read without a marker. We have
 *  no published price above 256K tokens. */
const markerPrices = ({ input, write, read, output }: Listed): Pick<ModelFacts, "prices" | "unmarkedRead"> => ({
  prices: { input, write: { "5m": write }, read: exact(input * 0.1), output },
  unmarkedRead: read,
});

const alibaba: readonly Family[] = [
  {
    ids: ["qwen3.7-max"],
    ...markerPrices({ input: 1.475, write: 1.844, read: 0.295, output: 4.425 }),
    minimumPrefix: 1_024,
  },
  {
    ids: ["qwen3.7-plus"],
    ...markerPrices({ input: 0.32, write: 0.4, read: 0.064, output: 1.28 }),
    minimumPrefix: 1_024,
  },
  // The list has no price for a write; the documented one is 1.25 × input.
  { ids: ["qwen3.8-max"], ...markerPrices({ input: 2, write: 2.5, read: 0.25, output: 6 }), minimumPrefix: 1_024 },
];

// --- all of them -----------------------------------------------------------------------------------------------------

/** The model that the demo, the simulator and the planner use when none is named. */
export const DEFAULT_MODEL = "claude-sonnet-5";

export const knownModels: ReadonlyMap<string, ModelFacts> = new Map(
  [...anthropic, ...openai, ...google, ...deepseek, ...minimax, ...alibaba].flatMap(({ ids, ...facts }) =>
    ids.map((id) => [id, { earlierThinking: "keep-all", ...facts, id }] as const),
  ),
);

/** The maker and the host of a model, which gateways put before its name. */
const MAKERS =
  /^(?:(?:anthropic|openai|google|gemini|models|publishers|deepseek|minimax|qwen|alibaba|dashscope|openrouter|vertex_ai|vertex|bedrock(?:\/(?:converse|invoke))?(?:\/[a-z]{2}(?:-[a-z]+)+-\d)?|azure(?:_ai)?|litellm)\/)+/;

/** What gateways and clients add after a name: how to route it, how long its window is. */
const VARIANT = /:(?:nitro|floor|beta|online|exacto|extended|thinking)$|\[\d+[km]\]$/i;

/** Providers and gateways add dates, stages and makers (`claude-opus-4-8-20260301`, `anthropic.claude-…-v1:0`,
 *  `openai/gpt-6-sol`, `models/gemini-3.1-pro-preview`) and how a model is served (`vertex_ai/…`, `…:nitro`, `…[1m]`).
 *  Some write a dot where others write a dash, and some write everything in lower case. */
export const modelFacts = (
  model: string,
  table: ReadonlyMap<string, ModelFacts> = knownModels,
): ModelFacts | undefined => {
  const served = model
    .replace(/^arn:[^/]*\//, "")
    .replace(MAKERS, "")
    .replace(VARIANT, "");
  const bare = served.replace(/^(?:[a-z-]+\.)*anthropic[./]/, "").replace(MAKERS, "");
  const undated = bare
    .replace(/-v\d+(:\d+)?$/, "")
    .replace(/[-@]\d{8}$/, "")
    .replace(/-\d{4}-\d{2}-\d{2}$/, "")
    .replace(/-preview(?:-[\w-]+)?$|-0\d\d$/, "");
  const names = [model, bare, undated, undated.replaceAll(".", "-")];
  return names.map((name) => table.get(name)).find((facts) => facts !== undefined) ?? findLowercase(bare, table);
};

/** Tokens that fit into a model's window, if known: from its name (`…[1m]`), or from its vendor. */
export const windowOf = (model: string): number | undefined => {
  const [, size, unit] = /\[(\d+)([km])\]$/i.exec(model) ?? [];
  if (size === undefined) return modelFacts(model)?.window;
  return Number(size) * (unit?.toLowerCase() === "m" ? 1_000_000 : 1_000);
};

/** For the few models whose own names have capitals. */
const findLowercase = (name: string, table: ReadonlyMap<string, ModelFacts>): ModelFacts | undefined => {
  if (!/^minimax-/.test(name)) return undefined;
  for (const [id, facts] of table) if (id.toLowerCase() === name) return facts;
  return undefined;
};
