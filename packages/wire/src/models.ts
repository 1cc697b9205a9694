/** What we know of each model, as data: prices, cache minimum, what it does with earlier thinking.
 *  Invariant: a figure stands here only if a vendor or a published list states it; unknown stays absent.
 *  Elsewhere: arithmetic on it (prices.ts, economics/), user overrides (the price file of the command line). */

import type { Ttl } from "./request.ts";

/** US dollars per million tokens. */
export type Prices = {
  readonly input: number;
  /** By the lifetime that is paid for. Empty: writing has no fee, and what is not read is billed as input. */
  readonly write: Readonly<Partial<Record<Ttl, number>>>;
  readonly read: number;
  readonly output: number;
};

/** Prices for the whole request once its prompt is longer than `above` tokens. */
export type PriceTier = { readonly above: number; readonly prices: Prices };

export type ModelFacts = {
  readonly id: string;
  readonly prices: Prices;
  readonly tiers?: readonly PriceTier[];
  /** Price of the faster service class, input and output; cache multipliers stay those of the model. */
  readonly fast?: { readonly input: number; readonly output: number };
  /** Prompts shorter than this are not cached at all. */
  readonly minimumPrefix: number;
  /** US dollars for a million tokens held for an hour, where entries can be stored by name. Creating one is input. */
  readonly storage?: number;
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

/** Models that share every figure; thinking is kept unless said otherwise. */
type Family = Omit<ModelFacts, "id" | "earlierThinking"> &
  Partial<Pick<ModelFacts, "earlierThinking">> & { readonly ids: readonly string[] };

// --- Anthropic -------------------------------------------------------------------------------------------------------

const anthropic: readonly Family[] = [
  {
    ids: ["claude-fable-5", "claude-mythos-5"],
    prices: perMillion(10, 0.1, 50),
    minimumPrefix: 512,
  },
  {
    ids: ["claude-fable-5-1", "claude-mythos-5-1"],
    prices: perMillion(10, 0.025, 50),
    minimumPrefix: 512,
  },
  {
    ids: ["claude-opus-5-5"],
    prices: perMillion(4, 0.05, 20),
    minimumPrefix: 512,
    fast: { input: 8, output: 40 },
  },
  { ids: ["claude-opus-5"], prices: perMillion(5, 0.1, 25), minimumPrefix: 512 },
  {
    ids: ["claude-opus-4-8"],
    prices: perMillion(5, 0.1, 25),
    minimumPrefix: 1_024,
    fast: { input: 10, output: 50 },
  },
  { ids: ["claude-opus-4-7"], prices: perMillion(5, 0.1, 25), minimumPrefix: 2_048 },
  { ids: ["claude-opus-4-6", "claude-opus-4-5"], prices: perMillion(5, 0.1, 25), minimumPrefix: 4_096 },
  {
    ids: ["claude-opus-4-1", "claude-opus-4"],
    prices: perMillion(15, 0.1, 75),
    minimumPrefix: 1_024,
    earlierThinking: "last-turn",
  },
  { ids: ["claude-sonnet-5-5"], prices: perMillion(2, 0.05, 10), minimumPrefix: 512 },
  { ids: ["claude-sonnet-5"], prices: perMillion(2, 0.1, 10), minimumPrefix: 1_024 },
  { ids: ["claude-sonnet-4-6"], prices: perMillion(3, 0.1, 15), minimumPrefix: 1_024 },
  {
    ids: ["claude-sonnet-4-5", "claude-sonnet-4"],
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
    prices: perMillion(1, 0.1, 5),
    minimumPrefix: 4_096,
    earlierThinking: "last-turn",
  },
  {
    ids: ["claude-haiku-3-5"],
    prices: perMillion(0.8, 0.1, 4),
    minimumPrefix: 2_048,
    earlierThinking: "last-turn",
  },
];

// --- OpenAI ----------------------------------------------------------------------------------------------------------

/** Nothing is paid for an entry but its tokens, once, as input. */
const NO_WRITE_FEE: Prices["write"] = {};

/** The figures of published lists, input, read and output; entries of 30 minutes cost 1.25 × input to write, and what
 *  those of 12 hours cost nobody has said. */
const atBreakpoints = (input: number, read: number, output: number): Prices => ({
  input,
  write: { "30m": exact(input * 1.25) },
  read,
  output,
});

/** Cached where the provider likes, without a fee. */
const byItself = (input: number, read: number, output: number): Prices => ({
  input,
  write: NO_WRITE_FEE,
  read,
  output,
});

const doubled = (write: Prices["write"]): Prices["write"] =>
  Object.fromEntries(Object.entries(write).map(([ttl, price]) => [ttl, exact(price * 2)]));

/** Above 272K tokens the whole request costs twice as much, its output half as much again. */
const dearerWhenLong = (prices: Prices): Pick<ModelFacts, "prices" | "tiers"> => ({
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

/** Before GPT-5.6 only the reasoning of the turn under way stays in the prompt; models before GPT-5 have none. */
const openai: readonly Family[] = [
  { ids: ["gpt-6-astra"], ...dearerWhenLong(atBreakpoints(10, 1, 50)), minimumPrefix: 1_024 },
  { ids: ["gpt-6-sol"], ...dearerWhenLong(atBreakpoints(2, 0.2, 10)), minimumPrefix: 1_024 },
  { ids: ["gpt-6-luna"], ...dearerWhenLong(atBreakpoints(0.1, 0.01, 0.5)), minimumPrefix: 1_024 },
  { ids: ["gpt-6.1-sol"], ...dearerWhenLong(atBreakpoints(2, 0.1, 10)), minimumPrefix: 1_024 },
  { ids: ["gpt-6.1-terra"], ...dearerWhenLong(atBreakpoints(1, 0.05, 5)), minimumPrefix: 1_024 },
  { ids: ["gpt-5.6-sol"], ...dearerWhenLong(atBreakpoints(4, 0.4, 20)), minimumPrefix: 1_024 },
  { ids: ["gpt-5.6-terra"], ...dearerWhenLong(atBreakpoints(2, 0.2, 12)), minimumPrefix: 1_024 },
  { ids: ["gpt-5.6-luna"], ...dearerWhenLong(atBreakpoints(0.2, 0.02, 1.2)), minimumPrefix: 1_024 },
  {
    // Hits are counted in steps of 2,048, so nothing shorter is ever one.
    ids: ["gpt-5.5"],
    ...dearerWhenLong(byItself(5, 0.5, 30)),
    minimumPrefix: 2_048,
    earlierThinking: "last-turn",
  },
  {
    ids: ["gpt-5.4"],
    ...dearerWhenLong(byItself(2.5, 0.25, 15)),
    minimumPrefix: 1_024,
    earlierThinking: "last-turn",
  },
  { ids: ["gpt-5.2"], prices: byItself(1.75, 0.175, 14), minimumPrefix: 1_024, earlierThinking: "last-turn" },
  { ids: ["gpt-5.1", "gpt-5"], prices: byItself(1.25, 0.125, 10), minimumPrefix: 1_024, earlierThinking: "last-turn" },
  { ids: ["gpt-4.1"], prices: byItself(2, 0.5, 8), minimumPrefix: 1_024 },
  { ids: ["gpt-4o"], prices: byItself(2.5, 1.25, 10), minimumPrefix: 1_024 },
  // The first of them caches nothing, and its date must not lend it the prices of the later ones.
  { ids: ["gpt-4o-2024-05-13"], prices: byItself(5, 5, 15), minimumPrefix: 1_024 },
];

// --- Google ----------------------------------------------------------------------------------------------------------

/** Storage is stated for two of them. From 2027-01-01 gemini-3.8-flash costs 1.50 and 7.50; what a read will cost then
 *  is not stated. */
const google: readonly Family[] = [
  { ids: ["gemini-4-argon"], prices: byItself(2, 0.1, 10), minimumPrefix: 4_096 },
  { ids: ["gemini-3.8-flash"], prices: byItself(0.75, 0.075, 3.75), minimumPrefix: 4_096, storage: 0.5 },
  { ids: ["gemini-3.7-flash", "gemini-3.6-flash"], prices: byItself(0.75, 0.075, 3.75), minimumPrefix: 4_096 },
  { ids: ["gemini-3.5-flash"], prices: byItself(1.5, 0.15, 9), minimumPrefix: 4_096 },
  {
    ids: ["gemini-3.1-pro"],
    prices: byItself(2, 0.2, 12),
    tiers: [{ above: 200_000, prices: byItself(4, 0.4, 18) }],
    minimumPrefix: 4_096,
    storage: 4.5,
  },
  {
    ids: ["gemini-2.5-pro"],
    prices: byItself(1.25, 0.125, 10),
    tiers: [{ above: 200_000, prices: byItself(2.5, 0.25, 15) }],
    minimumPrefix: 2_048,
  },
  { ids: ["gemini-2.5-flash"], prices: byItself(0.3, 0.03, 2.5), minimumPrefix: 2_048 },
];

// --- all of them -----------------------------------------------------------------------------------------------------

/** The model the demo, the simulator and the planner use when none is named. */
export const DEFAULT_MODEL = "claude-sonnet-5";

export const knownModels: ReadonlyMap<string, ModelFacts> = new Map(
  [...anthropic, ...openai, ...google].flatMap(({ ids, ...facts }) =>
    ids.map((id) => [id, { earlierThinking: "keep-all", ...facts, id }] as const),
  ),
);

/** Providers and gateways add dates, stages, and whose it is (`claude-opus-4-8-20260301`, `anthropic.claude-…-v1:0`,
 *  `openai/gpt-6-sol`, `models/gemini-3.1-pro-preview`); some write a dot where others write a dash. */
export const modelFacts = (
  model: string,
  table: ReadonlyMap<string, ModelFacts> = knownModels,
): ModelFacts | undefined => {
  const bare = model.replace(/^(?:[a-z]+\.)*anthropic[./]/, "").replace(/^(?:anthropic|openai|google|models)\//, "");
  const undated = bare
    .replace(/-v\d+(:\d+)?$/, "")
    .replace(/[-@]\d{8}$/, "")
    .replace(/-\d{4}-\d{2}-\d{2}$/, "")
    .replace(/-preview(?:-[\w-]+)?$|-0\d\d$/, "");
  const names = [model, bare, undated, undated.replaceAll(".", "-")];
  return names.map((name) => table.get(name)).find((facts) => facts !== undefined);
};
