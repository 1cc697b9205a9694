/** Whether what many requests share is worth storing by name, where a provider sells that: an entry is paid for as input
 *  when it is created, by the hour while it is held, and at the price of a read by every request that names it.
 *  Invariant: storing is advised only where it is cheaper than what it replaces; where a price is unknown nothing is
 *  advised. Requests' own tokens are the same either way and in no figure here.
 *  Elsewhere: what stands in an entry (../protocols), keeping entries that need no storage (lifetime.ts). */

import { type Bill, figure } from "./fan-out.ts";
import type { ModelFacts } from "./models.ts";
import { pricesFor, withoutNoise } from "./prices.ts";

export type StoredQuestion = {
  readonly tokens: number;
  /** From its creation to its end, asked for or not. */
  readonly heldMs: number;
  /** Requests that will name it: every turn of every fork. */
  readonly reads: number;
  readonly facts: ModelFacts | undefined;
  /** The share of what is asked that the provider would have read without any entry. Default: 0, as none is promised. */
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

/** What is read of a long prompt that is kept without a promise, by what users of Gemini have measured. */
export const USUAL_HIT_RATE = 0.8;

const HOUR_MS = 3_600_000;

/** Against one token of plain input: r, and what an hour of storage costs. */
const rates = ({ tokens, facts }: Pick<StoredQuestion, "tokens" | "facts">) => {
  if (facts?.storage === undefined) return undefined;
  const { input, read } = pricesFor(facts, tokens);
  return { read: read / input, anHour: facts.storage / input, perToken: input / 1e6 };
};

/** From how many reads on an entry is cheaper than none; undefined where it never is, or its price is unknown. */
export const storedBreakEven = (question: Omit<StoredQuestion, "reads">): number | undefined => {
  const rate = rates(question);
  const spared = rate && (1 - (question.hitRate ?? 0)) * (1 - rate.read);
  if (rate === undefined || spared === undefined || spared <= 0) return undefined;
  const fixed = 1 + rate.anHour * (question.heldMs / HOUR_MS);
  // At exactly as many reads as it takes to be even, nothing is gained yet.
  return Math.floor(withoutNoise(fixed / spared)) + 1;
};

export const storedBills = (question: StoredQuestion): StoredBills | undefined => {
  const { tokens, heldMs, reads, hitRate = 0 } = question;
  const rate = rates(question);
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
  if (!bills) return no(`no price for storing is known${facts ? ` of ${facts.id}` : ""}`);
  if (facts && tokens < facts.minimumPrefix)
    return no(`${figure(tokens)} tokens are fewer than the ${figure(facts.minimumPrefix)} that can be`);
  if (breakEven === undefined) return no("all of it would be read without an entry too");
  const figures = `${figure(bills.total.units)} base-input tokens against ${figure(bills.unstored.units)}`;
  const needed = `it takes ${inWords(breakEven)} to be worth it`;
  if (reads < breakEven) return no(`with ${inWords(reads)} ${figures}, and ${needed}`);
  return { store: true, reason: `stored: with ${inWords(reads)} ${figures}; ${needed}`, bills, breakEven };
};

const inWords = (reads: number): string => (reads === 1 ? "1 read" : `${figure(reads)} reads`);
