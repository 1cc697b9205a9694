/** Is it worth storing what many requests share by name, where a provider sells that? An entry costs input when it is
 *  created, storage by the hour, and a cache read for every request that names it.
 *  Invariant: storing is advised only if it is cheaper than what it replaces; if a price is unknown nothing is advised.
 *  The requests' own tokens are the same either way and not included in any figure here.
 *  Elsewhere: what an entry contains (../protocols), keep-alives for entries that need no storage (lifetime.ts). */

import { type Bill, formatFigure } from "./fan-out.ts";
import type { ModelFacts } from "./models.ts";
import { pricesFor, withoutNoise } from "./prices.ts";

export type StoredQuestion = {
  readonly tokens: number;
  /** From its creation until it is deleted or expires. */
  readonly heldMs: number;
  /** Requests that will name it: every turn of every fork. */
  readonly reads: number;
  readonly facts: ModelFacts | undefined;
  /** The share of the prompt that the provider would have read without any entry. Default: 0, because no hit is
   *  promised. */
  readonly hitRate?: number;
};

export type StoredBills = {
  readonly creation: Bill;
  readonly storage: Bill;
  readonly reads: Bill;
  readonly total: Bill;
  /** The same requests without an entry. */
  readonly unstored: Bill;
};

export type StoredDecision =
  | { readonly store: true; readonly reason: string; readonly bills: StoredBills; readonly breakEven: number }
  | { readonly store: false; readonly reason: string; readonly bills?: StoredBills; readonly breakEven?: number };

/** How much of a long prompt is read that Gemini keeps without a promise, as users have measured. */
export const USUAL_HIT_RATE = 0.8;

const HOUR_MS = 3_600_000;

/** Relative to one token of uncached input: r, and the price of an hour of storage. */
const relativePrices = ({ tokens, facts }: Pick<StoredQuestion, "tokens" | "facts">) => {
  if (facts?.storage === undefined) return undefined;
  const { input, read } = pricesFor(facts, tokens);
  return { read: read / input, anHour: facts.storage / input, perToken: input / 1e6 };
};

/** From how many reads on an entry is cheaper than none; undefined if never, or if its price is unknown. */
export const storedBreakEven = (question: Omit<StoredQuestion, "reads">): number | undefined => {
  const rate = relativePrices(question);
  const spared = rate && (1 - (question.hitRate ?? 0)) * (1 - rate.read);
  if (rate === undefined || spared === undefined || spared <= 0) return undefined;
  const fixed = 1 + rate.anHour * (question.heldMs / HOUR_MS);
  // At exactly the break-even number of reads nothing is gained yet.
  return Math.floor(withoutNoise(fixed / spared)) + 1;
};

export const storedBills = (question: StoredQuestion): StoredBills | undefined => {
  const { tokens, heldMs, reads, hitRate = 0 } = question;
  const rate = relativePrices(question);
  if (rate === undefined) return undefined;
  const bill = (units: number): Bill => ({ units: withoutNoise(units), money: units * rate.perToken });
  const storage = tokens * rate.anHour * (heldMs / HOUR_MS);
  const read = tokens * rate.read * reads;
  return {
    creation: bill(tokens),
    storage: bill(storage),
    reads: bill(read),
    total: bill(tokens + storage + read),
    unstored: bill(tokens * reads * (1 - hitRate * (1 - rate.read))),
  };
};

export const decideStored = (question: StoredQuestion): StoredDecision => {
  const { tokens, reads, facts } = question;
  const bills = storedBills(question);
  const breakEven = storedBreakEven(question);
  const known = { ...(bills ? { bills } : {}), ...(breakEven === undefined ? {} : { breakEven }) };
  const no = (reason: string): StoredDecision => ({ store: false, reason: `not stored: ${reason}`, ...known });
  if (!bills) return no(`no storage price is known${facts ? ` for ${facts.id}` : ""}`);
  if (facts && tokens < facts.minimumPrefix)
    return no(`${formatFigure(tokens)} tokens are below the minimum of ${formatFigure(facts.minimumPrefix)}`);
  if (breakEven === undefined) return no("all of it would be read without an entry too");
  const figures = `${formatFigure(bills.total.units)} uncached tokens against ${formatFigure(bills.unstored.units)}`;
  const needed = `it takes ${describeReads(breakEven)} to be worth it`;
  if (reads < breakEven) return no(`with ${describeReads(reads)} ${figures}, and ${needed}`);
  return { store: true, reason: `stored: with ${describeReads(reads)} ${figures}; ${needed}`, bills, breakEven };
};

const describeReads = (reads: number): string => (reads === 1 ? "1 read" : `${formatFigure(reads)} reads`);
