/** How is the simulator reached over HTTP?
 *  Invariant: loopback only; credentials are hashed on arrival and never kept; a body is parsed once, and dropped
 *  before its answer is sent; every row that is opened in the ledger is closed.
 *  Real delays, where a test asks for them, are made here and in serve-answer.ts only.
 *  Elsewhere: reading requests (receive.ts), what one does (engine.ts), control (control.ts), sending (serve-answer.ts). */

import { hash } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf, stableId } from "./answer.ts";
import { stringOf } from "./body.ts";
import { checkedAnswer } from "./check-answer.ts";
import type { SimClock } from "./clock.ts";
import { handleControl } from "./control.ts";
import type { Admission, Engine } from "./engine.ts";
import type { Refusal } from "./errors.ts";
import { thrownBy } from "./errors.ts";
import type { Fault } from "./faults.ts";
import { FaultQueue, retryHeaders } from "./faults.ts";
import { Gathering } from "./gathering.ts";
import { isLoopbackHost } from "./reach.ts";
import { betasOf, credentialOf, headersOf, openBody, readBody, urlOf } from "./receive.ts";
import { refuse, sendJson } from "./reply.ts";
import type { SimAnswer, SimRequest, SimScript } from "./script.ts";
import type { Delivery } from "./serve-answer.ts";
import { deliver } from "./serve-answer.ts";

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
};

/** A long delay must not keep a program alive whose simulator is closed. */
const unreferenced = { ref: false };
/** What a race yields when the client goes away first; a script cannot return it. */
const GONE = Symbol("the client has gone");

export class SimServer {
  readonly faults = new FaultQueue();
  readonly kept: KeptRequest[] = [];
  readonly http: Server;
  readonly #parts: ServerParts;
  readonly #workspaces = new Map<string, string>();
  readonly #gathering = new Gathering();
  #sequence = 0;
  #others = 0;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.http = createServer((request, response) => {
      this.#serve(request, response).catch((cause: unknown) => this.#failed(response, cause));
    });
    // Many forks connect at the same moment, and agents hold their streams open for long.
    this.http.requestTimeout = 0;
    this.http.keepAliveTimeout = 60_000;
  }

  /** Forgets everything but the clock; streams that are open go on, and leave no trace in the new ledger. */
  reset(): void {
    this.#parts.engine.reset();
    this.faults.clear();
    this.kept.length = 0;
    this.#workspaces.clear();
    this.#gathering.release();
    this.#sequence = 0;
    this.#others = 0;
  }

  /** Two steps, because a waiting function keeps all its variables: the first one holds the body, and has ended
   *  when the second, which may take as long as a stream stays open, begins. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const delivery = await this.#route(request, response);
    if (delivery !== undefined) await deliver(delivery);
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<Delivery | undefined> {
    const body = await readBody(request);
    if (body === undefined) return;
    const url = urlOf(request);
    const path = url?.pathname ?? "";
    const refuseHere = (status: number, message: string): undefined => {
      refuse(response, { status, message }, { requestId: this.#otherId(path) });
    };
    if (!isLoopbackHost(request)) return refuseHere(403, "host: the Host header must be a loopback name");
    if (url !== null && path.startsWith("/_sim/")) {
      const { engine, clock } = this.#parts;
      handleControl({ request, response, url, body }, { engine, clock, server: this });
      return;
    }
    if (path !== "/v1/messages" && path !== "/v1/messages/count_tokens")
      return refuseHere(404, `Not found: ${request.method} ${path}`);
    if (request.method !== "POST") return refuseHere(405, "Method Not Allowed");
    const arrival = { request, response, body };
    return path === "/v1/messages" ? this.#message(arrival) : this.#count(arrival);
  }

  #otherId(path: string): string {
    this.#others += 1;
    return stableId("req", this.#others, `other ${path}`);
  }

  #count({ request, response, body }: Arrival): undefined {
    const requestId = this.#otherId("count_tokens");
    const opened = openBody(request, body);
    const counted =
      "parsed" in opened ? this.#parts.engine.count({ parsed: opened.parsed, betas: betasOf(request) }) : opened;
    if (typeof counted === "number") sendJson(response, { status: 200, requestId }, { input_tokens: counted });
    else refuse(response, counted, { requestId });
  }

  async #message({ request, response, body: received }: Arrival): Promise<Delivery | undefined> {
    const { engine, clock, keepBodies } = this.#parts;
    const { ledger } = engine;
    const sequence = ++this.#sequence;
    const requestId = stableId("req", sequence, "message");
    const startedAt = clock.now();
    const headers = headersOf(request);
    if (keepBodies) this.kept.push({ sequence, path: request.url ?? "", headers, body: received });
    const opened = openBody(request, received);
    const body = "parsed" in opened ? opened.parsed.body : {};
    const model = stringOf(body.model);
    const workspace = this.#workspace(request);
    ledger.open({ sequence, requestId, timeMs: startedAt, workspace, model, stream: body.stream === true });
    const refuseHere = (refusal: Refusal, extra: Readonly<Record<string, string>> = {}): undefined => {
      ledger.update(requestId, { status: refusal.status, outcome: "refused", error: refusal.message });
      refuse(response, refusal, { requestId, extra });
    };
    if (!("parsed" in opened)) return refuseHere(opened);
    const fault = this.faults.take(model);
    if (fault?.kind === "status" || fault?.kind === "reset") {
      if (fault.latencyMs) await delay(fault.latencyMs, undefined, unreferenced);
      if (fault.kind === "status")
        return refuseHere({ status: fault.status, message: statusMessage(fault.status) }, retryHeaders(fault));
      ledger.update(requestId, { outcome: "interrupted", error: "connection reset" });
      request.socket.resetAndDestroy();
      return;
    }
    const { parsed } = opened;
    const admission = engine.admit({ parsed, betas: betasOf(request), workspace, sequence, requestId, startedAt });
    if (!admission.ok) {
      // The others of a gathering must not wait for one that was refused.
      if (fault?.kind === "together") this.#gathering.leave(fault);
      return refuseHere(admission);
    }
    return this.#decide({ request: { body, headers, model }, response, admission, fault, requestId });
  }

  /** The script's answer, ready to be sent; nothing when the client went away or the script failed. */
  async #decide({ request, response, admission, fault, requestId }: Admitted): Promise<Delivery | undefined> {
    const { progress, terms } = admission;
    const gone = closed(response);
    try {
      const given = await Promise.race([this.#ask(request, fault), gone]);
      if (given === GONE) {
        progress.finish("aborted");
        return;
      }
      const answer = checkedAnswer(given);
      const message = messageOf(answer, terms);
      const hold = answer.hold === undefined ? undefined : Promise.race([answer.hold, gone]);
      // It may reject before the sender looks at it.
      hold?.catch(() => undefined);
      const { betweenEventsMs } = this.#parts.latency;
      const stream = request.body.stream === true;
      return { response, progress, message, stream, fault, requestId, betweenEventsMs, hold };
    } catch (cause) {
      const refusal = thrownBy("script", cause);
      progress.finish("refused", { status: refusal.status, error: refusal.message });
      refuse(response, refusal, { requestId });
      return;
    }
  }

  async #ask(request: SimRequest, fault: Fault | undefined): Promise<SimAnswer> {
    const wait = fault?.latencyMs ?? this.#parts.latency.firstEventMs;
    if (wait > 0) await delay(wait, undefined, unreferenced);
    if (fault?.kind === "together") await this.#gathering.join(fault);
    if (request.body.max_tokens === 0) return { content: [], stopReason: "max_tokens", outputTokens: 0 };
    return this.#parts.script(request);
  }

  #workspace(request: IncomingMessage): string {
    const key = hash("sha256", credentialOf(request));
    const known = this.#workspaces.get(key) ?? `workspace-${this.#workspaces.size + 1}`;
    this.#workspaces.set(key, known);
    return known;
  }

  #failed(response: ServerResponse, cause: unknown): void {
    if (response.headersSent) response.destroy();
    else refuse(response, thrownBy("simulator", cause), { requestId: this.#otherId("failed") });
  }
}

type Arrival = { readonly request: IncomingMessage; readonly response: ServerResponse; readonly body: Buffer };

type Admitted = {
  readonly request: SimRequest;
  readonly response: ServerResponse;
  readonly admission: Admission;
  readonly fault: Fault | undefined;
  readonly requestId: string;
};

/** Resolves when the client has gone, or the answer has been sent. */
const closed = (response: ServerResponse): Promise<typeof GONE> =>
  new Promise((resolve) => {
    if (response.destroyed) resolve(GONE);
    else response.once("close", () => resolve(GONE));
  });

const statusMessage = (status: number): string =>
  status === 429
    ? "This request would exceed your account's rate limit. Please try again later."
    : status === 529
      ? "Overloaded"
      : status >= 500
        ? "Internal server error"
        : "Request refused by an injected fault";
