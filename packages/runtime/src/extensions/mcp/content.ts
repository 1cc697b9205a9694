/** How may a model see what a server sends: its tool descriptions and the results of calls? Pure.
 *  Invariant: descriptions are bounded, without invisible characters and without our tags. The same description gives
 *  the same bytes. A tool that cannot be in the tool list under its own name is called through McpCall, never renamed.
 *  Only text and images that a provider accepts reach the model; anything else is replaced by a note that it was left
 *  out. A tool's error is an error result.
 *  Elsewhere: announcing tools (../../context), the tool list (../../tools), long results (replacement in ../../context). */

import { createHash } from "node:crypto";
import { type ImageBlock, type Json, type JsonObject, type TextBlock, text } from "@prefork/wire";
import { escapeTags, type OfferedTool, toolName } from "../../context/index.ts";
import type { Delegated } from "../../ports.ts";
import { isObject } from "./message.ts";

/** Names that McpCall and rules can use. */
const CALLABLE = /^[\w.-]{1,128}$/;
/** Names that a provider accepts. */
const LISTABLE = /^[a-zA-Z0-9_-]{1,64}$/;

const MAX_TOOLS = 500;
const MAX_DESCRIPTION = 2_000;
const MAX_INNER_DESCRIPTION = 500;
const MAX_SCHEMA_BYTES = 64_000;
const MAX_LISTED_SCHEMA_BYTES = 8_000;

/** All tools that can be called, sorted by name. If a name occurs twice, the first one wins. */
export const toOfferedTools = (server: string, listed: readonly Json[]): readonly OfferedTool[] => {
  const tools = new Map<string, OfferedTool>();
  for (const described of listed.slice(0, MAX_TOOLS)) {
    const tool = toOfferedTool(server, described);
    if (tool && !tools.has(tool.tool)) tools.set(tool.tool, tool);
  }
  return [...tools.values()].sort((a, b) => (a.tool < b.tool ? -1 : 1));
};

const toOfferedTool = (server: string, described: Json): OfferedTool | undefined => {
  if (!isObject(described)) return undefined;
  const { name, title, description = title, inputSchema } = described;
  if (typeof name !== "string" || !CALLABLE.test(name)) return undefined;
  const words = typeof description === "string" ? cleanText(description, MAX_DESCRIPTION) : "";
  const schema = tidySchema(isObject(inputSchema) ? inputSchema : {});
  const text = JSON.stringify(schema);
  const shown = text.length <= MAX_SCHEMA_BYTES ? schema : ANYTHING;
  return { server, tool: name, description: words, schema: shown, hash: hashTool(words, shown) };
};

const ANYTHING: JsonObject = { type: "object" };

export const hashTool = (description: string, schema: JsonObject): string =>
  createHash("sha256")
    .update(JSON.stringify([description, schema]))
    .digest("base64url")
    .slice(0, 22);

/** Can it be in the tool list as it is? Providers do not accept alternatives at the top of a schema. */
export const isListable = (tool: OfferedTool): boolean =>
  LISTABLE.test(toolName(tool)) &&
  !["oneOf", "anyOf", "allOf"].some((key) => key in tool.schema) &&
  JSON.stringify(tool.schema).length <= MAX_LISTED_SCHEMA_BYTES;

// --- text and schema ---------------------------------------------------------------------------------------------------

/** Control characters, changes of writing direction, and invisible characters. */
const INVISIBLE = /(?![\n\t])\p{Cc}|[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

const cleanText = (text: string, most: number): string => {
  const plain = text.replace(INVISIBLE, "").toWellFormed().trim();
  const letters = [...plain.slice(0, most * 2)];
  return escapeTags(letters.length <= most ? plain.slice(0, most * 2) : `${letters.slice(0, most - 1).join("")}…`);
};

const MAX_DEPTH = 24;

/** Removes the dialect and truncates long descriptions. The order of properties stays. */
const tidySchema = (given: JsonObject): JsonObject => {
  const { type: _type, ...rest } = given;
  const tidied = tidy(rest, 0);
  return { type: "object", ...(isObject(tidied) ? tidied : {}) };
};

const tidy = (value: Json, depth: number): Json => {
  if (depth > MAX_DEPTH) return {};
  if (Array.isArray(value)) return value.map((each) => tidy(each, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]): readonly [string, Json][] => {
      if (NOISE.includes(key)) return [];
      if (key === "description" && typeof inner === "string") return [[key, cleanText(inner, MAX_INNER_DESCRIPTION)]];
      return [
        [key, key === "properties" && isObject(inner) ? tidyProperties(inner, depth + 1) : tidy(inner, depth + 1)],
      ];
    }),
  );
};

const NOISE: readonly string[] = ["$schema", "$id", "$comment"];

/** Property names belong to the author, whatever they are. */
const tidyProperties = (properties: JsonObject, depth: number): JsonObject =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, tidy(schema, depth + 1)]));

/** A call's result as a tool result. */

type ResultBlock = TextBlock | ImageBlock;

const PICTURES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/** The largest image that providers accept. */
const MAX_PICTURE = 5_000_000;
const MAX_PICTURES = 10;

export const toDelegated = (result: JsonObject): Delegated => {
  const { content, structuredContent, isError } = result;
  const given = Array.isArray(content) ? content.filter(isObject) : [];
  const blocks = limitImages(given.map(toBlock));
  const structured = structuredContent === undefined ? [] : [text(JSON.stringify(structuredContent))];
  const all = blocks.length > 0 ? blocks : structured;
  return {
    text: all.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n"),
    content: all,
    ...(isError === true ? { isError } : {}),
  };
};

const toBlock = (block: JsonObject): ResultBlock => {
  switch (block.type) {
    case "text":
      return text(textOf(block.text));
    case "image":
      return toImage(block) ?? omitted("a picture that cannot be shown", block.mimeType);
    case "resource": {
      const { resource } = block;
      if (!isObject(resource)) return omitted("a resource", undefined);
      const { uri, text: words, mimeType } = resource;
      if (typeof words === "string") return text(`${textOf(uri)}:\n${words}`);
      return toImage({ data: resource.blob ?? "", mimeType: mimeType ?? "" }) ?? omitted(textOf(uri), mimeType);
    }
    case "resource_link":
      return text([textOf(block.uri), block.title ?? block.name, block.description].filter(isText).join(" "));
    default:
      return omitted(textOf(block.type) || "something", block.mimeType);
  }
};

const isText = (value: Json | undefined): value is string => typeof value === "string" && value !== "";
const textOf = (value: Json | undefined): string => (typeof value === "string" ? value : "");

const omitted = (what: string, kind: Json | undefined): TextBlock =>
  text(`[${what}${isText(kind) ? ` (${kind})` : ""} was left out]`);

const toImage = ({ data, mimeType }: JsonObject): ImageBlock | undefined => {
  if (!isText(data) || !isText(mimeType) || !PICTURES.includes(mimeType)) return undefined;
  if (data.length > MAX_PICTURE || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return undefined;
  return { type: "image", source: { kind: "base64", mediaType: mimeType, data } };
};

const limitImages = (blocks: readonly ResultBlock[]): readonly ResultBlock[] => {
  let pictures = 0;
  return blocks.map((block) =>
    block.type === "image" && ++pictures > MAX_PICTURES ? omitted("one more picture", undefined) : block,
  );
};
