/** Which numbers only make an answer huge?
 *  Invariant: a width, a precision or a count that could fill the memory is refused, whatever program pads with it.
 *  Elsewhere: what a plan may print and how long it may run (../../run). */

import type { Given } from "../options.ts";
import { Refusal } from "../refusal.ts";

/** A width of five digits or one that comes from elsewhere (`%*d`), in the formats of printf, strftime and git. */
const WIDE = /%(?:w?[^a-zA-Z%]*?(?:\d{5}|\*)|\([^)]{0,99}\d{5})/;

export const isWide = (format: string): boolean => WIDE.test(format);

export const checkWidth = (program: string, format: string): void => {
  if (isWide(format)) throw new Refusal(`${program} takes widths of at most four digits: %20s`);
};

/** `(a{1,999}){1,999}` is made out into a million states before anything is looked for. */
export const repeatsProblem = (program: string, pattern: string): string | undefined => {
  let states = 1;
  for (const [, least = "", most = ""] of pattern.matchAll(/\{(\d{0,9})(?:,(\d{0,9}))?\\?\}/g)) {
    states *= Math.max(1, Number(least), Number(most));
    if (states > 250_000) return `${program}: a pattern that repeats so often fills the memory`;
  }
  return undefined;
};

export const checkRepeats = (program: string, pattern: string): void => {
  const problem = repeatsProblem(program, pattern);
  if (problem !== undefined) throw new Refusal(problem);
};

/** The options with these names take numbers of at most four digits, in lists or with a sign. */
export const smallNumbers =
  (program: string, ...names: readonly string[]) =>
  ({ options }: Given): void => {
    for (const { name, value = "" } of options) {
      if (names.includes(name) && /\d{5}|0x/i.test(value))
        throw new Refusal(`${program} takes numbers of at most four digits; ${value} is too large`);
    }
  };

/** The options with these names hold formats. */
export const narrowFormats =
  (program: string, ...names: readonly string[]) =>
  ({ options }: Given): void => {
    for (const { name, value = "" } of options) if (names.includes(name)) checkWidth(program, value);
  };

/** Several checks, all of which must hold. */
export const both =
  (...checks: readonly ((given: Given) => void)[]) =>
  (given: Given): void => {
    for (const check of checks) check(given);
  };
