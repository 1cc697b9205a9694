/** OpenAI Responses: how an answer is read, event by event or whole, and the protocol as a whole. The base URL ends
 *  with the API's version.
 *  Invariant: pure; every item of the answer keeps the provider's bytes, and is shown while it arrives.
 *  Elsewhere: encoding requests (openai-responses-encode.ts), errors (openai-errors.ts), usage (openai-usage.ts). */

import { isArray, isInput, sliceMember } from "../json.ts";
import type { Block, Json, JsonObject, RawJson } from "../request.ts";
import { type CacheDiagnosis, type Frame, type ModelEvent, noUsage } from "../response.ts";
import { failure } from "./openai-errors.ts";
import { encodeClosing, responsesEncoder } from "./openai-responses-encode.ts";
import { breakpointJson, hasBreakpoints } from "./openai-settings.ts";
import { readTotals, responsesUsage } from "./openai-usage.ts";
import type { BlockDraft, Pacing, ParserState, Protocol, Step, StreamEnd } from "./protocol.ts";
import {
  asCount,
  asObject,
  asString,
  blockStarted,
  initial,
  malformed,
  parse,
  rawMembers,
  remainingGrowth,
  sliceItems,
  wholeBlock,
} from "./reading.ts";

// --- stop reasons and diagnosis --------------------------------------------------------------------------------------

type Stop = Pick<ParserState, "stop" | "stopDetail">;

/** Why the answer stops, as far as an item shows it: this provider has the same status for an answer and for a call. */
const stopIn = (item: JsonObject): Partial<Stop> => {
  if (item.type === "function_call") return { stop: "tool-use", stopDetail: undefined };
  const refusal = partsOf(item.content).find(({ type }) => type === "refusal");
  return refusal ? { stop: "refusal", stopDetail: asString(refusal.refusal) || undefined } : {};
};

const readStop = (response: JsonObject, { stop = "end", stopDetail }: Stop): Stop => {
  const status = asString(response.status);
  if (status === "completed") return { stop, stopDetail };
  const reason = asString(asObject(response.incomplete_details).reason) || status;
  if (reason === "") throw malformed("it ended without a status");
  if (reason === "max_output_tokens") return { stop: "max-tokens", stopDetail: undefined };
  return { stop: reason === "content_filter" ? "refusal" : "other", stopDetail: reason };
};

/** A cache hit needs no diagnosis. If the comparison is not available yet, it is neither hit nor miss; a comparison
 *  response that no longer exists is reported as such. */
const readDiagnosis = (response: JsonObject): CacheDiagnosis | undefined => {
  const { type, reason, cache_missed_tokens } = asObject(response.prompt_cache_diagnostics);
  if (type === undefined || type === "cache_hit") return undefined;
  if (type === "unavailable") return { status: "pending" };
  const missedTokens = asCount(cache_missed_tokens);
  const cause = asString(reason) || asString(type);
  return { status: "missed", cause, ...(missedTokens === undefined ? {} : { missedTokens }) };
};

// --- items -----------------------------------------------------------------------------------------------------------

const partsOf = (list: Json | undefined): readonly JsonObject[] => (isArray(list) ? list.map(asObject) : []);

/** Separates the parts of a summary, which are paragraphs. */
const BREAK = "\n\n";

const thinkingIn = ({ summary, content }: JsonObject): string => {
  const parts = partsOf(summary).length > 0 ? partsOf(summary) : partsOf(content);
  return parts.map(({ text }) => asString(text)).join(BREAK);
};

/** A call that was cut off has unreadable arguments and is sent back in our own encoding. */
const readCall = (item: JsonObject, raw: RawJson): Block => {
  const input = asString(item.arguments) || "{}";
  const call = { type: "tool_use", id: asString(item.call_id), name: asString(item.name), input } as const;
  return isInput(input) ? { ...call, raw } : call;
};

/** An item of an answer, with its own bytes. */
export const readItem = (raw: RawJson): Block => {
  const item = parse(raw);
  switch (item.type) {
    case "message": {
      const text = partsOf(item.content).map((part) => asString(part.text) || asString(part.refusal));
      return { type: "text", text: text.join(""), raw };
    }
    case "reasoning":
      return { type: "thinking", thinking: thinkingIn(item), signature: asString(item.encrypted_content), raw };
    case "function_call":
      return readCall(item, raw);
    default:
      return { type: "provider", kind: asString(item.type), json: raw };
  }
};

// --- step ------------------------------------------------------------------------------------------------------------

const begin = (state: ParserState, response: JsonObject): Step => [
  state,
  [{ type: "response_started", id: asString(response.id), model: asString(response.model), usage: noUsage }],
];

const at = (frame: JsonObject): number => asCount(frame.output_index) ?? -1;

const itemIn = (frame: JsonObject, data: string): RawJson => {
  const json = rawMembers(data, frame)("item");
  if (json === undefined) throw malformed(`item ${at(frame)} is not there`);
  return json;
};

const startItem = (state: ParserState, frame: JsonObject, data: string): Step => {
  const index = at(frame);
  if (index < 0 || state.drafts.has(index)) throw malformed(`item ${index} started twice or has no number`);
  const start = readItem(itemIn(frame, data));
  const draft: BlockDraft = { start, text: "", json: "", signature: "", citations: [] };
  const drafts = new Map(state.drafts).set(index, draft);
  return [{ ...state, drafts, canEnd: false }, [blockStarted(start, index)]];
};

const draftOf = (state: ParserState, frame: JsonObject): BlockDraft => {
  const draft = state.drafts.get(at(frame));
  if (!draft) throw malformed(`a delta for item ${at(frame)}, which never started`);
  return draft;
};

type Growth = { readonly type: "text_grew" | "thinking_grew" | "input_grew"; readonly part?: number };

/** Whatever grows, everything shown of a block is kept in one text, so that at its end only the rest has to be
 *  shown. */
const growItem = (state: ParserState, frame: JsonObject, { type, part = 0 }: Growth): Step => {
  const index = at(frame);
  const draft = draftOf(state, frame);
  const gap = type === "thinking_grew" && draft.part !== undefined && draft.part !== part ? BREAK : "";
  const text = gap + asString(frame.delta);
  const drafts = new Map(state.drafts).set(index, { ...draft, text: draft.text + text, part });
  const event: ModelEvent = type === "input_grew" ? { type, index, json: text } : { type, index, text };
  return [{ ...state, drafts }, text === "" ? [] : [event]];
};

const stopItem = (state: ParserState, index: number, raw: RawJson): Step => {
  const draft = state.drafts.get(index);
  if (!draft) throw malformed(`item ${index} is done but never started`);
  const block = readItem(raw);
  const drafts = new Map(state.drafts);
  drafts.delete(index);
  // A call without arguments sends an empty text, or none.
  const shown = block.type === "tool_use" && block.input === "{}" ? "{}" : draft.text;
  const events: readonly ModelEvent[] = [
    ...remainingGrowth(block, index, shown),
    { type: "block_stopped", index, block },
  ];
  const item = parse(raw);
  return [{ ...state, ...stopIn(item), drafts, canEnd: drafts.size === 0 && isFinal(item) }, events];
};

/** An answer ends with text or with calls, never with reasoning. */
const isFinal = ({ type, status = "completed" }: JsonObject): boolean =>
  (type === "message" || type === "function_call") && status === "completed";

const stopResponse = (state: ParserState, json: RawJson): Step => {
  const response = parse(json);
  // An answer that was cut off may leave its last item open.
  const items = state.drafts.size > 0 ? sliceItems(json, "output") : [];
  let closed = state;
  const events: ModelEvent[] = [];
  for (const index of state.drafts.keys()) {
    const raw = items[index];
    if (raw === undefined) throw malformed("it ended inside an item");
    const [next, added] = stopItem(closed, index, raw);
    closed = next;
    events.push(...added);
  }
  return finish(closed, response, events);
};

const finish = (state: ParserState, response: JsonObject, before: readonly ModelEvent[]): Step => {
  const { stop = "end", stopDetail } = readStop(response, state);
  const usage = readTotals(asObject(response.usage), responsesUsage);
  const diagnosis = readDiagnosis(response);
  const detail = { ...(stopDetail === undefined ? {} : { stopDetail }), ...(diagnosis ? { diagnosis } : {}) };
  return [
    { ...state, stop, stopDetail, usage, diagnosis, stopped: true },
    [...before, { type: "response_stopped", stop, usage, ...detail }],
  ];
};

/** The stop reason comes with the last event. If that is missing, a stream that the server closed after a possible last
 *  item is a complete answer; one that broke may have had more to say. */
export const end = (state: ParserState, how: StreamEnd): Step | undefined => {
  if (how !== "closed" || !state.canEnd) return undefined;
  const { stop = "end", stopDetail } = state;
  const detail = stopDetail === undefined ? {} : { stopDetail };
  return [{ ...state, stopped: true }, [{ type: "response_stopped", stop, usage: noUsage, ...detail }]];
};

/** Reads one event. A failure inside a stream is thrown, in either of its two forms. */
export const step = (state: ParserState, { data }: Frame): Step => {
  const frame = parse(data);
  switch (frame.type) {
    case "response.created":
      return begin(state, asObject(frame.response));
    case "response.output_item.added":
      return startItem(state, frame, data);
    case "response.output_text.delta":
    case "response.refusal.delta":
      return growItem(state, frame, { type: "text_grew" });
    case "response.function_call_arguments.delta":
      return growItem(state, frame, { type: "input_grew" });
    case "response.reasoning_summary_text.delta":
      return growItem(state, frame, { type: "thinking_grew", part: asCount(frame.summary_index) ?? 0 });
    case "response.reasoning_text.delta":
      return growItem(state, frame, { type: "thinking_grew", part: asCount(frame.content_index) ?? 0 });
    case "response.output_item.done":
      return stopItem(state, at(frame), itemIn(frame, data));
    case "response.completed":
    case "response.incomplete":
      return stopResponse(state, sliceMember(data, "response") ?? "{}");
    case "response.failed":
    case "error":
      throw failure({ status: 200, headers: {}, body: data });
    default:
      return [state, []];
  }
};

/** An answer that is not streamed, as the events a stream would have given. */
export const whole = (body: string): readonly ModelEvent[] => {
  const response = parse(body);
  if (response.status === "failed" || (response.error !== null && response.error !== undefined))
    throw failure({ status: 200, headers: {}, body });
  const items = sliceItems(body, "output");
  const stop = items.map((raw) => stopIn(parse(raw))).findLast((found) => found.stop !== undefined);
  const [state, opening] = begin(initial, response);
  const [, closing] = finish({ ...state, ...stop }, response, []);
  return [...opening, ...items.flatMap((raw, index) => wholeBlock(readItem(raw), index)), ...closing];
};

// --- the protocol ----------------------------------------------------------------------------------------------------

export const openaiHeaders: Protocol["headers"] = (credential, betas) => ({
  "content-type": "application/json",
  ...(betas.length > 0 ? { "openai-beta": betas.join(",") } : {}),
  ...(credential ? { authorization: `Bearer ${credential.value}` } : {}),
});

/** Entries are on single machines; above about fifteen requests per minute with one prefix and key, the provider uses
 *  other machines too. */
export const OPENAI_PACING: Pacing = { perMinute: 15 };

export const openaiResponses: Protocol = {
  name: "openai-responses",
  // Not documented; assumed to be the same as for others who write at breakpoints.
  readable: "first-event",
  emptyAnswers: false,
  routes: true,
  pacing: OPENAI_PACING,
  path: "/responses",
  encoder: responsesEncoder,
  closing: encodeClosing,
  marker: (ttl, model) => (hasBreakpoints(model) ? breakpointJson(ttl) : ""),
  headers: openaiHeaders,
  initial,
  step,
  end,
  whole,
  failure,
  usage: (reported) => readTotals(reported, responsesUsage),
};
