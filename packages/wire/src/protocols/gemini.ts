/** Gemini generateContent: how an answer and an error are read, and the protocol as a whole. The base URL ends with the
 *  API's version.
 *  Invariant: pure; a part that is more than plain text is its own block and keeps the provider's bytes, including its
 *  signature; consecutive plain texts are one block. No chunk says that it is the last: usage may come after the stop
 *  reason.
 *  Elsewhere: encoding requests (gemini-encode.ts), stored entries (gemini-caches.ts). */

import { hash } from "node:crypto";
import { GOOGLE_ERRORS, statusNamed } from "../errors.ts";
import { isArray, isObject, sliceMember } from "../json.ts";
import type { Block, Json, JsonObject, RawJson } from "../request.ts";
import type { Frame, ModelEvent, StopReason, Usage } from "../response.ts";
import { encodeClosing, geminiEncoder } from "./gemini-encode.ts";
import { resourceOf } from "./gemini-settings.ts";
import { bareFailure, requestIdIn, retryAfter, toModelError } from "./http-failures.ts";
import type { BlockDraft, ParserState, Protocol, Step } from "./protocol.ts";
import {
  asObject,
  asString,
  asTokens,
  blockStarted,
  flagOddFigures,
  initial,
  malformed,
  parse,
  sliceItems,
  wholeBlock,
} from "./reading.ts";

// --- stop reasons ----------------------------------------------------------------------------------------------------

const STOPS: ReadonlyMap<string, StopReason> = new Map(
  Object.entries<StopReason>({
    STOP: "end",
    MAX_TOKENS: "max-tokens",
    CONTINUATION: "max-tokens",
    SAFETY: "refusal",
    RECITATION: "refusal",
    LANGUAGE: "refusal",
    BLOCKLIST: "refusal",
    PROHIBITED_CONTENT: "refusal",
    SPII: "refusal",
    IMAGE_SAFETY: "refusal",
    IMAGE_PROHIBITED_CONTENT: "refusal",
    IMAGE_RECITATION: "refusal",
  }),
);

type Stop = Pick<ParserState, "stop" | "stopDetail" | "hasReason">;

/** Empty while there is no reason. A blocked prompt has no candidate that could give one. */
const readStop = (chunk: JsonObject): Partial<Stop> => {
  const blocked = asString(asObject(chunk.promptFeedback).blockReason);
  if (blocked !== "") return { stop: "refusal", stopDetail: blocked, hasReason: true };
  const candidate = candidateIn(chunk);
  const reason = asString(candidate.finishReason);
  if (reason === "") return {};
  const stop = STOPS.get(reason) ?? "other";
  const detail = [reason, asString(candidate.finishMessage)].filter((word) => word !== "").join(": ");
  return { stop, stopDetail: stop === "refusal" || stop === "other" ? detail : undefined, hasReason: true };
};

// --- parts -----------------------------------------------------------------------------------------------------------

const isThought = ({ thought }: JsonObject): boolean => thought === true;

/** Text without other members: its next piece may come in the next part. */
const isPlain = (part: JsonObject): boolean =>
  typeof part.text === "string" && Object.keys(part).every((key) => key === "text" || key === "thought");

/** A complete part. `fallback` is the id of a call that has none. */
const readPart = (part: JsonObject, raw: RawJson, fallback: string): Block => {
  if (isObject(part.functionCall)) {
    const { id, name } = part.functionCall;
    if (asString(name) === "") throw malformed("a call without a name");
    const args = sliceMember(sliceMember(raw, "functionCall") ?? "{}", "args");
    const input = args?.startsWith("{") ? args : "{}";
    return { type: "tool_use", id: asString(id) || fallback, name: asString(name), input, raw };
  }
  const kind = Object.keys(part).find((key) => key !== "thought" && key !== "thoughtSignature") ?? "text";
  if (kind !== "text") return { type: "provider", kind, json: raw };
  const text = asString(part.text);
  const signature = asString(part.thoughtSignature);
  return isThought(part) ? { type: "thinking", thinking: text, signature, raw } : { type: "text", text: text, raw };
};

// --- step ------------------------------------------------------------------------------------------------------------

const countOf = ({ blocks = 0 }: ParserState): number => blocks;

const complete = ({ start, text }: BlockDraft): Block =>
  start.type === "thinking" ? { ...start, thinking: text } : { type: "text", text };

/** Closes the open text block, if there is one. */
const closeText = (state: ParserState): Step => {
  const events = [...state.drafts].map(
    ([index, draft]): ModelEvent => ({ type: "block_stopped", index, block: complete(draft) }),
  );
  return [events.length === 0 ? state : { ...state, drafts: new Map() }, events];
};

const growText = (state: ParserState, part: JsonObject): Step => {
  const text = asString(part.text);
  const kind = isThought(part) ? "thinking" : "text";
  if (text === "") return [state, []];
  const [[index, open] = []] = state.drafts;
  if (index === undefined || open?.start.type !== kind) {
    const [closed, before] = closeText(state);
    const at = countOf(closed);
    const start: Block = kind === "thinking" ? { type: kind, thinking: "", signature: "" } : { type: kind, text: "" };
    const draft: BlockDraft = { start, text, json: "", signature: "", citations: [] };
    const next = { ...closed, drafts: new Map([[at, draft]]), blocks: at + 1 };
    return [next, [...before, blockStarted(start, at), { type: `${kind}_grew`, index: at, text }]];
  }
  const drafts = new Map([[index, { ...open, text: open.text + text }]]);
  return [{ ...state, drafts }, [{ type: `${kind}_grew`, index, text }]];
};

const addBlock = (state: ParserState, block: Block): Step => {
  const [closed, before] = closeText(state);
  const at = countOf(closed);
  const called = state.called === true || block.type === "tool_use";
  return [{ ...closed, blocks: at + 1, called }, [...before, ...wholeBlock(block, at)]];
};

/** We only ever ask for one. */
const candidateIn = ({ candidates }: JsonObject): JsonObject => (isArray(candidates) ? asObject(candidates[0]) : {});

const partsIn = (candidate: JsonObject): readonly JsonObject[] => {
  const { parts } = asObject(candidate.content);
  return isArray(parts) ? parts.map(asObject) : [];
};

/** The parts of the first candidate, each verbatim. */
const rawParts = (data: string): readonly RawJson[] => {
  const [candidate] = sliceItems(data, "candidates");
  const content = candidate === undefined ? undefined : sliceMember(candidate, "content");
  return content === undefined ? [] : sliceItems(content, "parts");
};

const readParts = (state: ParserState, chunk: JsonObject, data: string): Step => {
  const parts = partsIn(candidateIn(chunk));
  if (parts.every(isPlain)) return foldParts(state, parts, growText);
  const raws = rawParts(data);
  // The answer's name in the id of a call without one: its own id, or a hash of everything that came with the call.
  const answer = asString(chunk.responseId) || hash("sha256", data, "hex").slice(0, 24);
  return foldParts(state, parts, (now, part, index) =>
    isPlain(part)
      ? growText(now, part)
      : addBlock(now, readPart(part, raws[index] ?? "{}", `${answer}-${countOf(now)}`)),
  );
};

const foldParts = (
  state: ParserState,
  parts: readonly JsonObject[],
  next: (now: ParserState, part: JsonObject, index: number) => Step,
): Step => {
  let now = state;
  const events = parts.flatMap((part, index) => {
    const [after, detail] = next(now, part, index);
    now = after;
    return detail;
  });
  return [now, events];
};

const begin = (chunk: JsonObject): ModelEvent => ({
  type: "response_started",
  id: asString(chunk.responseId),
  model: asString(chunk.modelVersion),
  usage: readUsage(asObject(chunk.usageMetadata)),
});

/** Reads one chunk. */
export const step = (state: ParserState, { data }: Frame): Step => {
  const chunk = parse(data);
  if (chunk.error !== undefined && chunk.error !== null) throw failure({ status: 200, headers: {}, body: data });
  const [read, events] = readParts(state, chunk, data);
  const reported = { ...state.reported, ...asObject(chunk.usageMetadata) };
  const next = { ...read, begun: true, reported, ...readStop(chunk) };
  return [next, [...(state.begun ? [] : [begin(chunk)]), ...events]];
};

/** The stream is over. An answer with a stop reason is complete, and an answer with a call stopped for it, whatever its
 *  reason is named. */
export const end = (state: ParserState): Step | undefined => {
  if (!state.begun || state.stop === undefined) return undefined;
  const [closed, before] = closeText(state);
  const { stopDetail } = state;
  const stop = state.stop === "end" && state.called ? "tool-use" : state.stop;
  const usage = readUsage(state.reported ?? {});
  const detail = stopDetail === undefined ? {} : { stopDetail };
  return [{ ...closed, stop, usage, stopped: true }, [...before, { type: "response_stopped", stop, usage, ...detail }]];
};

/** An answer that is not streamed, as the events a stream would have given. */
export const whole = (body: string): readonly ModelEvent[] => {
  const [state, events] = step(initial, { event: "message", data: body });
  const ended = end(state);
  if (!ended) throw malformed("it ended without a reason to stop");
  return [...events, ...ended[1]];
};

// --- usage -----------------------------------------------------------------------------------------------------------

/** The prompt figure includes what was read from a cache, and tokens that Gemini's own tools put into the prompt are
 *  counted separately. No part is below zero, and nothing is ever written for a fee. */

export const readUsage = (reported: JsonObject): Usage => {
  const count = (name: string): number => asTokens(reported[name]) ?? 0;
  const prompt = count("promptTokenCount") + count("toolUsePromptTokenCount");
  const read = Math.min(prompt, count("cachedContentTokenCount"));
  const answer = count("candidatesTokenCount");
  const thinking = asTokens(reported.thoughtsTokenCount);
  // Some endpoints include thoughts in the answer's figure; the total shows it.
  const isInAnswer = asTokens(reported.totalTokenCount) === prompt + answer;
  const usage = {
    plain: prompt - read,
    read,
    written: {},
    output: isInAnswer ? answer : answer + (thinking ?? 0),
    ...(thinking === undefined ? {} : { thinking }),
  };
  return flagOddFigures(usage, reported);
};

// --- errors ----------------------------------------------------------------------------------------------------------

type WireError = {
  /** Google's name for it, such as INVALID_ARGUMENT. */
  readonly name: string;
  readonly message: string;
  readonly code: number | undefined;
  readonly details: readonly JsonObject[];
};

/** The body, or the only item of a list if the answer would have been a list. */
const readError = (body: string): WireError | undefined => {
  try {
    const value = JSON.parse(body) as Json;
    const error = asObject(isArray(value) ? value[0] : value).error;
    if (!isObject(error)) return undefined;
    const { status, message, code, details } = error;
    return {
      name: asString(status),
      message: asString(message),
      code: typeof code === "number" ? code : undefined,
      details: isArray(details) ? details.map(asObject) : [],
    };
  } catch {
    return undefined;
  }
};

const detailOf = ({ details }: WireError, type: string): JsonObject =>
  details.find((detail) => asString(detail["@type"]).endsWith(`.${type}`)) ?? {};

/** Some errors mean more than their status: a wrong key is an invalid argument here, an expired entry is forbidden, and
 *  a country or an account that may not send requests is a failed precondition. */
const impliedStatus = (status: number, wire: WireError): number => {
  if (asString(detailOf(wire, "ErrorInfo").reason) === "API_KEY_INVALID") return 401;
  if (wire.name === "FAILED_PRECONDITION") return 403;
  if (/cached ?content not found/i.test(wire.message)) return 404;
  if (/token count .*exceeds/i.test(wire.message)) return 413;
  return status === 200 ? (wire.code ?? statusNamed(wire.name, GOOGLE_ERRORS) ?? 500) : status;
};

/** "34.07s" → 34,070. */
const retryDelay = (wire: WireError): number | undefined => {
  const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(asString(detailOf(wire, "RetryInfo").retryDelay)) ?? [];
  return seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1_000);
};

/** A daily quota does not come back within any wait of ours, whatever the provider asks for. */
const isDaily = (wire: WireError): boolean => {
  const { violations } = detailOf(wire, "QuotaFailure");
  return isArray(violations) && violations.some((violation) => /PerDay/.test(asString(asObject(violation).quotaId)));
};

const longer = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);

export const failure: Protocol["failure"] = ({ status, headers, body }) => {
  const wire = readError(body);
  const isOver = wire !== undefined && isDaily(wire);
  return toModelError({
    status: wire ? impliedStatus(status, wire) : status === 200 ? 500 : status,
    sentStatus: wire ? status : undefined,
    message: [wire?.name, wire?.message].filter(Boolean).join(": ") || bareFailure(status, body),
    waitMs: isOver ? undefined : longer(retryAfter(headers), wire && retryDelay(wire)),
    requestId: requestIdIn(headers),
    isFinal: isOver,
  });
};

// --- the protocol ----------------------------------------------------------------------------------------------------

export const geminiHeaders: Protocol["headers"] = (credential) => ({
  "content-type": "application/json",
  ...(credential?.kind === "api-key" ? { "x-goog-api-key": credential.value } : {}),
  ...(credential?.kind === "bearer" ? { authorization: `Bearer ${credential.value}` } : {}),
});

export const gemini: Protocol = {
  name: "gemini",
  // Not documented for automatic caching.
  readable: "complete",
  emptyAnswers: false,
  routes: false,
  path: (model, stream) => `/${resourceOf(model)}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  encoder: geminiEncoder,
  closing: encodeClosing,
  // It caches automatically, or by name.
  marker: () => "",
  headers: geminiHeaders,
  initial,
  step,
  end,
  whole,
  failure,
  usage: readUsage,
};
