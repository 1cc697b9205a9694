/** Chat Completions: how a head, a message and a closing are encoded, in any dialect.
 *  Invariant: an answer is one message, with its parts in the only order the format has: reasoning, text, calls;
 *  results are separate messages and come before everything else of their turn; fields outside the cache key come last.
 *  Elsewhere: reading answers (openai-chat.ts), how the list grows (items.ts), dialects (profiles.ts). */

import { authoredJson, type Field, fields, inputJson, quote } from "../json.ts";
import type { SegmentEncoder } from "../prefix/index.ts";
import type {
  Block,
  Closing,
  Head,
  Json,
  JsonObject,
  KeySettings,
  RawJson,
  Role,
  TextBlock,
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
  SHOWN_BELOW,
} from "./items.ts";
import { type ChatDialect, markerStyle, type OptionalField } from "./openai-chat-dialect.ts";
import { cacheKeyText, formatJson, mediaUrl, toolChoiceJson } from "./openai-settings.ts";

// --- head ------------------------------------------------------------------------------------------------------------

const responseFormatJson = (format: JsonObject | undefined): JsonObject | undefined => {
  const named = formatJson(format);
  if (named?.type !== "json_schema" || named.json_schema !== undefined) return named;
  const { type, ...schema } = named;
  return { type, json_schema: schema };
};

const thinkingFields = ({ thinking: way }: ChatDialect, { thinking, effort }: KeySettings): readonly Field[] => {
  const on = thinking && thinking.type !== "disabled";
  const budget = thinking?.type === "enabled" ? thinking.budgetTokens : undefined;
  switch (way) {
    case "none":
      return [];
    case "effort":
      return [["reasoning_effort", effort ?? (on === false ? "none" : undefined)]];
    case "type":
      return [["thinking", thinking && { type: on ? "enabled" : "disabled" }]];
    case "kept":
      return [["thinking", thinking && (on ? { type: "enabled", clear_thinking: false } : { type: "disabled" })]];
    case "enable":
      return [
        ["enable_thinking", on],
        ["thinking_budget", budget],
      ];
    case "kwargs":
      return [["chat_template_kwargs", on === undefined ? undefined : { enable_thinking: on }]];
    case "object": {
      const withEffort = effort === undefined ? {} : { effort };
      const reasoning = budget === undefined ? withEffort : { max_tokens: budget };
      if (on === undefined && effort === undefined) return [];
      return [["reasoning", on === false ? { enabled: false } : on ? { enabled: true, ...reasoning } : reasoning]];
    }
  }
};

const settingsJson = (dialect: ChatDialect, { model, settings }: Head): string => {
  const { sends, cacheKey, thinking } = dialect;
  const key: Field = [cacheKey, cacheKey === "none" ? undefined : cacheKeyText(settings.cacheKey)];
  const own = (name: OptionalField, value: Json | undefined): Field => [name, sends.includes(name) ? value : undefined];
  return fields([
    ["model", model],
    key,
    own("service_tier", settings.serviceTier),
    ...(thinking === "effort" ? [] : [own("reasoning_effort", settings.effort)]),
    ...thinkingFields(dialect, settings),
    own("verbosity", settings.verbosity),
    ["response_format", responseFormatJson(settings.outputFormat)],
    ["tool_choice", toolChoiceJson(settings, (name) => ({ type: "function", function: { name } }))],
    own("parallel_tool_calls", settings.parallelTools),
    ["temperature", settings.temperature],
    ["top_p", settings.topP],
    own("top_k", settings.topK),
    ["stop", settings.stopSequences],
  ]);
};

const toolJson = (tool: ToolSpec): RawJson =>
  tool.type === "provider"
    ? tool.json.trim()
    : `{"type":"function","function":{"name":${quote(tool.name)},"description":${quote(tool.description)},"parameters":${authoredJson(tool.inputSchema)}}}`;

// --- what the model hears --------------------------------------------------------------------------------------------

const textJson = (text: string): RawJson => `{"type":"text","text":${quote(text)}}`;

const partJson = (block: Content): RawJson => {
  if (block.type === "text") return textJson(block.text);
  const { source } = block;
  const url = mediaUrl(source);
  if (block.type === "image") {
    if (url === undefined) throw refused("an image", source.kind);
    return authoredJson({ type: "image_url", image_url: { url } });
  }
  const text = documentText(block);
  if (text !== undefined) return textJson(text);
  if (source.kind === "file") return authoredJson({ type: "file", file: { file_id: source.fileId } });
  if (source.kind !== "base64" || url === undefined) throw refused("a document", source.kind);
  return authoredJson({ type: "file", file: { filename: block.title ?? "document", file_data: url } });
};

/** Plain text for endpoints that refuse lists; other content needs a list. */
const bareJson = (block: Content): RawJson => {
  const text = block.type === "text" ? block.text : block.type === "document" ? documentText(block) : undefined;
  return text === undefined ? `[${partJson(block)}]` : quote(text);
};

const resultText = (result: ToolResultBlock): readonly string[] => {
  const texts = result.content.flatMap((block) => {
    if (block.type === "document") return [documentText(block) ?? ""];
    return block.type === "text" ? [block.text] : [];
  });
  const shown = texts.filter((text) => text !== "");
  return shown.length === 0 && picturesIn(result).length > 0 ? [SHOWN_BELOW] : shown;
};

/** Before the `}]}` that ends a result's last part. */
const INSIDE_CONTENT = 3;

const resultPiece = (result: ToolResultBlock, marks: boolean): Piece => {
  const texts = resultText(result);
  const isList = marks && texts.length > 0;
  const content = isList ? `[${texts.map(textJson).join(",")}]` : quote(texts.join("\n\n"));
  return {
    json: `{"role":"tool","tool_call_id":${quote(result.toolUseId)},"content":${content}}`,
    lead: "",
    beginsItem: true,
    close: "",
    within: "",
    ...(isList ? { markFromEnd: INSIDE_CONTENT } : {}),
  };
};

/** What a result cannot contain, for the message after the results. */
const picturesIn = ({ content }: ToolResultBlock): readonly Content[] =>
  content.filter((block) => block.type === "image" || (block.type === "document" && block.source.kind !== "text"));

type UserTurn = GrowthTerms & { readonly dialect: ChatDialect; readonly role: string };

const userPieces = (blocks: readonly Block[], { dialect, model, isOpen, role }: UserTurn): readonly Piece[] => {
  const marks = markerStyle(dialect, model) !== "none";
  const results = blocks.filter((block) => block.type === "tool_result");
  const pieces = results.map((result) => resultPiece(result, marks));
  const content = [...results.flatMap(picturesIn), ...blocks.filter(isContent)];
  if (dialect.content === "text")
    return [
      ...pieces,
      ...content.map((block) => ({
        json: `{"role":"${role}","content":${bareJson(block)}}`,
        lead: "",
        beginsItem: true,
        close: "",
        within: "",
      })),
    ];
  const continues = isOpen && pieces.length === 0;
  return [
    ...pieces,
    ...content.map((block, index) => ({
      json: partJson(block),
      lead: continues || index > 0 ? "," : `{"role":"${role}","content":[`,
      beginsItem: !continues && index === 0,
      close: "]}",
      ...(marks ? { markFromEnd: 1 } : {}),
    })),
  ];
};

/** A system prompt is one message, even if a message is one text. */
const oneText = ({ content }: ChatDialect, blocks: readonly TextBlock[]): readonly TextBlock[] => {
  const texts = blocks.map(({ text }) => text).filter((text) => text !== "");
  return content === "parts" || texts.length === 0 ? blocks : [{ type: "text", text: texts.join("\n\n") }];
};

const roleIn = ({ noteRole }: ChatDialect, role: Role): string => (role === "system" ? noteRole : role);

// --- what the model said ---------------------------------------------------------------------------------------------

/** Reasoning in the form its provider wants back; another provider's reasoning cannot be sent. */
const reasoningJson = (dialect: ChatDialect, blocks: readonly Block[]): RawJson | undefined => {
  const { reasoning, emptyReasoning } = dialect;
  const thought = blocks.filter((block) => block.type === "thinking");
  if (reasoning === "none") return undefined;
  if (reasoning === "reasoning_details") return thought.find(({ raw }) => raw?.startsWith("["))?.raw;
  const text = thought.map(({ thinking }) => thinking).join("");
  const calls = blocks.some(({ type }) => type === "tool_use");
  return text !== "" || (emptyReasoning && calls) ? quote(text) : undefined;
};

const callJson = (block: Block): readonly RawJson[] =>
  block.type === "tool_use"
    ? [
        `{"id":${quote(block.id)},"type":"function","function":{"name":${quote(block.name)},"arguments":${quote(inputJson(block.input))}}}`,
      ]
    : [];

const assistantPieces = (dialect: ChatDialect, blocks: readonly Block[]): readonly Piece[] => {
  const reasoning = reasoningJson(dialect, blocks);
  const answer = blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
  const calls = blocks.flatMap(callJson);
  const thought = blocks.some(({ type }) => type === "thinking" || type === "redacted_thinking");
  if (answer === "" && calls.length === 0 && !thought) return [];
  const text = answer === "" && reasoning === undefined ? CUT_OFF : answer;
  // A message with only calls has an explicit null text, because some endpoints require the field.
  const onlyCalls = calls.length > 0 && answer === "";
  const members: readonly AnswerMember[] = [
    ...(reasoning === undefined
      ? []
      : [{ within: `.${dialect.reasoning}`, opening: `"${dialect.reasoning}":`, json: reasoning }]),
    ...(onlyCalls ? [] : [{ within: ".content", opening: `"content":`, json: quote(text) }]),
    ...calls.map((json, index) => ({
      within: `.tool_calls[${index}]`,
      opening: index > 0 ? "" : `${onlyCalls ? `"content":null,` : ""}"tool_calls":[`,
      json,
    })),
  ];
  return members.map(({ within, opening, json }, index) => ({
    json,
    lead: `${index === 0 ? `{"role":"assistant",` : ","}${opening}`,
    beginsItem: index === 0,
    close: within.startsWith(".tool_calls") ? "]}" : "}",
    within,
  }));
};

/** A member of an answer's message. */
type AnswerMember = { readonly within: string; readonly opening: string; readonly json: RawJson };

export const chatEncoder = (dialect: ChatDialect): SegmentEncoder =>
  itemEncoder({
    list: "messages",
    settings: (head) => settingsJson(dialect, head),
    tool: toolJson,
    system: (blocks, model) =>
      userPieces(oneText(dialect, blocks), { dialect, model, isOpen: false, role: dialect.systemRole }),
    systemClose: dialect.content === "parts" ? "]}" : "",
    marks: (model) => markerStyle(dialect, model) !== "none",
    findsAtMarkers: (model) => markerStyle(dialect, model) === "breakpoint",
    message: ({ role, content }, model) =>
      role === "assistant"
        ? assistantPieces(dialect, content)
        : userPieces(content, { dialect, model, isOpen: false, role: roleIn(dialect, role) }),
    more: (blocks, terms) => userPieces(blocks, { dialect, ...terms, role: "user" }),
  });

// --- closing ---------------------------------------------------------------------------------------------------------

export const encodeChatClosing = (dialect: ChatDialect, closing: Closing, model: string): string => {
  const { maxTokens, stream, userId } = closing;
  const { sends, user, minMaxTokens: fewestTokens } = dialect;
  const marks = markerStyle(dialect, model) === "breakpoint";
  const entries = fields([
    [dialect.maxTokens, Math.max(fewestTokens, maxTokens)],
    ["stream", stream ? true : undefined],
    ["stream_options", stream && sends.includes("stream_options") ? { include_usage: true } : undefined],
    ["store", sends.includes("store") ? false : undefined],
    ["prompt_cache_options", marks ? { mode: "explicit" } : undefined],
    [user, user === "none" ? undefined : userId],
  ]);
  return `],${entries}}`;
};
