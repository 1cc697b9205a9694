/** Which text of a block is in the cache key, and which text is counted?
 *  Invariant: cache_control, absent and null fields, and the form of a block (string or array) are never in the key;
 *  the key order of free JSON (tool inputs, schemas) always is.
 *  Elsewhere: chaining blocks (render.ts), counting (../tokens.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { INTEGER_KEY_MARK, isObject, objectOf, type ReadBlock, readResultContent, stringOf } from "../body.ts";
import type { CountedBlock } from "../tokens.ts";

export type Field = {
  /** Its name in the key, the same in every format. */
  readonly name: string;
  /** Where the client wrote it, under the block's path. */
  readonly shown: string;
  readonly value: string;
};

const freeJson = new Set(["input", "input_schema", "input_examples", "parameters", "parametersJsonSchema"]);

/** JSON text that ignores key order, nulls and markers, except inside the fields whose key order a model sees. */
export const canonical = (value: Json, name = ""): string => {
  if (freeJson.has(name) || typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map((item) => canonical(item)).join(",")}]`;
  const object = value as JsonObject;
  const keys = Object.keys(object).filter((key) => key !== "cache_control" && object[key] !== null);
  return `{${keys
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(object[key] as Json, key)}`)
    .join(",")}}`;
};

const isDirectCaller = (value: Json): boolean => isObject(value) && value.type === "direct";

/** A field whose value means the same as its absence. */
const saysNothing = (name: string, value: Json | undefined): boolean =>
  value === undefined ||
  value === null ||
  name === "cache_control" ||
  (name === "is_error" && value === false) ||
  (name === "caller" && isDirectCaller(value));

type Shown = ReadBlock["shown"];

const plainFields = (block: JsonObject, skip: readonly string[] = []): readonly Field[] =>
  Object.keys(block)
    .filter((name) => name !== "type" && !skip.includes(name) && !saysNothing(name, block[name]))
    .sort()
    .map((name) => {
      const value = block[name] as Json;
      return { name, shown: `.${name}`, value: typeof value === "string" ? value : canonical(value, name) };
    });

const resultFields = (block: JsonObject): readonly Field[] =>
  readResultContent(block).map(({ block: part, path, bare }, index) =>
    part.type === "text" && saysNothing("citations", part.citations)
      ? {
          name: `content[${index}].text`,
          shown: bare ? ".content" : `.${path}.text`,
          value: stringOf(part.text),
        }
      : { name: `content[${index}]`, shown: `.${path}`, value: canonical(part) },
  );

const isPlainText = (block: JsonObject): boolean => block.type === "text" && saysNothing("citations", block.citations);

const ownFields = (block: JsonObject, bare: boolean): readonly Field[] => {
  if (isPlainText(block)) return [{ name: "text", shown: bare ? "" : ".text", value: stringOf(block.text) }];
  if (block.type === "tool_result") return [...plainFields(block, ["content"]), ...resultFields(block)];
  return plainFields(block);
};

/** A field under the client's own name for it; `content` names all the parts of a result. */
const shownAs = (name: string, shown: Shown): string | undefined =>
  shown?.[name] ?? (name.startsWith("content[") ? shown?.content : undefined);

export const fieldsOf = ({ block, bare = undefined, shown, verbatim }: Omit<ReadBlock, "path">): readonly Field[] => {
  const fields = ownFields(block, bare === true);
  if (shown === undefined && verbatim === undefined) return fields;
  return fields.map((field) => ({
    name: field.name,
    shown: shownAs(field.name, shown) ?? field.shown,
    value: field.name === "input" && verbatim !== undefined ? verbatim : field.value,
  }));
};

const withoutMarker = (block: JsonObject): JsonObject => {
  if (block.cache_control === undefined) return block;
  const { cache_control: _marker, ...rest } = block;
  return rest;
};

const asCounted = (value: Json): string => JSON.stringify(value).replaceAll(INTEGER_KEY_MARK, "");

export const countedTool = (tool: JsonObject): CountedBlock => ({
  kind: "tool",
  text: asCounted(withoutMarker(tool)),
  images: 0,
  documents: 0,
});

const plain = (kind: string, text: string): CountedBlock => ({ kind, text, images: 0, documents: 0 });

const sum = (kind: string, parts: readonly CountedBlock[]): CountedBlock => ({
  kind,
  text: parts.map((part) => part.text).join(""),
  images: parts.reduce((total, part) => total + part.images, 0),
  documents: parts.reduce((total, part) => total + part.documents, 0),
});

const countedDocument = (block: JsonObject): CountedBlock => {
  const source = objectOf(block.source);
  const title = stringOf(block.title);
  return source.type === "text"
    ? plain("document", title + stringOf(source.data))
    : { kind: "document", text: title, images: 0, documents: 1 };
};

/** What the token rule sees of a content block, sent or answered. */
export const countedBlock = (block: JsonObject): CountedBlock => {
  const kind = stringOf(block.type);
  switch (kind) {
    case "text":
      return plain(kind, stringOf(block.text));
    case "thinking":
      return plain(kind, stringOf(block.thinking));
    case "redacted_thinking":
      return plain(kind, stringOf(block.data));
    case "tool_use":
      return plain(kind, asCounted(block.input ?? {}));
    case "tool_result":
      return sum(
        kind,
        readResultContent(block).map((part) => countedBlock(part.block)),
      );
    case "image":
      return { kind, text: "", images: 1, documents: 0 };
    case "document":
      return countedDocument(block);
    default:
      return plain(kind, asCounted(withoutMarker(block)));
  }
};

/** The same for a block as it was read, with a call's input as the client wrote it. */
export const countedRead = ({ block, verbatim }: ReadBlock): CountedBlock =>
  verbatim === undefined ? countedBlock(block) : plain(stringOf(block.type), verbatim);

/** The text of a block that can be shared partly; undefined if it is shared as a whole or not at all. */
export const contentOf = (read: ReadBlock): string | undefined => {
  const { block } = read;
  const isText = isPlainText(block) || block.type === "thinking" || block.type === "tool_use";
  const counted = countedRead(read);
  const isTextResult = block.type === "tool_result" && counted.images + counted.documents === 0;
  return isText || isTextResult ? counted.text : undefined;
};

const contentFields = /^(?:text|thinking|input|content\[.*)$/;

/** Everything in a block's key except that text. */
export const structureOf = (fields: readonly Field[]): readonly Field[] =>
  fields.filter(({ name }) => !contentFields.test(name));

export const isThinking = (block: JsonObject): boolean =>
  block.type === "thinking" || block.type === "redacted_thinking";

export const imagesIn = (block: JsonObject): number =>
  block.type === "image"
    ? 1
    : block.type === "tool_result"
      ? readResultContent(block).filter((part) => part.block.type === "image").length
      : 0;

const asksForCitations = (block: JsonObject): boolean => objectOf(block.citations).enabled === true;

export const citesIn = (block: JsonObject): boolean =>
  asksForCitations(block) ||
  (block.type === "tool_result" && readResultContent(block).some((part) => asksForCitations(part.block)));
