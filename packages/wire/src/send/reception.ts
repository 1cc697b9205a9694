/** Reads an answer as events: streamed or whole, complete or almost complete.
 *  Invariant: an answer with a stop reason counts, even if its last event is missing; a body that is not an answer is
 *  recognised, quoted and never retried; no answer can exhaust memory, and none counts as free of charge.
 *  Elsewhere: bytes and timeouts (transport.ts), what frames mean (../protocols), retrying (client.ts). */

import { ModelError, printable } from "../errors.ts";
import type { Prepared } from "../prepare.ts";
import { type Credential, type ParserState, type Protocol, requestIdIn, type StreamEnd } from "../protocols/index.ts";
import { BYTES_PER_TOKEN, completeUsage, type Frame, type ModelEvent } from "../response.ts";
import { framesIn } from "./decode.ts";
import { type Answer, type BodyLimits, redactKey } from "./transport.ts";

/** Events that arrived together stay together: a step between two of them would cost more than reading them. */
export const readEvents = async (
  { protocol }: Prepared,
  answer: Answer,
  credential: Credential | undefined,
): Promise<AsyncIterable<readonly ModelEvent[]> | Iterable<readonly ModelEvent[]>> => {
  const { status } = answer;
  if (status !== 200)
    throw protocol.failure({
      status,
      headers: answer.headers(),
      body: redactKey(await refusalText(answer), credential),
    });
  return answer.isEventStream ? readStream(protocol, answer) : readWhole(protocol, answer);
};

/** The status counts even if the body with it cannot be read. */
const refusalText = (answer: Answer): Promise<string> =>
  answer.text().catch((error: unknown) => {
    if (error instanceof ModelError && error.reason.kind === "malformed-response") return "";
    throw error;
  });

// --- in one piece ----------------------------------------------------------------------------------------------------

const readWhole = async (protocol: Protocol, answer: Answer): Promise<Iterable<readonly ModelEvent[]>> => {
  const text = await answer.text();
  if (SSE.test(text)) return readUnlabelledStream(protocol, { frames: framesIn(text), answer });
  try {
    return [protocol.whole(text)];
  } catch (error) {
    // A truncated answer may be complete next time; something else will not become an answer.
    if (error instanceof ModelError && error.reason.kind === "malformed-response" && isSomethingElse(text))
      throw notAnAnswer(answer, error);
    throw error;
  }
};

/** The beginning of a body of events, whatever its label. */
const SSE = /^\uFEFF?\s*(?:(?:event|data|id|retry):|:)/;

/** Is it something other than the beginning of an answer? */
const isSomethingElse = (text: string): boolean => {
  const body = text.trim();
  if (body === "") return false;
  if (!/^[{[]/.test(body)) return true;
  try {
    JSON.parse(body);
    return true;
  } catch {
    return false;
  }
};

const notAnAnswer = (answer: Answer, cause?: unknown): ModelError => {
  const type = printable(answer.headers()["content-type"] ?? "no content type", 60);
  const isPage = /html/i.test(type) || /^\s*</.test(answer.opening().toString("utf8"));
  const message = isPage
    ? `the address answered with a web page (${type}), not with a model's answer; check the base URL`
    : `the address answered with something other than a model's answer (${type})`;
  return new ModelError(message, { kind: "malformed-response" }, { final: true, ...(cause ? { cause } : {}) });
};

/** Events of a body that was not labelled as a stream. */
const readUnlabelledStream = (
  protocol: Protocol,
  { frames, answer }: Omit<FrameBatch, "state">,
): readonly (readonly ModelEvent[])[] => {
  const { state, events, failure } = readFrames(protocol, { state: protocol.initial, frames, answer });
  if (state.stopped) return [events];
  return [events, closeStream(protocol, { state, broken: failure && { error: failure.error } })];
};

// --- streamed --------------------------------------------------------------------------------------------------------

/** How long an answer may take to end after its stop reason: the usage may still come. */
const AFTER_REASON_MS = 10_000;

async function* readStream(protocol: Protocol, answer: Answer): AsyncGenerator<readonly ModelEvent[], void> {
  let state = protocol.initial;
  let [isEmpty, isEnding] = [true, false];
  let broken: StreamBreak | undefined;
  try {
    for await (const frames of answer.frames()) {
      // Bytes after a complete answer are read only so that the connection can be reused.
      if (state.stopped) continue;
      isEmpty &&= frames.length === 0;
      const { events, failure, ...read } = readFrames(protocol, { state, frames, answer });
      state = read.state;
      if (events.length > 0) yield events;
      if (failure) throw failure.error;
      if (state.stopped) answer.finishing();
      else if (state.hasReason && !isEnding) {
        isEnding = true;
        answer.finishing(AFTER_REASON_MS);
      }
    }
    if (isEmpty && !SSE.test(answer.opening().toString("utf8")) && answer.opening().length > 0)
      throw notAnAnswer(answer);
  } catch (error) {
    if (!state.stopped && !isBreak(error)) throw error;
    broken = { error };
  }
  if (!state.stopped) yield closeStream(protocol, { state, broken });
}

type StreamBreak = { readonly error: unknown };

/** The stream broke, and not because we aborted it. */
const isBreak = (error: unknown): boolean => error instanceof ModelError && error.reason.kind !== "aborted";

/** The rest of an answer whose last event is missing; throws if the answer is not complete. */
const closeStream = (
  protocol: Protocol,
  { state, broken }: { readonly state: ParserState; readonly broken: StreamBreak | undefined },
): readonly ModelEvent[] => {
  const how: StreamEnd = broken ? "broken" : "closed";
  const ended = protocol.end(state, how);
  if (ended) return ended[1];
  throw broken?.error ?? new ModelError("the stream ended before the answer did", { kind: "connection" });
};

type FrameBatch = { readonly state: ParserState; readonly frames: readonly Frame[]; readonly answer: Answer };

type FramesRead = {
  readonly state: ParserState;
  readonly events: readonly ModelEvent[];
  /** Why reading stopped before the last frame; the events before it still count. */
  readonly failure?: { readonly error: unknown };
};

const readFrames = (protocol: Protocol, { state: before, frames, answer }: FrameBatch): FramesRead => {
  const { status } = answer;
  const events: ModelEvent[] = [];
  let state = before;
  try {
    for (const frame of frames) {
      if (state.stopped) break;
      if (frame.event === "error") throw protocol.failure({ status, headers: answer.headers(), body: frame.data });
      const [next, added] = protocol.step(state, frame);
      state = next;
      events.push(...added);
    }
    return { state, events };
  } catch (error) {
    return { state, events, failure: { error } };
  }
};

// --- how much --------------------------------------------------------------------------------------------------------

const MIB = 1_048_576;

/** For a request that does not limit its answer. */
const USUAL_MAX_TOKENS = 131_072;

/** A token has about four characters, and hardly ever this many bytes. */
const CONTENT_BYTES_PER_TOKEN = 64;

/** At least this much of an answer is read, however short it should be. */
const LEAST_CONTENT_BYTES = 262_144;

/** A block costs memory and time beyond its text. */
const BLOCK_BYTES = 256;

/** Each token is wrapped in an event, and some formats send everything up to three times, including the prompt's
 *  settings. */
const SENT_BYTES_PER_TOKEN = 4_096;

export const bodyLimits = ({ maxTokens = USUAL_MAX_TOKENS }: Prepared): BodyLimits => ({
  totalBytes: 64 * MIB + maxTokens * SENT_BYTES_PER_TOKEN,
  pieceBytes: 16 * MIB + maxTokens * CONTENT_BYTES_PER_TOKEN,
});

/** One answer while it arrives: counts it, and stops it if it does not stop by itself. */
export class Reception {
  readonly #prompt: number;
  readonly #maxTokens: number;
  #bytes = 0;
  #blocks = 0;

  constructor({ byteLength, maxTokens = USUAL_MAX_TOKENS }: Prepared, promptTokens?: number) {
    this.#prompt = promptTokens ?? Math.ceil(byteLength / BYTES_PER_TOKEN);
    this.#maxTokens = maxTokens;
  }

  /** The events, with estimates for what the provider has not counted. */
  take(events: readonly ModelEvent[]): readonly ModelEvent[] {
    return events.map((event) => {
      this.#count(event);
      if (event.type !== "response_stopped") return event;
      const usage = completeUsage(event.usage, { prompt: this.#prompt, content: this.#bytes });
      return usage === event.usage ? event : { ...event, usage };
    });
  }

  /** Throws if there is more of it than any answer of that length can have. */
  check(): void {
    const most = LEAST_CONTENT_BYTES + this.#maxTokens * CONTENT_BYTES_PER_TOKEN;
    const bytes = this.#bytes + this.#blocks * BLOCK_BYTES;
    if (bytes <= most) return;
    throw new ModelError(
      `the answer was cut after ${(bytes / MIB).toFixed(1)} MiB: it may have ${this.#maxTokens} tokens, and the provider did not stop`,
      { kind: "malformed-response" },
      { final: true },
    );
  }

  #count(event: ModelEvent): void {
    if (event.type === "block_started") this.#blocks += 1;
    else if (event.type === "text_grew" || event.type === "thinking_grew") this.#bytes += Buffer.byteLength(event.text);
    else if (event.type === "input_grew") this.#bytes += Buffer.byteLength(event.json);
  }
}

// --- what arrived ----------------------------------------------------------------------------------------------------

/** Adds to an error about an unreadable answer how the answer begins, and the request's id. */
export const describeArrival = (
  error: ModelError,
  answer: Answer | undefined,
  credential: Credential | undefined,
): ModelError => {
  const { message, reason, afterContent } = error;
  if (!answer || reason.kind !== "malformed-response" || !error.isFinal) return error;
  const requestId = error.requestId ?? requestIdIn(answer.headers());
  const named = requestId === undefined ? "" : ` (request id ${printable(requestId, 80)})`;
  const opening = answer.opening();
  const shown = afterContent || opening.length === 0 ? "" : `; it begins with ${showBytes(opening, credential)}`;
  const context = { afterContent, final: true, cause: error, ...(requestId === undefined ? {} : { requestId }) };
  return new ModelError(`${message}${shown}${named}`, reason, context);
};

const showBytes = (bytes: Buffer, credential: Credential | undefined): string => {
  const text = bytes.toString("utf8");
  const isText = [...text.slice(0, 64)].every(
    (sign) => sign !== "\uFFFD" && (sign >= " " || "\t\n\r\u001b".includes(sign)),
  );
  return isText ? JSON.stringify(printable(redactKey(text, credential))) : `the bytes ${bytes.toString("hex", 0, 16)}`;
};
