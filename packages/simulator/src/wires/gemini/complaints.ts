/** How does Gemini say that something is wrong?
 *  Invariant: an error has the status as a number and as a name; a field may have either of its two spellings.
 *  Elsewhere: which fields exist (validate.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { errorNameFor, GOOGLE_ERRORS } from "@prefork/wire/internal";
import { invalid, type Refusal } from "../../errors.ts";
import { type Checker, dotted, type Expected, type ShapeComplaints, shapesIn } from "../../shape.ts";

/** A status without a name is UNAVAILABLE, like an overloaded model. */
export const errorBody = ({ status, message }: Refusal): JsonObject => ({
  error: {
    code: status,
    message,
    status: errorNameFor(status, GOOGLE_ERRORS) ?? (status < 500 ? "INVALID_ARGUMENT" : "UNAVAILABLE"),
  },
});

const names: Readonly<Record<Expected, string>> = {
  string: "TYPE_STRING",
  boolean: "TYPE_BOOL",
  number: "TYPE_DOUBLE",
  integer: "TYPE_INT32",
  object: "a message",
  list: "a repeated field",
};

const payload = (words: string): Refusal => invalid(`Invalid JSON payload received. ${words}`);

/** For an unknown field the message names the object and the field separately. */
const splitPlace = (place: string): readonly [owner: string, name: string] => {
  const dot = place.lastIndexOf(".");
  return dot < 0 ? ["", place] : [place.slice(0, dot), place.slice(dot + 1)];
};

const words: ShapeComplaints<Refusal> = {
  under: dotted,
  at: (place, index) => `${place}[${index}]`,
  wrongType: (place, expected, value) =>
    invalid(`Invalid value at '${place}' (${names[expected]}), ${JSON.stringify(value).slice(0, 80)}`),
  tooSmall: (place, least) => invalid(`Invalid value at '${place}': must be at least ${least}`),
  notOneOf: (place, _choices, value) =>
    invalid(`Invalid value at '${place}' (TYPE_ENUM), ${JSON.stringify(value).slice(0, 80)}`),
  missing: (place) => invalid(`* GenerateContentRequest.${place}: ${place} is not specified`),
  unknown: (place) => {
    const [owner, name] = splitPlace(place);
    return payload(`Unknown name "${name}"${owner === "" ? "" : ` at '${owner}'`}: Cannot find field.`);
  },
  tooDeep: (place, levels) => payload(`Message too deep at '${place}': more than ${levels} levels.`),
};

export const {
  isString,
  isBoolean,
  isNumber,
  isDictionary,
  isAnything,
  isIntegerFrom,
  isOneOf,
  isListOf,
  isShape,
  isShallow,
} = shapesIn(words);

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Fields under both spellings. */
export const both = (fields: Readonly<Record<string, Checker<Refusal>>>): Readonly<Record<string, Checker<Refusal>>> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, checker]) => [
      [name, checker],
      [snake(name), checker],
    ]),
  );

/** A field by its usual name, in either spelling. */
export const field = (object: JsonObject, name: string): Json | undefined => object[name] ?? object[snake(name)];
