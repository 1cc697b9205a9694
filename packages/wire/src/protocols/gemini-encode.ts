/** Gemini generateContent: how a head, a message and a closing are encoded.
 *  Invariant: the parts of an answer are sent back byte for byte, including signatures; results have their own content,
 *  as many as there were calls, and other user text goes into the next content; fields outside the cache key come last.
 *  Not sent, because there is no field for it: markers, cache keys, verbosity, speed, parallel calls, context
 *  management, betas, users.
 *  Elsewhere: reading answers (gemini.ts), settings (gemini-settings.ts), stored entries (gemini-caches.ts). */

import { InputError } from "../errors.ts";
import {
  authoredJson,
  fields,
  inputJson,
  isObject,
  itemsOf,
  type Member,
  membersOf,
  parseJson,
  quote,
  type Span,
} from "../json.ts";
import type { EncodedSegment, PrefixEnd, SegmentEncoder, SegmentKind, SentBlocks } from "../prefix/index.ts";
import type {
  Block,
  Closing,
  Head,
  Json,
  JsonObject,
  KeySettings,
  MediaSource,
  RawJson,
  Role,
  ToolResultBlock,
  ToolSpec,
  ToolUseBlock,
} from "../request.ts";
import { isSigned, renderFields, samplingFields, toolConfigJson } from "./gemini-settings.ts";
import {
  type Content,
  CUT_OFF,
  documentText,
  isContent,
  type Piece,
  pieceSegments,
  refused,
  SHOWN_BELOW,
} from "./items.ts";

// --- head ------------------------------------------------------------------------------------------------------------

/** An empty list has no effect here. It gives every head a first member, so that everything after it starts the same
 *  way. */
export const HEAD_START = `{"safetySettings":[]`;

const declarationJson = ({ name, description, inputSchema }: Extract<ToolSpec, { type: "function" }>): RawJson => {
  const schema = Object.keys(inputSchema).length > 0 ? `,"parametersJsonSchema":${authoredJson(inputSchema)}` : "";
  return `{"name":${quote(name)},"description":${quote(description)}${schema}}`;
};

const DECLARATIONS = `{"functionDeclarations":[`;
/** Closes the list of tools; the declarations are its last item. */
const TOOLS_END = "]}]";

const headSegments = ({ tools, system, settings }: Head): readonly EncodedSegment[] => {
  const own = tools.flatMap((tool) => (tool.type === "provider" ? [tool.json.trim()] : []));
  const declared = tools.flatMap((tool) => (tool.type === "function" ? [declarationJson(tool)] : []));
  const config = toolConfigJson(settings);
  const members = [
    ...(config ? [`,"toolConfig":${authoredJson(config)}`] : []),
    ...(declared.length === 0 && own.length > 0 ? [`,"tools":[${own.join(",")}]`] : []),
  ];
  const before = `,"tools":[${own.map((json) => `${json},`).join("")}${DECLARATIONS}`;
  const shown = system.filter(({ text }) => text !== "").map(({ text }) => `{"text":${quote(text)}}`);
  const opening = `${declared.length > 0 ? TOOLS_END : ""},"systemInstruction":{"parts":[`;
  return [
    { kind: "head", bytes: HEAD_START + members.join(""), lead: 0 },
    ...listSegments({ kind: "tool", within: `tools[${own.length}]` }, declared, before),
    ...listSegments({ kind: "system" }, shown, opening),
  ];
};

const listSegments = (
  place: Pick<EncodedSegment, "kind" | "within">,
  items: readonly RawJson[],
  opening: string,
): readonly EncodedSegment[] =>
  items.map((json, index) => {
    const separator = index === 0 ? opening : ",";
    return { ...place, bytes: separator + json, lead: Buffer.byteLength(separator) };
  });

/** Closes the head before its next member, or its end. */
const headEnd = (last: SegmentKind): string => (last === "tool" ? TOOLS_END : last === "system" ? "]}" : "");

type Cut = Span & Pick<EncodedSegment, "kind" | "within">;

/** Bytes between two values belong to the later one. */
const cutSentHead = (json: Buffer): readonly EncodedSegment[] => {
  const value = parseJson(json.toString("utf8"), "the head");
  if (!isObject(value)) throw new InputError("the head is not an object");
  const listed = membersOf(json, 0).map((member) => ({ member, cuts: listCuts(json, member) }));
  const settings = listed.filter(({ cuts }) => cuts.length === 0).at(-1);
  const cuts: readonly Cut[] = [
    { kind: "head", start: 0, end: settings?.member.end ?? 1 },
    ...listed.flatMap((found) => found.cuts),
  ];
  return cuts.map(({ kind, start, end, ...place }, index) => {
    const from = cuts[index - 1]?.end ?? 0;
    return { kind, bytes: json.subarray(from, end), lead: start - from, ...place };
  });
};

const listCuts = (json: Buffer, { key, start }: Member): readonly Cut[] => {
  const items = key === "tools" ? itemsOf(json, start) : [];
  const last = items.at(-1);
  const list = (at: number, name: string): readonly Span[] => {
    const found = membersOf(json, at).find((member) => member.key === name);
    return found ? itemsOf(json, found.start) : [];
  };
  if (key === "systemInstruction") return list(start, "parts").map((part) => ({ kind: "system", ...part }));
  const declared = last ? list(last.start, "functionDeclarations") : [];
  return declared.map((item) => ({ kind: "tool", ...item, within: `tools[${items.length - 1}]` }));
};

// --- what the model hears --------------------------------------------------------------------------------------------

type Media = Exclude<MediaSource, { readonly kind: "text" }>;

const mediaIn = (block: Content): Media | undefined =>
  block.type === "text" || block.source.kind === "text" ? undefined : block.source;

const mediaJson = (source: Media): JsonObject => {
  if (source.kind === "base64") return { inlineData: { mimeType: source.mediaType, data: source.data } };
  return { fileData: { fileUri: source.kind === "url" ? source.url : source.fileId } };
};

const textOf = (block: Content): string => {
  if (block.type === "text") return block.text;
  const text = block.type === "document" ? documentText(block) : undefined;
  if (text === undefined) throw refused("an image", block.source.kind);
  return text;
};

const partJson = (block: Content): RawJson => {
  const media = mediaIn(block);
  return media ? authoredJson(mediaJson(media)) : `{"text":${quote(textOf(block))}}`;
};

const picturesIn = ({ content }: ToolResultBlock): readonly Content[] =>
  content.filter((block) => mediaIn(block) !== undefined);

/** The id of a call as it is sent back. A result names it only if the call itself has one there. */
const wireId = (call: ToolUseBlock, model: string): string | undefined => {
  const own = ownPart(call.raw)?.functionCall;
  if (isObject(own)) return typeof own.id === "string" && own.id !== "" ? own.id : undefined;
  return isSigned(model) ? call.id : undefined;
};

const resultJson = (result: ToolResultBlock, { model, calls }: UserTurn): RawJson => {
  const call = calls.find(({ id }) => id === result.toolUseId);
  const id = call && wireId(call, model);
  const pictures = picturesIn(result);
  const texts = result.content.flatMap((block) => (mediaIn(block) ? [] : textOf(block))).filter((text) => text !== "");
  const inside = isSigned(model) ? pictures : [];
  const shown = texts.length === 0 && pictures.length > inside.length ? SHOWN_BELOW : texts.join("\n\n");
  const members = [
    ...(id === undefined ? [] : [`"id":${quote(id)}`]),
    `"name":${quote(call?.name ?? result.toolUseId)}`,
    `"response":{"${result.isError ? "error" : "output"}":${quote(shown)}}`,
    ...(inside.length > 0 ? [`"parts":[${inside.map(partJson).join(",")}]`] : []),
  ];
  return `{"functionResponse":{${members.join(",")}}}`;
};

/** A user's two kinds of content, distinguished by how they are closed: a content with results contains nothing
 *  else. */
const RESULTS = { lead: `{"role":"user","parts":[`, close: "]}" };
const WORDS = { lead: `{"parts":[`, close: `],"role":"user"}` };

type UserTurn = Pick<PrefixEnd, "model" | "calls"> & {
  /** What closes the open content, if more can be added to it. */
  readonly open: string;
};

/** Without ids a result is matched by position, so results are in the order of the calls. */
const inOrder = (results: readonly ToolResultBlock[], { calls }: UserTurn): readonly ToolResultBlock[] => {
  const placeOf = ({ toolUseId }: ToolResultBlock): number => calls.findIndex(({ id }) => id === toolUseId);
  return results.toSorted((a, b) => placeOf(a) - placeOf(b));
};

const userPieces = (blocks: readonly Block[], turn: UserTurn): readonly Piece[] => {
  const pieces: Piece[] = [];
  const add = (json: RawJson, { lead, close }: typeof RESULTS): void => {
    const continues = (pieces.at(-1)?.close ?? turn.open) === close;
    pieces.push({ json, lead: continues ? "," : lead, beginsItem: !continues, close });
  };
  const results = inOrder(
    blocks.filter((block) => block.type === "tool_result"),
    turn,
  );
  for (const result of results) add(resultJson(result, turn), RESULTS);
  if (!isSigned(turn.model)) for (const picture of results.flatMap(picturesIn)) add(partJson(picture), WORDS);
  for (const block of blocks) {
    if (isContent(block)) add(partJson(block), WORDS);
    if (block.type === "provider") add(block.json.trim(), WORDS);
  }
  return pieces;
};

// --- what the model said ---------------------------------------------------------------------------------------------

/** The part that a block was read from. Blocks of other providers have a type, so they do not qualify. */
const ownPart = (raw: RawJson | undefined): JsonObject | undefined => {
  const value = raw === undefined ? undefined : (JSON.parse(raw) as Json);
  return isObject(value) && value.type === undefined ? value : undefined;
};

/** Used for a call of another provider, which has no signature: it tells Gemini not to check for one. */
const UNSIGNED = "skip_thought_signature_validator";

const callJson = ({ id, name, input }: ToolUseBlock, model: string, isFirst: boolean): RawJson => {
  const named = isSigned(model) ? `"id":${quote(id)},` : "";
  const signature = isSigned(model) && isFirst ? `,"thoughtSignature":"${UNSIGNED}"` : "";
  return `{"functionCall":{${named}"name":${quote(name)},"args":${inputJson(input)}}${signature}}`;
};

/** The parts of an answer, or nothing for what only another provider could read. */
const assistantPart = (block: Block, model: string, isFirst: boolean): readonly RawJson[] => {
  switch (block.type) {
    case "text":
      if (ownPart(block.raw)) return [block.raw?.trim() ?? ""];
      return block.text === "" ? [] : [`{"text":${quote(block.text)}}`];
    case "thinking":
      if (ownPart(block.raw)) return [block.raw?.trim() ?? ""];
      return block.raw !== undefined || block.signature !== "" || block.thinking === ""
        ? []
        : [`{"text":${quote(block.thinking)},"thought":true}`];
    case "tool_use":
      return [ownPart(block.raw) ? (block.raw?.trim() ?? "") : callJson(block, model, isFirst)];
    case "provider":
      return [block.json.trim()];
    default:
      return [];
  }
};

/** Thoughts with nothing after them mean nothing when they are sent again. */
const assistantPieces = (blocks: readonly Block[], model: string): readonly Piece[] => {
  const isThought = ({ type }: Block): boolean => type === "thinking" || type === "redacted_thinking";
  const first = blocks.findIndex(({ type }) => type === "tool_use");
  const parts = blocks.every(isThought)
    ? blocks.slice(0, 1).map(() => `{"text":${quote(CUT_OFF)}}`)
    : blocks.flatMap((block, index) => assistantPart(block, model, index === first));
  return parts.map((json, index) => ({
    json,
    lead: index === 0 ? `{"role":"model","parts":[` : ",",
    beginsItem: index === 0,
    close: "]}",
  }));
};

// --- the encoder -----------------------------------------------------------------------------------------------------

const opening = ({ after, close }: PrefixEnd): string =>
  after === "block" ? `${close},` : `${headEnd(after)},"contents":[`;

type Growth = { readonly sent?: SentBlocks | undefined; readonly opens?: Role };

const grow = (pieces: readonly Piece[], place: PrefixEnd, growth: Growth): readonly EncodedSegment[] =>
  pieceSegments(pieces, opening(place), { kind: "block", ...growth });

export const geminiEncoder: SegmentEncoder = {
  head: headSegments,
  sentHead: cutSentHead,
  closeHead: (last) => `${headEnd(last)}}`,
  message: ({ role, content }, place, sent) => {
    const { model } = place;
    const pieces = role === "assistant" ? assistantPieces(content, model) : userPieces(content, { ...place, open: "" });
    return grow(pieces, place, { sent, opens: role });
  },
  blocks: (blocks, place, sent) => grow(userPieces(blocks, { ...place, open: place.close }), place, { sent }),
  close: "",
  pathOf: ({ kind, block, item, part, within }) => {
    if (kind === "head") return "";
    if (kind === "tool") return `${within}.functionDeclarations[${block}]`;
    return kind === "system" ? `systemInstruction.parts[${block}]` : `contents[${item}].parts[${part}]`;
  },
  unsentKeyParts: ({ model, settings = {} }) => [
    { name: "model", value: model },
    { name: "generationConfig", value: fields(renderFields(settings, model)) },
    { name: "serviceTier", value: settings.serviceTier ?? "" },
  ],
};

// --- closing ---------------------------------------------------------------------------------------------------------

/** The provider cannot fill its cache without answering, so the minimum is one token. */
const FEWEST_TOKENS = 1;

export const encodeClosing = ({ maxTokens }: Closing, model: string, settings: KeySettings): string => {
  const config = fields([
    ...renderFields(settings, model),
    ...samplingFields(settings),
    ["maxOutputTokens", Math.max(FEWEST_TOKENS, maxTokens)],
  ]);
  const tier = settings.serviceTier === undefined ? "" : `,"serviceTier":${quote(settings.serviceTier)}`;
  return `],"generationConfig":{${config}}${tier}}`;
};
