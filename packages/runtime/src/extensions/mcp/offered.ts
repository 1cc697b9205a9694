/** A tool as its server describes it, as it may stand before a model. Pure.
 *  Invariant: bounded, without characters that nobody sees and without tags of ours; the same description gives the same
 *  bytes; what cannot stand in the list of tools under its own name is reached through McpCall, never renamed.
 *  Elsewhere: what is said of those (../context), the list itself (../tools). */

import { createHash } from "node:crypto";
import type { Json, JsonObject } from "@prefork/wire";
import { escapeTags, type OfferedTool, toolName } from "../../context/index.ts";
import { isObject } from "./message.ts";

/** What McpCall can name, as rules do. */
const CALLABLE = /^[\w.-]{1,128}$/;
/** What a provider takes as a tool's name. */
const LISTABLE = /^[a-zA-Z0-9_-]{1,64}$/;

const MOST_TOOLS = 500;
const MOST_DESCRIPTION = 2_000;
const MOST_INNER_DESCRIPTION = 500;
const MOST_SCHEMA_BYTES = 64_000;
const MOST_LISTED_SCHEMA_BYTES = 8_000;

/** All that can be called, sorted by name; of two with one name the first. */
export const offeredBy = (server: string, listed: readonly Json[]): readonly OfferedTool[] => {
  const tools = new Map<string, OfferedTool>();
  for (const described of listed.slice(0, MOST_TOOLS)) {
    const tool = offeredTool(server, described);
    if (tool && !tools.has(tool.tool)) tools.set(tool.tool, tool);
  }
  return [...tools.values()].sort((a, b) => (a.tool < b.tool ? -1 : 1));
};

const offeredTool = (server: string, described: Json): OfferedTool | undefined => {
  if (!isObject(described)) return undefined;
  const { name, title, description = title, inputSchema } = described;
  if (typeof name !== "string" || !CALLABLE.test(name)) return undefined;
  const words = typeof description === "string" ? plainText(description, MOST_DESCRIPTION) : "";
  const schema = tidySchema(isObject(inputSchema) ? inputSchema : {});
  const text = JSON.stringify(schema);
  const shown = text.length <= MOST_SCHEMA_BYTES ? schema : ANYTHING;
  return { server, tool: name, description: words, schema: shown, hash: hashOf(words, shown) };
};

const ANYTHING: JsonObject = { type: "object" };

export const hashOf = (description: string, schema: JsonObject): string =>
  createHash("sha256")
    .update(JSON.stringify([description, schema]))
    .digest("base64url")
    .slice(0, 22);

/** May it stand in the list of tools as it is? Providers take no choice at the top of a schema. */
export const isListable = (tool: OfferedTool): boolean =>
  LISTABLE.test(toolName(tool)) &&
  !["oneOf", "anyOf", "allOf"].some((key) => key in tool.schema) &&
  JSON.stringify(tool.schema).length <= MOST_LISTED_SCHEMA_BYTES;

// --- text and schema ---------------------------------------------------------------------------------------------------

/** Control characters, what turns the direction of writing, and letters that only machines see. */
const UNSEEN = /(?![\n\t])\p{Cc}|[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

const plainText = (text: string, most: number): string => {
  const plain = text.replace(UNSEEN, "").toWellFormed().trim();
  const letters = [...plain.slice(0, most * 2)];
  return escapeTags(letters.length <= most ? plain.slice(0, most * 2) : `${letters.slice(0, most - 1).join("")}…`);
};

const MOST_DEPTH = 24;

/** Servers send the dialect and long words with every schema; the order of properties stays as it was written. */
const tidySchema = (given: JsonObject): JsonObject => {
  const { type: _type, ...rest } = given;
  const tidied = tidy(rest, 0);
  return { type: "object", ...(isObject(tidied) ? tidied : {}) };
};

const tidy = (value: Json, depth: number): Json => {
  if (depth > MOST_DEPTH) return {};
  if (Array.isArray(value)) return value.map((each) => tidy(each, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]): readonly [string, Json][] => {
      if (NOISE.includes(key)) return [];
      if (key === "description" && typeof inner === "string") return [[key, plainText(inner, MOST_INNER_DESCRIPTION)]];
      return [[key, key === "properties" && isObject(inner) ? tidyEach(inner, depth + 1) : tidy(inner, depth + 1)]];
    }),
  );
};

const NOISE: readonly string[] = ["$schema", "$id", "$comment"];

/** Names of properties are the author's, whatever they are. */
const tidyEach = (properties: JsonObject, depth: number): JsonObject =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, tidy(schema, depth + 1)]));
