/** How are messages exchanged with a server at a URL? Each message is a POST. Answers are JSON or event streams, and
 *  the server sends its own messages on a stream that is kept open if it offers one.
 *  Invariant: only the configured address is contacted (a redirect is an error). The user's headers go nowhere else and
 *  into no text. Responses are bounded, and closing ends every request.
 *  Elsewhere: the messages (message.ts), reconnecting (server.ts). OAuth is not supported. */

import { setTimeout as after } from "node:timers/promises";
import type { JsonObject } from "@prefork/wire";
import { createParser } from "eventsource-parser";
import {
  errorMessage,
  type OpenTransport,
  ServerFault,
  type ServerTransport,
  type TransportEvents,
} from "./connection.ts";
import { createSecretFilter, type HttpServer } from "./entry.ts";
import { readMessage, TOO_LONG } from "./message.ts";

const MAX_BYTES = 16 * 1024 * 1024;
const MAX_REASON = 300;
const CLOSE_TIMEOUT_MS = 1_000;
/** The pause before listening for the server's own messages again. */
const LISTEN_AGAIN_MS = 2_000;

export const openHttp =
  (entry: HttpServer): OpenTransport =>
  async (events) =>
    new HttpWire(entry, events);

class HttpWire implements ServerTransport {
  readonly #entry: HttpServer;
  readonly #events: TransportEvents;
  readonly #hide: (text: string) => string;
  readonly #closing = new AbortController();
  #session: string | undefined;
  #version: string | undefined;

  constructor(entry: HttpServer, events: TransportEvents) {
    this.#entry = entry;
    this.#events = events;
    this.#hide = createSecretFilter(entry);
  }

  /** From now on requests carry the version, and the server may send messages of its own. */
  readonly agreed = (version: string): void => {
    this.#version = version;
    void this.#listen();
  };

  readonly send = async (message: JsonObject, signal?: AbortSignal): Promise<"sent" | "over"> => {
    const response = await this.#fetch({
      method: "POST",
      body: JSON.stringify(message),
      ...(signal ? { signal } : {}),
    });
    const session = response.headers.get("mcp-session-id");
    if (message.method === "initialize" && session !== null) this.#session = session;
    if (!response.ok) throw await this.#refusal(response);
    if (response.status === 202) {
      await response.body?.cancel();
      return "sent";
    }
    await this.#read(response);
    return "over";
  };

  readonly close = async (): Promise<void> => {
    const session = this.#session;
    this.#closing.abort();
    if (session === undefined) return;
    // Tells the server that it can drop the session. It may ignore this.
    await fetch(this.#entry.url, {
      method: "DELETE",
      headers: this.#headers(),
      redirect: "error",
      signal: AbortSignal.timeout(CLOSE_TIMEOUT_MS),
    })
      .then((response) => response.body?.cancel())
      .catch(() => undefined);
  };

  #headers(): Record<string, string> {
    return {
      ...this.#entry.headers,
      accept: "application/json, text/event-stream",
      ...(this.#session === undefined ? {} : { "mcp-session-id": this.#session }),
      ...(this.#version === undefined ? {} : { "mcp-protocol-version": this.#version }),
    };
  }

  async #fetch({ signal, ...init }: RequestInit): Promise<Response> {
    const signals = [this.#closing.signal, ...(signal ? [signal] : [])];
    try {
      return await fetch(this.#entry.url, {
        ...init,
        headers: { ...this.#headers(), ...(init.body === undefined ? {} : { "content-type": "application/json" }) },
        redirect: "error",
        signal: AbortSignal.any(signals),
      });
    } catch (error) {
      const isOurs = signals.some(({ aborted }) => aborted);
      throw new ServerFault(isOurs ? "aborted" : "lost", this.#hide(describeCause(error)));
    }
  }

  async #refusal(response: Response): Promise<ServerFault> {
    const { status } = response;
    const body = this.#hide((await readBounded(response, MAX_REASON).catch(() => "")).replace(/\s+/g, " ").trim());
    if (status === 404 && this.#session !== undefined)
      return new ServerFault("lost", "it has forgotten the session", { hasNotRun: true });
    if (status === 401 || status === 403)
      return new ServerFault(
        "refused",
        `it answered ${status}: put what it asks for into headers; OAuth is not supported`,
      );
    return new ServerFault("refused", `it answered ${status}${body === "" ? "" : `: ${body}`}`);
  }

  async #read(response: Response): Promise<void> {
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) return this.#readEvents(response);
    const text = await readBounded(response);
    this.#events.received(readMessage(text));
  }

  async #readEvents(response: Response): Promise<void> {
    const parser = createParser({
      maxBufferSize: MAX_BYTES,
      onEvent: ({ data }) => this.#events.received(readMessage(data)),
      onError: (error) => {
        if (error.type === "max-buffer-size-exceeded") throw tooLongFault();
      },
    });
    const decoder = new TextDecoder();
    for await (const chunk of chunksOf(response)) parser.feed(decoder.decode(chunk, { stream: true }));
  }

  /** A server without such a stream refuses it once. */
  async #listen(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const response = await fetch(this.#entry.url, { headers: this.#headers(), redirect: "error", signal });
        if (!response.ok) {
          await response.body?.cancel();
          return;
        }
        await this.#readEvents(response);
      } catch {
        // A stream may end at any time. The next request shows whether the server is gone.
      }
      await after(LISTEN_AGAIN_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}

/** `fetch failed` says nothing; its cause does. */
const describeCause = (error: unknown): string => {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause === undefined ? errorMessage(error) : errorMessage(cause);
};

const chunksOf = async function* (response: Response): AsyncGenerator<Uint8Array> {
  if (response.body) for await (const chunk of response.body) yield chunk as Uint8Array;
};

/** Only for this answer: the server and its other answers are fine. */
const tooLongFault = (): ServerFault =>
  new ServerFault("refused", `its answer has more than ${MAX_BYTES} bytes`, { code: TOO_LONG });

const readBounded = async (response: Response, most = MAX_BYTES): Promise<string> => {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(response)) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw tooLongFault();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8").slice(0, most);
};
