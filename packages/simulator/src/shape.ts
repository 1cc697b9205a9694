/** Does a JSON value have the expected type, and if not, what is wrong with it?
 *  Invariant: a checker returns one complaint, or undefined; it never throws. Each provider words the same complaint in
 *  its own way.
 *  Elsewhere: which fields have which type, and the wording (wires/). */

import type { Json, JsonObject } from "@prefork/wire";
import { isObject, ownEntry } from "./body.ts";

export type Checker<C = string> = (value: Json, place: string) => C | undefined;

export type Expected = "string" | "boolean" | "number" | "integer" | "object" | "list";

/** How a provider names locations and words complaints; a location is a whole path. */
export type ShapeComplaints<C> = {
  readonly under: (place: string, name: string) => string;
  readonly at: (place: string, index: number) => string;
  readonly wrongType: (place: string, expected: Expected, given: Json) => C;
  readonly tooSmall: (place: string, least: number, given: number) => C;
  readonly notOneOf: (place: string, choices: readonly string[], given: Json) => C;
  readonly missing: (place: string) => C;
  /** Undefined if the provider ignores unknown fields. */
  readonly unknown: (place: string) => C | undefined;
  readonly tooDeep: (place: string, levels: number) => C;
};

/** A field inside another one, as most providers write it. */
export const dotted = (place: string, name: string): string => (place === "" ? name : `${place}.${name}`);

export type Shape<C = string> = {
  readonly required?: Readonly<Record<string, Checker<C>>>;
  readonly optional?: Readonly<Record<string, Checker<C>>>;
};

export type Shapes<C> = {
  readonly isString: Checker<C>;
  readonly isBoolean: Checker<C>;
  readonly isNumber: Checker<C>;
  readonly isDictionary: Checker<C>;
  readonly isAnything: Checker<C>;
  readonly isIntegerFrom: (least: number) => Checker<C>;
  readonly isOneOf: (...choices: readonly string[]) => Checker<C>;
  readonly isListOf: (item: Checker<C>) => Checker<C>;
  readonly isShape: (shape: Shape<C>) => Checker<C>;
  /** Code after this check may recurse into the body. */
  readonly isShallow: Checker<C>;
};

/** The checkers of a provider. */
export const shapesIn = <C>(words: ShapeComplaints<C>): Shapes<C> => {
  const ofType =
    (expected: Expected, fits: (value: Json) => boolean): Checker<C> =>
    (value, place) =>
      fits(value) ? undefined : words.wrongType(place, expected, value);
  return {
    isString: ofType("string", (value) => typeof value === "string"),
    isBoolean: ofType("boolean", (value) => typeof value === "boolean"),
    isNumber: ofType("number", (value) => typeof value === "number"),
    isDictionary: ofType("object", isObject),
    isAnything: () => undefined,
    isIntegerFrom: (least) => (value, place) => {
      if (!Number.isInteger(value)) return words.wrongType(place, "integer", value);
      return (value as number) < least ? words.tooSmall(place, least, value as number) : undefined;
    },
    isOneOf:
      (...choices) =>
      (value, place) =>
        typeof value === "string" && choices.includes(value) ? undefined : words.notOneOf(place, choices, value),
    isListOf: (item) => (value, place) =>
      Array.isArray(value)
        ? first(value as readonly Json[], (entry, index) => item(entry, words.at(place, index)))
        : words.wrongType(place, "list", value),
    isShape: (shape) => (value, place) =>
      isObject(value) ? misfit(value, place, { shape, words }) : words.wrongType(place, "object", value),
    isShallow: (value, place) => {
      const path = pathBelow(value, MAX_DEPTH);
      if (path === undefined) return undefined;
      const named = [...(place === "" ? [] : [place]), ...path.toReversed().slice(0, NAMED_DEPTH)].join(".");
      return words.tooDeep(named, MAX_DEPTH);
    },
  };
};

type MisfitTerms<C> = { readonly shape: Shape<C>; readonly words: ShapeComplaints<C> };

/** In an optional field null means absent. */
const misfit = <C>(object: JsonObject, place: string, { shape, words }: MisfitTerms<C>): C | undefined => {
  const { required = {}, optional = {} } = shape;
  return (
    first(Object.keys(required), (name) =>
      object[name] === undefined ? words.missing(words.under(place, name)) : undefined,
    ) ??
    first(Object.entries(object), ([name, field]) => {
      const under = words.under(place, name);
      const needed = ownEntry(required, name);
      if (needed !== undefined) return needed(field, under);
      const allowed = ownEntry(optional, name);
      if (allowed === undefined) return words.unknown(under);
      return field === null ? undefined : allowed(field, under);
    })
  );
};

/** The first complaint, in order. */
export const first = <T, C>(items: readonly T[], check: (item: T, index: number) => C | undefined): C | undefined => {
  for (const [index, item] of items.entries()) {
    const complaint = check(item, index);
    if (complaint !== undefined) return complaint;
  }
  return undefined;
};

/** The first item that occurs a second time. */
export const firstRepeated = (items: readonly string[]): string | undefined => {
  const seen = new Set<string>();
  return items.find((item) => seen.size === seen.add(item).size);
};

const MAX_DEPTH = 200;
/** Deep enough to name a field of a block or of a tool's schema; the whole path would be too long. */
const NAMED_DEPTH = 5;

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
