/** An open connection to one server: the greeting, its list of tools, and calls.
 *  Invariant: a server that speaks no version of ours, or does not greet in time, is no connection and nothing of it is
 *  left; the list is read to its end or to a bound.
 *  Elsewhere: requests (peer.ts), what a listed tool may look like (offered.ts), what a result means (result.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { answerTo, isObject, type Message, notification, request } from "./message.ts";

/** The newest first; all of them have the same greeting, list and call. */
const VERSIONS: readonly string[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const MAX_PAGES = 40;

export type ConnectionOptions = {
  readonly openWire: OpenWire;
  /** For the greeting and each page of the list. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** The list has changed. */
  readonly changed: () => void;
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
    const peer = await Peer.open(options.openWire, (method) => {
      if (method === "notifications/tools/list_changed") options.changed();
    });
    try {
      return new Connection(peer, options, await greet(peer, options));
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
      if (Array.isArray(answer.tools)) tools.push(...answer.tools);
      if (typeof answer.nextCursor !== "string") break;
      cursor = answer.nextCursor;
    }
    return tools;
  }

  call(name: string, args: JsonObject, asking: Asking): Promise<JsonObject> {
    return this.#peer.request("tools/call", { name, arguments: args }, asking);
  }

  close(): Promise<void> {
    return this.#peer.close();
  }
}

/** Whether it has tools at all. */
const greet = async (peer: Peer, options: ConnectionOptions): Promise<boolean> => {
  const greeting = {
    protocolVersion: VERSIONS[0] ?? "",
    capabilities: {},
    clientInfo: { name: "prefork", version: "0" }, // servers must be given one, and none may depend on it
  };
  const { protocolVersion: version, capabilities } = await peer.request("initialize", greeting, options);
  if (typeof version !== "string" || !VERSIONS.includes(version))
    throw new ServerFault(
      "refused",
      `it speaks version ${JSON.stringify(version)} of the protocol, which is not known here`,
    );
  peer.agreed(version);
  await peer.notify("notifications/initialized");
  return isObject(capabilities) && isObject(capabilities.tools);
};

/** Requests to one server, and which answer belongs to which.
 *  Invariant: every request ends once: by its answer, its time, its caller's abort or the end of the connection; whoever
 *  is no longer waited for is told so; a late answer does nothing.
 *  Elsewhere: messages (message.ts), how they travel (stdio.ts, http.ts), what is asked (connection.ts). */

/** The way to a server, open. */
export type Wire = {
  /** "over": nothing more can come in answer to it. Rejects where it could not be sent. */
  readonly send: (message: JsonObject, signal?: AbortSignal) => Promise<"sent" | "over">;
  /** Both sides agree on this from now on. */
  readonly agreed?: (version: string) => void;
  /** Ends it, and everything that was started for it. */
  readonly close: () => Promise<void>;
};

/** What a way tells of the other side. */
export type WireTold = {
  readonly received: (message: Message) => void;
  /** Nothing can be sent or received any more. */
  readonly ended: (reason: string) => void;
};

export type OpenWire = (told: WireTold) => Promise<Wire>;

type FaultFacts = { readonly code?: number; readonly hasNotRun?: boolean };

/** A request that did not get what it was for. */
export class ServerFault extends Error {
  override readonly name = "ServerFault";
  /** timeout: no answer in its time. refused: an error of the protocol. lost: the connection is gone. */
  readonly kind: "timeout" | "refused" | "lost" | "aborted";
  readonly code: number | undefined;
  /** It is certain that the server has not begun with it. */
  readonly hasNotRun: boolean;

  constructor(kind: ServerFault["kind"], message: string, facts: FaultFacts = {}) {
    super(message);
    this.kind = kind;
    this.code = facts.code;
    this.hasNotRun = facts.hasNotRun ?? false;
  }
}

export type Asking = { readonly timeoutMs: number; readonly signal?: AbortSignal };

type Waiting = { readonly resolve: (result: JsonObject) => void; readonly reject: (fault: ServerFault) => void };

export class Peer {
  readonly #waiting = new Map<number, Waiting>();
  readonly #noticed: (method: string) => void;
  readonly #lost = Promise.withResolvers<string>();
  #wire: Wire | undefined;
  #ended: string | undefined;
  #last = 0;

  private constructor(noticed: (method: string) => void) {
    this.#noticed = noticed;
  }

  /** `noticed`: told of the server's own notifications. */
  static async open(openWire: OpenWire, noticed: (method: string) => void): Promise<Peer> {
    const peer = new Peer(noticed);
    peer.#wire = await openWire({
      received: (message) => peer.#received(message),
      ended: (reason) => peer.#end(reason),
    });
    return peer;
  }

  /** Why the connection is gone, once it is. */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  get isLost(): boolean {
    return this.#ended !== undefined;
  }

  agreed(version: string): void {
    this.#wire?.agreed?.(version);
  }

  async request(method: string, params: JsonObject, { timeoutMs, signal }: Asking): Promise<JsonObject> {
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
        const fault = faultOf(error);
        answer.reject(fault); // before all others: only of this one it is known what became of it
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

  /** What need not arrive. */
  async notify(method: string, params?: JsonObject): Promise<void> {
    try {
      await this.#send(notification(method, params));
    } catch (error) {
      const { kind, message } = faultOf(error);
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
        this.#send(answerTo(message.id, message.method)).catch(() => undefined);
        return;
      case "notification":
        this.#noticed(message.method);
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

const faultOf = (error: unknown): ServerFault =>
  error instanceof ServerFault ? error : new ServerFault("lost", wordsOf(error));

export const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
