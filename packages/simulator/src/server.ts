/** The simulator over HTTP.
 *  Invariant: loopback only; credentials are hashed on arrival and never stored; a body is parsed once, and dropped
 *  before its answer is sent; every ledger row that is opened is closed.
 *  Real delays, if a test asks for them, happen only here and in serve-answer.ts.
 *  Elsewhere: reading requests (receive.ts), what happens to one (engine.ts), control (control.ts), sending
 *  (serve-answer.ts). */

import { hash } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { JsonObject } from "@prefork/wire";
import { messageOf, stableId } from "./answer.ts";
import { type ParsedBody, stringOf } from "./body.ts";
import { checkedAnswer } from "./check-answer.ts";
import type { SimClock } from "./clock.ts";
import { handleControl } from "./control.ts";
import type { Admission, Engine } from "./engine.ts";
import { type Refusal, thrownBy } from "./errors.ts";
import { type Fault, FaultQueue, RequestBarrier, retryHeaders } from "./faults.ts";
import { sendNoAnswer } from "./odd-answers.ts";
import { isLoopbackHost } from "./reach.ts";
import { credentialOf, headersOf, keptPath, openBody, readBody, urlOf } from "./receive.ts";
import { refuse, sendJson } from "./reply.ts";
import type { SimAnswer, SimBody, SimRequest, SimScript } from "./script.ts";
import { type Delivery, deliver } from "./serve-answer.ts";
import type { Call, Received, Refused, StoredPromptCall, Wire } from "./wire.ts";

// A static import of this module also loads an HTTP client, at every start.
const { createServer } = process.getBuiltinModule("node:http");

export type KeptRequest = {
  readonly sequence: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

export type ServerParts = {
  readonly engine: Engine;
  readonly clock: SimClock;
  readonly script: SimScript;
  readonly keepBodies: boolean;
  readonly latency: { readonly firstEventMs: number; readonly betweenEventsMs: number };
  /** The formats spoken here; errors on other paths have the first one's form. */
  readonly wires: readonly [Wire, ...Wire[]];
  /** No key is required. */
  readonly keyless: boolean;
};

/** A long delay must not keep a program alive after its simulator is closed. */
const unreferenced = { ref: false };
/** The result of a race if the client disconnects first; a script cannot return it. */
const DISCONNECTED = Symbol("the client has gone");

export class SimServer {
  readonly faults = new FaultQueue();
  readonly kept: KeptRequest[] = [];
  readonly http: Server;
  readonly #parts: ServerParts;
  readonly #workspaces = new Map<string, string>();
  readonly #gathering = new RequestBarrier();
  #sequence = 0;
  #others = 0;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.http = createServer((request, response) => {
      this.#serve(request, response).catch((cause: unknown) => this.#failed(response, cause));
    });
    // Many forks connect at the same moment, and agents keep their streams open for long.
    this.http.requestTimeout = 0;
    this.http.keepAliveTimeout = 60_000;
  }

  /** Forgets everything except the clock; open streams continue, and leave no trace in the new ledger. */
  reset(): void {
    this.#parts.engine.reset();
    this.faults.clear();
    this.kept.length = 0;
    this.#workspaces.clear();
    this.#gathering.release();
    this.#sequence = 0;
    this.#others = 0;
  }

  /** Two steps, because a waiting function keeps all its variables in memory: the first one holds the body, and has
   *  ended when the second begins, which may last as long as a stream stays open. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const delivery = await this.#route(request, response);
    if (delivery !== undefined) await deliver(delivery);
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<Delivery | undefined> {
    const body = await readBody(request);
    if (body === undefined) return;
    const url = urlOf(request);
    const path = url?.pathname ?? "";
    const [firstWire] = this.#parts.wires;
    const refuseHere = (refusal: Refusal, wire = firstWire): undefined => {
      refuse(response, refusal, { wire, requestId: this.#otherId(path) });
    };
    if (!isLoopbackHost(request))
      return refuseHere({ status: 403, message: "host: the Host header must be a loopback name" });
    if (url !== null && path.startsWith("/_sim/")) {
      const { engine, clock } = this.#parts;
      handleControl({ request, response, url, body }, { engine, clock, server: this });
      return;
    }
    const routed = url === null ? undefined : this.#wireOf(request, url);
    if (url === null || routed === undefined)
      return refuseHere({ status: 404, message: `Not found: ${request.method} ${path}` });
    const { wire, call } = routed;
    if ("ok" in call) return refuseHere(call, wire);
    const arrival = { request, response, body, url, wire };
    switch (call.kind) {
      case "answer":
        return this.#answer(arrival, call);
      case "count":
        return this.#count(arrival, call);
      case "stored-prompt":
        return this.#storePrompt(arrival, call);
    }
  }

  #wireOf({ method = "" }: IncomingMessage, url: URL): { wire: Wire; call: Call | Refused } | undefined {
    for (const wire of this.#parts.wires) {
      const call = wire.callOf(method, url);
      if (call !== undefined) return { wire, call };
    }
    return undefined;
  }

  #otherId(path: string): string {
    this.#others += 1;
    return stableId("req", this.#others, `other ${path}`);
  }

  #count(arrival: Arrival, call: CallOf<"count">): undefined {
    const { response, wire } = arrival;
    const requestId = this.#otherId("count_tokens");
    const opened = this.#open(arrival);
    const received = "parsed" in opened ? this.#received(arrival, opened.parsed, { call, requestId }) : undefined;
    const counted = received === undefined ? (opened as Refusal) : this.#parts.engine.count(received, wire);
    const { idHeader } = wire;
    if (typeof counted === "number") sendJson(response, { status: 200, requestId, idHeader }, wire.counted(counted));
    else refuse(response, counted, { wire, requestId });
  }

  /** A prompt that is stored by name; only creating one adds a ledger row. */
  #storePrompt(arrival: Arrival, call: StoredPromptCall): undefined {
    const { response, wire, body, url } = arrival;
    const { engine, keepBodies } = this.#parts;
    const { ledger } = engine;
    const begins = call.action === "create";
    const sequence = begins ? ++this.#sequence : 0;
    const requestId = begins ? stableId("req", sequence, "hold") : this.#otherId("hold");
    const opened = this.#open(body.length === 0 ? { ...arrival, body: Buffer.from("{}") } : arrival);
    const parsed = "parsed" in opened ? opened.parsed : emptyBody;
    const model = stringOf(parsed.body.model).replace(/^models\//, "");
    const received = this.#received(arrival, parsed, { call: { kind: "count", model }, requestId, sequence });
    const { workspace, startedAt, headers } = received;
    if (begins && keepBodies) this.kept.push({ sequence, path: keptPath(url), headers, body });
    if (begins) ledger.open({ sequence, requestId, timeMs: startedAt, workspace, model, stream: false });
    const fault = begins && "parsed" in opened ? this.faults.take(model, ["status"]) : undefined;
    const injected = fault?.kind === "status" ? { status: fault.status, message: faultMessage(fault) } : undefined;
    const refusal = injected ?? ("parsed" in opened ? undefined : opened);
    const reply = refusal === undefined ? engine.store(call, received, wire) : { ok: false as const, ...refusal };
    if (reply.ok) {
      sendJson(response, { status: 200, requestId, idHeader: wire.idHeader }, reply.body);
      return;
    }
    const { status, message } = reply;
    if (begins) ledger.update(requestId, { status, outcome: "refused", error: message });
    refuse(response, reply, {
      wire,
      requestId,
      extra: fault?.kind === "status" ? retryHeaders(fault, Date.now()) : {},
    });
  }

  #open({ request, body, url, wire }: Arrival): { readonly parsed: ParsedBody } | Refusal {
    return openBody(body, { wire, credential: credentialOf(request, url), keyless: this.#parts.keyless });
  }

  #received(arrival: Arrival, parsed: ParsedBody, { call, requestId, sequence = 0 }: Numbered): Received {
    return {
      parsed,
      headers: headersOf(arrival.request),
      model: call.model ?? stringOf(parsed.body.model),
      stream: "stream" in call ? call.stream === true : parsed.body.stream === true,
      workspace: this.#workspace(arrival),
      sequence,
      requestId,
      startedAt: this.#parts.clock.now(),
    };
  }

  async #answer(arrival: Arrival, call: CallOf<"answer">): Promise<Delivery | undefined> {
    const { request, response, wire, url } = arrival;
    const { engine, keepBodies } = this.#parts;
    const { ledger } = engine;
    const sequence = ++this.#sequence;
    const requestId = stableId("req", sequence, "message");
    const opened = this.#open(arrival);
    const parsed = "parsed" in opened ? opened.parsed : emptyBody;
    const received = this.#received(arrival, parsed, { call, requestId, sequence });
    const { headers, model, stream, workspace, startedAt } = received;
    if (keepBodies) this.kept.push({ sequence, path: keptPath(url), headers, body: arrival.body });
    ledger.open({ sequence, requestId, timeMs: startedAt, workspace, model, stream });
    const refuseHere = (refusal: Refusal, extra: Readonly<Record<string, string>> = {}): undefined => {
      ledger.update(requestId, { status: refusal.status, outcome: "refused", error: refusal.message });
      refuse(response, refusal, { wire, requestId, extra });
    };
    if (!("parsed" in opened)) return refuseHere(opened);
    const fault = this.faults.take(model);
    if (fault?.kind === "status" || fault?.kind === "reset") {
      if (fault.latencyMs) await delay(fault.latencyMs, undefined, unreferenced);
      if (fault.kind === "status")
        return refuseHere({ status: fault.status, message: faultMessage(fault) }, retryHeaders(fault, Date.now()));
      ledger.update(requestId, { outcome: "interrupted", error: "connection reset" });
      request.socket.resetAndDestroy();
      return;
    }
    if (fault?.kind === "not-an-answer") {
      ledger.update(requestId, { outcome: "interrupted", error: `answered with ${fault.form}` });
      sendNoAnswer(response, fault.form, { [wire.idHeader]: requestId });
      return;
    }
    const seat = engine.whenAdmissible(model) === undefined ? fault : await this.#seat(response, received, fault);
    if (seat === DISCONNECTED) {
      ledger.update(requestId, { outcome: "aborted" });
      return;
    }
    const admission = engine.admit(received, wire);
    if (!admission.ok) {
      // The other members of a barrier must not wait for one that was refused.
      if (seat?.kind === "together") this.#gathering.leave(seat);
      return refuseHere(admission);
    }
    const accepted = admission.body as SimBody; // the rules have checked each of its members
    const seen = { body: accepted, headers, model, ...originalRequest(wire, parsed.body) };
    return this.#decide({ request: seen, response, admission, fault: seat, received, wire });
  }

  /** Waits for a free slot if the engine has few; returns the fault to continue with. A waiting request has not looked
   *  into the cache, so a barrier cannot count on it. */
  async #seat(response: ServerResponse, received: Received, fault: Fault | undefined) {
    const { engine } = this.#parts;
    const gone = closed(response);
    let current = fault;
    for (
      let admissible = engine.whenAdmissible(received.model);
      admissible !== undefined;
      admissible = engine.whenAdmissible(received.model)
    ) {
      if (current?.kind === "together") {
        this.#gathering.leave(current);
        current = undefined;
      }
      if ((await Promise.race([admissible, gone])) === DISCONNECTED) return DISCONNECTED;
    }
    return current;
  }

  /** The script's answer, ready to be sent; undefined if the client disconnected or the script failed. */
  async #decide(admitted: Admitted): Promise<Delivery | undefined> {
    const { request, response, admission, fault, received, wire } = admitted;
    const { progress, terms, encoder: spelling, ids } = admission;
    const { requestId, stream } = received;
    const gone = closed(response);
    try {
      const given = await Promise.race([this.#ask(request, fault, admission.prewarm), gone]);
      if (given === DISCONNECTED) {
        progress.finish("aborted");
        return;
      }
      const answer = checkedAnswer(given);
      const message = messageOf(answer, terms);
      const hold = answer.hold === undefined ? undefined : Promise.race([answer.hold, gone]);
      // It may reject before the sender awaits it.
      hold?.catch(() => undefined);
      const { betweenEventsMs } = this.#parts.latency;
      return {
        response,
        progress,
        message,
        stream,
        fault,
        requestId,
        betweenEventsMs,
        hold,
        wire,
        encoder: spelling,
        ids,
      };
    } catch (cause) {
      const refusal = thrownBy("script", cause);
      progress.finish("refused", { status: refusal.status, error: refusal.message });
      refuse(response, refusal, { wire, requestId });
      return;
    }
  }

  async #ask(request: SimRequest, fault: Fault | undefined, prewarm: boolean): Promise<SimAnswer> {
    const wait = fault?.latencyMs ?? this.#parts.latency.firstEventMs;
    if (wait > 0) await delay(wait, undefined, unreferenced);
    if (fault?.kind === "together") await this.#gathering.join(fault);
    if (prewarm) return { content: [], stopReason: "max_tokens", outputTokens: 0 };
    return this.#parts.script(request);
  }

  #workspace({ request, url }: Arrival): string {
    const key = hash("sha256", credentialOf(request, url));
    const known = this.#workspaces.get(key) ?? `workspace-${this.#workspaces.size + 1}`;
    this.#workspaces.set(key, known);
    return known;
  }

  #failed(response: ServerResponse, cause: unknown): void {
    if (response.headersSent) response.destroy();
    else
      refuse(response, thrownBy("simulator", cause), {
        wire: this.#parts.wires[0],
        requestId: this.#otherId("failed"),
      });
  }
}

type Arrival = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
  readonly url: URL;
  readonly wire: Wire;
};

type CallOf<K extends Call["kind"]> = Extract<Call, { readonly kind: K }>;

type Numbered = {
  readonly call: CallOf<"answer" | "count">;
  readonly requestId: string;
  readonly sequence?: number;
};

type Admitted = {
  readonly request: SimRequest;
  readonly response: ServerResponse;
  readonly admission: Admission;
  readonly fault: Fault | undefined;
  readonly received: Received;
  readonly wire: Wire;
};

const emptyBody: ParsedBody = { body: {}, ordered: {} };

/** On the Messages API the client's own body is what scripts read. */
const originalRequest = (wire: Wire, body: JsonObject): Pick<SimRequest, "wire" | "sent"> =>
  wire.name === "messages" ? {} : { wire: wire.name, sent: body };

/** Resolves when the client has disconnected, or the answer has been sent. */
const closed = (response: ServerResponse): Promise<typeof DISCONNECTED> =>
  new Promise((resolve) => {
    if (response.destroyed) resolve(DISCONNECTED);
    else response.once("close", () => resolve(DISCONNECTED));
  });

const faultMessage = ({ status, message }: Fault & { readonly kind: "status" }): string =>
  message ?? statusMessage(status);

const statusMessage = (status: number): string =>
  status === 429
    ? "This request would exceed your account's rate limit. Please try again later."
    : status === 529
      ? "Overloaded"
      : status >= 500
        ? "Internal server error"
        : "Request refused by an injected fault";
