/** How is an answer encoded on Gemini's API, whole and as events?
 *  Invariant: pure; an event contains whole parts or pieces of text, and the last one why the answer ends; the prompt
 *  figure is a total, and thoughts are counted separately from the candidate.
 *  Elsewhere: signatures (signature.ts), writing to a socket (../../serve-answer.ts). */

import type { JsonObject, Usage } from "@prefork/wire";
import { piecesOf, type SimMessage } from "../../answer.ts";
import { objectOf, stringOf } from "../../body.ts";
import type { AnswerEncoder, SimEvent } from "../../wire.ts";
import { errorBody } from "./complaints.ts";
import { signatureFor } from "./signature.ts";

export type Echo = {
  readonly includeThoughts: boolean;
  readonly signs: boolean;
  readonly model: string;
};

export const answerEncoder = (echo: Echo): AnswerEncoder => ({
  events: (message) => events(message, echo),
  whole: (message) => ({
    candidates: [candidate(partsOf(message, echo), finishOf(message))],
    ...closing(message),
  }),
  // Gemini has no separate status for an overloaded model.
  failure: (refusal) => ({
    phase: "closing",
    data: errorBody({ ...refusal, status: refusal.status === 529 ? 503 : refusal.status }),
  }),
});

const finishReasons: Readonly<Record<string, string>> = {
  max_tokens: "MAX_TOKENS",
  model_context_window_exceeded: "MAX_TOKENS",
  refusal: "SAFETY",
};

const finishOf = ({ stopReason }: SimMessage): string => finishReasons[stopReason] ?? "STOP";

const candidate = (parts: readonly JsonObject[], finishReason?: string): JsonObject => ({
  content: { parts, role: "model" },
  ...(finishReason === undefined ? {} : { finishReason }),
  index: 0,
});

// --- usage -----------------------------------------------------------------------------------------------------------

const inText = (tokenCount: number): readonly JsonObject[] => [{ modality: "TEXT", tokenCount }];

const usageBody = ({ usage }: SimMessage): JsonObject => {
  const prompt = promptOf(usage);
  const thoughts = usage.thinking ?? 0;
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: usage.output - thoughts,
    totalTokenCount: prompt + usage.output,
    ...(usage.read > 0 ? { cachedContentTokenCount: usage.read, cacheTokensDetails: inText(usage.read) } : {}),
    promptTokensDetails: inText(prompt),
    ...(thoughts > 0 ? { thoughtsTokenCount: thoughts } : {}),
  };
};

const promptOf = ({ plain, read, written }: Usage): number =>
  Object.values(written).reduce((total, tokens) => total + tokens, plain + read);

const closing = (message: SimMessage): JsonObject => ({
  usageMetadata: usageBody(message),
  modelVersion: message.model,
  responseId: message.id,
});

// --- parts -----------------------------------------------------------------------------------------------------------

const thoughtsIn = ({ content }: SimMessage): string =>
  content.map((block) => (block.type === "thinking" ? stringOf(block.thinking) : "")).join("");

/** The parts of one block; none for thoughts that were not asked for. Only the first of several calls is signed. */
const partOf = (
  message: SimMessage,
  index: number,
  { includeThoughts, signs, model }: Echo,
): JsonObject | undefined => {
  const block = message.content[index];
  switch (block?.type) {
    case "thinking":
      return includeThoughts ? { text: stringOf(block.thinking), thought: true } : undefined;
    case "tool_use": {
      const isFirst = message.content.findIndex(({ type }) => type === "tool_use") === index;
      return {
        functionCall: { id: stringOf(block.id), name: stringOf(block.name), args: objectOf(block.input) },
        ...(isFirst && signs ? { thoughtSignature: signatureFor(model, thoughtsIn(message)) } : {}),
      };
    }
    default:
      return { text: stringOf(block?.text) };
  }
};

const partsOf = (message: SimMessage, echo: Echo): readonly JsonObject[] =>
  message.content.map((_, index) => partOf(message, index, echo)).filter((part) => part !== undefined);

// --- events ----------------------------------------------------------------------------------------------------------

function* events(message: SimMessage, echo: Echo): Generator<SimEvent> {
  let isFirst = true;
  for (const [index] of message.content.entries()) {
    const pieces = [...piecesOfPart(partOf(message, index, echo))];
    for (const [at, part] of pieces.entries()) {
      yield {
        phase: "content",
        data: { candidates: [candidate([part])], modelVersion: message.model, responseId: message.id },
        grows: true,
        ...(isFirst ? { anchor: "content-start" } : {}),
        ...(at === pieces.length - 1 ? { generated: index } : {}),
      };
      isFirst = false;
    }
  }
  yield {
    phase: "closing",
    data: { candidates: [candidate([{ text: "" }], finishOf(message))], ...closing(message) },
    grows: true,
    ...(message.content.length > 0 ? { anchor: "content-end" } : {}),
  };
}

function* piecesOfPart(part: JsonObject | undefined): Generator<JsonObject> {
  if (part === undefined) return;
  if (typeof part.text !== "string") yield part;
  else for (const text of piecesOf(part.text)) yield { ...part, text };
}
