/** How is an answer encoded on the Responses API, whole and as events?
 *  Invariant: the events, folded, give the whole response; all of them are numbered, including a last error.
 *  Elsewhere: the items (items.ts), writing to a socket (../../serve-answer.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { inputText, piecesOf, type SimMessage } from "../../answer.ts";
import { listOf, objectOf, stringOf } from "../../body.ts";
import type { Refusal } from "../../errors.ts";
import type { ReportRules } from "../../rules/index.ts";
import type { AnswerEncoder, SimEvent } from "../../wire.ts";
import { errorFields } from "../openai/index.ts";
import { isCutOff, itemsOf, textPart } from "./items.ts";

/** What an answer repeats of its request. */
export type Echo = {
  readonly settings: JsonObject;
  readonly showThinking: boolean;
  readonly prewarm: boolean;
  readonly reports: ReportRules;
  /** Writes are also reported by lifetime. */
  readonly byLifetime: boolean;
};

export const answerEncoder = (echo: Echo): AnswerEncoder => {
  let sequence = 0;
  const numbered = (data: JsonObject): JsonObject => ({ ...data, sequence_number: sequence++ });
  return {
    whole: (message) => wholeResponse(message, echo),
    *events(message) {
      for (const { data, ...event } of unnumbered(message, echo)) {
        yield { ...event, event: stringOf((data as JsonObject).type), data: numbered(data as JsonObject) };
      }
    },
    failure: (refusal) => ({ phase: "closing", event: "error", data: numbered(failure(refusal, echo)) }),
  };
};

const failure = (refusal: Refusal, { reports }: Echo): JsonObject => {
  const { code, message, param } = errorFields(refusal, reports);
  return { type: "error", code: code ?? "server_error", message: message ?? "", param: param ?? null };
};

// --- the whole response ----------------------------------------------------------------------------------------------

const usageBody = ({ usage }: SimMessage, { byLifetime }: Echo): JsonObject => {
  const { "30m": short = 0, "12h": long = 0 } = usage.written;
  const input = usage.plain + usage.read + short + long;
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.read,
      cache_write_tokens: short + long,
      ...(byLifetime ? { cache_write_tokens_details: { ttl_30m_tokens: short, ttl_12h_tokens: long } } : {}),
    },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.thinking ?? 0 },
    total_tokens: input + usage.output,
  };
};

/** A request that only fills the cache is complete without an answer. */
const isIncomplete = (message: SimMessage, { prewarm }: Echo): boolean => isCutOff(message) && !prewarm;

const wholeResponse = (message: SimMessage, echo: Echo): JsonObject => ({
  ...opening(message, echo),
  status: isIncomplete(message, echo) ? "incomplete" : "completed",
  incomplete_details: isIncomplete(message, echo) ? { reason: "max_output_tokens" } : null,
  output: itemsOf(message, echo.showThinking),
  usage: usageBody(message, echo),
  ...(message.diagnostics === null ? {} : { prompt_cache_diagnostics: message.diagnostics }),
});

const opening = (message: SimMessage, { settings }: Echo): JsonObject => ({
  id: message.id,
  object: "response",
  created_at: Math.floor(message.createdMs / 1_000),
  status: "in_progress",
  background: false,
  error: null,
  incomplete_details: null,
  model: message.model,
  output: [],
  usage: null,
  ...settings,
});

// --- events ----------------------------------------------------------------------------------------------------------

type Unnumbered = SimEvent & { readonly data: JsonObject };

function* unnumbered(message: SimMessage, echo: Echo): Generator<Unnumbered> {
  const response = opening(message, echo);
  yield { phase: "start", data: { type: "response.created", response } };
  yield { phase: "start", data: { type: "response.in_progress", response } };
  for (const [index, item] of itemsOf(message, echo.showThinking).entries())
    yield* itemEvents({ message, item, index });
  const whole = wholeResponse(message, echo);
  const type = isIncomplete(message, echo) ? "response.incomplete" : "response.completed";
  yield { phase: "closing", data: { type, response: whole }, grows: true };
}

type ItemTerms = { readonly message: SimMessage; readonly item: JsonObject; readonly index: number };

function* itemEvents({ message, item, index }: ItemTerms): Generator<Unnumbered> {
  const place = { output_index: index };
  const inside = { item_id: stringOf(item.id), ...place };
  yield {
    phase: "content",
    data: { type: "response.output_item.added", ...place, item: begun(item) },
    anchor: "content-start",
  };
  for (const { grows, ...data } of growth({ message, item, index }))
    yield { phase: "content", data: { ...inside, ...data }, ...(grows ? { grows } : {}) };
  yield {
    phase: "content",
    data: { type: "response.output_item.done", ...place, item },
    anchor: "content-end",
    generated: index,
  };
}

/** An item before any of its content has arrived. */
const begun = (item: JsonObject): JsonObject => {
  switch (item.type) {
    case "reasoning":
      return { ...item, summary: [], encrypted_content: "" };
    case "function_call":
      return { ...item, status: "in_progress", arguments: "" };
    default:
      return { ...item, status: "in_progress", content: [] };
  }
};

type Growth = JsonObject & { readonly type: string; readonly grows?: true };

function* growth({ message, item, index }: ItemTerms): Generator<Growth> {
  if (item.type === "reasoning") {
    for (const part of listOf(item.summary)) yield* summaryGrowth(stringOf(objectOf(part).text));
    return;
  }
  if (item.type === "function_call") {
    const text = inputText(message, index);
    for (const delta of piecesOf(text)) yield { type: "response.function_call_arguments.delta", delta, grows: true };
    yield { type: "response.function_call_arguments.done", arguments: text, name: stringOf(item.name) };
    return;
  }
  yield* textGrowth(message, stringOf(message.content[index]?.text));
}

function* summaryGrowth(text: string): Generator<Growth> {
  const at = { summary_index: 0 };
  const part = { type: "summary_text", text };
  yield { type: "response.reasoning_summary_part.added", ...at, part: { ...part, text: "" } };
  for (const delta of piecesOf(text))
    yield { type: "response.reasoning_summary_text.delta", ...at, delta, grows: true };
  yield { type: "response.reasoning_summary_text.done", ...at, text };
  yield { type: "response.reasoning_summary_part.done", ...at, part };
}

function* textGrowth(message: SimMessage, text: string): Generator<Growth> {
  const at = { content_index: 0 };
  const part = textPart(message, text);
  const isRefusal = part.type === "refusal";
  const name = isRefusal ? "response.refusal" : "response.output_text";
  const logprobs: { readonly logprobs?: Json } = isRefusal ? {} : { logprobs: [] };
  yield { type: "response.content_part.added", ...at, part: textPart(message, "") };
  for (const delta of piecesOf(text)) yield { type: `${name}.delta`, ...at, delta, ...logprobs, grows: true };
  yield { type: `${name}.done`, ...at, [isRefusal ? "refusal" : "text"]: text, ...logprobs };
  yield { type: "response.content_part.done", ...at, part };
}
