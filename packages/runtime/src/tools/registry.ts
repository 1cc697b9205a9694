/** Which tools does a session have, what is the model told about them, and what does a call's input mean?
 *  Invariant: a schema is converted to JSON Schema once, here. `specs` has the order of registration and never changes,
 *  because it is the very front of the prefix. Input that does not fit is refused in one line that names the key, what
 *  was expected and what was given; an unknown key is shown with the one that was probably meant. Only short names from
 *  the input are quoted.
 *  Elsewhere: the list of tools (built-in.ts), whether a call may run (@prefork/guard). */

import { readJsonLine, type Touches } from "@prefork/guard";
import { InputError, type Json, type JsonObject, type RawJson, type ToolSpec } from "@prefork/wire";
import type { core } from "zod";
import * as z from "zod";
import { findSimilar } from "./similar.ts";
import type { Tool } from "./tool.ts";

/** `input` is what the tool receives. `args` is what the call contains, for the guard. */
export type CheckedInput =
  | { readonly ok: true; readonly input: unknown; readonly args: JsonObject }
  | { readonly ok: false; readonly reason: string };

/** A call as the model makes it. */
export type NamedCall = { readonly name: string; readonly input: RawJson };

export type Registry = {
  readonly tools: readonly Tool[];
  readonly specs: readonly ToolSpec[];
  readonly find: (name: string) => Tool | undefined;
  readonly check: (tool: Tool, input: RawJson) => CheckedInput;
  /** Removes the envelope that some endpoints leave around a call's arguments: one level, if `arguments` or `input`
   *  is the only key and not an argument of the tool. `check` refuses everything else. */
  readonly unwrap: (tool: Tool, input: RawJson) => RawJson;
  /** What a call touches, as its tool declares it. Undefined: it may touch anything, or it will not run at all. */
  readonly touches: (call: NamedCall) => Touches | undefined;
  /** Advice for a model that called a tool by a wrong name. */
  readonly advice: (name: string) => string;
};

const LEGAL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

export const createRegistry = (tools: readonly Tool[]): Registry => {
  const byName = new Map<string, Tool>();
  for (const tool of tools) {
    if (!LEGAL_NAME.test(tool.name))
      throw new InputError(
        `${JSON.stringify(tool.name)} is not a valid tool name: use 1 to 64 letters, digits, _ and -`,
      );
    if (byName.has(tool.name)) throw new InputError(`there are two tools named ${tool.name}`);
    byName.set(tool.name, tool);
  }
  const schemas = new Map(tools.map((tool) => [tool, jsonSchemaOf(tool)]));
  const specs = tools.map(
    (tool): ToolSpec => ({
      type: "function",
      name: tool.name,
      description: tool.description,
      inputSchema: schemas.get(tool) ?? {},
    }),
  );
  const shapeOf = (tool: Tool): JsonObject => schemas.get(tool) ?? jsonSchemaOf(tool);
  return {
    tools,
    specs,
    find: (name) => byName.get(name),
    check: (tool, input) => check(tool, input, shapeOf(tool)),
    unwrap: (tool, input) => unwrap(input, shapeOf(tool)),
    touches: ({ name, input }) => {
      const tool = byName.get(name);
      if (!tool?.touches) return undefined;
      const checked = check(tool, unwrap(input, shapeOf(tool)), shapeOf(tool));
      return checked.ok ? touchesOf(tool, checked.input) : undefined;
    },
    advice: (name) => {
      const near = findSimilar(name, [...byName.keys()]);
      return near.length > 0 ? `Did you mean ${near[0]}?` : `There are ${[...byName.keys()].join(", ")}.`;
    },
  };
};

const check = (tool: Tool, input: RawJson, schema: JsonObject): CheckedInput => {
  const read = readJsonLine(input.trim() === "" ? "{}" : input);
  if (read.kind !== "object") return { ok: false, reason: `the input is ${describeParseProblem(read)}` };
  const args = Object.fromEntries(read.fields) as JsonObject;
  const parsed = tool.input.safeParse(args);
  const reason = describeInputProblems({
    schema,
    args,
    issues: parsed.error?.issues ?? [],
    refuses: tool.unsupportedArguments ?? {},
  });
  if (reason !== undefined) return { ok: false, reason };
  return { ok: true, input: parsed.data, args };
};

const isStringList = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) && value.every((text) => typeof text === "string"));

/** For checked input. Undefined where the declaration throws or is malformed: then anything may be touched. */
export const touchesOf = (tool: Tool, input: unknown): Touches | undefined => {
  try {
    const { reads, writes, runs, reaches } = tool.touches?.(input) ?? { reads: null };
    if (![reads, writes, runs, reaches].every(isStringList)) return undefined;
    const declared = Object.entries({ reads, writes, runs, reaches }).filter(([, texts]) => texts !== undefined);
    return Object.fromEntries(declared.map(([kind, texts]) => [kind, [...(texts ?? [])]]));
  } catch {
    return undefined;
  }
};

const unwrap = (input: RawJson, schema: JsonObject): RawJson => {
  const read = readJsonLine(input);
  if (read.kind !== "object" || read.fields.size !== 1) return input;
  const [[key, inner] = ["", undefined]] = read.fields;
  if ((key !== "arguments" && key !== "input") || !isObject((inner ?? null) as Json)) return input;
  return hasNoProperty(schema, key) ? JSON.stringify(inner) : input;
};

/** False for a schema that accepts any key. */
const hasNoProperty = ({ properties, additionalProperties }: JsonObject, key: string): boolean => {
  const names = isObject(properties ?? null) ? Object.keys(properties as JsonObject) : [];
  return !names.includes(key) && (names.length > 0 || additionalProperties === false);
};

const describeParseProblem = ({
  kind,
  reason,
}: {
  readonly kind: "doubtful" | "malformed";
  readonly reason: string;
}): string => (kind === "malformed" ? `${reason}; give one JSON object` : `ambiguous: ${reason}`);

// --- JSON Schema -------------------------------------------------------------------------------------------------------

const jsonSchemaOf = ({ name, input, schema: given }: Tool): JsonObject => {
  if (given) return given;
  const schema = tidy(z.toJSONSchema(input, { io: "input" }) as Json);
  if (!isObject(schema) || schema.type !== "object")
    throw new InputError(`the input of ${name} must be an object, as z.object makes it`);
  return "additionalProperties" in schema ? schema : { ...schema, additionalProperties: false };
};

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Noise for a reader: the dialect, limits that every number has, "property names are strings", "anything is
 *  allowed". */
const isNoise = (key: string, value: Json): boolean =>
  key === "$schema" ||
  (key === "maximum" && value === Number.MAX_SAFE_INTEGER) ||
  (key === "minimum" && value === Number.MIN_SAFE_INTEGER) ||
  (key === "propertyNames" && JSON.stringify(value) === '{"type":"string"}') ||
  (key === "additionalProperties" && JSON.stringify(value) === "{}");

const FIRST = ["type", "description", "enum"];

/** The key order of a schema depends on how it was written and on the version of the library. Here it is always the
 *  same. Properties keep the order in which their author wrote them. */
const tidy = (schema: Json): Json => {
  if (Array.isArray(schema)) return schema.map(tidy);
  if (!isObject(schema)) return schema;
  const rank = (key: string): number => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);
  const entries = Object.entries(schema)
    .filter(([key, value]) => !isNoise(key, value))
    .sort(([a], [b]) => rank(a) - rank(b))
    .map(([key, value]) => [key, key === "properties" && isObject(value) ? tidyProperties(value) : tidy(value)]);
  return Object.fromEntries(entries);
};

const tidyProperties = (properties: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, tidy(schema)]));

type InputToJudge = {
  readonly schema: JsonObject;
  readonly args: JsonObject;
  readonly issues: readonly core.$ZodIssue[];
  /** Explanations for arguments that are often given and never accepted. */
  readonly refuses: Readonly<Record<string, string>>;
};

/** Undefined if nothing is wrong. */
export const describeInputProblems = ({ schema, args, issues, refuses }: InputToJudge): string | undefined => {
  const known = propertyNames(schema);
  const given = Object.keys(args);
  const free = known.filter((name) => !given.includes(name));
  const unknown = schema.additionalProperties === false ? given.filter((key) => !known.includes(key)) : [];
  const meant = new Map(unknown.map((key) => [key, findSimilar(key, free)[0]]));
  const meantNames = new Set(meant.values());
  const isCovered = ({ code, path: [key] }: core.$ZodIssue): boolean =>
    (code === "unrecognized_keys" && key === undefined) || (code === "invalid_type" && meantNames.has(String(key)));
  const reasons = [
    ...unknown.map((key) =>
      Object.hasOwn(refuses, key)
        ? `${quoted(key)} is no argument of it: ${refuses[key]}`
        : unknownKey(key, meant.get(key), known),
    ),
    ...issues.filter((issue) => !isCovered(issue)).map((issue) => describeIssue(issue, args)),
  ];
  return reasons.length === 0 ? undefined : [...new Set(reasons)].slice(0, MAX_REASONS).join("; ");
};

const MAX_REASONS = 4;

const propertyNames = ({ properties }: JsonObject): readonly string[] =>
  typeof properties === "object" && properties !== null ? Object.keys(properties) : [];

const quoted = (name: string): string =>
  JSON.stringify(name.length > 60 ? `${name.slice(0, 60).toWellFormed()}…` : name);

const unknownKey = (key: string, meant: string | undefined, known: readonly string[]): string =>
  `${quoted(key)} is no argument of it, ${meant === undefined ? `which takes ${known.join(", ")}` : `did you mean ${quoted(meant)}?`}`;

const formatPath = (path: readonly PropertyKey[]): string =>
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

const valueAt = (args: JsonObject, path: readonly PropertyKey[]): Json | undefined => {
  let value: unknown = args;
  for (const step of path) value = (value as Readonly<Record<PropertyKey, unknown>> | null | undefined)?.[step];
  return value as Json | undefined;
};

const kindOf = (value: Json): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return EXPECTED[typeof value] ?? typeof value;
};

const describeIssue = (issue: core.$ZodIssue, args: JsonObject): string => {
  const shown = issue.path.length === 0 ? "the input" : quoted(formatPath(issue.path));
  const given = valueAt(args, issue.path);
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
      return `${shown} must ${describeLimit(issue.origin, `at least ${issue.minimum}`)}`;
    case "too_big":
      return `${shown} must ${describeLimit(issue.origin, `at most ${issue.maximum}`)}`;
    case "unrecognized_keys":
      return `in ${shown}, ${issue.keys.map(quoted).join(" and ")} ${issue.keys.length === 1 ? "is" : "are"} not known`;
    default:
      return `${shown}: ${issue.message}`;
  }
};

const describeLimit = (origin: string, limit: string): string => {
  if (origin === "string") return `have ${limit} characters`;
  return origin === "array" ? `have ${limit} entries` : `be ${limit}`;
};
