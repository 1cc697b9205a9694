/** A recorded Anthropic Messages body: its lists, the calls it leaves open, and the answer that it got.
 *  Invariant: nothing is encoded here; a block's content is read only to know where a marker may go.
 *  Elsewhere: cutting the bytes (slicing.ts), forking them (../fork-requests.ts). */

import { modelFacts } from "../cost/index.ts";
import { InputError } from "../errors.ts";
import { isArray, isArrayAt, isObject, isStringAt, itemsOf, type Member, membersOf, type Span } from "../json.ts";
import type { SegmentKind } from "../prefix/index.ts";
import { anthropic, readBlock } from "../protocols/index.ts";
import type { Block, Json, JsonObject, RawJson, Role } from "../request.ts";
import {
  ANSWER,
  type FormatReader,
  PARENT,
  type ReadingTerms,
  type RecordedBody,
  type RecordedRequest,
  type Recording,
  readRecording,
  uniqueMembers,
} from "./recording.ts";
import { type Cut, headCuts, listLast, type MarkerOffset, type MarkerSyntax, sliceRequest } from "./slicing.ts";

/** An Anthropic request body. A string or bytes are used unchanged; an object has already lost its own formatting. */
export const readRecorded = (body: Recording, betas: readonly string[] = []): RecordedRequest => {
  const notes: string[] = [];
  return readMessages(readRecording(body, PARENT, notes), { protocol: anthropic, betas, notes });
};

const readMessages = (
  { bytes: given, value }: RecordedBody,
  { protocol, betas, notes }: ReadingTerms,
): RecordedRequest => {
  validate(value);
  const bytes = listLast(given, { list: "messages", early: ["tools", "system"], notes });
  const top = uniqueMembers(bytes, 0, PARENT);
  const messages = top.find(({ key }) => key === "messages") as Member;
  const spans = itemsOf(bytes, messages.start);
  const end = (spans.at(-1) as Span).end;
  const cuts = [
    ...headCuts(bytes, top.slice(0, top.indexOf(messages)), HEAD_KINDS),
    ...spans.flatMap((span, index) => messageCuts(bytes, span, `messages[${index}]`)),
  ];
  const origin = { model: String(value.model), betas, encoder: protocol.encoder };
  const marks = protocol.marker("5m", origin.model) !== "";
  const layout = { origin, keptEnd: end, listEnd: end, pending: pendingIn(value), syntax, marks, top, notes };
  return {
    ...sliceRequest(bytes, { ...layout, cuts: cuts.map((cut) => ({ ...cut, ...markOf(bytes, cut) })) }),
    value,
    notes,
  };
};

const validate = (value: JsonObject): void => {
  if (typeof value.model !== "string") throw new InputError("the recorded request has no `model`");
  if (value.max_tokens === 0) throw new InputError("the recorded request only fills the cache: max_tokens is 0");
  checkList(value.tools ?? [], "tools");
  if (typeof value.system !== "string") checkList(value.system ?? [], "system");
  const { messages } = value;
  if (!isArray(messages)) throw new InputError("the recorded request has no `messages` array");
  if (messages.length === 0) throw new InputError("the recorded request's `messages` is empty");
  messages.forEach((message, index) => {
    if (!isObject(message)) throw new InputError(`messages[${index}] is not an object`);
    const { role, content } = message;
    if (role !== "user" && role !== "assistant" && role !== "system") {
      throw new InputError(`messages[${index}].role must be user, assistant or system`);
    }
    if (typeof content !== "string" && !isArray(content)) {
      throw new InputError(`messages[${index}].content must be a string or an array`);
    }
    if (content.length === 0) throw new InputError(`messages[${index}].content is empty`);
    if (isArray(content)) checkBlocks(content, `messages[${index}].content`);
  });
};

const checkList = (value: Json, name: string): void => {
  const wanted = name === "system" ? "a string or an array of objects" : "an array of objects";
  if (!isArray(value) || !value.every(isObject)) throw new InputError(`${name} must be ${wanted}`);
};

/** Blocks must be objects with a type. */
const checkBlocks = (blocks: readonly Json[], name: string): void => {
  const wrong = blocks.findIndex((block) => !isObject(block) || typeof block.type !== "string");
  if (wrong >= 0) throw new InputError(`${name}[${wrong}] is not a block with a type`);
};

// --- slicing ---------------------------------------------------------------------------------------------------------

const HEAD_KINDS: ReadonlyMap<string, SegmentKind> = new Map([
  ["tools", "tool"],
  ["system", "system"],
]);

const syntax: MarkerSyntax = {
  keys: ["cache_control"],
  inside: ["content"],
  ttlOf: (marker) => (isObject(marker) && marker.ttl === "1h" ? "1h" : "5m"),
};

const messageCuts = (bytes: Buffer, message: Span, name: string): readonly Cut[] => {
  const members = uniqueMembers(bytes, message.start, name);
  const content = members.find(({ key }) => key === "content") as Member;
  const role = members.find(({ key }) => key === "role") as Member;
  const opens = JSON.parse(bytes.toString("utf8", role.start, role.end)) as Role;
  const spans = isArrayAt(bytes, content.start) ? itemsOf(bytes, content.start) : [content];
  return spans.map(({ start, end }, index) => ({
    kind: "block" as const,
    start,
    end,
    ...(index === 0 ? { opens } : {}),
  }));
};

const markOf = (bytes: Buffer, { kind, start, end }: Cut): { readonly mark?: MarkerOffset | "never" } => {
  if (kind === "head") return { mark: "never" };
  if (isStringAt(bytes, start)) {
    if (end - start === 2) return {};
    return { mark: { at: end, wrap: { at: start, open: `[{"type":"text","text":`, close: "}]" } } };
  }
  const type = membersOf(bytes, start).find(({ key }) => key === "type");
  const name = type ? bytes.toString("utf8", type.start, type.end) : "";
  const isThought = name === `"thinking"` || name === `"redacted_thinking"`;
  return { mark: isThought ? "never" : { at: end - 1 } };
};

// --- what the tail still waits for -----------------------------------------------------------------------------------

const pendingIn = ({ messages }: JsonObject): readonly string[] => {
  const last = isArray(messages) ? messages.at(-1) : undefined;
  if (!isObject(last) || last.role !== "assistant" || !isArray(last.content)) return [];
  return last.content.flatMap((block) =>
    isObject(block) && block.type === "tool_use" && typeof block.id === "string" ? [block.id] : [],
  );
};

/** True while the parent is between a call and its last result, with thinking that new user text would strip. */
const thinksInLoop = ({ messages }: JsonObject): boolean => {
  const turns = isArray(messages) ? messages : [];
  const since = turns.findLastIndex((turn) => isObject(turn) && turn.role === "user" && !onlyResults(turn.content));
  return turns.slice(since + 1).some((turn) => isObject(turn) && blocksOf(turn.content).some(isThinking));
};

const blocksOf = (content: Json | undefined): readonly Json[] => (isArray(content) ? content : []);
const onlyResults = (content: Json | undefined): boolean =>
  isArray(content) && content.every((block) => isObject(block) && block.type === "tool_result");
const isThinking = (block: Json): boolean =>
  isObject(block) && (block.type === "thinking" || block.type === "redacted_thinking");

// --- the answer ------------------------------------------------------------------------------------------------------

const verbatim = (raw: RawJson): Block => {
  const block = readBlock(raw);
  return block.type === "provider" ? block : { ...block, raw };
};

/** The blocks of the answer with their provider's bytes. */
const readAnswer: FormatReader["answer"] = ({ bytes, value }) => {
  if (value.role !== "assistant" || !isArray(value.content) || value.content.length === 0)
    throw new InputError(`${ANSWER} must be an assistant message with a \`content\` array`);
  checkBlocks(value.content, `${ANSWER}: content`);
  const content = uniqueMembers(bytes, 0, ANSWER).find(({ key }) => key === "content");
  const spans = content ? itemsOf(bytes, content.start) : [];
  const blocks = spans.map(({ start, end }) => verbatim(bytes.toString("utf8", start, end)));
  return { inFlight: { role: "assistant", content: blocks }, textCalls: [], notes: [] };
};

export const anthropicReader: FormatReader = {
  parent: (given, reading) => {
    const recorded = readMessages(given, reading);
    return {
      ...recorded,
      protocol: reading.protocol,
      stream: given.value.stream === true,
      implicit: false,
      ttl: "5m",
      strips: modelFacts(recorded.prefix.model)?.earlierThinking === "last-turn",
      thinks: thinksInLoop(given.value),
      textCalls: [],
    };
  },
  answer: readAnswer,
};
