/** One request and its answer.
 *  Nothing is sent before it is journalled and its cost is reserved. An answer enters the context as a whole or, when
 *  it was interrupted, as the text that was partial. A failure leaves the context as it was before the request.
 *  Elsewhere: what is done with the answer (run.ts), waiting and retrying (@prefork/wire). */

import {
  addUsage,
  costOf,
  InputError,
  type Marker,
  ModelError,
  type ModelErrorReason,
  type ModelEvent,
  type ModelResponse,
  markerPlaces,
  nextMarkers,
  noUsage,
  type Prepared,
  prepare,
  type SendOptions,
  type Service,
  serviceOf,
  type Ticket,
  type Ttl,
} from "@prefork/wire";
import { JournalError } from "../journal/index.ts";
import type { Reservation, Shortage, Spent } from "../ports.ts";
import { estimatePrompt, fitOrWait } from "./account.ts";
import { type AcceptedAnswer, AttemptUsage, readAnswer, readPartial } from "./answer.ts";
import type { Lineage, LineageState, NextRequest } from "./lineage.ts";
import type { AgentParts } from "./options.ts";

/** The parts of an agent that a turn needs. */
export type TurnParts = Pick<AgentParts, "line" | "engine" | "account" | "settings" | "emit" | "options">;

export type TurnResult =
  | { readonly kind: "answered"; readonly response: ModelResponse; readonly answer: AcceptedAnswer }
  | { readonly kind: "over-budget"; readonly shortage: Shortage }
  | { readonly kind: "aborted" }
  /** The prompt does not fit into the model's window. */
  | { readonly kind: "too-long"; readonly message: string }
  | { readonly kind: "failed"; readonly message: string; readonly reason: ModelErrorReason };

export const runTurn = async (parts: TurnParts, signal: AbortSignal): Promise<TurnResult> => {
  const { line, account, emit } = parts;
  const { facts } = parts.engine;
  const { now } = parts.options.clock;
  const planned = line.takePlan();
  const markers = planned?.markers?.(line.prefix) ?? markersOf(line.state, parts.settings.ttl);
  const promptTokens = estimatePrompt(line.prefix.byteLength, line.state);
  const ttls = markers.map(({ ttl }) => ttl);
  const { settings } = line.state.head;
  const estimate = { promptTokens, maxTokens: parts.settings.maxTokens, facts, ttls, speed: settings.speed };
  const fitted = await fitOrWait(account, estimate, signal);
  if (!fitted.ok) return signal.aborted ? { kind: "aborted" } : { kind: "over-budget", shortage: fitted.shortage };
  const { maxTokens, reserved } = fitted;
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
  const attempts = new AttemptUsage(promptTokens);
  const partial: PartialAnswer = { text: "", usage: attempts, reservations: 1 };
  let used: Spent | undefined;
  let askedAt = now();
  const service = (): Service => serviceOf(settings, askedAt);
  try {
    const turn = line.recordRequest(markers, { maxTokens, reserved });
    const { hash: prefixHash, byteLength: bytes } = line.prefix;
    emit({ type: "turn_started", turn, prefixHash, bytes, markers: markerPlaces(markers) });
    const response = await sendThroughGate(planned, signal, (ticket) => {
      askedAt = now(); // its family's launch gate may have delayed it
      return receive(
        prepared,
        { ...parts, turn, partial, reserved, promptTokens, ...(ticket ? { ticket } : {}) },
        signal,
      );
    });
    const { usage } = response;
    const cost = costOf(usage, facts, service())?.total;
    const lost = attempts.ofFailedAttempts(facts, service());
    used = { usage: addUsage(lost?.usage ?? noUsage, usage), usd: (lost?.usd ?? 0) + (cost ?? 0) };
    const answer = readAnswer(response, (id) => line.prefix.hasCall(id));
    const ms = now() - askedAt;
    const usd = cost === undefined ? {} : { usd: cost };
    const { message, refused } = answer;
    const broken = lost ? { broken: lost } : {};
    await line.recordAnswer(response, { ms, askedAt, ...usd, ...broken, refused, ...(message ? { message } : {}) });
    if (answer.text !== "") emit({ type: "text_entered", turn, text: answer.text });
    const missed = response.diagnosis?.status === "missed" ? { missed: response.diagnosis.cause } : {};
    emit({ type: "turn_ended", turn, stop: response.stop, usage, ms, ...usd, ...missed });
    return { kind: "answered", response, answer };
  } catch (caught) {
    const lost = attempts.ofAllAttempts(facts, service());
    if (!used && lost && !(caught instanceof JournalError)) line.recordBrokenAnswer(lost);
    return unanswered(caught, { line, partial }, signal);
  } finally {
    // The reservation is settled once, however the turn ended. For a partial answer, what arrived is paid for.
    const { reservations } = partial;
    const { usage, usd = 0 } = used ?? attempts.ofAllAttempts(facts, service()) ?? { usage: noUsage };
    account.settle({ usd: reserved.usd * reservations, tokens: reserved.tokens * reservations }, { usage, usd });
  }
};

const markersOf = (state: LineageState, ttl: Ttl): readonly Marker[] => {
  const { prefix, markers: last, unanswered: isOpen = false, lastSent } = state;
  const answered = lastSent?.tip;
  return nextMarkers(prefix, last, { ttl, unanswered: isOpen, ...(answered ? { answered } : {}) });
};

/** Sends when the family's gate opens, and reports the outcome to the gate. */
const sendThroughGate = async (
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
    // After `readable` this does nothing; before it, the next in line takes the lead.
    ticket.failed();
  }
};

const unanswered = (
  caught: unknown,
  { line, partial }: { readonly line: Lineage; readonly partial: { readonly text: string } },
  signal: AbortSignal,
): Exclude<TurnResult, { readonly kind: "answered" }> => {
  // The request cannot be sent at all, for example because the key contains a line break.
  if (caught instanceof InputError)
    return { kind: "failed", message: caught.message, reason: { kind: "invalid-request", status: 0 } };
  if (!(caught instanceof ModelError)) throw caught;
  if (caught.reason.kind === "aborted" || signal.aborted) {
    const message = readPartial(partial.text);
    if (message) line.enter(message, { source: "interrupted" });
    return { kind: "aborted" };
  }
  if (isTooLong(caught)) return { kind: "too-long", message: caught.message };
  return { kind: "failed", message: caught.message, reason: caught.reason };
};

/** How many times an answer that broke off in the middle is requested again. The client does not do this, because it has
 *  already passed content on. No tool has run on it yet, so restarting is safe here. */
const RESTARTS = 2;

/** The part of an answer that has arrived, and the usage of earlier attempts that broke off. */
type PartialAnswer = {
  text: string;
  readonly usage: AttemptUsage;
  /** How many times the worst case is reserved. */
  reservations: number;
};

type Receiving = TurnParts & {
  readonly turn: number;
  readonly partial: PartialAnswer;
  readonly reserved: Reservation;
  readonly promptTokens: number;
  readonly ticket?: Ticket;
};

/** Reports attempts of one request that failed and are repeated, as events of the agent that sent it. */
export const reportRetry =
  (emit: TurnParts["emit"]): NonNullable<SendOptions["onRetry"]> =>
  ({ reason, message }, attempt, waitMs) =>
    emit({ type: "request_retried", attempt, reason, message, ...(waitMs > 0 ? { waitMs } : {}) });

const receive = async (prepared: Prepared, receiving: Receiving, signal: AbortSignal): Promise<ModelResponse> => {
  for (let restarts = 0; ; restarts += 1) {
    try {
      return await receiveOnce(prepared, receiving, signal);
    } catch (caught) {
      const isWorthRetrying =
        caught instanceof ModelError && caught.afterContent && !caught.isFinal && isTransient(caught.reason);
      if (!isWorthRetrying || restarts >= RESTARTS || signal.aborted) throw caught;
      const shortage = receiving.account.reserve(receiving.reserved);
      if (shortage) throw caught; // the budget cannot cover another attempt
      receiving.partial.reservations += 1;
      reportRetry(receiving.emit)(caught, restarts + 1, 0);
    }
  }
};

const receiveOnce = async (
  prepared: Prepared,
  { engine, turn, partial, reserved, account, emit, ticket, promptTokens }: Receiving,
  signal: AbortSignal,
): Promise<ModelResponse> => {
  const { readable } = prepared.protocol;
  if (readable === "at-once") ticket?.readable();
  return engine.client.send(prepared, signal, {
    onRetry: reportRetry(emit),
    promptTokens,
    onEvent: (event) => {
      if (readable === "first-event") ticket?.readable();
      show(event, { turn, partial, emit });
    },
    mayRetry: () => {
      const shortage = account.reserve(reserved);
      if (shortage) return false;
      partial.reservations += 1;
      return true;
    },
  });
};

const show = (event: ModelEvent, { turn, partial, emit }: Pick<Receiving, "turn" | "partial" | "emit">): void => {
  partial.usage.observe(event);
  switch (event.type) {
    case "response_started":
      if (partial.text !== "") emit({ type: "answer_restarted", turn });
      partial.text = "";
      return;
    case "text_grew":
      partial.text += event.text;
      emit({ type: "text_grew", turn, text: event.text });
      return;
    case "thinking_grew":
      emit({ type: "thinking_grew", turn, text: event.text });
      return;
    case "input_grew":
    case "block_started":
    case "block_stopped":
    case "response_stopped":
  }
};

/** The same errors as for a request that was not answered at all (see `retryable`). */
const isTransient = (reason: ModelErrorReason): boolean => new ModelError("", reason).retryable;

const isTooLong = ({ reason, message }: ModelError): boolean =>
  reason.kind === "too-large" ||
  (reason.kind === "invalid-request" &&
    /prompt is too long|context (window|length)|too many (input )?tokens/i.test(message));
