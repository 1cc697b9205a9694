/** How does Anthropic say that a field is wrong? */

import { dotted, type Expected, type ShapeComplaints, shapesIn } from "../../shape.ts";

const names: Readonly<Record<Expected, string>> = {
  string: "string",
  boolean: "boolean",
  number: "number",
  integer: "integer",
  object: "dictionary",
  list: "list",
};

const words: ShapeComplaints<string> = {
  under: dotted,
  at: (place, index) => `${place}.${index}`,
  wrongType: (place, expected) => `${place === "" ? "body" : place}: Input should be a valid ${names[expected]}`,
  tooSmall: (place, least) => `${place}: Input should be greater than or equal to ${least}`,
  notOneOf: (place, choices) => `${place}: Input should be ${choices.map((choice) => `'${choice}'`).join(" or ")}`,
  missing: (place) => `${place}: Field required`,
  unknown: (place) => `${place}: Extra inputs are not permitted`,
  tooDeep: (place, levels) => `${place}: Input should not be nested deeper than ${levels} levels`,
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
