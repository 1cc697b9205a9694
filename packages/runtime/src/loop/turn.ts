/** One request and its answer.
 *  Invariant: nothing is sent that was not journalled and paid for by a hold; an answer is entered whole or, when it was
 *  interrupted, as the text that was shown; a failure leaves the context as it was before the request.
 *  Elsewhere: what is done with the answer (run.ts), waiting and sending again (@prefork/wire). */

import {
  type Client,
  costOf,
  InputError,
  ModelError,
  type ModelErrorReason,
  type ModelEvent,
  type ModelFacts,
  type ModelResponse,
  markerPlaces,
  nextMarkers,
  noUsage,
  type Prepared,
  prepare,
  type Ticket,
  type Ttl,
} from "@prefork/wire";
import type { EventBody } from "../events.ts";
import { type Account, estimateTokens, fitInTime, type Shortage, type Spent } from "./account.ts";
import { type Answered, readAnswer, readPartial } from "./answer.ts";
import type { Lineage, NextRequest } from "./lineage.ts";

export type TurnAround = {
  readonly line: Lineage;
  readonly client: Client;
  readonly account: Account;
  readonly facts: ModelFacts | undefined;
  /** The most that one answer may be. */
  readonly maxTokens: number;
  readonly ttl?: Ttl; // default: 5m
  readonly emit: (event: EventBody) => void;
  readonly now: () => number;
};

export type TurnResult =
  | { readonly kind: "answered"; readonly response: ModelResponse; readonly answer: Answered }
  | { readonly kind: "short"; readonly shortage: Shortage }
  | { readonly kind: "aborted" }
  /** The prompt does not fit into the model's window. */
  | { readonly kind: "too-long"; readonly message: string }
  | { readonly kind: "failed"; readonly message: string; readonly reason: ModelErrorReason };

export const runTurn = async (around: TurnAround, signal: AbortSignal): Promise<TurnResult> => {
  const { line, account, facts, emit, now } = around;
  const promptTokens = estimateTokens(line.prefix.byteLength, line.state.measured);
  const fitted = await fitInTime(account, { promptTokens, maxTokens: around.maxTokens, facts }, signal);
  if (!fitted.ok) return signal.aborted ? { kind: "aborted" } : { kind: "short", shortage: fitted.shortage };
  const { maxTokens, held } = fitted;
  const planned = line.takePlan();
  const markers =
    planned?.markers(line.prefix) ?? nextMarkers(line.prefix, line.state.markers, { ttl: around.ttl ?? "5m" });
  const prepared = prepare({
    protocol: line.state.protocol,
    prefix: line.prefix,
    markers,
    closing: {
      maxTokens,
      stream: true,
      ...(planned?.diagnoseAgainst === undefined ? {} : { diagnoseAgainst: planned.diagnoseAgainst }),
    },
  });
  const shown = { text: "" };
  let used: Spent = { usage: noUsage, usd: 0 };
  try {
    const turn = line.asking(markers, { maxTokens, held });
    const { hash: prefixHash, byteLength: bytes } = line.prefix;
    emit({ type: "turn_started", turn, prefixHash, bytes, markers: markerPlaces(markers) });
    let askedAt = now();
    const response = await inOrder(planned, signal, (ticket) => {
      askedAt = now(); // a family may have let it wait
      return receive(prepared, { ...around, turn, shown, ...(ticket ? { ticket } : {}) }, signal);
    });
    const { usage } = response;
    const cost = costOf(usage, facts)?.total;
    used = { usage, usd: cost ?? 0 };
    const answer = readAnswer(response);
    const ms = now() - askedAt;
    const usd = cost === undefined ? {} : { usd: cost };
    const { message, refused } = answer;
    await line.answered(response, { ms, askedAt, ...usd, refused, ...(message ? { message } : {}) });
    if (answer.text !== "") emit({ type: "text_entered", turn, text: answer.text });
    const missed = response.diagnosis?.status === "missed" ? { missed: response.diagnosis.cause } : {};
    emit({ type: "turn_ended", turn, stop: response.stop, usage, ms, ...usd, ...missed });
    return { kind: "answered", response, answer };
  } catch (caught) {
    return unanswered(caught, { line, shown }, signal);
  } finally {
    // Once, however it ended. What a failed request cost is not known; most providers bill nothing for it.
    account.settle(held, used);
  }
};

/** Sends when the family lets it, and tells the family what became of it. */
const inOrder = async (
  planned: NextRequest | undefined,
  signal: AbortSignal,
  send: (ticket?: Ticket) => Promise<ModelResponse>,
): Promise<ModelResponse> => {
  if (!planned) return send();
  const ticket = await planned.admit(signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    throw new ModelError("aborted while waiting for the leader", { kind: "aborted" }, { cause: error });
  });
  try {
    const response = await send(ticket);
    ticket.readable();
    return response;
  } finally {
    // After `readable` this says nothing; before it, the next in line takes the lead.
    ticket.failed();
  }
};

const unanswered = (
  caught: unknown,
  { line, shown }: { readonly line: Lineage; readonly shown: { readonly text: string } },
  signal: AbortSignal,
): Exclude<TurnResult, { readonly kind: "answered" }> => {
  // What cannot be sent at all, such as a key with a line break in it.
  if (caught instanceof InputError)
    return { kind: "failed", message: caught.message, reason: { kind: "invalid-request", status: 0 } };
  if (!(caught instanceof ModelError)) throw caught;
  if (caught.reason.kind === "aborted" || signal.aborted) {
    const partial = readPartial(shown.text);
    if (partial) line.enter(partial, { source: "interrupted" });
    return { kind: "aborted" };
  }
  if (isTooLong(caught)) return { kind: "too-long", message: caught.message };
  return { kind: "failed", message: caught.message, reason: caught.reason };
};

/** How often an answer that broke off in the middle is asked for again. The client does not: it cannot take back what it
 *  has given. Here nothing has been done with it yet. */
const RESTARTS = 2;

type Receiving = TurnAround & {
  readonly turn: number;
  readonly shown: { text: string };
  readonly ticket?: Ticket;
};

const receive = async (prepared: Prepared, receiving: Receiving, signal: AbortSignal): Promise<ModelResponse> => {
  for (let restarts = 0; ; restarts += 1) {
    try {
      return await receiveOnce(prepared, receiving, signal);
    } catch (caught) {
      const canHelp = caught instanceof ModelError && caught.afterContent && isPassing(caught.reason);
      if (!canHelp || restarts >= RESTARTS || signal.aborted) throw caught;
      receiving.emit({
        type: "request_retried",
        attempt: restarts + 1,
        reason: caught.reason,
        message: caught.message,
      });
    }
  }
};

const receiveOnce = async (
  prepared: Prepared,
  { client, turn, shown, emit, ticket }: Receiving,
  signal: AbortSignal,
): Promise<ModelResponse> => {
  const { readable } = prepared.protocol;
  if (readable === "at-once") ticket?.readable();
  const events = client.stream(prepared, signal);
  for (;;) {
    const next = await events.next();
    if (next.done) return next.value;
    if (readable === "first-event") ticket?.readable();
    show(next.value, { turn, shown, emit });
  }
};

const show = (event: ModelEvent, { turn, shown, emit }: Pick<Receiving, "turn" | "shown" | "emit">): void => {
  if (event.type === "response_started" && shown.text !== "") {
    shown.text = "";
    emit({ type: "answer_restarted", turn });
  } else if (event.type === "text_grew") {
    shown.text += event.text;
    emit({ type: "text_grew", turn, text: event.text });
  } else if (event.type === "thinking_grew") emit({ type: "thinking_grew", turn, text: event.text });
};

/** As for a request that had not been answered at all (see `retryable`). */
const isPassing = (reason: ModelErrorReason): boolean => new ModelError("", reason).retryable;

const isTooLong = ({ reason, message }: ModelError): boolean =>
  reason.kind === "too-large" ||
  (reason.kind === "invalid-request" &&
    /prompt is too long|context (window|length)|too many (input )?tokens/i.test(message));
