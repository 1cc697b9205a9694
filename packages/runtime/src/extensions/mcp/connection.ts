/** What is said on a connection to one server: initialization, its list of tools, and calls? Which answer belongs to
 *  which request?
 *  Invariant: if a server does not support any of our versions, or does not initialize in time, there is no connection
 *  and nothing of it is left. The list is read to its end or to a limit. Every request ends once: by its answer, its
 *  timeout, its caller's abort or the end of the connection. The server is told about an abandoned request, and a late
 *  answer is ignored.
 *  Elsewhere: messages (message.ts), transport (stdio.ts, http.ts), descriptions and results (content.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { answerRequest, isObject, type Message, notification, request } from "./message.ts";

/** Newest first. All of them share initialization, list and call. */
const VERSIONS: readonly string[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const MAX_PAGES = 40;
/** Of one server; far fewer are offered to a model. */
const MAX_TOOLS = 2_000;

export type ConnectionOptions = {
  readonly openTransport: OpenTransport;
  /** For initialization and each page of the list. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** The list has changed. */
  readonly onListChanged: () => void;
};

export class Connection {
  readonly #peer: Peer;
  readonly #options: ConnectionOptions;
  readonly #offersTools: boolean;

  private constructor(peer: Peer, options: ConnectionOptions, offersTools: boolean) {
    this.#peer = peer;
    this.#options = options;
    this.#offersTools = offersTools;
  }

  static async open(options: ConnectionOptions): Promise<Connection> {
    const peer = await Peer.open(options.openTransport, (method) => {
      if (method === "notifications/tools/list_changed") options.onListChanged();
    });
    try {
      return new Connection(peer, options, await initialize(peer, options));
    } catch (error) {
      await peer.close();
      throw error;
    }
  }

  get lost(): Promise<string> {
    return this.#peer.lost;
  }

  get isLost(): boolean {
    return this.#peer.isLost;
  }

  /** The tools as the server describes them. */
  async list(): Promise<readonly Json[]> {
    if (!this.#offersTools) return [];
    const tools: Json[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const answer = await this.#peer.request("tools/list", cursor === undefined ? {} : { cursor }, this.#options);
      const room = MAX_TOOLS - tools.length;
      if (Array.isArray(answer.tools)) tools.push(...answer.tools.slice(0, room));
      if (typeof answer.nextCursor !== "string" || tools.length === MAX_TOOLS) break;
      cursor = answer.nextCursor;
    }
    return tools;
  }

  call(name: string, args: JsonObject, asking: RequestOptions): Promise<JsonObject> {
    return this.#peer.request("tools/call", { name, arguments: args }, asking);
  }

  close(): Promise<void> {
    return this.#peer.close();
  }
}

/** Returns whether the server has tools at all. */
const initialize = async (peer: Peer, options: ConnectionOptions): Promise<boolean> => {
  const greeting = {
    protocolVersion: VERSIONS[0] ?? "",
    capabilities: {},
    clientInfo: { name: "prefork", version: "0" }, // the protocol requires a version, and servers must not depend on it
  };
  const { protocolVersion: version, capabilities } = await peer.request("initialize", greeting, options);
  if (typeof version !== "string" || !VERSIONS.includes(version))
    throw new ServerFault(
      "refused",
      `it speaks version ${JSON.stringify(version)} of the protocol, which is not known here`,
    );
  peer.setVersion(version);
  await peer.notify("notifications/initialized");
  return isObject(capabilities) && isObject(capabilities.tools);
};

/** An open transport to a server. */

export type ServerTransport = {
  /** "over": no further message can answer it. Rejects if it could not be sent. */
  readonly send: (message: JsonObject, signal?: AbortSignal) => Promise<"sent" | "over">;
  /** Both sides have agreed on this version. */
  readonly agreed?: (version: string) => void;
  /** Closes it, and ends everything that was started for it. */
  readonly close: () => Promise<void>;
};

/** What a transport reports. */
export type TransportEvents = {
  readonly received: (message: Message) => void;
  /** Nothing can be sent or received any more. */
  readonly ended: (reason: string) => void;
};

export type OpenTransport = (events: TransportEvents) => Promise<ServerTransport>;

type FaultFacts = { readonly code?: number; readonly hasNotRun?: boolean };

/** A request that failed. */
export class ServerFault extends Error {
  override readonly name = "ServerFault";
  /** timeout: no answer in time. refused: a protocol error. lost: the connection is gone. */
  readonly kind: "timeout" | "refused" | "lost" | "aborted";
  readonly code: number | undefined;
  /** The server has certainly not started it. */
  readonly hasNotRun: boolean;

  constructor(kind: ServerFault["kind"], message: string, facts: FaultFacts = {}) {
    super(message);
    this.kind = kind;
    this.code = facts.code;
    this.hasNotRun = facts.hasNotRun ?? false;
  }
}

export type RequestOptions = { readonly timeoutMs: number; readonly signal?: AbortSignal };

type PendingRequest = { readonly resolve: (result: JsonObject) => void; readonly reject: (fault: ServerFault) => void };

export class Peer {
  readonly #waiting = new Map<number, PendingRequest>();
  readonly #onNotification: (method: string) => void;
  readonly #lost = Promise.withResolvers<string>();
  #wire: ServerTransport | undefined;
  #ended: string | undefined;
  #last = 0;

  private constructor(onNotification: (method: string) => void) {
    this.#onNotification = onNotification;
  }

  /** `onNotification` is called with the server's own notifications. */
  static async open(openWire: OpenTransport, onNotification: (method: string) => void): Promise<Peer> {
    const peer = new Peer(onNotification);
    peer.#wire = await openWire({
      received: (message) => peer.#received(message),
      ended: (reason) => peer.#end(reason),
    });
    return peer;
  }

  /** Resolves with the reason when the connection is lost. */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  get isLost(): boolean {
    return this.#ended !== undefined;
  }

  setVersion(version: string): void {
    this.#wire?.agreed?.(version);
  }

  async request(method: string, params: JsonObject, { timeoutMs, signal }: RequestOptions): Promise<JsonObject> {
    if (this.#ended !== undefined) throw new ServerFault("lost", this.#ended);
    if (signal?.aborted) throw new ServerFault("aborted", "interrupted before it began");
    const id = ++this.#last;
    const answer = Promise.withResolvers<JsonObject>();
    this.#waiting.set(id, answer);
    const sending = new AbortController();
    const giveUp = (fault: ServerFault): void => {
      answer.reject(fault);
      sending.abort();
      void this.notify("notifications/cancelled", { requestId: id, reason: fault.message });
    };
    const timer = setTimeout(
      () => giveUp(new ServerFault("timeout", `no answer within ${timeoutMs / 1_000} s`)),
      timeoutMs,
    );
    const onAbort = (): void => giveUp(new ServerFault("aborted", "interrupted"));
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#send(request(id, method, params), sending.signal).then(
      (sent) => sent === "over" && answer.reject(new ServerFault("refused", "the answer ended without a result")),
      (error: unknown) => {
        const fault = toServerFault(error);
        answer.reject(fault); // before all others, because only the outcome of this one is known
        if (fault.kind === "lost") this.#end(fault.message);
      },
    );
    try {
      return await answer.promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      this.#waiting.delete(id);
    }
  }

  /** Best effort. */
  async notify(method: string, params?: JsonObject): Promise<void> {
    try {
      await this.#send(notification(method, params));
    } catch (error) {
      const { kind, message } = toServerFault(error);
      if (kind === "lost") this.#end(message);
    }
  }

  async close(): Promise<void> {
    this.#end("it was closed");
    await this.#wire?.close();
  }

  async #send(message: JsonObject, signal?: AbortSignal): Promise<"sent" | "over"> {
    if (!this.#wire || this.#ended !== undefined) throw new ServerFault("lost", this.#ended ?? "it is not open");
    return this.#wire.send(message, signal);
  }

  #received(message: Message): void {
    switch (message.kind) {
      case "result":
        this.#waiting.get(message.id)?.resolve(message.result);
        return;
      case "error": {
        const { id, code, message: reason } = message;
        this.#waiting.get(id)?.reject(new ServerFault("refused", reason.slice(0, MAX_REASON), { code }));
        return;
      }
      case "request":
        this.#send(answerRequest(message.id, message.method)).catch(() => undefined);
        return;
      case "notification":
        this.#onNotification(message.method);
        return;
      case "none":
        return;
    }
  }

  #end(reason: string): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    for (const { reject } of this.#waiting.values()) reject(new ServerFault("lost", reason));
    this.#lost.resolve(reason);
  }
}

const MAX_REASON = 4_000;

const toServerFault = (error: unknown): ServerFault =>
  error instanceof ServerFault ? error : new ServerFault("lost", errorMessage(error));

export const errorMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error));
