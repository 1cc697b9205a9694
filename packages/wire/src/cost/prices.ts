/** What a request's usage costs, in dollars and in uncached tokens.
 *  Invariant: the parts of a cost sum to its total, and a price tier is chosen by the whole prompt, for the whole
 *  request. If a price is unknown the answer is `undefined`, never a guess; callers then show tokens only.
 *  Elsewhere: the figures (models.ts), what a family of forks costs (fan-out.ts, plans.ts). */

import { type KeySettings, SHORTEST_FIRST, type Ttl } from "../request.ts";
import { promptTokens, type Usage } from "../response.ts";
import { type ModelFacts, modelFacts, type Prices, type PriceTier } from "./models.ts";

/** How the request is served, if that changes its price. The factors multiply. */
export type Service = {
  readonly speed?: string | undefined; // "fast" has its own prices; anything else is the standard class
  readonly batch?: boolean;
  readonly geoUs?: boolean; // inference_geo "us"
  readonly regional?: boolean; // a regional endpoint of a cloud platform
  /** The request has no marker, and reads without a marker have their own price. */
  readonly unmarked?: boolean;
  /** When it began, if prices change with the hour. Default: an hour with the usual price. */
  readonly at?: number | undefined;
};

/** The service class of one of our own requests. */
export const serviceOf = ({ speed }: Pick<KeySettings, "speed">, at?: number): Service => ({ speed, at });

/** US dollars, with the same parts as Usage. */
export type Cost = {
  readonly plain: number;
  readonly read: number;
  readonly written: Readonly<Partial<Record<Ttl, number>>>;
  readonly output: number;
  readonly total: number;
};

/** Prices relative to uncached input: w by lifetime, r for a cache read, q for output. */
export type Multipliers = {
  readonly write: Readonly<Partial<Record<Ttl, number>>>;
  readonly read: number;
  readonly output: number;
};

/** What most models charge; used if a model's own prices are unknown. */
export const USUAL_MULTIPLIERS: Multipliers = { write: { "5m": 1.25, "1h": 2 }, read: 0.1, output: 5 };

const BATCH_FACTOR = 0.5;
const GEO_FACTOR = 1.1;

const perToken = (dollarsPerMillion: number): number => dollarsPerMillion / 1e6;

/** The prices for a prompt of this length. */
export const pricesFor = (facts: ModelFacts, prompt: number): Prices => {
  let highest: PriceTier | undefined;
  for (const tier of facts.tiers ?? []) {
    if (prompt > tier.above && (highest === undefined || tier.above > highest.above)) highest = tier;
  }
  return highest?.prices ?? facts.prices;
};

/** Fast prices are published only for input and output and not by tier; the cache keeps its ratio to input. */
const fastPrices = (facts: ModelFacts): Prices | undefined => {
  if (facts.fast === undefined) return undefined;
  const { write, read } = ratios(facts.prices);
  const input = facts.fast.input;
  return { input, write: scaled(write, input), read: read * input, output: facts.fast.output };
};

const HOUR_MS = 3_600_000;

const isPeak = ({ peak }: ModelFacts, at: number | undefined): boolean => {
  if (peak === undefined || at === undefined) return false;
  const hour = (at % (24 * HOUR_MS)) / HOUR_MS;
  return peak.days.includes(new Date(at).getUTCDay()) && peak.hours.some(([from, to]) => hour >= from && hour < to);
};

/** What a request pays with this service class; undefined if no price is published for it. */
const pricesForService = (facts: ModelFacts, prompt: number, { speed, at, unmarked }: Service): Prices | undefined => {
  if (speed === "fast") return fastPrices(facts);
  const prices = facts.peak && isPeak(facts, at) ? facts.peak.prices : pricesFor(facts, prompt);
  return unmarked && facts.unmarkedRead !== undefined ? { ...prices, read: facts.unmarkedRead } : prices;
};

/** The most that a request with this prompt can cost, at whatever hour it is sent; undefined if no price is known. */
export const highestPrices = (facts: ModelFacts, prompt: number, service: Service = {}): Prices | undefined =>
  service.speed === "fast" ? fastPrices(facts) : (facts.peak?.prices ?? pricesFor(facts, prompt));

const entriesByTtl = (parts: Readonly<Partial<Record<Ttl, number>>>): readonly (readonly [Ttl, number])[] =>
  Object.entries(parts) as [Ttl, number][];

const scaled = (parts: Readonly<Partial<Record<Ttl, number>>>, factor: number): Partial<Record<Ttl, number>> =>
  Object.fromEntries(entriesByTtl(parts).map(([ttl, value]) => [ttl, value * factor]));

/** A table without any write price means that the provider has no write fee: writes are billed as input. If a lifetime
 *  is not sold, the provider writes the next longer one, and that price applies. */
const writePrice = (prices: Prices, ttl: Ttl): number | undefined => {
  if (Object.keys(prices.write).length === 0) return prices.input;
  const sold = SHORTEST_FIRST.slice(SHORTEST_FIRST.indexOf(ttl)).find((longer) => prices.write[longer] !== undefined);
  return sold && prices.write[sold];
};

export const costOf = (usage: Usage, facts: ModelFacts | undefined, service: Service = {}): Cost | undefined => {
  if (facts === undefined) return undefined;
  const prices = pricesForService(facts, promptTokens(usage), service);
  if (prices === undefined) return undefined;
  const factor =
    (service.batch ? BATCH_FACTOR : 1) * (service.geoUs ? GEO_FACTOR : 1) * (service.regional ? GEO_FACTOR : 1);
  const money = (tokens: number, price: number): number => tokens * perToken(price) * factor;

  const written: Partial<Record<Ttl, number>> = {};
  let writtenTotal = 0;
  for (const [ttl, tokens] of entriesByTtl(usage.written)) {
    const price = writePrice(prices, ttl);
    if (price === undefined && tokens > 0) return undefined;
    const part = money(tokens, price ?? 0);
    written[ttl] = part;
    writtenTotal += part;
  }
  const plain = money(usage.plain, prices.input);
  const read = money(usage.read, prices.read);
  const output = money(usage.output, prices.output);
  return { plain, read, written, output, total: plain + read + writtenTotal + output };
};

/** 0.3 / 3 is not 0.1 in binary; everything beyond this many decimals is noise. */
const ratio = (price: number, input: number): number => Math.round((price / input) * 1e12) / 1e12;

const ratios = (prices: Prices): Multipliers => {
  if (prices.input === 0) return USUAL_MULTIPLIERS;
  const write = entriesByTtl(prices.write).map(([ttl, price]) => [ttl, ratio(price, prices.input)]);
  return {
    write: Object.fromEntries(write),
    read: ratio(prices.read, prices.input),
    output: ratio(prices.output, prices.input),
  };
};

export const multipliersOf = (facts: ModelFacts | undefined, prompt = 0): Multipliers =>
  facts === undefined ? USUAL_MULTIPLIERS : ratios(pricesFor(facts, prompt));

/** A lifetime without a price is counted at the highest one: too high is the safe side for a plan. */
export const writeMultiplier = (multipliers: Multipliers, ttl: Ttl): number =>
  multipliers.write[ttl] ?? Math.max(1, ...Object.values(multipliers.write));

/** The cost of a request's prompt in uncached tokens, with cache reads and writes at their multipliers. Output is not
 *  included. */
export const inputUnits = (usage: Usage, facts: ModelFacts | undefined): number => {
  const multipliers = multipliersOf(facts, promptTokens(usage));
  const written = entriesByTtl(usage.written).reduce(
    (sum, [ttl, tokens]) => sum + tokens * writeMultiplier(multipliers, ttl),
    0,
  );
  return withoutNoise(usage.plain + usage.read * multipliers.read + written);
};

/** Multipliers have a few decimals and tokens have none, so anything past the sixth decimal is binary noise. */
export const withoutNoise = (units: number): number => Math.round(units * 1e6) / 1e6;

/** A user's own prices for a model. For a model in the table, fields that are absent keep their value. */
export type PriceOverride = {
  readonly prices?: Partial<Prices>;
  readonly tiers?: readonly PriceTier[];
  readonly fast?: { readonly input: number; readonly output: number };
  readonly minimumPrefix?: number;
  readonly storage?: number;
  readonly earlierThinking?: ModelFacts["earlierThinking"];
};

/** The highest minimum of all known models: an unknown model is not promised a cache below it. */
const CAUTIOUS_MINIMUM = 4_096;

const completePrices = (id: string, prices: Partial<Prices>): Prices => {
  const { input, write, read, output } = prices;
  if (input === undefined || write === undefined || read === undefined || output === undefined) {
    throw new TypeError(`prices of ${id}: a model not in the table needs input, write, read and output`);
  }
  return { input, write, read, output };
};

const overridden = (id: string, base: ModelFacts | undefined, override: PriceOverride): ModelFacts => {
  const { prices: changed = {}, ...rest } = override;
  const write = { ...base?.prices.write, ...changed.write };
  const merged = { ...base?.prices, ...changed, ...(base || changed.write ? { write } : {}) };
  // A user who states a price means it for every hour and every read.
  const { peak, unmarkedRead, ...others } = base ?? {};
  const isStated = Object.keys(changed).length > 0;
  return {
    minimumPrefix: CAUTIOUS_MINIMUM,
    earlierThinking: "keep-all",
    ...others,
    ...(peak && !isStated ? { peak } : {}),
    ...(unmarkedRead === undefined || isStated ? {} : { unmarkedRead }),
    ...rest,
    id,
    prices: completePrices(id, merged),
  };
};

/** The table with a user's figures applied; the given table is not changed. */
export const withPrices = (
  table: ReadonlyMap<string, ModelFacts>,
  overrides: ReadonlyMap<string, PriceOverride>,
): ReadonlyMap<string, ModelFacts> => {
  const result = new Map(table);
  for (const [id, override] of overrides) result.set(id, overridden(id, modelFacts(id, table), override));
  return result;
};
