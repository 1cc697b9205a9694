/** Connections to providers: one for each that a client has opened.
 *  Invariant: a client's connection and the provider's live and end together, so that keeping it open, closing it when it
 *  is idle, and sending again after it broke are between the two, as if nobody stood there.
 *  Elsewhere: what goes over them (server-pass.ts). */

import { type ClientRequest, Agent as HttpAgent, type ServerResponse } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Socket } from "node:net";
import type { Upstream } from "./route.ts";

/** One client's connection, with what it leads to. */
export class Line {
  readonly #client: Socket;
  #http: HttpAgent | undefined;
  #https: HttpsAgent | undefined;
  readonly #known = new WeakSet<Socket>();
  #underway = 0;
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

  /** A request is under way until the client has its answer. */
  take(outgoing: ClientRequest, response: ServerResponse): void {
    this.#underway += 1;
    outgoing.once("socket", (socket) => {
      if (this.#known.has(socket)) return;
      this.#known.add(socket);
      socket.once("close", () => {
        this.#isOver = true;
        this.#close();
      });
    });
    response.once("close", () => {
      this.#underway -= 1;
      this.#close();
    });
  }

  #close(): void {
    if (this.#isOver && this.#underway === 0) this.#client.destroySoon();
  }
}

/** The lines of a server, each made with its client's first request. */
export class Lines {
  readonly #lines = new WeakMap<Socket, Line>();

  of(client: Socket): Line {
    const known = this.#lines.get(client) ?? new Line(client);
    this.#lines.set(client, known);
    return known;
  }
}
