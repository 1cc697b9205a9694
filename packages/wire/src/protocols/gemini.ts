/** Gemini generateContent: how an answer is read, chunk by chunk or whole.
 *  Invariant: pure; a part that is more than plain text is a block of its own and keeps the provider's letters, its
 *  signature with them; plain texts that follow each other are one block. No chunk says that it is the last: usage may
 *  come after the reason to stop.
 *  Elsewhere: spelling requests (gemini-encode.ts), errors (gemini-errors.ts), usage (gemini-usage.ts). */

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
  initial,
  malformed,
  parse,
  sliceItems,
  started,
  trusted,
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

/** Nothing while no reason is given. A prompt that was blocked has no candidate to give one. */
const readStop = (chunk: JsonObject): Partial<Stop> => {
  const blocked = asString(asObject(chunk.promptFeedback).blockReason);
  if (blocked !== "") return { stop: "refusal", stopDetail: blocked, hasReason: true };
  const candidate = candidateIn(chunk);
  const reason = asString(candidate.finishReason);
  if (reason === "") return {};
  const stop = STOPS.get(reason) ?? "other";
  const told = [reason, asString(candidate.finishMessage)].filter((word) => word !== "").join(": ");
  return { stop, stopDetail: stop === "refusal" || stop === "other" ? told : undefined, hasReason: true };
};

// --- parts -----------------------------------------------------------------------------------------------------------

const isThought = ({ thought }: JsonObject): boolean => thought === true;

/** Text with nothing beside it: its next piece may come in the next part. */
const isPlain = (part: JsonObject): boolean =>
  typeof part.text === "string" && Object.keys(part).every((key) => key === "text" || key === "thought");

/** A part that came in one piece. `fallback` names a call that has no id of its own. */
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
  const said = asString(part.text);
  const signature = asString(part.thoughtSignature);
  return isThought(part) ? { type: "thinking", thinking: said, signature, raw } : { type: "text", text: said, raw };
};

// --- step ------------------------------------------------------------------------------------------------------------

const countOf = ({ blocks = 0 }: ParserState): number => blocks;

const complete = ({ start, text }: BlockDraft): Block =>
  start.type === "thinking" ? { ...start, thinking: text } : { type: "text", text };

/** Closes the text that is open, if one is. */
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
    return [next, [...before, started(start, at), { type: `${kind}_grew`, index: at, text }]];
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

/** Only one is ever asked for. */
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

const hear = (state: ParserState, chunk: JsonObject, data: string): Step => {
  const parts = partsIn(candidateIn(chunk));
  if (parts.every(isPlain)) return inTurn(state, parts, growText);
  const raws = rawParts(data);
  // What stands for the answer in the id of a call without one: its own id, else all that was said with the call.
  const answer = asString(chunk.responseId) || hash("sha256", data, "hex").slice(0, 24);
  return inTurn(state, parts, (now, part, index) =>
    isPlain(part)
      ? growText(now, part)
      : addBlock(now, readPart(part, raws[index] ?? "{}", `${answer}-${countOf(now)}`)),
  );
};

const inTurn = (
  state: ParserState,
  parts: readonly JsonObject[],
  next: (now: ParserState, part: JsonObject, index: number) => Step,
): Step => {
  let now = state;
  const events = parts.flatMap((part, index) => {
    const [after, told] = next(now, part, index);
    now = after;
    return told;
  });
  return [now, events];
};

const begin = (chunk: JsonObject): ModelEvent => ({
  type: "response_started",
  id: asString(chunk.responseId),
  model: asString(chunk.modelVersion),
  usage: readUsage(asObject(chunk.usageMetadata)),
});

/** One chunk. */
export const step = (state: ParserState, { data }: Frame): Step => {
  const chunk = parse(data);
  if (chunk.error !== undefined && chunk.error !== null) throw failure({ status: 200, headers: {}, body: data });
  const [heard, events] = hear(state, chunk, data);
  const reported = { ...state.reported, ...asObject(chunk.usageMetadata) };
  const next = { ...heard, begun: true, reported, ...readStop(chunk) };
  return [next, [...(state.begun ? [] : [begin(chunk)]), ...events]];
};

/** The stream is over: an answer that gave a reason to stop is complete. A call is one whatever the reason is called. */
export const end = (state: ParserState): Step | undefined => {
  if (!state.begun || state.stop === undefined) return undefined;
  const [closed, before] = closeText(state);
  const { stopDetail } = state;
  const stop = state.stop === "end" && state.called ? "tool-use" : state.stop;
  const usage = readUsage(state.reported ?? {});
  const told = stopDetail === undefined ? {} : { stopDetail };
  return [{ ...closed, stop, usage, stopped: true }, [...before, { type: "response_stopped", stop, usage, ...told }]];
};

/** An answer in one piece, as the events a stream would have given. */
export const whole = (body: string): readonly ModelEvent[] => {
  const [state, events] = step(initial, { event: "message", data: body });
  const ended = end(state);
  if (!ended) throw malformed("it ended without a reason to stop");
  return [...events, ...ended[1]];
};

// --- usage -----------------------------------------------------------------------------------------------------------

/** The prompt figure includes what was read from a cache, and tokens that Gemini's own tools put into the prompt are
 *  counted beside it. No part is below zero, and nothing is ever written for a fee. */

export const readUsage = (reported: JsonObject): Usage => {
  const count = (name: string): number => asTokens(reported[name]) ?? 0;
  const prompt = count("promptTokenCount") + count("toolUsePromptTokenCount");
  const read = Math.min(prompt, count("cachedContentTokenCount"));
  const answer = count("candidatesTokenCount");
  const thinking = asTokens(reported.thoughtsTokenCount);
  // Some endpoints count thoughts in the answer too: the total tells.
  const isInAnswer = asTokens(reported.totalTokenCount) === prompt + answer;
  const usage = {
    plain: prompt - read,
    read,
    written: {},
    output: isInAnswer ? answer : answer + (thinking ?? 0),
    ...(thinking === undefined ? {} : { thinking }),
  };
  return trusted(usage, reported);
};

// --- errors ----------------------------------------------------------------------------------------------------------

type WireError = {
  /** As all its services name it: INVALID_ARGUMENT. */
  readonly name: string;
  readonly message: string;
  readonly code: number | undefined;
  readonly details: readonly JsonObject[];
};

/** The body, or the only item of a list where the answer would have been one. */
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

/** What it means beyond its status: a wrong key is an invalid argument here, an entry that has expired is forbidden, and
 *  a country or an account that may not ask has failed a condition. */
const told = (status: number, wire: WireError): number => {
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

/** The quota of a day does not come back within any wait of ours, whatever wait is asked for. */
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
    status: wire ? told(status, wire) : status === 200 ? 500 : status,
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
  // Not documented for what is cached by itself.
  readable: "complete",
  emptyAnswers: false,
  routes: false,
  path: (model, stream) => `/${resourceOf(model)}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  encoder: geminiEncoder,
  closing: encodeClosing,
  // It caches by itself, or by name.
  marker: () => "",
  headers: geminiHeaders,
  initial,
  step,
  end,
  whole,
  failure,
  usage: readUsage,
};
