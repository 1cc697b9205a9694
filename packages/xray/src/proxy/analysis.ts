/** What do the passing requests show about the cache: which continues which, what was read, what was lost and why?
 *  Invariant: requests are analysed in the order in which they were sent, each when its provider's count is known; only
 *  a request that takes very long is overtaken. One that cannot be understood is counted by its error and does not stop
 *  the others. No clock, no thread, no socket.
 *  Elsewhere: comparing (../compare), sums (tally.ts), where this runs (thread.ts). */

import { InputError, type Json, type ModelFacts, modelFacts, type Usage, writtenTokens } from "@prefork/wire";
import { decodeWhole, heldConversation, isObject } from "@prefork/wire/internal";
import {
  isNegligibleLoss,
  modelAt,
  Trail,
  type TrailOptions,
  type XrayStep,
  xrayCauseWords,
} from "../compare/index.ts";
import { AnswerReader } from "./answer-reader.ts";
import type { AnalysisReport, AnswerMessage, EndMessage, RequestMessage, TapMessage } from "./messages.ts";
import type { Loss, MissReport, Outcome, ProxyEvent } from "./report.ts";
import { protocolOf } from "./route.ts";
import { NameCounts, Tally } from "./tally.ts";

/** A request and its answer, as they are recorded. */
export type Exchange = {
  readonly request: number;
  readonly lineage?: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly startedAt: number;
  readonly firstEventAt?: number;
  readonly endedAt?: number;
  readonly usage?: Usage;
  readonly outcome: Outcome;
  readonly body: Uint8Array;
  readonly response: { readonly status: number; readonly body: string };
  readonly secrets: readonly string[];
};

export type AnalysisOptions = TrailOptions & {
  /** Longer bodies, and longer events of an answer, are not analysed. */
  readonly bodyLimit: number;
  readonly onEvent: (event: ProxyEvent) => void;
  /** This many bytes are no longer needed. */
  readonly onReleased: (bytes: number) => void;
  readonly record?: (exchange: Exchange) => void;
};

type Flight = {
  readonly asked: Omit<RequestMessage, "body">;
  readonly number: number;
  /** Requests of one account to one address in one format: only these share a cache. */
  readonly trail: string;
  body: Uint8Array | undefined;
  /** Bytes that were handed over for it. */
  readonly held: number;
  answered?: AnswerMessage;
  reader?: AnswerReader;
  usage?: Usage;
  step?: XrayStep;
  state: "waiting" | "settled" | "entered";
  outcome?: Outcome;
  endedAt?: number;
  miss?: MissReport;
  isRead: boolean;
};

const NO_LOSS: Loss = { tokens: 0, units: 0 };
/** How long later requests wait for one that has no answer or no usage yet: within that time it would have begun to
 *  write the entry that they race for. */
const PATIENCE_MS = 30_000;
/** The trail that has been idle longest is forgotten. */
const MOST_TRAILS = 8;

export class Analysis {
  readonly #options: AnalysisOptions;
  readonly #flights = new Map<number, Flight>();
  /** The requests of each trail that are not analysed yet, in the order in which they were sent. */
  readonly #waiting = new Map<string, Flight[]>();
  readonly #trails = new Map<string, Trail>();
  readonly #tally = new Tally();
  readonly #failed = new NameCounts();
  readonly #notLookedAt = new NameCounts();
  readonly #errors = new NameCounts();
  readonly #idle: (() => void)[] = [];
  #numbers = 0;
  #lineages = 0;
  #ends = { answered: 0, aborted: 0, cut: 0, unanswered: 0, unstated: 0 };

  constructor(options: AnalysisOptions) {
    this.#options = options;
  }

  take(message: TapMessage): void {
    try {
      if (message.type === "asked") this.#ask(message);
      const flight = this.#flights.get(message.id);
      if (!flight) return;
      if (message.type === "answered") this.#answer(flight, message);
      if (message.type !== "asked" && message.bytes) this.#readChunk(flight, message.bytes);
      if (message.type === "ended") this.#end(flight, message);
    } catch (error) {
      this.#errors.add(errorName(error));
    }
  }

  report(): AnalysisReport {
    const { answered, aborted, cut, unanswered, unstated } = this.#ends;
    return {
      answered,
      open: this.#flights.size,
      failed: this.#failed.list(),
      aborted,
      cut,
      unanswered,
      unstated,
      ...this.#tally.report(),
      notLookedAt: this.#notLookedAt.list(),
      errors: this.#errors.list(),
    };
  }

  /** Calls back once everything that ended has been read. */
  whenRead(done: () => void): void {
    this.#idle.push(done);
    this.#rest();
  }

  #rest(): void {
    if ([...this.#flights.values()].some(({ outcome, isRead }) => outcome !== undefined && !isRead)) return;
    for (const done of this.#idle.splice(0)) done();
  }

  /** Counts an error from elsewhere that belongs in the report. */
  failed(name: string): void {
    this.#errors.add(name);
  }

  // --- a request and its answer ----------------------------------------------------------------------------------------

  #ask({ body, ...asked }: RequestMessage): void {
    const { id, wire, account, upstream } = asked;
    this.#numbers += 1;
    const trail = `${wire} ${account} ${upstream}`;
    const common = { asked, trail, number: this.#numbers, isRead: true };
    if (typeof body === "string") {
      this.#notLookedAt.add(body);
      this.#flights.set(id, { ...common, body: undefined, held: 0, state: "entered" });
      return;
    }
    const flight: Flight = { ...common, body, held: body.length, state: "waiting" };
    this.#flights.set(id, flight);
    const waiting = this.#waiting.get(trail);
    if (waiting) waiting.push(flight);
    else this.#waiting.set(trail, [flight]);
  }

  #answer(flight: Flight, { bytes: _first, ...answered }: AnswerMessage): void {
    flight.answered = answered;
    const { asked } = flight;
    if (!isGood(answered.status)) return;
    flight.isRead = false;
    const protocol = protocolOf(asked.wire, asked.upstream);
    // Only this format reports usage first, and by then it is known when others can read the entry.
    const isKnownEarly = asked.wire === "anthropic-messages" && protocol.readable !== "complete";
    flight.reader = new AnswerReader({
      protocol,
      contentType: answered.contentType,
      encoding: answered.encoding,
      limit: this.#options.bodyLimit,
      keepsText: this.#options.record !== undefined,
      onUsage: (usage) => {
        flight.usage = usage;
        // The first report has the cache read and write; the output is counted later.
        if (isKnownEarly) this.#settle(flight);
      },
      onEnd: (failure) => {
        flight.isRead = true;
        if (failure !== undefined && flight.outcome === "complete") this.#errors.add(failure);
        this.#close(flight);
      },
    });
  }

  #readChunk({ reader }: Flight, bytes: Uint8Array): void {
    reader?.write(bytes);
    this.#options.onReleased(bytes.length);
  }

  #end(flight: Flight, { outcome, endedAt }: Pick<EndMessage, "outcome" | "endedAt">): void {
    flight.outcome = outcome;
    // An interrupted answer never became complete.
    flight.endedAt = outcome === "complete" ? endedAt : Number.POSITIVE_INFINITY;
    if (flight.reader) flight.reader.end();
    else this.#close(flight);
  }

  /** Nothing more will become known about it. */
  #close(flight: Flight): void {
    if (flight.outcome === undefined) return;
    this.#settle(flight);
    if (flight.state === "entered") this.#count(flight);
  }

  #settle(flight: Flight): void {
    if (flight.state !== "waiting") return;
    flight.state = "settled";
    const { trail, asked, answered } = flight;
    const now = answered?.firstByteAt ?? asked.startedAt;
    const stillWaiting: Flight[] = [];
    let isHeld = false;
    for (const next of this.#waiting.get(trail) ?? []) {
      isHeld ||= next.state === "waiting" && now - next.asked.startedAt <= PATIENCE_MS;
      if (isHeld || next.state === "waiting") stillWaiting.push(next);
      else this.#enter(next);
    }
    if (stillWaiting.length > 0) this.#waiting.set(trail, stillWaiting);
    else this.#waiting.delete(trail);
  }

  // --- its place among the others --------------------------------------------------------------------------------------

  #enter(flight: Flight): void {
    const { body, answered, held } = flight;
    flight.state = "entered";
    try {
      // A request that was refused or not answered left nothing in the cache.
      if (body && answered && isGood(answered.status)) this.#place(flight, body);
    } catch (error) {
      this.#errors.add(errorName(error));
    } finally {
      if (this.#options.record === undefined) flight.body = undefined;
      this.#options.onReleased(held);
    }
    if (flight.outcome !== undefined && flight.isRead) this.#count(flight);
  }

  #place(flight: Flight, given: Uint8Array): void {
    const { asked, trail, usage, answered, endedAt, number } = flight;
    const sentTo = modelAt(asked.path);
    const decoded = decodeWhole(given, asked.encoding, this.#options.bodyLimit);
    if ("failure" in decoded) {
      this.#errors.add(decoded.failure);
      return;
    }
    const { bytes } = decoded;
    flight.body = bytes;
    if (isKeptElsewhere(bytes)) {
      this.#notLookedAt.add("a conversation that the provider stores");
      return;
    }
    const { wire, account, betas, startedAt, client } = asked;
    const step = this.#trail(trail).add(bytes, {
      index: number,
      startedAt,
      ...(wire === "anthropic-messages" ? { betas } : {}),
      ...(usage ? { usage } : {}),
      ...(answered ? { firstEventAt: answered.firstByteAt } : {}),
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(sentTo === undefined ? {} : { model: sentTo }),
    });
    flight.step = step;
    const { lineage: id, model, relation, grewFrom, against } = step;
    const from = relation === "starts" ? undefined : (grewFrom ?? against);
    this.#tally.enter({ id, wire, model, client, account, ...(from === undefined ? {} : { forkedFrom: from }) }, step);
    const family = this.#tally.join(step);
    if (family) this.#options.onEvent({ type: "family_grew", ...family });
    const miss = missOf(step);
    if (!miss) return;
    flight.miss = miss;
    if (isNegligibleLoss(miss.lost)) return;
    this.#options.onEvent({ type: "request_missed", ...miss });
  }

  #trail(name: string): Trail {
    const known = this.#trails.get(name) ?? new Trail(this.#options, () => ++this.#lineages);
    this.#trails.delete(name);
    this.#trails.set(name, known);
    const [oldest] = this.#trails.keys();
    if (oldest !== undefined && this.#trails.size > MOST_TRAILS) this.#trails.delete(oldest);
    return known;
  }

  // --- counting --------------------------------------------------------------------------------------------------------

  #count(flight: Flight): void {
    const { asked, answered, usage, step, outcome = "complete", number } = flight;
    if (!this.#flights.delete(asked.id)) return;
    const status = answered?.status ?? 0;
    if (outcome === "complete" && isGood(status)) this.#ends.answered += 1;
    else if (outcome !== "complete") this.#ends[outcome] += 1;
    else this.#failed.add(String(status));
    const isWhole = outcome === "complete" && isGood(status);
    if (isWhole && flight.miss) this.#tally.miss(flight.miss);
    if (usage) this.#bill(flight, usage, isWhole);
    else if (isWhole) this.#ends.unstated += 1;
    this.#options.onEvent({
      type: "request_ended",
      request: number,
      ...(step ? { lineage: step.lineage, relation: step.relation } : {}),
      status,
      outcome,
      ...(usage ? { usage } : {}),
      all: this.#tally.spent,
      lineages: this.#tally.lineageCount,
    });
    this.#record(flight);
    this.#rest();
  }

  #bill({ step }: Flight, usage: Usage, isWhole: boolean): void {
    const facts = this.#facts(step?.model ?? "");
    const lost = step?.xray?.lost ?? NO_LOSS;
    const bill = { usage, facts, service: step?.service ?? {}, lost, rewritten: rewrittenBy(usage, step) };
    if (isWhole) this.#tally.bill(bill, step);
    else this.#tally.breakOff(bill);
  }

  #facts(model: string): ModelFacts | undefined {
    const { models, model: fallback } = this.#options;
    return modelFacts(model, models) ?? (fallback === undefined ? undefined : modelFacts(fallback, models));
  }

  #record({ asked, answered, usage, step, outcome = "complete", endedAt, number, body, reader }: Flight): void {
    const { record: recorded } = this.#options;
    if (!recorded || !body) return;
    const { path, headers, startedAt, secrets } = asked;
    recorded({
      request: number,
      ...(step ? { lineage: step.lineage } : {}),
      path,
      headers,
      startedAt,
      ...(answered ? { firstEventAt: answered.firstByteAt } : {}),
      ...(endedAt === undefined || outcome !== "complete" ? {} : { endedAt }),
      ...(usage ? { usage } : {}),
      outcome,
      body,
      response: { status: answered?.status ?? 0, body: reader?.text ?? "" },
      secrets,
    });
  }
}

const isGood = (status: number): boolean => status >= 200 && status < 300;

/** How much of the loss it wrote again. Content that was not cached before is written for the first time; content that
 *  is lost without a marker is paid as uncached input and not written. */
const rewrittenBy = (usage: Usage, step: XrayStep | undefined): number => {
  const { cause, lost } = step?.xray ?? {};
  if (!cause || !lost) return 0;
  const wasKept = cause.kind !== "below-minimum" && !(cause.kind === "marker-missing" && cause.in === "a");
  return wasKept ? Math.min(lost.tokens, writtenTokens(usage)) : 0;
};

/** A miss, if something was paid for again. */
const missOf = ({ index, lineage, model, against, xray }: XrayStep): MissReport | undefined => {
  if (!xray || xray.lost.tokens === 0 || against === undefined) return undefined;
  const { cause, why, fix, divergence, lost, tokens } = xray;
  return {
    request: index,
    lineage,
    against,
    model,
    cause,
    words: xrayCauseWords(cause),
    why,
    ...(fix === undefined ? {} : { fix }),
    ...(divergence ? { path: divergence.path, offset: divergence.b.offset } : {}),
    read: tokens.read,
    lost,
  };
};

const HELD = [Buffer.from('"previous_response_id"'), Buffer.from('"conversation"')];

const isKeptElsewhere = (bytes: Uint8Array): boolean => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (!HELD.some((name) => text.includes(name))) return false;
  const body = JSON.parse(text.toString("utf8")) as Json;
  return isObject(body) && heldConversation(body) !== undefined;
};

/** Names what went wrong without quoting any input, which error messages do. */
const errorName = (error: unknown): string => {
  if (error instanceof SyntaxError) return "a body that is not valid JSON";
  if (error instanceof InputError)
    return error.cause instanceof SyntaxError ? "a body that is not valid JSON" : "a body that is not a request";
  const [, place = ""] = /\/([\w.-]+\.[jt]s:\d+):\d+/.exec((error as Error).stack ?? "") ?? [];
  return `${error instanceof Error ? error.name : "an error"} in the analysis${place ? ` (${place})` : ""}`;
};
