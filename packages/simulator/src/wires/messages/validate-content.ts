/** Is every content block and tool well formed?
 *  Invariant: blocks that only the provider's own tools make are passed through; all others are checked field by field.
 *  Elsewhere: the order of blocks and turns (validate-turns.ts), where markers are allowed (../../cache). */

import type { Json } from "@prefork/wire";
import { isObject, ownEntry } from "../../body.ts";
import type { Checker, Shape } from "../../shape.ts";
import { isAnything, isBoolean, isDictionary, isListOf, isOneOf, isShape, isString } from "./complaints.ts";

export const isCacheControl: Checker = isShape({
  required: { type: isOneOf("ephemeral") },
  optional: { ttl: isOneOf("5m", "1h"), scope: isString },
});

const isSource: Checker = (value, place) =>
  isObject(value) && typeof value.type === "string" ? undefined : `${place}.type: Field required`;

const marked = { cache_control: isCacheControl };

const textShape: Shape = {
  required: { type: isString, text: isString },
  optional: { ...marked, citations: isListOf(isDictionary) },
};

const isResultBlock: Checker = (value, place) => {
  const type = isObject(value) ? value.type : undefined;
  const shape = typeof type === "string" ? ownEntry(resultBlocks, type) : undefined;
  return shape === undefined
    ? `${place}: Input tag '${String(type)}' found using 'type' does not match any of the expected tags: ${Object.keys(resultBlocks).join(", ")}`
    : isShape(shape)(value, place);
};

const mediaBlocks: Readonly<Record<string, Shape>> = {
  text: textShape,
  image: { required: { type: isString, source: isSource }, optional: { ...marked, transformations: isDictionary } },
  document: {
    required: { type: isString, source: isSource },
    optional: { ...marked, citations: isDictionary, context: isString, title: isString },
  },
  search_result: {
    required: { type: isString, content: isListOf(isShape(textShape)), source: isString, title: isString },
    optional: { ...marked, citations: isDictionary },
  },
};

const resultBlocks: Readonly<Record<string, Shape>> = {
  ...mediaBlocks,
  tool_reference: { required: { type: isString, tool_name: isString }, optional: marked },
};

const isResultContent: Checker = (value, place) =>
  typeof value === "string" ? undefined : isListOf(isResultBlock)(value, place);

const blocks: Readonly<Record<string, Shape>> = {
  ...mediaBlocks,
  thinking: { required: { type: isString, thinking: isString, signature: isString } },
  redacted_thinking: { required: { type: isString, data: isString } },
  tool_use: {
    required: { type: isString, id: isString, name: isString, input: isDictionary },
    optional: { ...marked, caller: isDictionary, toolset_name: isString },
  },
  tool_result: {
    required: { type: isString, tool_use_id: isString },
    optional: { ...marked, content: isResultContent, is_error: isBoolean, toolset_name: isString },
  },
};

const providerBlock =
  /^(server_tool_use|container_upload|compaction|tool_(removal|addition)|mcp_tool_use|\w+_tool_result)$/;

const isBlock: Checker = (value, place) => {
  const type = isObject(value) ? value.type : undefined;
  if (type === undefined) return `${place}.type: Field required`;
  const shape = typeof type === "string" ? ownEntry(blocks, type) : undefined;
  if (shape !== undefined) return isShape(withoutThinkingMarker(String(type), value, shape))(value, place);
  if (typeof type === "string" && providerBlock.test(type)) return undefined;
  return `${place}: Input tag '${String(type)}' found using 'type' does not match any of the expected tags: ${Object.keys(blocks).join(", ")}`;
};

/** A null marker counts as none, even where a marker is not allowed. */
const withoutThinkingMarker = (type: string, value: Json, shape: Shape): Shape =>
  type.endsWith("thinking") && isObject(value) && value.cache_control === null
    ? { ...shape, optional: { cache_control: isAnything } }
    : shape;

export const isContent: Checker = (value, place) =>
  typeof value === "string" ? undefined : isListOf(isBlock)(value, place);

export const isSystem: Checker = (value, place) =>
  typeof value === "string" ? undefined : isListOf(isShape(textShape))(value, place);

const toolShape: Shape = {
  required: { name: isString, input_schema: isDictionary },
  optional: {
    ...marked,
    type: isOneOf("custom"),
    description: isString,
    allowed_callers: isListOf(isString),
    defer_loading: isBoolean,
    eager_input_streaming: isBoolean,
    input_examples: isListOf(isDictionary),
    strict: isBoolean,
  },
};

const toolName = /^[a-zA-Z0-9_-]{1,128}$/;

export const isTool: Checker = (value, place) => {
  if (!isObject(value)) return `${place}: Input should be a valid dictionary`;
  const { type, name } = value;
  if (typeof type === "string" && type !== "custom") return serverTool(value.cache_control, place);
  return (
    isShape(toolShape)(value, place) ??
    (toolName.test(String(name)) ? undefined : `${place}.custom.name: String should match pattern '${toolName.source}'`)
  );
};

const serverTool = (control: Json | undefined, place: string): string | undefined =>
  control === undefined || control === null ? undefined : isCacheControl(control, `${place}.cache_control`);
