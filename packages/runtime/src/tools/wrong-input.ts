/** What is wrong with the input of a call, in one line that a model can act on?
 *  Invariant: pure; one line that names the key, what was expected and what was given; a key that does not exist is
 *  named with the one that was probably meant. Nothing from the input is quoted but short names.
 *  Elsewhere: the schema (registry.ts, and each tool). */

import type { Json, JsonObject } from "@prefork/wire";
import type { core } from "zod";
import { alike } from "./similar.ts";

type Question = {
  readonly schema: JsonObject;
  readonly args: JsonObject;
  readonly issues: readonly core.$ZodIssue[];
  /** What is said of arguments that are often given and never taken. */
  readonly refuses: Readonly<Record<string, string>>;
};

/** Undefined where nothing is wrong. */
export const wrongInput = ({ schema, args, issues, refuses }: Question): string | undefined => {
  const known = namesOf(schema);
  const given = Object.keys(args);
  const free = known.filter((name) => !given.includes(name));
  const unknown = schema.additionalProperties === false ? given.filter((key) => !known.includes(key)) : [];
  const meant = new Map(unknown.map((key) => [key, alike(key, free, 1)[0]]));
  const isTold = ({ code, path: [key] }: core.$ZodIssue): boolean =>
    (code === "unrecognized_keys" && key === undefined) ||
    (code === "invalid_type" && [...meant.values()].includes(String(key)));
  const reasons = [
    ...unknown.map((key) =>
      Object.hasOwn(refuses, key)
        ? `${quoted(key)} is no argument of it: ${refuses[key]}`
        : unknownKey(key, meant.get(key), known),
    ),
    ...issues.filter((issue) => !isTold(issue)).map((issue) => describe(issue, args)),
  ];
  return reasons.length === 0 ? undefined : [...new Set(reasons)].slice(0, MOST).join("; ");
};

const MOST = 4;

const namesOf = ({ properties }: JsonObject): readonly string[] =>
  typeof properties === "object" && properties !== null ? Object.keys(properties) : [];

const quoted = (name: string): string =>
  JSON.stringify(name.length > 60 ? `${name.slice(0, 60).toWellFormed()}…` : name);

const unknownKey = (key: string, meant: string | undefined, known: readonly string[]): string =>
  `${quoted(key)} is no argument of it, ${meant === undefined ? `which takes ${known.join(", ")}` : `did you mean ${quoted(meant)}?`}`;

const placeOf = (path: readonly PropertyKey[]): string =>
  path.map((step, at) => (typeof step === "number" ? `[${step}]` : `${at === 0 ? "" : "."}${String(step)}`)).join("");

const EXPECTED: Readonly<Record<string, string>> = {
  string: "text",
  boolean: "true or false",
  number: "a number",
  int: "a whole number",
  array: "a list",
  object: "an object",
  record: "an object",
};

const givenAt = (args: JsonObject, path: readonly PropertyKey[]): Json | undefined => {
  let value: unknown = args;
  for (const step of path) value = (value as Readonly<Record<PropertyKey, unknown>> | null | undefined)?.[step];
  return value as Json | undefined;
};

const kindOf = (value: Json): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return EXPECTED[typeof value] ?? typeof value;
};

const describe = (issue: core.$ZodIssue, args: JsonObject): string => {
  const shown = issue.path.length === 0 ? "the input" : quoted(placeOf(issue.path));
  const given = givenAt(args, issue.path);
  switch (issue.code) {
    case "invalid_type": {
      const expected = EXPECTED[issue.expected] ?? issue.expected;
      return given === undefined
        ? `${shown} is missing (${expected})`
        : `${shown} must be ${expected}, not ${kindOf(given)}`;
    }
    case "invalid_value": {
      const values = issue.values.map((value) => JSON.stringify(value)).join(", ");
      return given === undefined ? `${shown} is missing (one of ${values})` : `${shown} must be one of ${values}`;
    }
    case "too_small":
      return `${shown} must ${bound(issue.origin, `at least ${issue.minimum}`)}`;
    case "too_big":
      return `${shown} must ${bound(issue.origin, `at most ${issue.maximum}`)}`;
    case "unrecognized_keys":
      return `in ${shown}, ${issue.keys.map(quoted).join(" and ")} ${issue.keys.length === 1 ? "is" : "are"} not known`;
    default:
      return `${shown}: ${issue.message}`;
  }
};

const bound = (origin: string, limit: string): string => {
  if (origin === "string") return `have ${limit} characters`;
  return origin === "array" ? `have ${limit} entries` : `be ${limit}`;
};
