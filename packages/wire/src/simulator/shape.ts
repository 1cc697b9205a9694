/** Is a JSON value of the expected type, and if not, how does the provider say so?
 *  Invariant: a checker returns one line naming the place, or undefined; it never throws.
 *  Elsewhere: which fields have which type (wires/). */

import type { Json, JsonObject } from "../request.ts";
import { isObject, own } from "./body.ts";

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

/** The first item that stands in the list a second time. */
export const firstRepeated = (items: readonly string[]): string | undefined => {
  const seen = new Set<string>();
  return items.find((item) => seen.size === seen.add(item).size);
};

const MAX_DEPTH = 200;
/** Deep enough to name a field of a block or of a tool's schema; the whole path would be a line of its own. */
const NAMED_DEPTH = 5;

/** Everything after this check may recurse into the body. */
export const isShallow: Checker = (value, place) => {
  const path = pathBelow(value, MAX_DEPTH);
  if (path === undefined) return undefined;
  const named = [...(place === "" ? [] : [place]), ...path.toReversed().slice(0, NAMED_DEPTH)].join(".");
  return `${named}: Input should not be nested deeper than ${MAX_DEPTH} levels`;
};

/** The keys down to the first value nested deeper than `levels`, innermost first. */
const pathBelow = (value: Json, levels: number): string[] | undefined => {
  if (typeof value !== "object" || value === null) return undefined;
  if (levels === 0) return [];
  for (const [key, item] of Object.entries(value)) {
    const below = pathBelow(item, levels - 1);
    if (below !== undefined) {
      below.push(key);
      return below;
    }
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
        const needed = own(required, name);
        if (needed !== undefined) return needed(field, under(name));
        const allowed = own(optional, name);
        if (allowed === undefined) return `${under(name)}: Extra inputs are not permitted`;
        return field === null ? undefined : allowed(field, under(name));
      })
    );
  };
