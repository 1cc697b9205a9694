/** What arrives for a request, read as events: streamed or in one piece, complete or almost.
 *  Invariant: an answer that gave its reason to stop counts, though its last event is missing; what is no answer at all is
 *  recognised, shown and never asked for again; no answer is longer than memory allows, and none is free of charge.
 *  Elsewhere: bytes and time-outs (transport.ts), what frames mean (protocols/), sending again (client.ts). */

import { ModelError, printable } from "../errors.ts";
import type { Prepared } from "../prepare.ts";
import { type Credential, type ParserState, type Protocol, requestIdIn, type StreamEnd } from "../protocols/index.ts";
import { BYTES_PER_TOKEN, completeUsage, type Frame, type ModelEvent } from "../response.ts";
import { framesIn } from "./decode.ts";
import { type Answer, type BodyLimits, redactKey } from "./transport.ts";

/** Events that arrived together: a step between two of them would cost more than reading them. */
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

/** The status counts also where the words with it cannot be read. */
const refusalText = (answer: Answer): Promise<string> =>
  answer.text().catch((error: unknown) => {
    if (error instanceof ModelError && error.reason.kind === "malformed-response") return "";
    throw error;
  });

// --- in one piece ----------------------------------------------------------------------------------------------------

const readWhole = async (protocol: Protocol, answer: Answer): Promise<Iterable<readonly ModelEvent[]>> => {
  const text = await answer.text();
  if (SSE.test(text)) return readLate(protocol, { frames: framesIn(text), answer });
  try {
    return [protocol.whole(text)];
  } catch (error) {
    // Half of an answer may come whole the next time; what is none will not.
    if (error instanceof ModelError && error.reason.kind === "malformed-response" && isNoAnswer(text))
      throw notAnAnswer(answer, error);
    throw error;
  }
};

/** How a body of events begins, whatever it is labelled as. */
const SSE = /^\uFEFF?\s*(?:(?:event|data|id|retry):|:)/;

/** Is it something else than the beginning of an answer? */
const isNoAnswer = (text: string): boolean => {
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
  const words = isPage
    ? `the address answered with a web page (${type}), not with a model's answer; check the base URL`
    : `the address answered with something else than a model's answer (${type})`;
  return new ModelError(words, { kind: "malformed-response" }, { final: true, ...(cause ? { cause } : {}) });
};

/** Events of a body that was not labelled as a stream. */
const readLate = (
  protocol: Protocol,
  { frames, answer }: Omit<Reading, "state">,
): readonly (readonly ModelEvent[])[] => {
  const { state, events, failure } = readFrames(protocol, { state: protocol.initial, frames, answer });
  if (state.stopped) return [events];
  return [events, closeStream(protocol, { state, broken: failure && { error: failure.error } })];
};

// --- streamed --------------------------------------------------------------------------------------------------------

/** How long the end of an answer may take after its reason to stop: the usage may still come. */
const AFTER_REASON_MS = 10_000;

async function* readStream(protocol: Protocol, answer: Answer): AsyncGenerator<readonly ModelEvent[], void> {
  let state = protocol.initial;
  let [isEmpty, isEnding] = [true, false];
  let broken: Broken | undefined;
  try {
    for await (const frames of answer.frames()) {
      // What follows a complete answer is read only so that the connection can be used again.
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

type Broken = { readonly error: unknown };

/** The stream broke, and nobody of ours wanted it to. */
const isBreak = (error: unknown): boolean => error instanceof ModelError && error.reason.kind !== "aborted";

/** The rest of an answer whose last event did not come; throws where it is no whole answer. */
const closeStream = (
  protocol: Protocol,
  { state, broken }: { readonly state: ParserState; readonly broken: Broken | undefined },
): readonly ModelEvent[] => {
  const how: StreamEnd = broken ? "broken" : "closed";
  const ended = protocol.end(state, how);
  if (ended) return ended[1];
  throw broken?.error ?? new ModelError("the stream ended before the answer did", { kind: "connection" });
};

type Reading = { readonly state: ParserState; readonly frames: readonly Frame[]; readonly answer: Answer };

type FramesRead = {
  readonly state: ParserState;
  readonly events: readonly ModelEvent[];
  /** Why it stopped before the last frame; what came before it has been said all the same. */
  readonly failure?: { readonly error: unknown };
};

const readFrames = (protocol: Protocol, { state: before, frames, answer }: Reading): FramesRead => {
  const { status } = answer;
  const events: ModelEvent[] = [];
  let state = before;
  try {
    for (const frame of frames) {
      if (state.stopped) break;
      if (frame.event === "error") throw protocol.failure({ status, headers: answer.headers(), body: frame.data });
      const [next, said] = protocol.step(state, frame);
      state = next;
      events.push(...said);
    }
    return { state, events };
  } catch (error) {
    return { state, events, failure: { error } };
  }
};

// --- how much --------------------------------------------------------------------------------------------------------

const MIB = 1_048_576;

/** Where a request does not say how long its answer may be. */
const USUAL_MAX_TOKENS = 131_072;

/** A token has four letters or so, and hardly ever this many bytes. */
const CONTENT_BYTES_PER_TOKEN = 64;

/** However short an answer may be, so much of it is read. */
const LEAST_CONTENT_BYTES = 262_144;

/** A block costs memory and time beyond its letters. */
const BLOCK_BYTES = 256;

/** Around each token stands its event, and some formats send everything up to three times, the prompt's settings too. */
const SENT_BYTES_PER_TOKEN = 4_096;

export const bodyLimits = ({ maxTokens = USUAL_MAX_TOKENS }: Prepared): BodyLimits => ({
  totalBytes: 64 * MIB + maxTokens * SENT_BYTES_PER_TOKEN,
  pieceBytes: 16 * MIB + maxTokens * CONTENT_BYTES_PER_TOKEN,
});

/** One answer while it arrives: counts it, and ends it where it does not end by itself. */
export class Reception {
  readonly #prompt: number;
  readonly #maxTokens: number;
  #bytes = 0;
  #blocks = 0;

  constructor({ byteLength, maxTokens = USUAL_MAX_TOKENS }: Prepared, promptTokens?: number) {
    this.#prompt = promptTokens ?? Math.ceil(byteLength / BYTES_PER_TOKEN);
    this.#maxTokens = maxTokens;
  }

  /** The events with what the provider has not counted. */
  take(events: readonly ModelEvent[]): readonly ModelEvent[] {
    return events.map((event) => {
      this.#count(event);
      if (event.type !== "response_stopped") return event;
      const usage = completeUsage(event.usage, { prompt: this.#prompt, content: this.#bytes });
      return usage === event.usage ? event : { ...event, usage };
    });
  }

  /** Throws when there is more of it than any answer of that length can have. */
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

/** An error about an answer that nobody can read, with the beginning of what came and the request's name. */
export const withArrival = (
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
