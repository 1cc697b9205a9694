/** How is an answer sent, and how is it broken on request?
 *  Invariant: entries become readable immediately before the first byte of the answer; a client that goes away,
 *  a connection that breaks, or a script that fails late, ends the work and closes the ledger row. Nothing here
 *  refers to the request's body, which may be large while its stream is held open.
 *  Elsewhere: the events (answer.ts), accepting the request (engine.ts, server.ts). */

import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Json } from "../request.ts";
import type { SimEvent, SimMessage } from "./answer.ts";
import { closingEvents, contentEvents, startEvent, wholeMessage } from "./answer.ts";
import type { Progress } from "./engine.ts";
import { errorType, thrownBy } from "./errors.ts";
import type { Fault } from "./faults.ts";
import { refuse } from "./reply.ts";

export type Delivery = {
  readonly response: ServerResponse;
  readonly progress: Progress;
  readonly message: SimMessage;
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

/** A `hold` that rejects, or content that is no JSON. */
const failLate = ({ response, progress, requestId }: Delivery, cause: unknown): void => {
  const refusal = thrownBy("script", cause);
  if (!response.headersSent) {
    progress.finish("refused", { status: refusal.status, error: refusal.message });
    refuse(response, refusal, { requestId });
    return;
  }
  progress.finish("interrupted", { error: refusal.message });
  response.end(errorFrame(refusal.status, refusal.message));
};

const sendWhole = async ({ response, progress, message, fault, requestId, hold }: Delivery): Promise<void> => {
  const whole = JSON.stringify(wholeMessage(withFaultyIds(message, fault)));
  await hold;
  if (response.destroyed) {
    progress.finish("aborted");
    return;
  }
  progress.begin(message.content);
  const cut = fault?.kind === "truncated-json" || fault?.kind === "reset-mid-stream";
  const text = cut ? whole.slice(0, Math.floor(whole.length / 2)) : whole;
  const promised = fault?.kind === "reset-mid-stream" ? whole : text;
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(promised)),
    "request-id": requestId,
  });
  progress.finish(cut ? "interrupted" : "complete", { output: message.usage.output });
  if (fault?.kind === "reset-mid-stream") response.write(text, () => breakOff(response));
  else response.end(text);
};

const sendStream = async (delivery: Delivery): Promise<void> => {
  const { response, progress, fault, requestId } = delivery;
  const message = withFaultyIds(delivery.message, fault);
  if (response.destroyed) {
    progress.finish("aborted");
    return;
  }
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "request-id": requestId,
  });
  progress.begin(message.content);
  const gap = fault?.kind === "slow-drip" ? fault.delayMs : delivery.betweenEventsMs;
  let sent = 0;
  let generated = 0;
  const finish = (outcome: "complete" | "interrupted" | "aborted"): void =>
    progress.finish(outcome, { output: outcome === "complete" ? message.usage.output : generated });
  for await (const event of paced(message, delivery.hold, gap)) {
    if (response.destroyed) return finish("aborted");
    const broken = breakBefore(event, sent, fault);
    if (broken !== undefined) {
      finish("interrupted");
      if (broken === "reset") breakOff(response);
      else response.end(broken);
      return;
    }
    const flushed = response.write(frame(event));
    sent += 1;
    if (event.event === "content_block_stop") generated += message.blockTokens[event.data.index as number] ?? 0;
    if (!flushed && !response.destroyed) await drained(response);
  }
  if (response.destroyed) return finish("aborted");
  finish("complete");
  response.end();
};

/** Closes without ending the response. Not by a TCP reset: that would take the events already sent with it. */
const breakOff = (response: ServerResponse): void => response.socket?.destroySoon();

const frame = ({ event, data }: SimEvent): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

const errorFrame = (status: number, message: string): string =>
  frame({
    event: "error",
    data: { type: "error", error: { type: errorType(status), message }, request_id: null },
  });

async function* paced(
  message: SimMessage,
  hold: Promise<unknown> | undefined,
  gapMs: number,
): AsyncGenerator<SimEvent> {
  yield startEvent(message);
  await hold;
  for (const events of [contentEvents(message), closingEvents(message)])
    for (const event of events) {
      if (gapMs > 0) await delay(gapMs, undefined, { ref: false });
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

/** "reset", the last text to send, or undefined to go on. */
const breakBefore = (event: SimEvent, sent: number, fault: Fault | undefined): string | undefined => {
  switch (fault?.kind) {
    case "reset-mid-stream":
      return sent >= fault.afterEvents ? "reset" : undefined;
    case "error-mid-stream":
      return event.event === (fault.moment === "before-content" ? "content_block_start" : "content_block_stop")
        ? errorFrame(529, "Overloaded")
        : undefined;
    case "truncated-json":
      return event.event === "content_block_delta" || event.event === "message_delta" ? half(frame(event)) : undefined;
    default:
      return undefined;
  }
};

const half = (text: string): string => `${text.slice(0, Math.floor(text.length / 2))}\n\n`;

/** Ids that repeat: of the message, and of every call with every other. */
const withFaultyIds = (message: SimMessage, fault: Fault | undefined): SimMessage =>
  fault?.kind !== "wrong-ids"
    ? message
    : {
        ...message,
        id: "msg_wrong",
        content: message.content.map((block) =>
          block.type === "tool_use" ? { ...block, id: "toolu_wrong" satisfies Json } : block,
        ),
      };
