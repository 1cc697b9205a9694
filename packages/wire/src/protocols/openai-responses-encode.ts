/** OpenAI Responses: how a head, a message and a closing are encoded.
 *  Invariant: the provider's answers are sent back item by item, byte for byte; the system prompt is the opening
 *  developer message, because top-level instructions cannot carry a breakpoint; fields outside the cache key come last.
 *  Not sent, because there is no field for it: stop sequences, top_k, speed, context management, thinking budgets.
 *  Elsewhere: reading answers (openai-responses.ts), how the list grows (items.ts). */

import { authoredJson, fields, inputJson, isObject, quote } from "../json.ts";
import type {
  Block,
  Closing,
  Head,
  Json,
  JsonObject,
  KeySettings,
  ProviderBlock,
  RawJson,
  Role,
  ToolResultBlock,
  ToolSpec,
} from "../request.ts";
import {
  type Content,
  CUT_OFF,
  documentText,
  type GrowthTerms,
  isContent,
  itemEncoder,
  type Piece,
  refused,
} from "./items.ts";
import {
  cacheKeyText,
  formatJson,
  hasBreakpoints,
  hasSealedReasoning,
  mediaUrl,
  toolChoiceJson,
} from "./openai-settings.ts";

// --- head ------------------------------------------------------------------------------------------------------------

/** If thinking is asked for, it is also shown, as far as this provider shows it. */
const reasoningJson = ({ effort, thinking }: KeySettings): Json | undefined => {
  const level = effort ?? (thinking?.type === "disabled" ? "none" : undefined);
  const summary = thinking !== undefined && thinking.type !== "disabled" ? { summary: "auto" } : {};
  const reasoning = { ...(level === undefined ? {} : { effort: level }), ...summary };
  return Object.keys(reasoning).length > 0 ? reasoning : undefined;
};

const textJson = ({ outputFormat, verbosity }: KeySettings): Json | undefined => {
  if (outputFormat === undefined && verbosity === undefined) return undefined;
  const format = formatJson(outputFormat);
  return { ...(format === undefined ? {} : { format }), ...(verbosity === undefined ? {} : { verbosity }) };
};

const settingsJson = ({ model, settings }: Head): string =>
  fields([
    ["model", model],
    ["prompt_cache_key", cacheKeyText(settings.cacheKey)],
    ["service_tier", settings.serviceTier],
    ["reasoning", reasoningJson(settings)],
    ["text", textJson(settings)],
    ["tool_choice", toolChoiceJson(settings, (name) => ({ type: "function", name }))],
    ["parallel_tool_calls", settings.parallelTools],
    ["temperature", settings.temperature],
    ["top_p", settings.topP],
  ]);

/** By default this format rewrites a schema to its strict form, and the model would see a different tool. */
const toolJson = (tool: ToolSpec): RawJson =>
  tool.type === "provider"
    ? tool.json.trim()
    : `{"type":"function","name":${quote(tool.name)},"description":${quote(tool.description)},"parameters":${authoredJson(tool.inputSchema)},"strict":false}`;

// --- messages --------------------------------------------------------------------------------------------------------

const partJson = (block: Content): RawJson => {
  if (block.type === "text") return `{"type":"input_text","text":${quote(block.text)}}`;
  const { source } = block;
  if (block.type === "image") {
    const image = source.kind === "file" ? { file_id: source.fileId } : { image_url: mediaUrl(source) };
    if (source.kind === "text") throw refused("an image", source.kind);
    return authoredJson({ type: "input_image", ...image } as JsonObject);
  }
  const { title } = block;
  switch (source.kind) {
    case "text":
      return partJson({ type: "text", text: documentText(block) ?? "" });
    case "file":
      return authoredJson({ type: "input_file", file_id: source.fileId });
    case "url":
      return authoredJson({ type: "input_file", file_url: source.url });
    case "base64":
      return authoredJson({ type: "input_file", filename: title ?? "document", file_data: mediaUrl(source) ?? "" });
  }
};

/** As parts if a breakpoint may have to go inside or if there are several texts; otherwise as plain text. */
const resultPiece = ({ toolUseId, content }: ToolResultBlock, marks: boolean): Piece => {
  const shown = content.filter(isContent);
  const [only] = shown;
  const bare = shown.length === 0 || (!marks && shown.length === 1 && only?.type === "text");
  const output = bare ? quote(only?.type === "text" ? only.text : "") : `[${shown.map(partJson).join(",")}]`;
  return {
    json: `{"type":"function_call_output","call_id":${quote(toolUseId)},"output":${output}}`,
    lead: "",
    beginsItem: true,
    close: "",
    within: "",
    ...(marks && !bare ? { markFromEnd: INSIDE_OUTPUT } : {}),
  };
};

/** Before the `}]}` that ends a result's last part. */
const INSIDE_OUTPUT = 3;

const itemPiece = (json: RawJson): Piece => ({ json, lead: "", beginsItem: true, close: "", within: "" });

/** An item in its provider's own JSON. The result of a custom tool call can carry a breakpoint like any other. */
const providerPiece = ({ kind, json }: ProviderBlock, marks: boolean): Piece => {
  const item = itemPiece(json.trim());
  const isList = kind === "custom_tool_call_output" && item.json.endsWith("}]}");
  return marks && isList ? { ...item, markFromEnd: INSIDE_OUTPUT } : item;
};

const userPieces = (blocks: readonly Block[], role: Role, { model, isOpen }: GrowthTerms): readonly Piece[] => {
  const marks = hasBreakpoints(model);
  const pieces: Piece[] = [];
  const part = (json: RawJson): void => {
    const open = pieces.length > 0 ? pieces.at(-1)?.close !== "" : isOpen;
    pieces.push({
      json,
      lead: open ? "," : `{"type":"message","role":"${role === "user" ? role : "developer"}","content":[`,
      beginsItem: !open,
      close: "]}",
      ...(marks ? { markFromEnd: 1 } : {}),
    });
  };
  for (const block of blocks) {
    if (block.type === "tool_result") pieces.push(resultPiece(block, marks));
    if (block.type === "provider") pieces.push(providerPiece(block, marks));
    if (isContent(block)) part(partJson(block));
  }
  return pieces;
};

const typeOf = (raw: RawJson): string => {
  const value = JSON.parse(raw) as Json;
  return isObject(value) ? String(value.type) : "";
};

/** The item that a block was read from; empty for another provider's block. */
const ownItem = (raw: RawJson | undefined, type: string): readonly RawJson[] =>
  raw !== undefined && typeOf(raw) === type ? [raw.trim()] : [];

/** One item of an answer, or nothing for what only another provider could read. */
const assistantItem = (block: Block): readonly RawJson[] => {
  switch (block.type) {
    case "text": {
      const own = ownItem(block.raw, "message");
      if (own.length > 0 || block.text === "") return own;
      return [`{"type":"message","role":"assistant","content":[{"type":"output_text","text":${quote(block.text)}}]}`];
    }
    case "thinking":
      return ownItem(block.raw, "reasoning");
    case "tool_use": {
      const own = ownItem(block.raw, "function_call");
      if (own.length > 0) return own;
      const { id, name, input } = block;
      return [
        `{"type":"function_call","call_id":${quote(id)},"name":${quote(name)},"arguments":${quote(inputJson(input))}}`,
      ];
    }
    case "provider":
      return [block.json.trim()];
    default:
      return [];
  }
};

/** Reasoning with nothing after it is refused when it is sent again. */
const assistantItems = (blocks: readonly Block[]): readonly RawJson[] => {
  const last = blocks.findLastIndex(({ type }) => type !== "thinking");
  if (last < 0 && blocks.length > 0) return assistantItem({ type: "text", text: CUT_OFF });
  return blocks.slice(0, last + 1).flatMap(assistantItem);
};

export const responsesEncoder = itemEncoder({
  list: "input",
  settings: settingsJson,
  tool: toolJson,
  system: (blocks, model) => userPieces(blocks, "system", { model, isOpen: false }),
  systemClose: "]}",
  marks: hasBreakpoints,
  findsAtMarkers: hasBreakpoints,
  message: ({ role, content }, model) =>
    role === "assistant" ? assistantItems(content).map(itemPiece) : userPieces(content, role, { model, isOpen: false }),
  more: (blocks, terms) => userPieces(blocks, "user", terms),
});

// --- closing ---------------------------------------------------------------------------------------------------------

/** Fewer are refused. */
const FEWEST_TOKENS = 16;

/** Only our own breakpoints are written: an automatic one on a tail that nobody reads again would cost a write. */
const cacheOptionsJson = ({ maxTokens, diagnoseAgainst }: Closing): JsonObject => ({
  mode: "explicit",
  ...(maxTokens === 0 ? { prewarm: true } : {}),
  ...(diagnoseAgainst ? { comparison_response_id: diagnoseAgainst } : {}),
});

export const encodeClosing = (closing: Closing, model: string): string => {
  const { maxTokens, stream, userId } = closing;
  const marks = hasBreakpoints(model);
  const entries = fields([
    ["max_output_tokens", marks && maxTokens === 0 ? undefined : Math.max(FEWEST_TOKENS, maxTokens)],
    ["stream", stream ? true : undefined],
    ["store", false],
    ["include", hasSealedReasoning(model) ? ["reasoning.encrypted_content"] : undefined],
    ["prompt_cache_options", marks ? cacheOptionsJson(closing) : undefined],
    ["safety_identifier", userId],
  ]);
  return `],${entries}}`;
};
