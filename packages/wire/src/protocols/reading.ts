/** What every reader of answers needs: values from frames, a provider's own text unchanged, blocks as events.
 *  Invariant: pure; nothing here knows a provider, and no provider's text is written again.
 *  Elsewhere: what frames mean (anthropic.ts, openai-responses.ts, openai-chat.ts, gemini.ts). */

import { ModelError } from "../errors.ts";
import { isArray, isInput, isObject, itemsOf, membersOf, skipSpace, sliceMember } from "../json.ts";
import type { Block, Json, JsonObject, RawJson } from "../request.ts";
import { estimatedPart, type ModelEvent, noUsage, promptTokens, type Usage } from "../response.ts";
import type { ParserState } from "./protocol.ts";

export const initial: ParserState = {
  drafts: new Map(),
  usage: noUsage,
  stop: undefined,
  stopDetail: undefined,
  diagnosis: undefined,
  stopped: false,
};

export const malformed = (what: string, cause?: unknown): ModelError =>
  new ModelError(`the provider's answer makes no sense: ${what}`, { kind: "malformed-response" }, { cause });

export const parse = (json: string): JsonObject => {
  try {
    const value = JSON.parse(json) as Json;
    if (isObject(value)) return value;
  } catch (cause) {
    throw malformed("a frame is not JSON", cause);
  }
  throw malformed("a frame is not an object");
};

export const asObject = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});
export const asString = (value: Json | undefined): string => (typeof value === "string" ? value : "");
export const asCount = (value: Json | undefined): number | undefined =>
  typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined;

// --- figures of usage ------------------------------------------------------------------------------------------------

const FIGURE = /^\s*\d{1,15}(?:\.\d+)?\s*$/;

/** A number of tokens; some servers send it as text. */
export const asTokens = (value: Json | undefined): number | undefined =>
  typeof value === "string" && FIGURE.test(value) ? Number(value) : asCount(value);

/** `usage` as read from `reported`. All of it counts as an estimate if a figure has a form that no provider documents:
 *  text, negative, or too large. */
export const flagOddFigures = (usage: Usage, reported: JsonObject): Usage =>
  hasOddFigure(reported) ? { ...usage, ...estimatedPart(promptTokens(usage) + usage.output) } : usage;

const hasOddFigure = (value: Json | undefined): boolean => {
  if (typeof value === "string") return FIGURE.test(value);
  if (typeof value === "number") return asCount(value) === undefined;
  if (isArray(value)) return value.some(hasOddFigure);
  return isObject(value) && Object.values(value).some(hasOddFigure);
};

// --- verbatim text ---------------------------------------------------------------------------------------------------

/** The members of an object, each verbatim. If the text equals what `JSON.stringify` writes, so do its members, and the
 *  bytes need not be scanned. */
export const rawMembers = (json: RawJson, value: JsonObject): ((key: string) => RawJson | undefined) => {
  if (JSON.stringify(value) !== json) return (key) => sliceMember(json, key);
  return (key) => (Object.hasOwn(value, key) ? JSON.stringify(value[key]) : undefined);
};

/** The items of an array member, each verbatim. */
export const sliceItems = (json: RawJson, key: string): readonly RawJson[] => {
  const bytes = Buffer.from(json);
  const member = membersOf(bytes, skipSpace(bytes, 0)).find((candidate) => candidate.key === key);
  if (!member || bytes[member.start] !== 0x5b) return [];
  return itemsOf(bytes, member.start).map(({ start, end }) => bytes.toString("utf8", start, end));
};

// --- blocks as events ------------------------------------------------------------------------------------------------

export const blockStarted = (block: Block, index: number): ModelEvent => ({
  type: "block_started",
  index,
  kind: block.type,
  ...(block.type === "tool_use" ? { name: block.name } : {}),
});

/** A block that was never closed, as far as it arrived. A call keeps its name but must not run, so its input is not a
 *  JSON object. A provider's own block may be incomplete JSON, and is skipped. */
export const closeOpenBlock = (block: Block): Block | undefined => {
  if (block.type === "provider") return undefined;
  return block.type === "tool_use" && isInput(block.input) ? { ...block, input: "" } : block;
};

/** A complete block, as the events a stream would have given. */
export const wholeBlock = (block: Block, index: number): readonly ModelEvent[] => [
  blockStarted(block, index),
  ...remainingGrowth(block, index),
  { type: "block_stopped", index, block },
];

/** What still has to be shown of a block, after `shown`. */
export const remainingGrowth = (block: Block, index: number, shown = ""): readonly ModelEvent[] => {
  const rest = (all: string): string => (all.startsWith(shown) ? all.slice(shown.length) : "");
  switch (block.type) {
    case "text": {
      const text = rest(block.text);
      return text === "" ? [] : [{ type: "text_grew", index, text }];
    }
    case "thinking": {
      const text = rest(block.thinking);
      return text === "" ? [] : [{ type: "thinking_grew", index, text }];
    }
    case "tool_use": {
      const json = rest(block.input);
      return json === "" ? [] : [{ type: "input_grew", index, json }];
    }
    default:
      return [];
  }
};
