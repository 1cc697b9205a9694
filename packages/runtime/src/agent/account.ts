/** What was spent, what is promised, and whether one more request fits.
 *  Invariant: a request is sent only after its worst case is held back, as if nothing were read from a cache and the
 *  answer took all it may; what is held by requests in flight counts as spent until they are settled. An account inside
 *  another (a fork's in its session's) takes from both or from neither.
 *  Elsewhere: prices (@prefork/wire), who stops then (stop.ts). */

import {
  addUsage,
  BYTES_PER_TOKEN,
  highestPrices,
  type ModelFacts,
  multipliersOf,
  noUsage,
  promptTokens,
  type Ttl,
  type Usage,
  writeMultiplier,
} from "@prefork/wire";
import type { Pictures } from "../journal/index.ts";

export type SpendLimits = {
  readonly usd?: number;
  /** Prompt and output tokens of all requests. */
  readonly tokens?: number;
};

export type Spent = { readonly usage: Usage; readonly usd: number };

/** The worst case of one request. `usd` is 0 where the price is unknown. */
export type Hold = { readonly usd: number; readonly tokens: number };

export type Shortage = { readonly limit: "usd" | "tokens"; readonly needed: number; readonly left: number };

export class Account {
  readonly #limits: SpendLimits;
  readonly #above: Account | undefined;
  #spent: Spent;
  #held: Hold = { usd: 0, tokens: 0 };
  /** Those who wait until something that is held is free again. */
  #waiting: (() => void)[] = [];

  constructor(limits: SpendLimits = {}, options: { readonly spent?: Spent; readonly above?: Account } = {}) {
    this.#limits = limits;
    this.#spent = options.spent ?? { usage: noUsage, usd: 0 };
    this.#above = options.above;
  }

  get spent(): Spent {
    return this.#spent;
  }

  /** What may still be held, here and above. */
  get left(): Hold {
    const { usd = Number.POSITIVE_INFINITY, tokens = Number.POSITIVE_INFINITY } = this.#limits;
    const above = this.#above?.left ?? { usd: Number.POSITIVE_INFINITY, tokens: Number.POSITIVE_INFINITY };
    return {
      usd: Math.min(usd - this.#spent.usd - this.#held.usd, above.usd),
      tokens: Math.min(tokens - tokensOf(this.#spent.usage) - this.#held.tokens, above.tokens),
    };
  }

  /** What could be held if no request were in flight. */
  get unspent(): Hold {
    const { usd = Number.POSITIVE_INFINITY, tokens = Number.POSITIVE_INFINITY } = this.#limits;
    const above = this.#above?.unspent ?? { usd: Number.POSITIVE_INFINITY, tokens: Number.POSITIVE_INFINITY };
    return {
      usd: Math.min(usd - this.#spent.usd, above.usd),
      tokens: Math.min(tokens - tokensOf(this.#spent.usage), above.tokens),
    };
  }

  /** Resolves when a request has been settled, here or above, or on `signal`. */
  freed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const top = this.#top();
      const done = (): void => {
        top.#waiting = top.#waiting.filter((waiter) => waiter !== done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      top.#waiting.push(done);
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
    });
  }

  #top(): Account {
    return this.#above ? this.#above.#top() : this;
  }

  /** Is money limited, here or above? Then a model without a price cannot be used. */
  get countsMoney(): boolean {
    return this.#limits.usd !== undefined || (this.#above?.countsMoney ?? false);
  }

  hold(wanted: Hold): Shortage | undefined {
    const { usd, tokens } = this.left;
    if (wanted.usd > usd) return { limit: "usd", needed: wanted.usd, left: usd };
    if (wanted.tokens > tokens) return { limit: "tokens", needed: wanted.tokens, left: tokens };
    this.#add(wanted, 1);
    return undefined;
  }

  /** The request is over: what it really used takes the place of what was held. */
  settle(held: Hold, used: Spent): void {
    this.#add(held, -1);
    for (let account: Account | undefined = this; account; account = account.#above) {
      account.#spent = { usage: addUsage(account.#spent.usage, used.usage), usd: account.#spent.usd + used.usd };
    }
    for (const waiter of [...this.#top().#waiting]) waiter();
  }

  #add({ usd, tokens }: Hold, sign: 1 | -1): void {
    for (let account: Account | undefined = this; account; account = account.#above) {
      account.#held = { usd: account.#held.usd + sign * usd, tokens: account.#held.tokens + sign * tokens };
    }
  }
}

const tokensOf = (usage: Usage): number => promptTokens(usage) + usage.output;

/** A request before it is sent. */
export type Asked = {
  readonly promptTokens: number;
  readonly maxTokens: number;
  readonly facts: ModelFacts | undefined;
  /** Of its markers: the longest-lived is the dearest to write. */
  readonly ttls?: readonly Ttl[]; // default: 5m
  /** The class of service that it asks for. */
  readonly speed?: string | undefined;
};

/** All of the prompt at the price of writing it, and an answer as long as it may be, at the dearest hour. */
export const worstCase = ({ promptTokens: prompt, maxTokens, facts, ttls = ["5m"], speed }: Asked): Hold => {
  const tokens = prompt + maxTokens;
  const prices = facts && highestPrices(facts, prompt, { speed });
  if (!prices) return { usd: 0, tokens };
  const { input, output } = prices;
  const multipliers = multipliersOf(facts, prompt);
  const write = Math.max(1, ...ttls.map((ttl) => writeMultiplier(multipliers, ttl)));
  return { usd: (prompt * input * write + maxTokens * output) / 1e6, tokens };
};

/** Shorter answers than this are of no use. */
const SHORTEST_ANSWER = 1_024;

export type Fitted =
  | { readonly ok: true; readonly maxTokens: number; readonly held: Hold }
  | { readonly ok: false; readonly shortage: Shortage };

/** Holds back what the request may cost. The length of an answer is in no cache key, so it is lowered first. */
export const fit = (account: Account, asked: Asked): Fitted => {
  const wanted = worstCase(asked);
  const unpriced = unpricedIn(account, asked);
  if (unpriced) return unpriced;
  const first = account.hold(wanted);
  if (!first) return { ok: true, maxTokens: asked.maxTokens, held: wanted };
  const none = worstCase({ ...asked, maxTokens: 0 });
  const perToken = (wanted.usd - none.usd) / Math.max(1, asked.maxTokens);
  const { usd, tokens } = account.left;
  const affordable = Math.floor(
    Math.min(perToken > 0 ? (usd - none.usd) / perToken : asked.maxTokens, tokens - none.tokens),
  );
  if (affordable < Math.min(SHORTEST_ANSWER, asked.maxTokens)) return { ok: false, shortage: first };
  const shorter = { ...asked, maxTokens: Math.min(affordable, asked.maxTokens) };
  const held = worstCase(shorter);
  const second = account.hold(held);
  return second ? { ok: false, shortage: second } : { ok: true, maxTokens: shorter.maxTokens, held };
};

/** The same, but where only requests in flight stand in the way it waits for them: what they hold is mostly given back.
 *  A shorter answer is asked for only where waiting would not help. */
export const fitInTime = async (account: Account, asked: Asked, signal: AbortSignal): Promise<Fitted> => {
  const unpriced = unpricedIn(account, asked);
  if (unpriced) return unpriced;
  const whole = worstCase(asked);
  for (;;) {
    const short = account.hold(whole);
    if (!short) return { ok: true, maxTokens: asked.maxTokens, held: whole };
    const { unspent, left } = account;
    const nobodyHolds = left.usd === unspent.usd && left.tokens === unspent.tokens;
    if (signal.aborted) return { ok: false, shortage: short };
    if (nobodyHolds || !isWithin(whole, unspent)) {
      const fitted = fit(account, asked);
      const shortest = worstCase({ ...asked, maxTokens: Math.min(SHORTEST_ANSWER, asked.maxTokens) });
      if (fitted.ok || nobodyHolds || !isWithin(shortest, unspent)) return fitted;
    }
    await account.freed(signal);
  }
};

/** Nobody can keep a budget in dollars where no price is known. */
const unpricedIn = (account: Account, { facts, speed }: Asked): Fitted | undefined =>
  (facts && highestPrices(facts, 0, { speed })) || !account.countsMoney
    ? undefined
    : { ok: false, shortage: { limit: "usd", needed: Number.POSITIVE_INFINITY, left: account.left.usd } };

const isWithin = (wanted: Hold, left: Hold): boolean => wanted.usd <= left.usd && wanted.tokens <= left.tokens;

/** What a provider last said of this line: its tokens for that many bytes. */
export type Measured = { readonly bytes: number; readonly tokens: number };

/** Larger ones are scaled down to about this. */
const PICTURE_TOKENS = 1_600;

type Counted = { readonly measured: Measured | undefined; readonly pictures: Pictures };

/** What a prompt of these bytes takes, of which pictures have a length of their own. */
export const estimatePrompt = (bytes: number, { measured, pictures }: Counted): number =>
  estimateTokens(bytes - pictures.bytes, measured) + pictures.count * PICTURE_TOKENS;

export const estimateTokens = (bytes: number, measured?: Measured): number =>
  measured && bytes >= measured.bytes
    ? measured.tokens + Math.ceil((bytes - measured.bytes) / BYTES_PER_TOKEN)
    : Math.ceil(bytes / BYTES_PER_TOKEN);
