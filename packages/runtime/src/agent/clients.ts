/** The clients of a session: one for each engine, shared by all agents that use it.
 *  Invariant: back-off and pacing belong to an endpoint and its key, so two agents never have two clients for one engine;
 *  all of them are closed with the session.
 *  Elsewhere: which engine an agent uses (engine.ts), sending (@prefork/wire). */

import type { Client, ModelError } from "@prefork/wire";
import type { EventBody } from "../events.ts";
import type { Engine } from "./engine.ts";

export class Clients {
  readonly #emit: (event: EventBody) => void;
  readonly #clients = new Map<Engine, Client>();

  constructor(emit: (event: EventBody) => void) {
    this.#emit = emit;
  }

  /** Opened when it is first asked for. */
  of(engine: Engine): Client {
    const known = this.#clients.get(engine);
    if (known) return known;
    const client = engine.connect({ onRetry: this.#retried });
    this.#clients.set(engine, client);
    return client;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }

  readonly #retried = ({ reason, message }: ModelError, attempt: number, waitMs = 0): void =>
    this.#emit({ type: "request_retried", attempt, reason, message, ...(waitMs > 0 ? { waitMs } : {}) });
}
