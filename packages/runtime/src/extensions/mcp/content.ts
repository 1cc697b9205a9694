/** A tool as its server describes it, as it may stand before a model. Pure.
 *  Invariant: bounded, without characters that nobody sees and without tags of ours; the same description gives the same
 *  bytes; what cannot stand in the list of tools under its own name is reached through McpCall, never renamed.
 *  Elsewhere: what is said of those (../context), the list itself (../tools). */

import { createHash } from "node:crypto";
import { type ImageBlock, type Json, type JsonObject, type TextBlock, text } from "@prefork/wire";
import { escapeTags, type OfferedTool, toolName } from "../../context/index.ts";
import type { Delegated } from "../../ports.ts";
import { isObject } from "./message.ts";

/** What McpCall can name, as rules do. */
const CALLABLE = /^[\w.-]{1,128}$/;
/** What a provider takes as a tool's name. */
const LISTABLE = /^[a-zA-Z0-9_-]{1,64}$/;

const MAX_TOOLS = 500;
const MAX_DESCRIPTION = 2_000;
const MAX_INNER_DESCRIPTION = 500;
const MAX_SCHEMA_BYTES = 64_000;
const MAX_LISTED_SCHEMA_BYTES = 8_000;

/** All that can be called, sorted by name; of two with one name the first. */
export const offeredBy = (server: string, listed: readonly Json[]): readonly OfferedTool[] => {
  const tools = new Map<string, OfferedTool>();
  for (const described of listed.slice(0, MAX_TOOLS)) {
    const tool = offeredTool(server, described);
    if (tool && !tools.has(tool.tool)) tools.set(tool.tool, tool);
  }
  return [...tools.values()].sort((a, b) => (a.tool < b.tool ? -1 : 1));
};

const offeredTool = (server: string, described: Json): OfferedTool | undefined => {
  if (!isObject(described)) return undefined;
  const { name, title, description = title, inputSchema } = described;
  if (typeof name !== "string" || !CALLABLE.test(name)) return undefined;
  const words = typeof description === "string" ? plainText(description, MAX_DESCRIPTION) : "";
  const schema = tidySchema(isObject(inputSchema) ? inputSchema : {});
  const text = JSON.stringify(schema);
  const shown = text.length <= MAX_SCHEMA_BYTES ? schema : ANYTHING;
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
  JSON.stringify(tool.schema).length <= MAX_LISTED_SCHEMA_BYTES;

// --- text and schema ---------------------------------------------------------------------------------------------------

/** Control characters, what turns the direction of writing, and letters that only machines see. */
const UNSEEN = /(?![\n\t])\p{Cc}|[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

const plainText = (text: string, most: number): string => {
  const plain = text.replace(UNSEEN, "").toWellFormed().trim();
  const letters = [...plain.slice(0, most * 2)];
  return escapeTags(letters.length <= most ? plain.slice(0, most * 2) : `${letters.slice(0, most - 1).join("")}…`);
};

const MAX_DEPTH = 24;

/** Servers send the dialect and long words with every schema; the order of properties stays as it was written. */
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
      if (key === "description" && typeof inner === "string") return [[key, plainText(inner, MAX_INNER_DESCRIPTION)]];
      return [[key, key === "properties" && isObject(inner) ? tidyEach(inner, depth + 1) : tidy(inner, depth + 1)]];
    }),
  );
};

const NOISE: readonly string[] = ["$schema", "$id", "$comment"];

/** Names of properties are the author's, whatever they are. */
const tidyEach = (properties: JsonObject, depth: number): JsonObject =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, tidy(schema, depth + 1)]));

/** What a server answered to a call, as a tool result. Pure.
 *  Invariant: every kind of content has a place or a word that it was left out; nothing but text and pictures that a
 *  provider takes goes to the model; an error of the tool is an error result.
 *  Elsewhere: results that are too long (../context: replacement), the call (server.ts). */

type ResultBlock = TextBlock | ImageBlock;

const PICTURES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/** What providers take of one picture. */
const MAX_PICTURE = 5_000_000;
const MAX_PICTURES = 10;

export const delegatedOf = (result: JsonObject): Delegated => {
  const { content, structuredContent, isError } = result;
  const given = Array.isArray(content) ? content.filter(isObject) : [];
  const blocks = withFewPictures(given.map(blockOf));
  const structured = structuredContent === undefined ? [] : [text(JSON.stringify(structuredContent))];
  const all = blocks.length > 0 ? blocks : structured;
  return {
    text: all.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n"),
    content: all,
    ...(isError === true ? { isError } : {}),
  };
};

const blockOf = (block: JsonObject): ResultBlock => {
  switch (block.type) {
    case "text":
      return text(textOf(block.text));
    case "image":
      return pictureOf(block) ?? leftOut("a picture that cannot be shown", block.mimeType);
    case "resource": {
      const { resource } = block;
      if (!isObject(resource)) return leftOut("a resource", undefined);
      const { uri, text: words, mimeType } = resource;
      if (typeof words === "string") return text(`${textOf(uri)}:\n${words}`);
      return pictureOf({ data: resource.blob ?? "", mimeType: mimeType ?? "" }) ?? leftOut(textOf(uri), mimeType);
    }
    case "resource_link":
      return text([textOf(block.uri), block.title ?? block.name, block.description].filter(isText).join(" "));
    default:
      return leftOut(textOf(block.type) || "something", block.mimeType);
  }
};

const isText = (value: Json | undefined): value is string => typeof value === "string" && value !== "";
const textOf = (value: Json | undefined): string => (typeof value === "string" ? value : "");

const leftOut = (what: string, kind: Json | undefined): TextBlock =>
  text(`[${what}${isText(kind) ? ` (${kind})` : ""} was left out]`);

const pictureOf = ({ data, mimeType }: JsonObject): ImageBlock | undefined => {
  if (!isText(data) || !isText(mimeType) || !PICTURES.includes(mimeType)) return undefined;
  if (data.length > MAX_PICTURE || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return undefined;
  return { type: "image", source: { kind: "base64", mediaType: mimeType, data } };
};

const withFewPictures = (blocks: readonly ResultBlock[]): readonly ResultBlock[] => {
  let pictures = 0;
  return blocks.map((block) =>
    block.type === "image" && ++pictures > MAX_PICTURES ? leftOut("one more picture", undefined) : block,
  );
};
