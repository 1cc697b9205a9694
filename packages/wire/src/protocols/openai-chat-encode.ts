/** Chat Completions: how a head, a message and a closing are spelled, in any dialect.
 *  Invariant: an answer is one message, its parts in the one order the format has: reasoning, text, calls; results are
 *  messages of their own and come before everything else of their turn; fields outside the cache key come last.
 *  Elsewhere: reading answers (openai-chat-step.ts), how the list grows (openai-items.ts), dialects (profiles.ts). */

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
  type Around,
  type Content,
  CUT_OFF,
  documentText,
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
      const told = effort === undefined ? {} : { effort };
      const reasoning = budget === undefined ? told : { max_tokens: budget };
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

/** Text as it is where lists are refused; nothing else can be said in it. */
const bareJson = (block: Content): RawJson => {
  const text = block.type === "text" ? block.text : block.type === "document" ? documentText(block) : undefined;
  return text === undefined ? `[${partJson(block)}]` : quote(text);
};

const resultText = (result: ToolResultBlock): readonly string[] => {
  const texts = result.content.flatMap((block) => {
    if (block.type === "document") return [documentText(block) ?? ""];
    return block.type === "text" ? [block.text] : [];
  });
  const said = texts.filter((text) => text !== "");
  return said.length === 0 && picturesIn(result).length > 0 ? [SHOWN_BELOW] : said;
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
    begins: true,
    close: "",
    within: "",
    ...(isList ? { markFromEnd: INSIDE_CONTENT } : {}),
  };
};

/** What no result can hold, for the message after them. */
const picturesIn = ({ content }: ToolResultBlock): readonly Content[] =>
  content.filter((block) => block.type === "image" || (block.type === "document" && block.source.kind !== "text"));

type Hearing = Around & { readonly dialect: ChatDialect; readonly role: string };

const heardPieces = (blocks: readonly Block[], { dialect, model, isOpen, role }: Hearing): readonly Piece[] => {
  const marks = markerStyle(dialect, model) !== "none";
  const results = blocks.filter((block) => block.type === "tool_result");
  const pieces = results.map((result) => resultPiece(result, marks));
  const heard = [...results.flatMap(picturesIn), ...blocks.filter(isContent)];
  if (dialect.content === "text")
    return [
      ...pieces,
      ...heard.map((block) => ({
        json: `{"role":"${role}","content":${bareJson(block)}}`,
        lead: "",
        begins: true,
        close: "",
        within: "",
      })),
    ];
  const goesOn = isOpen && pieces.length === 0;
  return [
    ...pieces,
    ...heard.map((block, index) => ({
      json: partJson(block),
      lead: goesOn || index > 0 ? "," : `{"role":"${role}","content":[`,
      begins: !goesOn && index === 0,
      close: "]}",
      ...(marks ? { markFromEnd: 1 } : {}),
    })),
  ];
};

/** A system prompt is one message, also where a message is one text. */
const oneText = ({ content }: ChatDialect, blocks: readonly TextBlock[]): readonly TextBlock[] => {
  const said = blocks.map(({ text }) => text).filter((text) => text !== "");
  return content === "parts" || said.length === 0 ? blocks : [{ type: "text", text: said.join("\n\n") }];
};

const roleIn = ({ noteRole }: ChatDialect, role: Role): string => (role === "system" ? noteRole : role);

// --- what the model said ---------------------------------------------------------------------------------------------

/** Reasoning as its provider wants it back; what came from another cannot be sent. */
const reasoningJson = (dialect: ChatDialect, blocks: readonly Block[]): RawJson | undefined => {
  const { reasoning, emptyReasoning } = dialect;
  const thought = blocks.filter((block) => block.type === "thinking");
  if (reasoning === "none") return undefined;
  if (reasoning === "reasoning_details") return thought.find(({ raw }) => raw?.startsWith("["))?.raw;
  const said = thought.map(({ thinking }) => thinking).join("");
  const calls = blocks.some(({ type }) => type === "tool_use");
  return said !== "" || (emptyReasoning && calls) ? quote(said) : undefined;
};

const callJson = (block: Block): readonly RawJson[] =>
  block.type === "tool_use"
    ? [
        `{"id":${quote(block.id)},"type":"function","function":{"name":${quote(block.name)},"arguments":${quote(inputJson(block.input))}}}`,
      ]
    : [];

const saidPieces = (dialect: ChatDialect, blocks: readonly Block[]): readonly Piece[] => {
  const reasoning = reasoningJson(dialect, blocks);
  const said = blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
  const calls = blocks.flatMap(callJson);
  const thought = blocks.some(({ type }) => type === "thinking" || type === "redacted_thinking");
  if (said === "" && calls.length === 0 && !thought) return [];
  const text = said === "" && reasoning === undefined ? CUT_OFF : said;
  // A message that only calls says that it has no text: some refuse one that does not mention any.
  const onlyCalls = calls.length > 0 && said === "";
  const members: readonly Said[] = [
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
    begins: index === 0,
    close: within.startsWith(".tool_calls") ? "]}" : "}",
    within,
  }));
};

/** A member of an answer's message. */
type Said = { readonly within: string; readonly opening: string; readonly json: RawJson };

export const chatEncoder = (dialect: ChatDialect): SegmentEncoder =>
  itemEncoder({
    list: "messages",
    settings: (head) => settingsJson(dialect, head),
    tool: toolJson,
    system: (blocks, model) =>
      heardPieces(oneText(dialect, blocks), { dialect, model, isOpen: false, role: dialect.systemRole }),
    systemClose: dialect.content === "parts" ? "]}" : "",
    marks: (model) => markerStyle(dialect, model) !== "none",
    findsAtMarkers: (model) => markerStyle(dialect, model) === "breakpoint",
    message: ({ role, content }, model) =>
      role === "assistant"
        ? saidPieces(dialect, content)
        : heardPieces(content, { dialect, model, isOpen: false, role: roleIn(dialect, role) }),
    more: (blocks, around) => heardPieces(blocks, { dialect, ...around, role: "user" }),
  });

// --- closing ---------------------------------------------------------------------------------------------------------

export const encodeChatClosing = (dialect: ChatDialect, closing: Closing, model: string): string => {
  const { maxTokens, stream, userId } = closing;
  const { sends, user, fewestTokens } = dialect;
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
