/** How do OpenAI and compatible endpoints say that a field is wrong?
 *  Invariant: a complaint names the field in `param` and the fault in `code`.
 *  Elsewhere: which fields exist (../chat, ../responses). */

import type { Json } from "@prefork/wire";
import { invalid, type Refusal } from "../../errors.ts";
import { dotted, type Expected, type ShapeComplaints, type Shapes, shapesIn } from "../../shape.ts";

const names: Readonly<Record<Expected, string>> = {
  string: "a string",
  boolean: "a boolean",
  number: "a decimal",
  integer: "an integer",
  object: "an object",
  list: "an array",
};

const nameOf = (value: Json): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return names.list;
  if (typeof value === "number") return Number.isInteger(value) ? names.integer : names.number;
  return typeof value === "object" ? names.object : names[typeof value as "string" | "boolean"];
};

const quoted = (choices: readonly string[]): string => choices.map((choice) => `'${choice}'`).join(", ");

const words: ShapeComplaints<Refusal> = {
  under: dotted,
  at: (place, index) => `${place}[${index}]`,
  wrongType: (param, expected, value) =>
    invalid(`Invalid type for '${param}': expected ${names[expected]}, but got ${nameOf(value)} instead.`, {
      param,
      code: "invalid_type",
    }),
  tooSmall: (param, least, value) =>
    invalid(
      `Invalid '${param}': integer below minimum value. Expected a value >= ${least}, but got ${value} instead.`,
      { param, code: "integer_below_min_value" },
    ),
  notOneOf: (param, choices, value) =>
    invalid(`Invalid value: ${JSON.stringify(value)}. Supported values are: ${quoted(choices)}.`, {
      param,
      code: "invalid_value",
    }),
  missing: (param) => invalid(`Missing required parameter: '${param}'.`, { param, code: "missing_required_parameter" }),
  unknown: (param) => invalid(`Unknown parameter: '${param}'.`, { param, code: "unknown_parameter" }),
  tooDeep: (param, levels) =>
    invalid(`Invalid '${param}': nested deeper than ${levels} levels.`, { param, code: "invalid_value" }),
};

/** Some endpoints ignore unknown fields. */
export const openaiShapes: Readonly<Record<"refused" | "ignored", Shapes<Refusal>>> = {
  refused: shapesIn(words),
  ignored: shapesIn({ ...words, unknown: () => undefined }),
};

export const unsupported = (param: string, what = "with this model"): Refusal =>
  invalid(`Unsupported parameter: '${param}' is not supported ${what}.`, { param, code: "unsupported_parameter" });
