/** Sends an answer, and breaks it on request.
 *  Invariant: entries become readable immediately before the first byte of the answer; a client that disconnects, a
 *  connection that breaks, or a script that fails late, ends the work and closes the ledger row. Nothing here refers to
 *  the request's body, which may be large while its stream is held open.
 *  Elsewhere: the events (wires/), accepting the request (engine.ts, server.ts). */

import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Json } from "@prefork/wire";
import type { SimMessage } from "./answer.ts";
import type { Progress } from "./engine.ts";
import { type Refusal, thrownBy } from "./errors.ts";
import type { AnswerEncoding, Fault } from "./faults.ts";
import { encodeBody, endlessPiece, withoutLast, withUsageForm, withUsageForms } from "./odd-answers.ts";
import { refuse } from "./reply.ts";
import type { AnswerEncoder, Ids, SimEvent, Wire } from "./wire.ts";

export type Delivery = {
  readonly response: ServerResponse;
  readonly progress: Progress;
  readonly message: SimMessage;
  readonly wire: Wire;
  readonly encoder: AnswerEncoder;
  readonly ids: Ids;
  readonly stream: boolean;
  readonly fault: Fault | undefined;
  readonly requestId: string;
  readonly betweenEventsMs: number;
  readonly hold: Promise<unknown> | undefined;
};

export const deliver = async (delivery: Delivery): Promise<void> => {
  try {
    await (delivery.stream ? sendStream(delivery) : sendWhole(delivery));
  } catch (cause) {
    failLate(delivery, cause);
  }
};

/** A `hold` that rejects, or content that is not JSON. */
const failLate = ({ response, progress, requestId, wire, encoder: spelling }: Delivery, cause: unknown): void => {
  const refusal = thrownBy("script", cause);
  if (!response.headersSent) {
    progress.finish("refused", { status: refusal.status, error: refusal.message });
    refuse(response, refusal, { wire, requestId });
    return;
  }
  progress.finish("interrupted", { error: refusal.message });
  response.end(frame(spelling.failure(refusal)));
};

const sendWhole = async (delivery: Delivery): Promise<void> => {
  const { response, progress, fault, requestId, hold, wire, encoder: spelling } = delivery;
  const message = withFaultyIds(delivery);
  const right = spelling.whole(message);
  const whole = JSON.stringify(fault?.kind === "usage" ? withUsageForm(right, fault.form) : right);
  await hold;
  if (response.destroyed) {
    progress.finish("aborted");
    return;
  }
  progress.begin(message);
  if (fault?.kind === "encoded") {
    sendEncoded(delivery, whole, fault.encoding);
    progress.finish("complete", { output: message.usage.output });
    return;
  }
  const cut = fault?.kind === "truncated-json" || fault?.kind === "reset-mid-stream";
  const text = cut ? whole.slice(0, Math.floor(whole.length / 2)) : whole;
  const promised = fault?.kind === "reset-mid-stream" ? whole : text;
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(promised)),
    [wire.idHeader]: requestId,
  });
  progress.finish(cut ? "interrupted" : "complete", { output: message.usage.output });
  if (fault?.kind === "reset-mid-stream") response.write(text, () => breakOff(response));
  else response.end(text);
};

const sendStream = async (delivery: Delivery): Promise<void> => {
  const { response, progress, fault, requestId, wire, encoder: spelling } = delivery;
  const message = withFaultyIds(delivery);
  if (response.destroyed) {
    progress.finish("aborted");
    return;
  }
  if (fault?.kind === "encoded") {
    progress.begin(message);
    sendEncoded(delivery, [...spelling.events(message)].map(frame).join(""), fault.encoding);
    progress.finish("complete", { output: message.usage.output });
    return;
  }
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    [wire.idHeader]: requestId,
  });
  // Not every format has a first event, and a stream that is held must show that it has begun.
  if (delivery.hold !== undefined) response.flushHeaders();
  progress.begin(message);
  const gap = fault?.kind === "slow-drip" ? fault.delayMs : delivery.betweenEventsMs;
  let sent = 0;
  let generated = 0;
  const finish = (outcome: "complete" | "interrupted" | "aborted"): void =>
    progress.finish(outcome, { output: outcome === "complete" ? message.usage.output : generated });
  for await (const event of paced(oddEvents(spelling.events(message), fault), delivery.hold, gap)) {
    if (response.destroyed) return finish("aborted");
    const broken = breakBefore(event, sent, { fault, spelling });
    if (broken !== undefined) {
      finish("interrupted");
      if (broken === "reset") breakOff(response);
      else response.end(broken);
      return;
    }
    if (fault?.kind === "endless" && event.grows) {
      await sendEndless(response, fault.of, frame(event));
      return finish("aborted");
    }
    const flushed = response.write(frame(event));
    sent += 1;
    if (event.generated !== undefined) generated += message.blockTokens[event.generated] ?? 0;
    if (!flushed && !response.destroyed) await drained(response);
  }
  if (response.destroyed) return finish("aborted");
  finish("complete");
  if (fault?.kind === "no-last-event" && fault.end === "reset") breakOff(response);
  else response.end();
};

/** The events of an answer with something wrong about its bill or its end. */
const oddEvents = (events: Iterable<SimEvent>, fault: Fault | undefined): Iterable<SimEvent> => {
  if (fault?.kind === "no-last-event") return withoutLast(events);
  return fault?.kind === "usage" ? withUsageForms(events, fault.form) : events;
};

const sendEncoded = ({ response, stream, wire, requestId }: Delivery, text: string, encoding: AnswerEncoding): void => {
  const { name, body } = encodeBody(text, encoding);
  response.writeHead(200, {
    "content-type": stream ? "text/event-stream" : "application/json",
    "content-encoding": name,
    [wire.idHeader]: requestId,
  });
  response.end(body);
};

/** Until the client disconnects. */
const sendEndless = async (
  response: ServerResponse,
  of: "content" | "line" | "comments",
  growing: string,
): Promise<void> => {
  const piece = endlessPiece(of, growing);
  if (of === "line") response.write("data: ");
  while (!response.destroyed) if (!response.write(piece) && !response.destroyed) await drained(response);
};

/** Closes without ending the response. A TCP reset would also discard the events already sent. */
const breakOff = (response: ServerResponse): void => response.socket?.destroySoon();

const frame = ({ event, data }: SimEvent): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

async function* paced(
  events: Iterable<SimEvent>,
  hold: Promise<unknown> | undefined,
  gapMs: number,
): AsyncGenerator<SimEvent> {
  let held = hold;
  for (const event of events) {
    if (event.phase !== "start") {
      if (held !== undefined) await held;
      held = undefined;
      if (gapMs > 0) await delay(gapMs, undefined, { ref: false });
    }
    yield event;
  }
}

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });

const overloaded: Refusal = { status: 529, message: "Overloaded" };

type BreakTerms = { readonly fault: Fault | undefined; readonly spelling: AnswerEncoder };

/** "reset", the last text to send, or undefined to continue. */
const breakBefore = (event: SimEvent, sent: number, { fault, spelling }: BreakTerms): string | undefined => {
  switch (fault?.kind) {
    case "reset-mid-stream":
      return sent >= fault.afterEvents ? "reset" : undefined;
    case "error-mid-stream":
      return event.anchor === (fault.moment === "before-content" ? "content-start" : "content-end")
        ? frame(spelling.failure(overloaded))
        : undefined;
    case "truncated-json":
      return event.grows ? half(frame(event)) : undefined;
    default:
      return undefined;
  }
};

const half = (text: string): string => `${text.slice(0, Math.floor(text.length / 2))}\n\n`;

/** Repeated ids: of the message, and the same id for every call. */
const withFaultyIds = ({ message, fault, ids }: Delivery): SimMessage =>
  fault?.kind !== "wrong-ids"
    ? message
    : {
        ...message,
        id: `${ids.message}_wrong`,
        content: message.content.map((block) =>
          block.type === "tool_use" ? { ...block, id: `${ids.call}_wrong` satisfies Json } : block,
        ),
      };
