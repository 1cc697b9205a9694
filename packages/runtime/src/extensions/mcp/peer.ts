/** Requests to one server, and which answer belongs to which.
 *  Invariant: every request ends once: by its answer, its time, its caller's abort or the end of the connection; whoever
 *  is no longer waited for is told so; a late answer does nothing.
 *  Elsewhere: messages (message.ts), how they travel (stdio.ts, http.ts), what is asked (connection.ts). */

import type { JsonObject } from "@prefork/wire";
import { answerTo, type Message, notification, request } from "./message.ts";

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
        this.#waiting.get(id)?.reject(new ServerFault("refused", reason.slice(0, MOST_REASON), { code }));
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

const MOST_REASON = 4_000;

const faultOf = (error: unknown): ServerFault =>
  error instanceof ServerFault ? error : new ServerFault("lost", wordsOf(error));

export const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
