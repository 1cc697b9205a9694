/** The proxy over HTTP: who is admitted, what is forwarded, and what is answered here.
 *  Invariant: a request under a name that is not loopback's, or from a page served elsewhere, gets nothing; keys are
 *  only used to tell accounts apart, by a hash that no other run can compute; nothing is logged.
 *  Elsewhere: forwarding (server-pass.ts), where to (route.ts), listening (proxy.ts). */

import { hash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { accountText, betasIn, clientIn, headerValue, recordedHeaders, secretsIn } from "./headers.ts";
import { isForeignPage, isLoopbackHost } from "./reach.ts";
import type { Passed, ProxyReport } from "./report.ts";
import {
  isCreation,
  pathOf,
  type Refusal,
  refusalBody,
  type Upstream,
  upstreamFor,
  upstreamUrl,
  wireOf,
} from "./route.ts";
import { ProviderLinks } from "./server-links.ts";
import { headText, MOST_HEADER_BYTES, pass, upgrade } from "./server-pass.ts";
import type { AnalysisThread } from "./server-thread.ts";
import { openTap, type Tap } from "./tap.ts";

export type ServerParts = {
  readonly upstream: Upstream | undefined;
  readonly thread: AnalysisThread;
  readonly now: () => number;
  readonly bodyLimit: number;
  readonly isRecording: boolean;
  readonly report: () => Promise<ProxyReport>;
};

const OWN = "/_proxy/";

export class ProxyServer {
  readonly http: Server;
  readonly #parts: ServerParts;
  readonly #lines = new ProviderLinks();
  readonly #accounts = new Map<string, number>();
  readonly #salt = randomBytes(32).toString("base64url");
  readonly #upgraded = new Set<Duplex>();
  readonly #connections = new Set<Duplex>();
  readonly #passed = { requests: 0, others: 0, created: 0, upgraded: 0, unreachable: 0, refused: 0, unfinished: 0 };
  #ids = 0;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    // No time limits of our own: those of the client and the provider apply.
    this.http = createServer({
      maxHeaderSize: MOST_HEADER_BYTES,
      keepAliveTimeout: 0,
      requestTimeout: 0,
      shouldUpgradeCallback: isWebSocket,
    });
    this.http.maxHeadersCount = 0;
    this.http.on("connection", (client) => {
      this.#connections.add(client);
      client.once("close", () => this.#connections.delete(client));
    });
    const serve = (request: IncomingMessage, response: ServerResponse): void => this.#serve(request, response);
    this.http.on("request", serve).on("checkContinue", serve);
    // If this Node version cannot choose, no upgrade is accepted: some clients offer one with every request and mean
    // their body.
    if ("shouldUpgradeCallback" in this.http)
      this.http.on("upgrade", (request, client, head) => this.#upgrade(request, client, head));
  }

  get passed(): Passed {
    return { ...this.#passed };
  }

  /** Resolves once every request that this interrupts is recorded as ended. The server itself emits "close" before its
   *  sockets do. */
  async close(): Promise<void> {
    const ends = [...this.#connections].map((client) => new Promise((resolve) => client.once("close", resolve)));
    const closed = new Promise<void>((resolve) => this.http.close(() => resolve()));
    this.http.closeAllConnections();
    for (const client of this.#upgraded) client.destroy();
    await Promise.all([closed, ...ends]);
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const url = request.url ?? "";
    const refusal = refusalOf(request);
    if (refusal) {
      this.#refuse(request, response, refusal);
      return;
    }
    if (url.startsWith(OWN)) {
      this.#answer(request, response);
      return;
    }
    const upstream = this.#upstreamOf(request);
    if ("message" in upstream) {
      this.#refuse(request, response, upstream);
      return;
    }
    this.#passed.requests += 1;
    this.#attempt(request, response, () =>
      pass({
        request,
        response,
        upstream,
        line: this.#lines.of(request.socket),
        tap: this.#tap(request, upstream),
        refuse: (unreachable) => {
          this.#passed.unreachable += 1;
          answerRefusal(request, response, unreachable);
        },
      }),
    );
  }

  /** A request that was received but may not be sent is refused. */
  #attempt(request: IncomingMessage, response: ServerResponse, act: () => void): void {
    try {
      act();
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? "it makes no sense";
      this.#refuse(request, response, { status: 400, message: `the request cannot be passed on: ${code}` });
    }
  }

  #upstreamOf(request: IncomingMessage): Upstream | Refusal {
    const path = pathOf(request.url ?? "");
    return (
      upstreamFor(path, request.rawHeaders, this.#parts.upstream) ?? {
        status: 404,
        message: "the path does not show which provider this request is for: start the proxy with --upstream",
      }
    );
  }

  /** Requests that do not go to a model are not analysed. */
  #tap(request: IncomingMessage, upstream: Upstream): Tap | undefined {
    const { rawHeaders, url = "", method = "" } = request;
    const path = pathOf(url);
    const wire = wireOf(method, path);
    if (!wire) {
      this.#passed.others += 1;
      if (isCreation(method, path)) this.#passed.created += 1;
      return undefined;
    }
    const { thread, now, bodyLimit, isRecording } = this.#parts;
    this.#ids += 1;
    return openTap(
      {
        id: this.#ids,
        wire,
        path,
        upstream: upstreamUrl(upstream),
        account: this.#account(rawHeaders),
        client: clientIn(rawHeaders),
        betas: betasIn(rawHeaders),
        headers: isRecording ? recordedHeaders(rawHeaders) : {},
        encoding: headerValue(rawHeaders, "content-encoding"),
        secrets: isRecording ? secretsIn(rawHeaders, url) : [],
      },
      {
        now,
        post: thread.post,
        hasRoom: thread.hasRoom,
        hold: thread.hold,
        bodyLimit,
        unfinished: () => {
          this.#passed.unfinished += 1;
        },
      },
    );
  }

  #account(raw: readonly string[]): number {
    const key = hash("sha256", `${this.#salt}\n${accountText(raw)}`, "base64url");
    const known = this.#accounts.get(key) ?? this.#accounts.size + 1;
    // More accounts than this are not told apart, so that memory stays bounded.
    if (this.#accounts.size < MOST_ACCOUNTS) this.#accounts.set(key, known);
    return known;
  }

  #upgrade(request: IncomingMessage, client: Duplex, head: Buffer): void {
    const refuse = (refusal: Refusal): void => {
      const { rawHeaders, url = "" } = request;
      const text = JSON.stringify(refusalBody(refusal, pathOf(url), rawHeaders));
      const length = String(Buffer.byteLength(text));
      const headers = ["Content-Type", "application/json", "Content-Length", length, "Connection", "close"];
      client.end(`${headText(refusal.status, "Refused", headers)}${text}`);
    };
    const upstream = refusalOf(request) ?? this.#upstreamOf(request);
    if ("message" in upstream) {
      this.#passed.refused += 1;
      refuse(upstream);
      return;
    }
    this.#passed.requests += 1;
    this.#passed.upgraded += 1;
    this.#upgraded.add(client);
    client.once("close", () => this.#upgraded.delete(client));
    try {
      upgrade({ request, client, head, upstream, refuse });
    } catch {
      refuse({ status: 400, message: "the request cannot be passed on" });
    }
  }

  // --- what is answered here -------------------------------------------------------------------------------------------

  #refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
    this.#passed.refused += 1;
    answerRefusal(request, response, refusal);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (request.method !== "GET")
      this.#refuse(request, response, { status: 405, message: "only GET is answered here" });
    else if (pathOf(request.url ?? "") !== `${OWN}report`)
      this.#refuse(request, response, { status: 404, message: `there is ${OWN}report and nothing else` });
    else
      this.#parts.report().then(
        (report) => answerJson(request, response, { status: 200, value: report }),
        () => response.destroy(),
      );
  }
}

const MOST_ACCOUNTS = 1_000;

/** Other upgrade offers, such as a later HTTP version, may be ignored, and are. */
const isWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === "GET" && headers.upgrade?.toLowerCase() === "websocket";

/** Requests that are not admitted. */
const refusalOf = ({ rawHeaders, url = "" }: IncomingMessage): Refusal | undefined => {
  if (!isLoopbackHost(rawHeaders)) return { status: 403, message: "the Host header must be a loopback name" };
  if (isForeignPage(rawHeaders)) return { status: 403, message: "web pages served from elsewhere get no answer" };
  if (!url.startsWith("/"))
    return { status: 400, message: "this is not a general proxy: set it as the base URL of your client" };
  return undefined;
};

const answerRefusal = (request: IncomingMessage, response: ServerResponse, refusal: Refusal): void =>
  answerJson(request, response, {
    status: refusal.status,
    value: refusalBody(refusal, pathOf(request.url ?? ""), request.rawHeaders),
  });

const answerJson = (
  request: IncomingMessage,
  response: ServerResponse,
  { status, value }: { readonly status: number; readonly value: object },
): void => {
  if (response.destroyed || response.headersSent) return;
  const text = JSON.stringify(value);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(text)),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    connection: "close",
  });
  response.end(text);
  // The rest of the body is dropped, so that the sender gets to the answer.
  request.resume();
};
