/** What was spent, what is reserved, and does one more request fit?
 *  A request is sent only after its worst case is reserved, as if nothing were read from a cache and the answer were
 *  as long as it may be. What requests in flight have reserved counts as spent until they are settled. An account
 *  inside another (a fork's in its session's) takes from both or from neither.
 *  Elsewhere: prices (@prefork/wire), what happens when nothing is left (run.ts). */

import {
  addUsage,
  BYTES_PER_TOKEN,
  highestPrices,
  InputError,
  type ModelFacts,
  multipliersOf,
  noUsage,
  promptTokens,
  type Ttl,
  type Usage,
  writeMultiplier,
} from "@prefork/wire";
import type { Pictures } from "../journal/index.ts";
import type { Budget, Reservation, Shortage, SpendLimits, Spent } from "../ports.ts";

export class Account implements Budget {
  readonly #limits: SpendLimits;
  readonly #above: Budget | undefined;
  #spent: Spent;
  #reserved: Reservation = { usd: 0, tokens: 0 };
  /** Callers that wait until a reservation is settled. */
  #waiting: (() => void)[] = [];

  constructor(
    limits: SpendLimits = {},
    options: { readonly spent?: Spent | undefined; readonly above?: Budget | undefined } = {},
  ) {
    this.#limits = limits;
    this.#spent = options.spent ?? { usage: noUsage, usd: 0 };
    this.#above = options.above;
  }

  get spent(): Spent {
    return this.#spent;
  }

  /** What may still be reserved, here and above. */
  get left(): Reservation {
    const { usd, tokens } = this.#limited;
    const above = this.#above?.left ?? UNLIMITED;
    return {
      usd: Math.min(usd - this.#reserved.usd, above.usd),
      tokens: Math.min(tokens - this.#reserved.tokens, above.tokens),
    };
  }

  get unspent(): Reservation {
    const { usd, tokens } = this.#limited;
    const above = this.#above?.unspent ?? UNLIMITED;
    return { usd: Math.min(usd, above.usd), tokens: Math.min(tokens, above.tokens) };
  }

  get countsMoney(): boolean {
    return this.#limits.usd !== undefined || (this.#above?.countsMoney ?? false);
  }

  freed(signal: AbortSignal): Promise<void> {
    if (this.#above) return this.#above.freed(signal); // whatever is settled here is settled there
    return new Promise((resolve) => {
      const done = (): void => {
        this.#waiting = this.#waiting.filter((waiter) => waiter !== done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#waiting.push(done);
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
    });
  }

  reserve(amount: Reservation): Shortage | undefined {
    const { usd, tokens } = this.left;
    if (amount.usd > usd) return { limit: "usd", needed: amount.usd, left: usd };
    if (amount.tokens > tokens) return { limit: "tokens", needed: amount.tokens, left: tokens };
    const short = this.#above?.reserve(amount);
    if (!short) this.#reserved = sum(this.#reserved, amount, 1);
    return short;
  }

  settle(reservation: Reservation, used: Spent): void {
    this.#reserved = sum(this.#reserved, reservation, -1);
    this.#spent = { usage: addUsage(this.#spent.usage, used.usage), usd: this.#spent.usd + used.usd };
    this.#above?.settle(reservation, used);
    for (const waiter of [...this.#waiting]) waiter();
  }

  /** What the limits leave of what was spent here. */
  get #limited(): Reservation {
    const { usd = Number.POSITIVE_INFINITY, tokens = Number.POSITIVE_INFINITY } = this.#limits;
    return { usd: usd - this.#spent.usd, tokens: tokens - tokensOf(this.#spent.usage) };
  }
}

const UNLIMITED: Reservation = { usd: Number.POSITIVE_INFINITY, tokens: Number.POSITIVE_INFINITY };

const sum = (a: Reservation, b: Reservation, sign: 1 | -1): Reservation => ({
  usd: a.usd + sign * b.usd,
  tokens: a.tokens + sign * b.tokens,
});

const tokensOf = (usage: Usage): number => promptTokens(usage) + usage.output;

/** A request before it is sent. */
export type RequestEstimate = {
  readonly promptTokens: number;
  readonly maxTokens: number;
  readonly facts: ModelFacts | undefined;
  /** The lifetimes of its markers: the longest is the most expensive to write. */
  readonly ttls?: readonly Ttl[]; // default: 5m
  /** The class of service that it asks for. */
  readonly speed?: string | undefined;
};

/** The whole prompt at the write price and an answer of maximum length, at the most expensive hour. */
export const worstCase = ({
  promptTokens: prompt,
  maxTokens,
  facts,
  ttls = ["5m"],
  speed,
}: RequestEstimate): Reservation => {
  const tokens = prompt + maxTokens;
  const prices = facts && highestPrices(facts, prompt, { speed });
  if (!prices) return { usd: 0, tokens };
  const { input, output } = prices;
  const multipliers = multipliersOf(facts, prompt);
  const write = Math.max(1, ...ttls.map((ttl) => writeMultiplier(multipliers, ttl)));
  return { usd: (prompt * input * write + maxTokens * output) / 1e6, tokens };
};

/** A shorter answer would be useless. */
const SHORTEST_ANSWER = 1_024;

export type FitResult =
  | { readonly ok: true; readonly maxTokens: number; readonly reserved: Reservation }
  | { readonly ok: false; readonly shortage: Shortage };

/** Reserves what the request may cost. The maximum length of an answer is in no cache key, so it is lowered if needed. */
export const fitRequest = (account: Account, estimate: RequestEstimate): FitResult => {
  const wanted = worstCase(estimate);
  const unpriced = unpricedIn(account, estimate);
  if (unpriced) return unpriced;
  const first = account.reserve(wanted);
  if (!first) return { ok: true, maxTokens: estimate.maxTokens, reserved: wanted };
  const none = worstCase({ ...estimate, maxTokens: 0 });
  const perToken = (wanted.usd - none.usd) / Math.max(1, estimate.maxTokens);
  const { usd, tokens } = account.left;
  const affordable = Math.floor(
    Math.min(perToken > 0 ? (usd - none.usd) / perToken : estimate.maxTokens, tokens - none.tokens),
  );
  if (affordable < Math.min(SHORTEST_ANSWER, estimate.maxTokens)) return { ok: false, shortage: first };
  const shorter = { ...estimate, maxTokens: Math.min(affordable, estimate.maxTokens) };
  const reserved = worstCase(shorter);
  const second = account.reserve(reserved);
  return second ? { ok: false, shortage: second } : { ok: true, maxTokens: shorter.maxTokens, reserved };
};

/** The same, but if only requests in flight stand in the way it waits for them: most of what they reserved is released.
 *  It asks for a shorter answer only if waiting would not help. */
export const fitOrWait = async (
  account: Account,
  estimate: RequestEstimate,
  signal: AbortSignal,
): Promise<FitResult> => {
  const unpriced = unpricedIn(account, estimate);
  if (unpriced) return unpriced;
  const whole = worstCase(estimate);
  for (;;) {
    const short = account.reserve(whole);
    if (!short) return { ok: true, maxTokens: estimate.maxTokens, reserved: whole };
    const { unspent, left } = account;
    const nobodyReserves = left.usd === unspent.usd && left.tokens === unspent.tokens;
    if (signal.aborted) return { ok: false, shortage: short };
    if (nobodyReserves || !isWithin(whole, unspent)) {
      const fitted = fitRequest(account, estimate);
      const shortest = worstCase({ ...estimate, maxTokens: Math.min(SHORTEST_ANSWER, estimate.maxTokens) });
      if (fitted.ok || nobodyReserves || !isWithin(shortest, unspent)) return fitted;
    }
    await account.freed(signal);
  }
};

/** A budget in dollars cannot be kept without a known price. */
const unpricedIn = (account: Account, { facts, speed }: RequestEstimate): FitResult | undefined =>
  (facts && highestPrices(facts, 0, { speed })) || !account.countsMoney
    ? undefined
    : { ok: false, shortage: { limit: "usd", needed: Number.POSITIVE_INFINITY, left: account.left.usd } };

const isWithin = (wanted: Reservation, left: Reservation): boolean =>
  wanted.usd <= left.usd && wanted.tokens <= left.tokens;

/** What a provider last counted: tokens for that many bytes of a line. */
export type Measured = { readonly bytes: number; readonly tokens: number };

/** Providers scale larger pictures down to about this. */
const PICTURE_TOKENS = 1_600;

type Counted = { readonly measured: Measured | undefined; readonly pictures: Pictures };

/** Estimates the tokens of a prompt with this many bytes; images are counted separately. */
export const estimatePrompt = (bytes: number, { measured, pictures }: Counted): number =>
  estimateTokens(bytes - pictures.bytes, measured) + pictures.count * PICTURE_TOKENS;

export const estimateTokens = (bytes: number, measured?: Measured): number =>
  measured && bytes >= measured.bytes
    ? measured.tokens + Math.ceil((bytes - measured.bytes) / BYTES_PER_TOKEN)
    : Math.ceil(bytes / BYTES_PER_TOKEN);

// --- limits as a program gives them: an invalid one is refused by name, never ignored ------------------------------------

/** The longest delay of a timer; with a longer one it would fire at once. */
const LONGEST_MS = 2_147_483_647;

type Numbers = Readonly<Record<string, number | undefined>>;

/** Amounts: of money, of tokens. */
export const checkAmounts = (amounts: Numbers): void => {
  for (const [name, value] of Object.entries(amounts))
    if (value !== undefined && !(Number.isFinite(value) && value >= 0))
      throw new InputError(`${name} must be a non-negative number, got ${value}`);
};

/** Whole numbers: of turns, of tasks. */
export const checkCounts = (counts: Numbers): void => {
  for (const [name, value] of Object.entries(counts))
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 0))
      throw new InputError(`${name} must be a non-negative whole number, got ${value}`);
};

export const checkDurations = (times: Numbers): void => {
  for (const [name, value] of Object.entries(times))
    if (value !== undefined && !(Number.isFinite(value) && value >= 0 && value <= LONGEST_MS))
      throw new InputError(`${name} must be from 0 to ${LONGEST_MS} ms, got ${value}`);
};
