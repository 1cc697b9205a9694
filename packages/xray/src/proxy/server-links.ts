/** Connections to providers: one for each connection of a client.
 *  Invariant: a client's connection and the provider's live and end together, so that keeping it open, closing it when
 *  idle, and retrying after it broke stay between the two, as if the proxy were not there.
 *  Elsewhere: what is sent over them (server-pass.ts). */

import { type ClientRequest, Agent as HttpAgent, type ServerResponse } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Socket } from "node:net";
import type { Upstream } from "./route.ts";

/** One client's connection and the provider's connection behind it. */
export class ProviderLink {
  readonly #client: Socket;
  #http: HttpAgent | undefined;
  #https: HttpsAgent | undefined;
  readonly #known = new WeakSet<Socket>();
  #inFlight = 0;
  #isOver = false;

  constructor(client: Socket) {
    this.#client = client;
    client.once("close", () => {
      this.#http?.destroy();
      this.#https?.destroy();
    });
  }

  agentFor({ isSecure }: Upstream): HttpAgent {
    const options = { keepAlive: true, maxSockets: 1 };
    if (isSecure) {
      this.#https ??= new HttpsAgent(options);
      return this.#https;
    }
    this.#http ??= new HttpAgent(options);
    return this.#http;
  }

  /** A request is in flight until the client has its answer. */
  take(outgoing: ClientRequest, response: ServerResponse): void {
    this.#inFlight += 1;
    outgoing.once("socket", (socket) => {
      if (this.#known.has(socket)) return;
      this.#known.add(socket);
      socket.once("close", () => {
        this.#isOver = true;
        this.#close();
      });
    });
    response.once("close", () => {
      this.#inFlight -= 1;
      this.#close();
    });
  }

  #close(): void {
    if (this.#isOver && this.#inFlight === 0) this.#client.destroySoon();
  }
}

/** The links of a server, each created with its client's first request. */
export class ProviderLinks {
  readonly #lines = new WeakMap<Socket, ProviderLink>();

  of(client: Socket): ProviderLink {
    const known = this.#lines.get(client) ?? new ProviderLink(client);
    this.#lines.set(client, known);
    return known;
  }
}
