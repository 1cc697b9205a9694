/** Which tools does this request declare, and how does a call fit their schemas?
 *  Invariant: a call has only arguments that the declared schema names; if the schema requires more, the call is not made.
 *  Elsewhere: which calls to make (moves.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { listOf, objectOf, textOf } from "./conversation.ts";
import type { Call } from "./moves.ts";

export type DeclaredTools = ReadonlyMap<string, JsonObject>;

export const declaredTools = (body: JsonObject): DeclaredTools =>
  new Map(listOf(body.tools).map((tool) => [textOf(objectOf(tool).name), objectOf(objectOf(tool).input_schema)]));

export type FittedCall = { readonly ok: true; readonly call: Call } | { readonly ok: false; readonly reason: string };

export const fitCall = ({ name, input }: Call, declared: DeclaredTools): FittedCall => {
  const schema = declared.get(name);
  if (schema === undefined) return { ok: false, reason: `the tool ${name} is not declared in this session` };
  const fitted = objectOf(fitValue(input, schema));
  const missing = listOf(schema.required)
    .map(textOf)
    .filter((key) => !Object.hasOwn(fitted, key));
  if (missing.length > 0)
    return { ok: false, reason: `the tool ${name} asks for ${missing.join(", ")}, which a rehearsal cannot give` };
  return { ok: true, call: { name, input: fitted } };
};

/** Drops properties that the schema does not name; a schema without properties accepts everything. */
const fitValue = (value: Json, schema: JsonObject): Json => {
  if (Array.isArray(value)) return value.map((item: Json) => fitValue(item, objectOf(schema.items)));
  if (typeof value !== "object" || value === null || schema.properties === undefined) return value;
  const properties = objectOf(schema.properties);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => Object.hasOwn(properties, key))
      .map(([key, inner]) => [key, fitValue(inner, objectOf(properties[key]))]),
  );
};

/** Equal calls have equal keys, whatever the order of their arguments. */
export const callKey = ({ name, input }: Call): string => `${name} ${sorted(input)}`;

const sorted = (value: Json): string => {
  if (Array.isArray(value)) return `[${value.map(sorted).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${sorted(inner)}`).join()}}`;
};
