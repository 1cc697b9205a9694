/** Chat Completions: how an answer is read, chunk by chunk or whole, in any dialect, and the protocol as a whole.
 *  Invariant: pure; a call's arguments keep the provider's bytes; blocks end with the stream, because nothing before
 *  its end says that a block is complete.
 *  Elsewhere: encoding requests (openai-chat-encode.ts), errors (openai-errors.ts), usage (openai-usage.ts), who speaks
 *  which dialect (profiles.ts). */

import { ModelError, type ModelErrorReason } from "../errors.ts";
import { isArray, isObject, sliceMember } from "../json.ts";
import type { Block, Json, JsonObject } from "../request.ts";
import { type Frame, type ModelEvent, noUsage, type StopReason } from "../response.ts";
import { type ChatDialect, markerJson } from "./openai-chat-dialect.ts";
import { chatEncoder, encodeChatClosing } from "./openai-chat-encode.ts";
import { failure } from "./openai-errors.ts";
import { OPENAI_PACING, openaiHeaders } from "./openai-responses.ts";
import { chatUsage, readTotals } from "./openai-usage.ts";
import type { BlockDraft, ParserState, Protocol, Step } from "./protocol.ts";
import {
  asCount,
  asObject,
  asString,
  blockStarted,
  initial,
  malformed,
  parse,
  sliceItems,
  wholeBlock,
} from "./reading.ts";

// --- stop reasons ----------------------------------------------------------------------------------------------------

const STOPS: ReadonlyMap<string, StopReason> = new Map(
  Object.entries<StopReason>({
    stop: "end",
    tool_calls: "tool-use",
    function_call: "tool-use",
    length: "max-tokens",
    content_filter: "refusal",
    sensitive: "refusal",
    model_context_window_exceeded: "context-full",
  }),
);

/** Stop reasons that mean the provider itself failed. */
const PROVIDER_FAILURES: ReadonlyMap<string, ModelErrorReason> = new Map(
  Object.entries<ModelErrorReason>({
    insufficient_system_resource: { kind: "overloaded" },
    network_error: { kind: "server" },
    error: { kind: "server" },
  }),
);

type Stop = Pick<ParserState, "stop" | "stopDetail" | "hasReason">;

/** Empty while there is no reason. An answer with refusal text or with a call stopped for that, whatever its reason is
 *  named. */
const readStop = (reason: string, state: Pick<ParserState, "drafts" | "stop" | "stopDetail">): Partial<Stop> => {
  if (reason === "") return {};
  const trouble = PROVIDER_FAILURES.get(reason);
  if (trouble) throw new ModelError(`the provider broke off: ${reason}`, trouble);
  const stop = STOPS.get(reason) ?? "other";
  if (stop === "end" && state.stop === "refusal") return { hasReason: true };
  if (stop === "end" && [...state.drafts.values()].some(({ start }) => start.type === "tool_use"))
    return { stop: "tool-use", stopDetail: undefined, hasReason: true };
  return { stop, stopDetail: stop === "other" || stop === "refusal" ? reason : undefined, hasReason: true };
};

// --- blocks ----------------------------------------------------------------------------------------------------------

const noDraft = { text: "", json: "", signature: "", citations: [] } as const;

/** The index of the block that grows next, and the block if it has started. */
type BlockSlot = { readonly index: number; readonly draft: BlockDraft | undefined };

const findSlot = ({ drafts }: ParserState, fits: (draft: BlockDraft) => boolean): BlockSlot => {
  for (const [index, draft] of drafts) if (fits(draft)) return { index, draft };
  return { index: drafts.size, draft: undefined };
};

type BlockGrowth = { readonly draft: BlockDraft; readonly events: readonly ModelEvent[] };

const grow = (state: ParserState, slot: BlockSlot, { draft, events }: BlockGrowth): Step => [
  { ...state, drafts: new Map(state.drafts).set(slot.index, draft) },
  [...(slot.draft ? [] : [blockStarted(draft.start, slot.index)]), ...events],
];

const growText = (state: ParserState, text: string): Step => {
  if (text === "") return [state, []];
  const slot = findSlot(state, ({ start }) => start.type === "text");
  const draft = slot.draft ?? { ...noDraft, start: { type: "text", text: "" } };
  const event: ModelEvent = { type: "text_grew", index: slot.index, text };
  return grow(state, slot, { draft: { ...draft, text: draft.text + text }, events: [event] });
};

const growThinking = (state: ParserState, text: string, details: readonly JsonObject[]): Step => {
  if (text === "" && details.length === 0) return [state, []];
  const slot = findSlot(state, ({ start }) => start.type === "thinking");
  const draft = slot.draft ?? { ...noDraft, start: { type: "thinking", thinking: "", signature: "" } };
  const grown = { ...draft, text: draft.text + text, details: mergeDetails(draft.details ?? [], details) };
  const event: ModelEvent = { type: "thinking_grew", index: slot.index, text };
  return grow(state, slot, { draft: grown, events: text === "" ? [] : [event] });
};

const GROWING: ReadonlySet<string> = new Set(["text", "summary", "data"]);

/** Details arrive in numbered pieces: texts with the same number are joined, and for other members the last value
 *  counts. */
const mergeDetails = (before: readonly JsonObject[], pieces: readonly JsonObject[]): readonly JsonObject[] => {
  const merged = [...before];
  for (const piece of pieces) {
    const at = merged.findLastIndex(({ type, index }) => type === piece.type && index === piece.index);
    const kept = merged[at];
    if (!kept) merged.push(piece);
    else merged[at] = joinDetail(kept, piece);
  }
  return merged;
};

const joinDetail = (kept: JsonObject, piece: JsonObject): JsonObject => {
  const entries = Object.entries(piece).filter(([, value]) => value !== null);
  const grown = entries.map(([key, value]) => [key, GROWING.has(key) ? asString(kept[key]) + asString(value) : value]);
  return { ...kept, ...Object.fromEntries(grown) };
};

/** Calls are numbered among themselves. Without a number, each id or name starts a call. Some endpoints give all calls
 *  the same number, and only a new id with a name shows that another call starts. */
const findCall = (state: ParserState, call: JsonObject): BlockSlot => {
  const number = asCount(call.index);
  const [id, name] = [asString(call.id), asString(asObject(call.function).name)];
  const calls = [...state.drafts].filter(
    ([, { start, part }]) => start.type === "tool_use" && (number === undefined || part === number),
  );
  const [index, draft] = calls.at(-1) ?? [];
  const begins =
    number === undefined
      ? id !== "" || name !== ""
      : id !== "" && name !== "" && draft !== undefined && !isCall(draft, id);
  if (begins || index === undefined) return { index: state.drafts.size, draft: undefined };
  return { index, draft };
};

const isCall = ({ start }: BlockDraft, id: string): boolean => start.type === "tool_use" && start.id === id;

const growCall = (state: ParserState, call: JsonObject): Step => {
  const slot = findCall(state, call);
  const { name, arguments: json = "" } = asObject(call.function);
  const [id, called, piece] = [asString(call.id), asString(name), asString(json)];
  if (!slot.draft && called === "") throw malformed("a call began without a name");
  const draft: BlockDraft = slot.draft ?? {
    ...noDraft,
    start: { type: "tool_use", id, name: called, input: "{}" },
    part: asCount(call.index) ?? slot.index,
  };
  const event: ModelEvent = { type: "input_grew", index: slot.index, json: piece };
  return grow(state, slot, { draft: { ...draft, json: draft.json + piece }, events: piece === "" ? [] : [event] });
};

const complete = ({ start, text, json, details = [] }: BlockDraft): Block => {
  switch (start.type) {
    case "text":
      return { ...start, text };
    case "thinking":
      return { ...start, thinking: text, ...(details.length > 0 ? { raw: JSON.stringify(details) } : {}) };
    case "tool_use":
      return { ...start, input: json === "" ? "{}" : json };
    default:
      return start;
  }
};

// --- step ------------------------------------------------------------------------------------------------------------

const listOf = (value: Json | undefined): readonly JsonObject[] => (isArray(value) ? value.map(asObject) : []);

/** Both names are in use, and an endpoint that sends details may also send their text. */
const thoughtIn = (message: JsonObject): string => asString(message.reasoning_content) || asString(message.reasoning);

const readDelta = (state: ParserState, message: JsonObject): Step => {
  const refusal = asString(message.refusal);
  const grown: readonly ((now: ParserState) => Step)[] = [
    (now) => growThinking(now, thoughtIn(message), listOf(message.reasoning_details)),
    (now) => growText(now, asString(message.content) + refusal),
    ...listOf(message.tool_calls).map((call) => (now: ParserState) => growCall(now, call)),
  ];
  const events: ModelEvent[] = [];
  let now =
    refusal === "" ? state : { ...state, stop: "refusal" as const, stopDetail: (state.stopDetail ?? "") + refusal };
  for (const next of grown) {
    const [after, added] = next(now);
    now = after;
    events.push(...added);
  }
  return [now, events];
};

const begin = ({ id, model }: JsonObject): ModelEvent => ({
  type: "response_started",
  id: asString(id),
  model: asString(model),
  usage: noUsage,
});

const readChunk = (dialect: ChatDialect, state: ParserState, data: string): Step => {
  const chunk = parse(data);
  if (chunk.error !== undefined && chunk.error !== null) throw failure({ status: 200, headers: {}, body: data });
  const choices = listOf(chunk.choices);
  const choice = choices.find(({ index = 0 }) => index === 0) ?? {};
  // Chunks before the first choice come from the gateway, which does not know the answer's id yet.
  const begun = state.begun === true || choices.length > 0;
  const [read, events] = readDelta({ ...state, begun }, asObject(choice.delta));
  const reported = isObject(chunk.usage) ? chunk.usage : choice.usage;
  const usage = isObject(reported) ? { usage: readTotals(reported, dialect.usage) } : {};
  const next = { ...read, ...readStop(asString(choice.finish_reason), read), ...usage };
  return [next, [...(begun && !state.begun ? [begin(chunk)] : []), ...events]];
};

const stopAnswer = (state: ParserState): Step => {
  const { stop, stopDetail, usage, drafts } = state;
  if (!state.begun || stop === undefined) throw malformed("it ended without a stop reason");
  const blocks = [...drafts].map(
    ([index, draft]): ModelEvent => ({ type: "block_stopped", index, block: complete(draft) }),
  );
  const last: ModelEvent = {
    type: "response_stopped",
    stop,
    usage,
    ...(stopDetail === undefined ? {} : { stopDetail }),
  };
  return [{ ...state, drafts: new Map(), stopped: true }, [...blocks, last]];
};

/** An answer with a stop reason is complete, even if the last line is missing. */
export const end = (state: ParserState): Step | undefined =>
  state.begun && state.hasReason ? stopAnswer(state) : undefined;

/** Reads one chunk, or the line that ends the stream. */
export const stepOf =
  (dialect: ChatDialect) =>
  (state: ParserState, { data }: Frame): Step =>
    data.trim() === "[DONE]" ? stopAnswer(state) : readChunk(dialect, state, data);

/** An answer that is not streamed, as the events a stream would have given. */
export const wholeOf =
  (dialect: ChatDialect) =>
  (body: string): readonly ModelEvent[] => {
    const answer = parse(body);
    if (answer.error !== undefined && answer.error !== null) throw failure({ status: 200, headers: {}, body });
    const [choice] = listOf(answer.choices);
    const message = asObject(choice?.message);
    const [read] = readDelta({ ...initial, begun: true }, message);
    const usage = readTotals(asObject(answer.usage), dialect.usage);
    const ended = { ...read, ...readStop(asString(choice?.finish_reason), read), usage };
    const [, events] = stopAnswer(ended);
    const blocks = events.flatMap((event) => (event.type === "block_stopped" ? [event.block] : []));
    const details = detailsIn(body);
    const kept = blocks.map((block) => (block.type === "thinking" && details ? { ...block, raw: details } : block));
    return [begin(answer), ...kept.flatMap(wholeBlock), ...events.slice(blocks.length)];
  };

/** Reasoning details of an answer that is not streamed, byte for byte. */
const detailsIn = (body: string): string | undefined => {
  const [choice] = sliceItems(body, "choices");
  const message = choice === undefined ? undefined : sliceMember(choice, "message");
  const details = message === undefined ? undefined : sliceMember(message, "reasoning_details");
  return details?.startsWith("[") && details !== "[]" ? details : undefined;
};

// --- the protocol ----------------------------------------------------------------------------------------------------

/** The base URL ends with the API's version. */

export const chatProtocol = (dialect: ChatDialect): Protocol => ({
  name: dialect.name,
  readable: dialect.readable,
  emptyAnswers: dialect.minMaxTokens === 0,
  routes: dialect.cacheKey !== "none",
  ...(dialect.unreportedReads === undefined ? {} : { unreportedReads: dialect.unreportedReads }),
  pacing: dialect.pacing,
  ...(dialect.sharesTails === undefined ? {} : { sharesTails: dialect.sharesTails }),
  path: "/chat/completions",
  encoder: chatEncoder(dialect),
  closing: (closing, model) => encodeChatClosing(dialect, closing, model),
  marker: (ttl, model) => markerJson(dialect, ttl, model),
  headers: openaiHeaders,
  initial,
  step: stepOf(dialect),
  end,
  whole: wholeOf(dialect),
  failure,
  usage: (reported) => readTotals(reported, dialect.usage),
});

/** OpenAI's own dialect. */
export const openaiDialect: ChatDialect = {
  name: "openai-chat",
  readable: "first-event",
  systemRole: "developer",
  noteRole: "developer",
  content: "parts",
  markers: [{ models: "", style: "breakpoint" }],
  namedTtls: [],
  sends: ["service_tier", "verbosity", "parallel_tool_calls", "store", "stream_options"],
  maxTokens: "max_completion_tokens",
  minMaxTokens: 1,
  pacing: OPENAI_PACING,
  cacheKey: "prompt_cache_key",
  user: "safety_identifier",
  thinking: "effort",
  reasoning: "none",
  emptyReasoning: false,
  usage: chatUsage,
};

export const openaiChat: Protocol = chatProtocol(openaiDialect);
