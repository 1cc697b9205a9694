/** Chat Completions: how an answer is read, chunk by chunk or whole, in any dialect.
 *  Invariant: pure; a call's arguments keep the provider's letters; blocks end with the stream, since nothing before its
 *  last word says that one is complete.
 *  Elsewhere: spelling requests (openai-chat-encode.ts), errors (openai-errors.ts), usage (openai-usage.ts). */

import { ModelError, type ModelErrorReason } from "../errors.ts";
import { isArray, isObject, sliceMember } from "../json.ts";
import type { Block, Json, JsonObject } from "../request.ts";
import { type Frame, type ModelEvent, noUsage, type StopReason } from "../response.ts";
import { type ChatDialect, markerJson } from "./openai-chat-dialect.ts";
import { chatEncoder, encodeChatClosing } from "./openai-chat-encode.ts";
import { failure } from "./openai-errors.ts";
import { OPENAI_PACING, openaiHeaders } from "./openai-responses.ts";
import { chatWords, readTotals } from "./openai-usage.ts";
import type { BlockDraft, ParserState, Protocol, Step } from "./protocol.ts";
import { asCount, asObject, asString, initial, malformed, parse, sliceItems, started, wholeBlock } from "./reading.ts";

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

/** Words for an answer that was broken off by the provider's own trouble. */
const TROUBLE: ReadonlyMap<string, ModelErrorReason> = new Map(
  Object.entries<ModelErrorReason>({
    insufficient_system_resource: { kind: "overloaded" },
    network_error: { kind: "server" },
    error: { kind: "server" },
  }),
);

type Stop = Pick<ParserState, "stop" | "stopDetail" | "hasReason">;

/** Nothing while no reason is given. A refusal that was said is one whatever it is called, and so is a call. */
const readStop = (reason: string, state: Pick<ParserState, "drafts" | "stop" | "stopDetail">): Partial<Stop> => {
  if (reason === "") return {};
  const trouble = TROUBLE.get(reason);
  if (trouble) throw new ModelError(`the provider broke off: ${reason}`, trouble);
  const stop = STOPS.get(reason) ?? "other";
  if (stop === "end" && state.stop === "refusal") return { hasReason: true };
  if (stop === "end" && [...state.drafts.values()].some(({ start }) => start.type === "tool_use"))
    return { stop: "tool-use", stopDetail: undefined, hasReason: true };
  return { stop, stopDetail: stop === "other" || stop === "refusal" ? reason : undefined, hasReason: true };
};

// --- blocks ----------------------------------------------------------------------------------------------------------

const noDraft = { text: "", json: "", signature: "", citations: [] } as const;

/** The number of the block that takes what is said now, and the block where it has begun. */
type Found = { readonly index: number; readonly draft: BlockDraft | undefined };

const find = ({ drafts }: ParserState, fits: (draft: BlockDraft) => boolean): Found => {
  for (const [index, draft] of drafts) if (fits(draft)) return { index, draft };
  return { index: drafts.size, draft: undefined };
};

type Grown = { readonly draft: BlockDraft; readonly events: readonly ModelEvent[] };

const grow = (state: ParserState, found: Found, { draft, events }: Grown): Step => [
  { ...state, drafts: new Map(state.drafts).set(found.index, draft) },
  [...(found.draft ? [] : [started(draft.start, found.index)]), ...events],
];

const growText = (state: ParserState, text: string): Step => {
  if (text === "") return [state, []];
  const found = find(state, ({ start }) => start.type === "text");
  const draft = found.draft ?? { ...noDraft, start: { type: "text", text: "" } };
  const event: ModelEvent = { type: "text_grew", index: found.index, text };
  return grow(state, found, { draft: { ...draft, text: draft.text + text }, events: [event] });
};

const growThinking = (state: ParserState, text: string, details: readonly JsonObject[]): Step => {
  if (text === "" && details.length === 0) return [state, []];
  const found = find(state, ({ start }) => start.type === "thinking");
  const draft = found.draft ?? { ...noDraft, start: { type: "thinking", thinking: "", signature: "" } };
  const grown = { ...draft, text: draft.text + text, details: mergeDetails(draft.details ?? [], details) };
  const event: ModelEvent = { type: "thinking_grew", index: found.index, text };
  return grow(state, found, { draft: grown, events: text === "" ? [] : [event] });
};

const GROWING: ReadonlySet<string> = new Set(["text", "summary", "data"]);

/** Details come in pieces that have a number: texts of one number are joined, of its other members the last counts. */
const mergeDetails = (before: readonly JsonObject[], pieces: readonly JsonObject[]): readonly JsonObject[] => {
  const merged = [...before];
  for (const piece of pieces) {
    const at = merged.findLastIndex(({ type, index }) => type === piece.type && index === piece.index);
    const kept = merged[at];
    if (!kept) merged.push(piece);
    else merged[at] = joined(kept, piece);
  }
  return merged;
};

const joined = (kept: JsonObject, piece: JsonObject): JsonObject => {
  const entries = Object.entries(piece).filter(([, value]) => value !== null);
  const grown = entries.map(([key, value]) => [key, GROWING.has(key) ? asString(kept[key]) + asString(value) : value]);
  return { ...kept, ...Object.fromEntries(grown) };
};

/** Calls are numbered among themselves. Who gives no number begins a call with each id or name; and some give all calls
 *  the same number, and only another id and a name tell that another one begins. */
const findCall = (state: ParserState, call: JsonObject): Found => {
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
  const found = findCall(state, call);
  const { name, arguments: json = "" } = asObject(call.function);
  const [id, called, piece] = [asString(call.id), asString(name), asString(json)];
  if (!found.draft && called === "") throw malformed("a call began without a name");
  const draft: BlockDraft = found.draft ?? {
    ...noDraft,
    start: { type: "tool_use", id, name: called, input: "{}" },
    part: asCount(call.index) ?? found.index,
  };
  const event: ModelEvent = { type: "input_grew", index: found.index, json: piece };
  return grow(state, found, { draft: { ...draft, json: draft.json + piece }, events: piece === "" ? [] : [event] });
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

/** Both names are in use; who sends details may send their text beside them. */
const thoughtIn = (said: JsonObject): string => asString(said.reasoning_content) || asString(said.reasoning);

const hear = (state: ParserState, said: JsonObject): Step => {
  const refusal = asString(said.refusal);
  const grown: readonly ((now: ParserState) => Step)[] = [
    (now) => growThinking(now, thoughtIn(said), listOf(said.reasoning_details)),
    (now) => growText(now, asString(said.content) + refusal),
    ...listOf(said.tool_calls).map((call) => (now: ParserState) => growCall(now, call)),
  ];
  const events: ModelEvent[] = [];
  let now =
    refusal === "" ? state : { ...state, stop: "refusal" as const, stopDetail: (state.stopDetail ?? "") + refusal };
  for (const next of grown) {
    const [after, told] = next(now);
    now = after;
    events.push(...told);
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
  // What comes before the first choice is the gateway's, and does not know the answer's name yet.
  const begun = state.begun === true || choices.length > 0;
  const [heard, events] = hear({ ...state, begun }, asObject(choice.delta));
  const reported = isObject(chunk.usage) ? chunk.usage : choice.usage;
  const usage = isObject(reported) ? { usage: readTotals(reported, dialect.usage) } : {};
  const next = { ...heard, ...readStop(asString(choice.finish_reason), heard), ...usage };
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

/** An answer that gave its reason to stop is complete, whether or not the last word came. */
export const end = (state: ParserState): Step | undefined =>
  state.begun && state.hasReason ? stopAnswer(state) : undefined;

/** One chunk, or the word that ends the stream. */
export const stepOf =
  (dialect: ChatDialect) =>
  (state: ParserState, { data }: Frame): Step =>
    data.trim() === "[DONE]" ? stopAnswer(state) : readChunk(dialect, state, data);

/** An answer in one piece, as the events a stream would have given. */
export const wholeOf =
  (dialect: ChatDialect) =>
  (body: string): readonly ModelEvent[] => {
    const answer = parse(body);
    if (answer.error !== undefined && answer.error !== null) throw failure({ status: 200, headers: {}, body });
    const [choice] = listOf(answer.choices);
    const said = asObject(choice?.message);
    const [heard] = hear({ ...initial, begun: true }, said);
    const usage = readTotals(asObject(answer.usage), dialect.usage);
    const ended = { ...heard, ...readStop(asString(choice?.finish_reason), heard), usage };
    const [, events] = stopAnswer(ended);
    const blocks = events.flatMap((event) => (event.type === "block_stopped" ? [event.block] : []));
    const details = detailsIn(body);
    const kept = blocks.map((block) => (block.type === "thinking" && details ? { ...block, raw: details } : block));
    return [begin(answer), ...kept.flatMap(wholeBlock), ...events.slice(blocks.length)];
  };

/** Reasoning details of an answer in one piece, letter for letter. */
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
  emptyAnswers: dialect.fewestTokens === 0,
  routes: dialect.cacheKey !== "none",
  ...(dialect.untoldReads === undefined ? {} : { untoldReads: dialect.untoldReads }),
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

/** OpenAI's own. */
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
  fewestTokens: 1,
  pacing: OPENAI_PACING,
  cacheKey: "prompt_cache_key",
  user: "safety_identifier",
  thinking: "effort",
  reasoning: "none",
  emptyReasoning: false,
  usage: chatWords,
};

export const openaiChat: Protocol = chatProtocol(openaiDialect);
