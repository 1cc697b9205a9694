/** What we know of each model, as data: prices, cache minimum, what it does with earlier thinking.
 *  Invariant: a figure stands here only if a vendor or a published list states it; unknown stays absent.
 *  Elsewhere: arithmetic on it (prices.ts, economics/), user overrides (the price file of the command line). */

import type { Ttl } from "./request.ts";

/** US dollars per million tokens. */
export type Prices = {
  readonly input: number;
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

/** The model the demo, the simulator and the planner use when none is named. */
export const DEFAULT_MODEL = "claude-sonnet-5";

export const knownModels: ReadonlyMap<string, ModelFacts> = new Map(
  anthropic.flatMap(({ ids, ...facts }) =>
    ids.map((id) => [id, { earlierThinking: "keep-all", ...facts, id }] as const),
  ),
);

/** Providers add dates and region prefixes to ids (`claude-opus-4-8-20260301`, `anthropic.claude-…-v1:0`). */
export const modelFacts = (
  model: string,
  table: ReadonlyMap<string, ModelFacts> = knownModels,
): ModelFacts | undefined => {
  const exactMatch = table.get(model);
  if (exactMatch) return exactMatch;
  const bare = model
    .replace(/^(?:[a-z]+\.)*anthropic[./]/, "")
    .replace(/^anthropic\//, "")
    .replace(/-v\d+(:\d+)?$/, "")
    .replace(/[-@]\d{8}$/, "")
    .replaceAll(".", "-");
  return table.get(bare);
};
