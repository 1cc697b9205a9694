/** Anthropic Messages: how an answer and an error are read, and the protocol as a whole. Compatible endpoints speak it too.
 *  Invariant: pure; a tool's input and any block we do not know keep the provider's bytes.
 *  Elsewhere: encoding requests (anthropic-encode.ts), whether to retry (../errors.ts, ../send). */

import { ANTHROPIC_ERRORS, statusNamed } from "../errors.ts";
import { isArray, isObject, membersOf, skipSpace, sliceMember } from "../json.ts";
import type { Block, Json, JsonObject, RawJson } from "../request.ts";
import { type CacheDiagnosis, type Frame, type ModelEvent, noUsage, type StopReason, type Usage } from "../response.ts";
import { anthropicEncoder, encodeClosing, encodeMarker } from "./anthropic-encode.ts";
import { bareFailure, requestIdIn, retryAfter, toModelError } from "./http-failures.ts";
import type { BlockDraft, ParserState, Protocol, Step } from "./protocol.ts";
import {
  asCount,
  asObject,
  asString,
  asTokens,
  blockStarted,
  closeOpenBlock,
  flagOddFigures,
  initial,
  malformed,
  parse,
  rawMembers,
  sliceItems,
  wholeBlock,
} from "./reading.ts";

// --- usage -----------------------------------------------------------------------------------------------------------

/** Reads one usage report. Figures that it leaves out keep their value, because the closing report is cumulative but
 *  has no split by lifetime: the split of the opening report is kept, and what was added since is 5m (automatic
 *  markers). */
export const readUsage = (reported: JsonObject, before: Usage = noUsage): Usage =>
  flagOddFigures(readFigures(reported, before), reported);

const readFigures = (reported: JsonObject, before: Usage): Usage => {
  const { iterations } = reported;
  const thinking = asTokens(asObject(reported.output_tokens_details).thinking_tokens) ?? before.thinking;
  const detail = thinking === undefined ? {} : { thinking };
  if (isArray(iterations) && iterations.length > 0) return { ...sumIterations(iterations), ...detail };
  const split = asObject(reported.cache_creation);
  const oneHour = asTokens(split.ephemeral_1h_input_tokens) ?? before.written["1h"] ?? 0;
  const total = asTokens(reported.cache_creation_input_tokens);
  const fiveMinutes =
    asTokens(split.ephemeral_5m_input_tokens) ??
    (total === undefined ? (before.written["5m"] ?? 0) : Math.max(0, total - oneHour));
  return {
    plain: asTokens(reported.input_tokens) ?? before.plain,
    read: asTokens(reported.cache_read_input_tokens) ?? before.read,
    written: { ...(fiveMinutes ? { "5m": fiveMinutes } : {}), ...(oneHour ? { "1h": oneHour } : {}) },
    output: asTokens(reported.output_tokens) ?? before.output,
    ...detail,
  };
};

/** Server-side rounds (compaction) are not in the top-level totals; their sum is what is billed. */
const sumIterations = (iterations: readonly Json[]): Usage => {
  const rounds = iterations.map((round) => readUsage(asObject(round)));
  const sum = (pick: (usage: Usage) => number): number => rounds.reduce((total, usage) => total + pick(usage), 0);
  const fiveMinutes = sum(({ written }) => written["5m"] ?? 0);
  const oneHour = sum(({ written }) => written["1h"] ?? 0);
  return {
    plain: sum(({ plain }) => plain),
    read: sum(({ read }) => read),
    written: { ...(fiveMinutes ? { "5m": fiveMinutes } : {}), ...(oneHour ? { "1h": oneHour } : {}) },
    output: sum(({ output }) => output),
  };
};

// --- stop reasons and diagnosis --------------------------------------------------------------------------------------

const STOPS: ReadonlyMap<string, StopReason> = new Map(
  Object.entries<StopReason>({
    end_turn: "end",
    tool_use: "tool-use",
    max_tokens: "max-tokens",
    stop_sequence: "stop-sequence",
    pause_turn: "pause",
    refusal: "refusal",
    model_context_window_exceeded: "context-full",
  }),
);

/** Empty if there is no reason: one report may have the reason and another only the usage. */
const readStop = (delta: JsonObject): Partial<Pick<ParserState, "stop" | "stopDetail" | "hasReason">> => {
  const reason = asString(delta.stop_reason);
  if (reason === "") return {};
  const stop = STOPS.get(reason) ?? "other";
  const details = delta.stop_details;
  const explained = isObject(details) ? JSON.stringify(details) : asString(delta.stop_sequence);
  return { stop, stopDetail: explained || (stop === "other" ? reason : undefined), hasReason: true };
};

const readDiagnosis = (message: JsonObject): CacheDiagnosis | undefined => {
  const diagnostics = message.diagnostics;
  if (!isObject(diagnostics)) return undefined;
  const reason = diagnostics.cache_miss_reason;
  if (!isObject(reason)) return { status: "pending" };
  const missedTokens = asCount(reason.cache_missed_input_tokens);
  return { status: "missed", cause: asString(reason.type), ...(missedTokens === undefined ? {} : { missedTokens }) };
};

// --- blocks ----------------------------------------------------------------------------------------------------------

const extrasOf = (json: RawJson, value: JsonObject, known: readonly string[]): { readonly extras?: RawJson } => {
  const keys = Object.keys(value).filter((key) => !known.includes(key));
  if (keys.length === 0) return {};
  if (JSON.stringify(value) === json)
    return { extras: keys.map((key) => `${JSON.stringify(key)}:${JSON.stringify(value[key])}`).join(",") };
  const bytes = Buffer.from(json);
  const others = membersOf(bytes, skipSpace(bytes, 0)).filter(({ key }) => !known.includes(key));
  return { extras: others.map(({ keyStart, end }) => bytes.toString("utf8", keyStart, end)).join(",") };
};

/** The kinds of blocks in an answer. */
export type AnswerBlock = Exclude<Block, { readonly type: "image" | "document" | "tool_result" }>;

export const readBlock = (json: RawJson): AnswerBlock => {
  const value = parse(json);
  const type = asString(value.type);
  switch (type) {
    case "text": {
      const citations = isArray(value.citations) ? sliceItems(json, "citations") : [];
      return { type, text: asString(value.text), ...(citations.length > 0 ? { citations } : {}) };
    }
    case "thinking":
      return { type, thinking: asString(value.thinking), signature: asString(value.signature) };
    case "redacted_thinking":
      return { type, data: asString(value.data) };
    case "tool_use":
      return {
        type,
        id: asString(value.id),
        name: asString(value.name),
        input: rawMembers(json, value)("input") ?? "{}",
        ...extrasOf(json, value, ["type", "id", "name", "input"]),
      };
    default:
      return { type: "provider", kind: type, json };
  }
};

/** Replaces one member of a provider's own block with the value that was streamed for it. */
const withMember = (json: RawJson, key: string, value: RawJson | undefined): RawJson => {
  const bytes = Buffer.from(json);
  const member = membersOf(bytes, skipSpace(bytes, 0)).find((candidate) => candidate.key === key);
  if (!member || !value) return json;
  return bytes.toString("utf8", 0, member.start) + value + bytes.toString("utf8", member.end);
};

/** Only the last report counts: a compaction's summary arrives in one piece, for a block that started empty. */
const withSummary = (start: Block, delta: RawJson): Block => {
  if (start.type !== "provider") return start;
  const json = ["content", "encrypted_content"].reduce(
    (kept, key) => withMember(kept, key, sliceMember(delta, key)),
    start.json,
  );
  return { ...start, json };
};

const finish = ({ start, text, json, signature, citations }: BlockDraft): Block => {
  switch (start.type) {
    case "text": {
      const cited = [...(start.citations ?? []), ...citations];
      return { type: "text", text: start.text + text, ...(cited.length > 0 ? { citations: cited } : {}) };
    }
    case "thinking":
      return { type: "thinking", thinking: start.thinking + text, signature: start.signature + signature };
    case "tool_use":
      return { ...start, input: json === "" ? start.input : json };
    case "provider":
      return { ...start, json: withMember(start.json, "input", json) };
    default:
      return start;
  }
};

// --- step ------------------------------------------------------------------------------------------------------------

const index = (frame: JsonObject): number => asCount(frame.index) ?? -1;

const startBlock = (state: ParserState, frame: JsonObject, data: string): Step => {
  const at = index(frame);
  if (at < 0 || state.drafts.has(at)) throw malformed(`block ${at} started twice or has no number`);
  const json = rawMembers(data, frame)("content_block");
  if (json === undefined) throw malformed(`block ${at} started without a block`);
  const start = readBlock(json);
  const draft: BlockDraft = { start, text: "", json: "", signature: "", citations: [] };
  return [{ ...state, drafts: new Map(state.drafts).set(at, draft) }, [blockStarted(start, at)]];
};

const growBlock = (state: ParserState, frame: JsonObject, data: string): Step => {
  const at = index(frame);
  const draft = state.drafts.get(at);
  if (!draft) throw malformed(`a delta for block ${at}, which never started`);
  const delta = asObject(frame.delta);
  const keep = (grown: Partial<BlockDraft>, events: readonly ModelEvent[]): Step => [
    { ...state, drafts: new Map(state.drafts).set(at, { ...draft, ...grown }) },
    events,
  ];
  switch (delta.type) {
    case "text_delta": {
      const text = asString(delta.text);
      return keep({ text: draft.text + text }, [{ type: "text_grew", index: at, text }]);
    }
    case "thinking_delta": {
      const text = asString(delta.thinking);
      return keep({ text: draft.text + text }, [{ type: "thinking_grew", index: at, text }]);
    }
    case "signature_delta":
      return keep({ signature: draft.signature + asString(delta.signature) }, []);
    case "input_json_delta": {
      const json = asString(delta.partial_json);
      return keep({ json: draft.json + json }, [{ type: "input_grew", index: at, json }]);
    }
    case "citations_delta": {
      const citation = sliceMember(sliceMember(data, "delta") ?? "{}", "citation");
      return keep({ citations: citation ? [...draft.citations, citation] : draft.citations }, []);
    }
    case "compaction_delta":
      return keep({ start: withSummary(draft.start, sliceMember(data, "delta") ?? "{}") }, []);
    default:
      return [state, []];
  }
};

const stopBlock = (state: ParserState, frame: JsonObject): Step => {
  const at = index(frame);
  const draft = state.drafts.get(at);
  if (!draft) throw malformed(`block ${at} stopped but never started`);
  const drafts = new Map(state.drafts);
  drafts.delete(at);
  return [{ ...state, drafts }, [{ type: "block_stopped", index: at, block: finish(draft) }]];
};

const startMessage = (state: ParserState, message: JsonObject): Step => {
  const usage = readUsage(asObject(message.usage));
  const diagnosis = readDiagnosis(message);
  const event: ModelEvent = {
    type: "response_started",
    id: asString(message.id),
    model: asString(message.model),
    usage,
    ...(diagnosis ? { diagnosis } : {}),
  };
  return [{ ...state, usage, diagnosis }, [event]];
};

const stopMessage = (state: ParserState): Step => {
  const ended = end(state);
  if (!ended) throw malformed("it ended without a stop reason");
  return ended;
};

/** The opening report counts only the first tokens; without a closing report the rest is unknown. */
const hasOutput = ({ output_tokens, iterations }: JsonObject = {}): boolean =>
  asTokens(output_tokens) !== undefined || (isArray(iterations) && iterations.length > 0);

/** An answer with a stop reason is complete, even if its last event is missing. */
export const end = (state: ParserState): Step | undefined => {
  const { stop, stopDetail, drafts } = state;
  if (stop === undefined) return undefined;
  const open = [...drafts].flatMap(([at, draft]): readonly ModelEvent[] => {
    const block = closeOpenBlock(finish(draft));
    return block ? [{ type: "block_stopped", index: at, block }] : [];
  });
  const usage = hasOutput(state.reported) ? state.usage : { ...state.usage, output: 0 };
  const detail = stopDetail === undefined ? {} : { stopDetail };
  return [
    { ...state, drafts: new Map(), stopped: true },
    [...open, { type: "response_stopped", stop, usage, ...detail }],
  ];
};

/** Reads one frame. An error inside a stream is thrown, whether or not the frame is labelled as one. */
export const step = (state: ParserState, { data }: Frame): Step => {
  const frame = parse(data);
  switch (frame.type) {
    case "message_start":
      return startMessage(state, asObject(frame.message));
    case "content_block_start":
      return startBlock(state, frame, data);
    case "content_block_delta":
      return growBlock(state, frame, data);
    case "content_block_stop":
      return stopBlock(state, frame);
    case "message_delta": {
      const reported = asObject(frame.usage);
      const usage = readUsage(reported, state.usage);
      const next = { ...state, usage, reported: { ...state.reported, ...reported } };
      return [{ ...next, ...readStop(asObject(frame.delta)) }, []];
    }
    case "message_stop":
      return stopMessage(state);
    case "error":
      throw failure({ status: 200, headers: {}, body: data });
    default:
      return [state, []];
  }
};

/** An answer that is not streamed, as the events a stream would have given. */
export const whole = (body: string): readonly ModelEvent[] => {
  const message = parse(body);
  if (message.type === "error" || isObject(message.error)) throw failure({ status: 200, headers: {}, body });
  const blocks = sliceItems(body, "content").map(readBlock);
  const [state, opening] = startMessage(initial, message);
  const [, closing] = stopMessage({ ...state, ...readStop(message), reported: asObject(message.usage) });
  return [...opening, ...blocks.flatMap(wholeBlock), ...closing];
};

// --- errors ----------------------------------------------------------------------------------------------------------

type WireError = { readonly type: string; readonly message: string; readonly requestId: string | undefined };

const readError = (body: string): WireError | undefined => {
  try {
    const value = JSON.parse(body) as Json;
    const error = isObject(value) ? value.error : undefined;
    if (!isObject(value) || !isObject(error)) return undefined;
    const requestId = typeof value.request_id === "string" ? value.request_id : undefined;
    return { type: String(error.type ?? ""), message: String(error.message ?? ""), requestId };
  } catch {
    return undefined;
  }
};

export const failure: Protocol["failure"] = ({ status, headers, body }) => {
  const wire = readError(body);
  return toModelError({
    // Inside a stream there is no status of its own: the error's type implies it.
    status: status === 200 ? (statusNamed(wire?.type ?? "", ANTHROPIC_ERRORS) ?? 500) : status,
    message: [wire?.type, wire?.message].filter(Boolean).join(": ") || bareFailure(status, body),
    waitMs: retryAfter(headers),
    requestId: wire?.requestId ?? requestIdIn(headers),
    isFinal: headers["x-should-retry"] === "false",
  });
};

// --- the protocol ----------------------------------------------------------------------------------------------------

const API_VERSION = "2023-06-01";

const headers: Protocol["headers"] = (credential, betas) => ({
  "content-type": "application/json",
  "anthropic-version": API_VERSION,
  ...(betas.length > 0 ? { "anthropic-beta": betas.join(",") } : {}),
  ...(credential?.kind === "api-key" ? { "x-api-key": credential.value } : {}),
  ...(credential?.kind === "bearer" ? { authorization: `Bearer ${credential.value}` } : {}),
});

export const anthropic: Protocol = {
  name: "anthropic",
  readable: "first-event",
  emptyAnswers: true,
  routes: false,
  path: "/v1/messages",
  encoder: anthropicEncoder,
  closing: encodeClosing,
  marker: encodeMarker,
  headers,
  initial,
  step,
  end,
  whole,
  failure,
  usage: readUsage,
};
