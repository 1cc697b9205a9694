/** How is an answer encoded on Chat Completions, whole and as chunks?
 *  Invariant: pure; the chunks, folded, give the whole message; usage comes last, and only if it was asked for. The
 *  prompt figure is a total that includes reads and writes; the rules say where they are reported.
 *  Elsewhere: the rules (../../rules), writing to a socket (../../serve-answer.ts). */

import type { Json, JsonObject, Usage } from "@prefork/wire";
import { inputText, piecesOf, type SimMessage } from "../../answer.ts";
import { stringOf } from "../../body.ts";
import type { ReportRules } from "../../rules/index.ts";
import type { AnswerEncoder, SimEvent } from "../../wire.ts";
import { errorFields } from "../openai/index.ts";

export type Echo = UsageTerms & { readonly includeUsage: boolean };

export const answerEncoder = (echo: Echo): AnswerEncoder => ({
  events: (message) => chunks(message, echo),
  whole: (message) => completion(message, echo),
  failure: (refusal) => ({ phase: "closing", data: { error: errorFields(refusal, echo.reports) } }),
});

const finishReasons: Readonly<Record<string, string>> = {
  tool_use: "tool_calls",
  max_tokens: "length",
  model_context_window_exceeded: "length",
};

const finishOf = ({ stopReason, content }: SimMessage): string =>
  stopReason === "refusal" && content.length === 0 ? "content_filter" : (finishReasons[stopReason] ?? "stop");

const head = (message: SimMessage, object: string): JsonObject => ({
  id: message.id,
  object,
  created: Math.floor(message.createdMs / 1_000),
  model: message.model,
});

/** The member for text: a refusal has its own. */
const textName = ({ stopReason }: SimMessage): "refusal" | "content" =>
  stopReason === "refusal" ? "refusal" : "content";

// --- whole -----------------------------------------------------------------------------------------------------------

const completion = (message: SimMessage, echo: Echo): JsonObject => ({
  ...head(message, "chat.completion"),
  choices: [{ index: 0, message: messageBody(message, echo), logprobs: null, finish_reason: finishOf(message) }],
  usage: usageBody(message.usage, echo),
  ...(echo.reports.timings ? { timings: timings(message.usage) } : {}),
});

export const messageBody = (message: SimMessage, { reports }: Pick<Echo, "reports">): JsonObject => {
  const all = (type: string, field: string): string =>
    message.content.map((block) => (block.type === type ? stringOf(block[field]) : "")).join("");
  const text = all("text", "text");
  const calls = callsIn(message);
  const isRefusal = textName(message) === "refusal";
  const thinking = all("thinking", "thinking");
  return {
    role: "assistant",
    content: isRefusal || (text === "" && calls.length > 0) ? null : text,
    refusal: isRefusal ? text : null,
    ...(reports.reasoning === "hidden" || thinking === "" ? {} : { [reports.reasoning]: thinking }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
};

const callsIn = (message: SimMessage): readonly JsonObject[] =>
  message.content.flatMap((block, index) =>
    block.type === "tool_use"
      ? [
          {
            id: stringOf(block.id),
            type: "function",
            function: { name: stringOf(block.name), arguments: inputText(message, index) },
          },
        ]
      : [],
  );

// --- chunks ----------------------------------------------------------------------------------------------------------

const chunk = (message: SimMessage, delta: JsonObject, finish: string | null = null): JsonObject => ({
  ...head(message, "chat.completion.chunk"),
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
});

function* chunks(message: SimMessage, echo: Echo): Generator<SimEvent> {
  yield { phase: "start", data: chunk(message, { role: "assistant", content: "" }) };
  let isFirst = true;
  for (const [index] of message.content.entries()) {
    const deltas = [...deltasOf(message, index, echo)];
    for (const [at, delta] of deltas.entries()) {
      const isLast = at === deltas.length - 1;
      yield {
        phase: "content",
        data: chunk(message, delta),
        grows: true,
        ...(isFirst ? { anchor: "content-start" } : {}),
        ...(isLast ? { generated: index } : {}),
      };
      isFirst = false;
    }
  }
  yield {
    phase: "closing",
    data: chunk(message, {}, finishOf(message)),
    grows: true,
    ...(message.content.length > 0 ? { anchor: "content-end" } : {}),
  };
  if (echo.includeUsage)
    yield {
      phase: "closing",
      data: {
        ...head(message, "chat.completion.chunk"),
        choices: [],
        usage: usageBody(message.usage, echo),
        ...(echo.reports.timings ? { timings: timings(message.usage) } : {}),
      },
    };
  yield { phase: "closing", data: "[DONE]" };
}

/** Hidden thinking is still generated, so it has one empty delta. */
function* deltasOf(message: SimMessage, index: number, { reports }: Echo): Generator<JsonObject> {
  const block = message.content[index];
  switch (block?.type) {
    case "thinking":
      if (reports.reasoning === "hidden") yield { content: "" };
      else for (const text of piecesOf(stringOf(block.thinking))) yield { [reports.reasoning]: text };
      return;
    case "text":
      for (const text of piecesOf(stringOf(block.text))) yield { [textName(message)]: text };
      return;
    case "tool_use": {
      const number = message.content.slice(0, index).filter(({ type }) => type === "tool_use").length;
      const name = stringOf(block.name);
      yield {
        tool_calls: [{ index: number, id: stringOf(block.id), type: "function", function: { name, arguments: "" } }],
      };
      for (const text of piecesOf(inputText(message, index)))
        yield { tool_calls: [{ index: number, function: { arguments: text } }] };
    }
  }
}

// --- usage -----------------------------------------------------------------------------------------------------------

export type UsageTerms = {
  readonly reports: ReportRules;
  /** The client wrote markers. */
  readonly marked: boolean;
};

export const usageBody = (usage: Usage, { reports, marked }: UsageTerms): JsonObject => {
  const written = Object.values(usage.written).reduce((total, tokens) => total + tokens, 0);
  const prompt = usage.plain + usage.read + written;
  const parts: Readonly<Record<string, Json | undefined>> = {
    read: usage.read,
    written,
    missed: prompt - usage.read,
    marked: marked ? "ephemeral" : undefined,
  };
  const base: JsonObject = {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
  };
  const details = reports.usage.reduce((body, [path, part]) => setAtPath(body, path.split("."), parts[part]), base);
  return { ...details, completion_tokens_details: { reasoning_tokens: usage.thinking ?? 0 } };
};

const setAtPath = (body: JsonObject, [name = "", ...below]: readonly string[], value: Json | undefined): JsonObject => {
  if (value === undefined) return body;
  return { ...body, [name]: below.length === 0 ? value : setAtPath((body[name] as JsonObject) ?? {}, below, value) };
};

/** What was cached, what was computed, what was generated. */
export const timings = (usage: Usage): JsonObject => ({
  cache_n: usage.read,
  prompt_n: usage.plain,
  predicted_n: usage.output,
});
