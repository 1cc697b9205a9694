/** Anthropic Messages: how a head, a message and a closing are encoded.
 *  Invariant: separators come before a value, never after it, so each body is a prefix of the next one; fields outside
 *  the cache key come after the messages.
 *  Elsewhere: reading answers (anthropic.ts), where markers go (../prefix/markers.ts). */

import { InputError } from "../errors.ts";
import {
  authoredJson,
  type Field,
  fields,
  inputJson,
  isObject,
  itemsOf,
  membersOf,
  parseJson,
  quote,
  type Span,
} from "../json.ts";
import type { EncodedSegment, PrefixEnd, Segment, SegmentEncoder, SegmentKind, SentBlocks } from "../prefix/index.ts";
import type {
  Block,
  Closing,
  Head,
  Json,
  JsonObject,
  KeySettings,
  MediaSource,
  Message,
  RawJson,
  ToolResultBlock,
  ToolSpec,
  Ttl,
} from "../request.ts";

// --- head ------------------------------------------------------------------------------------------------------------

const thinkingJson = ({ thinking }: KeySettings): Json | undefined =>
  thinking?.type === "enabled" ? { type: "enabled", budget_tokens: thinking.budgetTokens } : thinking;

const toolChoiceJson = ({ toolChoice, parallelTools }: KeySettings): Json | undefined => {
  if (toolChoice === undefined && parallelTools === undefined) return undefined;
  const choice = toolChoice ?? { type: "auto" };
  return parallelTools === undefined ? choice : { ...choice, disable_parallel_tool_use: !parallelTools };
};

const outputConfigJson = ({ effort, outputFormat }: KeySettings): Json | undefined => {
  if (effort === undefined && outputFormat === undefined) return undefined;
  return {
    ...(effort === undefined ? {} : { effort }),
    ...(outputFormat === undefined ? {} : { format: outputFormat }),
  };
};

const keyFields = (model: string, settings: KeySettings): readonly Field[] => [
  ["model", model],
  ["thinking", thinkingJson(settings)],
  ["output_config", outputConfigJson(settings)],
  ["tool_choice", toolChoiceJson(settings)],
  ["temperature", settings.temperature],
  ["top_p", settings.topP],
  ["top_k", settings.topK],
  ["stop_sequences", settings.stopSequences],
  ["speed", settings.speed],
  ["service_tier", settings.serviceTier],
  ["context_management", settings.contextManagement],
];

const toolJson = (tool: ToolSpec): RawJson =>
  tool.type === "provider"
    ? tool.json.trim()
    : `{"name":${quote(tool.name)},"description":${quote(tool.description)},"input_schema":${authoredJson(tool.inputSchema)}}`;

/** A list of objects before the messages; the separator of the first object closes what came before it. */
const listSegments = (kind: SegmentKind, opening: string, values: readonly RawJson[]): readonly EncodedSegment[] =>
  values.map((json, index) => segment({ kind, separator: index === 0 ? opening : ",", json, markable: true }));

const encodeHead = ({ model, tools, system, settings }: Head): readonly EncodedSegment[] => [
  segment({ kind: "head", separator: "", json: `{${fields(keyFields(model, settings))}`, markable: false }),
  ...listSegments("tool", `,"tools":[`, tools.map(toolJson)),
  ...listSegments("system", `${tools.length > 0 ? "]" : ""},"system":[`, system.flatMap(blockJson)),
];

/** The lists are the last members, as `encodeHead` writes them. Bytes between two values belong to the later one. */
const cutSentHead = (json: Buffer): readonly EncodedSegment[] => {
  if (!isObject(parseJson(json.toString("utf8"), "the head"))) throw new InputError("the head is not an object");
  const members = membersOf(json, 0);
  const first = members.findIndex(({ key }) => key === "tools" || key === "system");
  const settings = first < 0 ? members : members.slice(0, first);
  const cuts: readonly (Span & { readonly kind: SegmentKind })[] = [
    { kind: "head", start: 0, end: settings.at(-1)?.end ?? 1 },
    ...members.slice(settings.length).flatMap(({ key, start }) =>
      itemsOf(json, start).map((item) => ({
        kind: key === "tools" ? ("tool" as const) : ("system" as const),
        ...item,
      })),
    ),
  ];
  return cuts.map(({ kind, start, end }, index) => {
    const from = cuts[index - 1]?.end ?? 0;
    const encoded = { kind, bytes: json.subarray(from, end), lead: start - from };
    return kind === "head" ? encoded : { ...encoded, site: { fromEnd: 1 } };
  });
};

// --- messages --------------------------------------------------------------------------------------------------------

const sourceJson = (source: MediaSource): Json => {
  switch (source.kind) {
    case "base64":
      return { type: "base64", media_type: source.mediaType, data: source.data };
    case "url":
      return { type: "url", url: source.url };
    case "file":
      return { type: "file", file_id: source.fileId };
    case "text":
      return { type: "text", media_type: "text/plain", data: source.text };
  }
};

const resultJson = ({ toolUseId, content, isError }: ToolResultBlock): RawJson => {
  const inner = content.flatMap(blockJson);
  const value = inner.length > 0 ? `,"content":[${inner.join(",")}]` : "";
  return `{"type":"tool_result","tool_use_id":${quote(toolUseId)}${value}${isError ? `,"is_error":true` : ""}}`;
};

/** One block as JSON, or nothing for an empty text, which the provider refuses. */
const blockJson = (block: Block): readonly RawJson[] => {
  if ("raw" in block && block.raw !== undefined) return [block.raw.trim()];
  switch (block.type) {
    case "text": {
      if (block.text === "") return [];
      const citations = block.citations?.length ? `,"citations":[${block.citations.join(",")}]` : "";
      return [`{"type":"text","text":${quote(block.text)}${citations}}`];
    }
    case "image":
      return [`{"type":"image","source":${authoredJson(sourceJson(block.source))}}`];
    case "document": {
      const title = block.title === undefined ? "" : `,"title":${quote(block.title)}`;
      return [`{"type":"document","source":${authoredJson(sourceJson(block.source))}${title}}`];
    }
    case "thinking":
      return [`{"type":"thinking","thinking":${quote(block.thinking)},"signature":${quote(block.signature)}}`];
    case "redacted_thinking":
      return [`{"type":"redacted_thinking","data":${quote(block.data)}}`];
    case "tool_use": {
      const { id, name, input, extras } = block;
      const added = extras ? `,${extras}` : "";
      return [`{"type":"tool_use","id":${quote(id)},"name":${quote(name)},"input":${inputJson(input)}${added}}`];
    }
    case "tool_result":
      return [resultJson(block)];
    case "provider":
      return [block.json.trim()];
  }
};

const markable = ({ type }: Block): boolean => type !== "thinking" && type !== "redacted_thinking";

type EncodedBlock = { readonly json: RawJson | Buffer; readonly markable: boolean };

const encodeAll = (blocks: readonly Block[]): readonly EncodedBlock[] =>
  blocks.flatMap((block) => blockJson(block).map((json) => ({ json, markable: markable(block) })));

/** Is this block part of the request at all? */
const isSent = (block: Block): boolean => block.type !== "text" || block.text !== "" || block.raw !== undefined;

const reuseSent = (blocks: readonly Block[], sent: SentBlocks): readonly EncodedBlock[] => {
  const inRequest = blocks.filter(isSent);
  if (inRequest.length !== sent.length)
    throw new InputError(`${inRequest.length} blocks cannot have been sent as ${sent.length}`);
  return inRequest.map((block, index) => ({ json: sent[index] ?? "", markable: markable(block) }));
};

const encodeBlocks = (blocks: readonly Block[], firstSeparator: string, sent?: SentBlocks): readonly EncodedSegment[] =>
  (sent ? reuseSent(blocks, sent) : encodeAll(blocks)).map(({ json, markable }, index) =>
    segment({ kind: "block", separator: index === 0 ? firstSeparator : ",", json, markable }),
  );

const opening = ({ after, close }: PrefixEnd, role: Message["role"]): string => {
  const start = `{"role":"${role}","content":[`;
  if (after === "block") return `${close},${start}`;
  return `${after === "head" ? "" : "]"},"messages":[${start}`;
};

const encodeMessage = (message: Message, place: PrefixEnd, sent?: SentBlocks): readonly EncodedSegment[] =>
  encodeBlocks(message.content, opening(place, message.role), sent).map((encoded, index) =>
    index === 0 ? { ...encoded, opens: message.role } : encoded,
  );

type Piece = {
  readonly kind: SegmentKind;
  readonly separator: string;
  readonly json: RawJson | Buffer;
  readonly markable: boolean;
};

/** A marker is the last member of its block: one byte before the end. */
const segment = ({ kind, separator, json, markable }: Piece): EncodedSegment => {
  const bytes = typeof json === "string" ? separator + json : Buffer.concat([Buffer.from(separator), json]);
  const encoded = { kind, bytes, lead: Buffer.byteLength(separator) };
  return markable ? { ...encoded, site: { fromEnd: 1 } } : encoded;
};

const pathOf = ({ kind, message, block }: Segment): string => {
  switch (kind) {
    case "head":
      return "";
    case "tool":
      return `tools[${block}]`;
    case "system":
      return `system[${block}]`;
    case "block":
      return `messages[${message}].content[${block}]`;
  }
};

export const anthropicEncoder: SegmentEncoder = {
  head: encodeHead,
  sentHead: cutSentHead,
  closeHead: (last) => (last === "head" ? "}" : "]}"),
  message: encodeMessage,
  blocks: (blocks, _place, sent) => encodeBlocks(blocks, ",", sent),
  close: "]}",
  pathOf,
};

// --- closing and markers ---------------------------------------------------------------------------------------------

export const encodeClosing = (closing: Closing): string => {
  const { maxTokens, stream, userId, diagnoseAgainst } = closing;
  const metadata: JsonObject | undefined = userId === undefined ? undefined : { user_id: userId };
  const diagnostics = diagnoseAgainst === undefined ? undefined : { previous_message_id: diagnoseAgainst };
  const entries = fields([
    ["max_tokens", maxTokens],
    ["stream", stream ? true : undefined],
    ["metadata", metadata],
    ["diagnostics", diagnostics],
  ]);
  return `],${entries}}`;
};

export const encodeMarker = (ttl: Ttl): string =>
  ttl === "5m" ? `,"cache_control":{"type":"ephemeral"}` : `,"cache_control":{"type":"ephemeral","ttl":"${ttl}"}`;
