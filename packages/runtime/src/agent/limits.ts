/** Limits as a program gives them: are they numbers that can be kept? Pure.
 *  Invariant: what is no limit is refused by name, and never taken for none.
 *  Elsewhere: keeping them (account.ts, stop.ts). */

import { InputError } from "@prefork/wire";

/** Timers cannot wait longer; they would not wait at all. */
const LONGEST_MS = 2_147_483_647;

type Numbers = Readonly<Record<string, number | undefined>>;

/** Amounts: of money, of tokens. */
export const mustBeAmounts = (amounts: Numbers): void => {
  for (const [name, value] of Object.entries(amounts))
    if (value !== undefined && !(Number.isFinite(value) && value >= 0))
      throw new InputError(`${name} must be a number that is not negative, got ${value}`);
};

/** Whole numbers: of turns, of tasks. */
export const mustBeCounts = (counts: Numbers): void => {
  for (const [name, value] of Object.entries(counts))
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 0))
      throw new InputError(`${name} must be a whole number, got ${value}`);
};

export const mustBeTimes = (times: Numbers): void => {
  for (const [name, value] of Object.entries(times))
    if (value !== undefined && !(Number.isFinite(value) && value >= 0 && value <= LONGEST_MS))
      throw new InputError(`${name} must be from 0 to ${LONGEST_MS} ms, got ${value}`);
};
