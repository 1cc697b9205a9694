/** Is a JSON value of the expected type, and if not, how does the provider say so?
 *  Invariant: a checker returns one line naming the place, or undefined; it never throws.
 *  Elsewhere: which fields have which type (validate.ts, validate-content.ts). */

import type { Json, JsonObject } from "../request.ts";
import { isObject } from "./body.ts";

export type Checker = (value: Json, place: string) => string | undefined;

export const isString: Checker = (value, place) =>
  typeof value === "string" ? undefined : `${place}: Input should be a valid string`;

export const isBoolean: Checker = (value, place) =>
  typeof value === "boolean" ? undefined : `${place}: Input should be a valid boolean`;

export const isNumber: Checker = (value, place) =>
  typeof value === "number" ? undefined : `${place}: Input should be a valid number`;

export const isDictionary: Checker = (value, place) =>
  isObject(value) ? undefined : `${place}: Input should be a valid dictionary`;

export const isAnything: Checker = () => undefined;

export const isIntegerFrom =
  (least: number): Checker =>
  (value, place) =>
    !Number.isInteger(value)
      ? `${place}: Input should be a valid integer`
      : (value as number) < least
        ? `${place}: Input should be greater than or equal to ${least}`
        : undefined;

export const isOneOf =
  (...choices: readonly string[]): Checker =>
  (value, place) =>
    typeof value === "string" && choices.includes(value)
      ? undefined
      : `${place}: Input should be ${choices.map((choice) => `'${choice}'`).join(" or ")}`;

export const isListOf =
  (item: Checker): Checker =>
  (value, place) =>
    Array.isArray(value)
      ? first(value as readonly Json[], (entry, index) => item(entry, `${place}.${index}`))
      : `${place}: Input should be a valid list`;

/** The first complaint, in order. */
export const first = <T>(
  items: readonly T[],
  check: (item: T, index: number) => string | undefined,
): string | undefined => {
  for (const [index, item] of items.entries()) {
    const complaint = check(item, index);
    if (complaint !== undefined) return complaint;
  }
  return undefined;
};

export type Shape = {
  readonly required?: Readonly<Record<string, Checker>>;
  readonly optional?: Readonly<Record<string, Checker>>;
};

/** Null stands for absent where a field is optional. */
export const isShape =
  ({ required = {}, optional = {} }: Shape): Checker =>
  (value, place) => {
    const under = (name: string): string => (place === "" ? name : `${place}.${name}`);
    if (!isObject(value)) return `${place === "" ? "body" : place}: Input should be a valid dictionary`;
    const object: JsonObject = value;
    return (
      first(Object.keys(required), (name) =>
        object[name] === undefined ? `${under(name)}: Field required` : undefined,
      ) ??
      first(Object.entries(object), ([name, field]) => {
        const needed = required[name];
        if (needed !== undefined) return needed(field, under(name));
        const allowed = optional[name];
        if (allowed === undefined) return `${under(name)}: Extra inputs are not permitted`;
        return field === null ? undefined : allowed(field, under(name));
      })
    );
  };
