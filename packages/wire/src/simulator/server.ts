/** How is the simulator reached over HTTP?
 *  Invariant: loopback only; credentials are hashed on arrival and never kept; a body is parsed once and dropped.
 *  Real delays, where a test asks for them, are made here and in serve-answer.ts only.
 *  Elsewhere: what a request does (engine.ts), control endpoints (control.ts), sending (serve-answer.ts). */

import { hash } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf, stableId } from "./answer.ts";
import type { ParsedBody } from "./body.ts";
import { parseBody, stringOf } from "./body.ts";
import type { SimClock } from "./clock.ts";
import { handleControl } from "./control.ts";
import type { Admission, Engine } from "./engine.ts";
import type { Refusal } from "./errors.ts";
import { invalid } from "./errors.ts";
import type { Fault } from "./faults.ts";
import { FaultQueue, retryHeaders } from "./faults.ts";
import { Gathering } from "./gathering.ts";
import type { Ledger } from "./ledger.ts";
import { refuse, sendJson } from "./reply.ts";
import type { SimAnswer, SimRequest, SimScript } from "./script.ts";
import { sendStream, sendWhole } from "./serve-answer.ts";

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
const MAX_BODY_BYTES = 32 * 1024 * 1024;
const credentialHeaders = new Set(["x-api-key", "authorization", "cookie", "proxy-authorization"]);

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
      this.#route(request, response).catch((cause: unknown) => this.#failed(response, cause));
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

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://simulator");
    const received = await readBody(request);
    if (received === undefined) return;
    if (url.pathname.startsWith("/_sim/")) {
      const { engine, clock } = this.#parts;
      return handleControl({ request, response, url, body: received }, { engine, clock, server: this });
    }
    const isMessages = url.pathname === "/v1/messages";
    if (!isMessages && url.pathname !== "/v1/messages/count_tokens") {
      const refusal = { status: 404, message: `Not found: ${request.method} ${url.pathname}` };
      return refuse(response, refusal, { requestId: this.#otherId(url.pathname) });
    }
    if (request.method !== "POST")
      return refuse(
        response,
        { status: 405, message: "Method Not Allowed" },
        { requestId: this.#otherId(url.pathname) },
      );
    return isMessages ? this.#message(request, response, received) : this.#count(request, response, received);
  }

  #otherId(path: string): string {
    this.#others += 1;
    return stableId("req", this.#others, `other ${path}`);
  }

  #count(request: IncomingMessage, response: ServerResponse, received: Buffer): void {
    const requestId = this.#otherId("count_tokens");
    const entry = this.#enter(request, received);
    const counted =
      "parsed" in entry ? this.#parts.engine.count({ parsed: entry.parsed, betas: betasOf(request) }) : entry;
    if (typeof counted === "number") sendJson(response, { status: 200, requestId }, { input_tokens: counted });
    else refuse(response, counted, { requestId });
  }

  async #message(request: IncomingMessage, response: ServerResponse, received: Buffer): Promise<void> {
    const sequence = ++this.#sequence;
    const requestId = stableId("req", sequence, "message");
    const startedAt = this.#parts.clock.now();
    const headers = headersOf(request);
    if (this.#parts.keepBodies) this.kept.push({ sequence, path: request.url ?? "", headers, body: received });
    const entry = this.#enter(request, received);
    const body = "parsed" in entry ? entry.parsed.body : {};
    const model = stringOf(body.model);
    const stream = body.stream === true;
    const { ledger } = this.#parts.engine;
    const workspace = this.#workspace(request);
    ledger.open({ sequence, requestId, timeMs: startedAt, workspace, model, stream });
    const refuseHere = (refusal: Refusal, extra: Readonly<Record<string, string>> = {}): void => {
      ledger.update(requestId, { status: refusal.status, outcome: "refused", error: refusal.message });
      refuse(response, refusal, { requestId, extra });
    };
    if (!("parsed" in entry)) return refuseHere(entry);
    const fault = this.faults.take(model);
    if (fault?.kind === "status" || fault?.kind === "reset") {
      if (fault.latencyMs) await delay(fault.latencyMs, undefined, unreferenced);
      if (fault.kind === "status")
        return refuseHere({ status: fault.status, message: statusMessage(fault.status) }, retryHeaders(fault));
      ledger.update(requestId, { outcome: "interrupted", error: "connection reset" });
      request.socket.resetAndDestroy();
      return;
    }
    const { parsed } = entry;
    const betas = betasOf(request);
    const admission = this.#parts.engine.admit({ parsed, betas, workspace, sequence, requestId, startedAt });
    if (!admission.ok) {
      // The others of a gathering must not wait for one that was refused.
      if (fault?.kind === "together") this.#gathering.leave(fault);
      return refuseHere(admission);
    }
    await this.#answer({ request: { body, headers, model }, response, admission, fault, requestId, stream, ledger });
  }

  async #answer(job: Job): Promise<void> {
    const { request, response, admission, fault, requestId } = job;
    const prewarm = request.body.max_tokens === 0;
    const gone = closed(response);
    let answer: SimAnswer | undefined;
    try {
      answer = await Promise.race([this.#decide(request, prewarm, fault), gone]);
    } catch (cause) {
      admission.finish("refused", 0);
      const message = `script: ${cause instanceof Error ? cause.message : String(cause)}`;
      job.ledger.update(requestId, { status: 500, error: message });
      return refuse(response, { status: 500, message }, { requestId });
    }
    if (answer === undefined) return admission.finish("aborted", 0);
    const message = messageOf(answer, admission.terms);
    const { betweenEventsMs } = this.#parts.latency;
    const hold = answer.hold === undefined ? undefined : Promise.race([answer.hold, gone]);
    const delivery = { response, admission, message, fault, requestId, betweenEventsMs, hold };
    if (job.stream) return sendStream(delivery);
    await hold;
    sendWhole(delivery);
  }

  async #decide(request: SimRequest, prewarm: boolean, fault: Fault | undefined): Promise<SimAnswer> {
    const wait = fault?.latencyMs ?? this.#parts.latency.firstEventMs;
    if (wait > 0) await delay(wait, undefined, unreferenced);
    if (fault?.kind === "together") await this.#gathering.join(fault);
    if (prewarm) return { content: [], stopReason: "max_tokens", outputTokens: 0 };
    return this.#parts.script(request);
  }

  /** The checks before the provider looks at the request itself. */
  #enter(request: IncomingMessage, received: Buffer): { readonly parsed: ParsedBody } | Refusal {
    if (credentialOf(request) === "") return { status: 401, message: "x-api-key header is required" };
    if (received.length > MAX_BODY_BYTES) return { status: 413, message: "Request exceeds the maximum size of 32 MB" };
    try {
      const parsed = parseBody(received.toString("utf8"));
      return parsed === undefined ? invalid("body: Input should be a valid dictionary") : { parsed };
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message.split("\n")[0] : "";
      return invalid(`The request body is not valid JSON: ${reason}`);
    }
  }

  #workspace(request: IncomingMessage): string {
    const key = hash("sha256", credentialOf(request));
    const known = this.#workspaces.get(key) ?? `workspace-${this.#workspaces.size + 1}`;
    this.#workspaces.set(key, known);
    return known;
  }

  #failed(response: ServerResponse, cause: unknown): void {
    const message = cause instanceof Error ? cause.message : String(cause);
    if (response.headersSent) response.destroy();
    else refuse(response, { status: 500, message: `simulator: ${message}` }, { requestId: this.#otherId("failed") });
  }
}

type Job = {
  readonly request: SimRequest;
  readonly response: ServerResponse;
  readonly admission: Admission;
  readonly fault: Fault | undefined;
  readonly requestId: string;
  readonly stream: boolean;
  readonly ledger: Ledger;
};

/** Resolves when the client has gone, or the answer has been sent. */
const closed = (response: ServerResponse): Promise<undefined> =>
  new Promise((resolve) => {
    response.once("close", () => resolve(undefined));
  });

/** Undefined when the client went away while sending. An oversized body is read to its end but not kept whole. */
const readBody = async (request: IncomingMessage): Promise<Buffer | undefined> => {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length <= MAX_BODY_BYTES + 65_536) chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
};

const header = (request: IncomingMessage, name: string): string => {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(",") : (value ?? "");
};

const credentialOf = (request: IncomingMessage): string =>
  header(request, "x-api-key").trim() ||
  header(request, "authorization")
    .replace(/^bearer\s+/i, "")
    .trim();

const betasOf = (request: IncomingMessage): readonly string[] =>
  header(request, "anthropic-beta")
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => beta !== "");

const headersOf = (request: IncomingMessage): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.keys(request.headers)
      .filter((name) => !credentialHeaders.has(name))
      .map((name) => [name, header(request, name)]),
  );

const statusMessage = (status: number): string =>
  status === 429
    ? "This request would exceed your account's rate limit. Please try again later."
    : status === 529
      ? "Overloaded"
      : status >= 500
        ? "Internal server error"
        : "Request refused by an injected fault";
