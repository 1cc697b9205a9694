/** An exchange under way: from a prompt to the stop, as events and as a result.
 *  Invariant: it runs whether or not anybody reads; reading is possible once, from the first event on; the result can be
 *  asked for any number of times and is the same.
 *  Elsewhere: what runs (../loop), every event of a session (event-hub.ts). */

import type { RuntimeEvent } from "../events.ts";
import type { ExchangeResult } from "../loop/index.ts";
import type { EventReader } from "./event-hub.ts";

export class Exchange implements AsyncIterable<RuntimeEvent> {
  readonly #events: EventReader;
  readonly #result: Promise<ExchangeResult>;
  readonly #abort: (reason?: unknown) => void;
  #isRead = false;

  constructor(events: EventReader, result: Promise<ExchangeResult>, abort: (reason?: unknown) => void) {
    this.#events = events;
    this.#result = result;
    this.#abort = abort;
    // Nobody may be waiting for it; whoever asks gets the rejection all the same.
    result.catch(() => {});
  }

  /** Ends this exchange; what runs is interrupted and everything so far is kept. */
  abort(reason?: unknown): void {
    this.#abort(reason);
  }

  result(): Promise<ExchangeResult> {
    // Without a reader nothing should be kept for one.
    if (!this.#isRead) this.#events[Symbol.dispose]();
    return this.#result;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RuntimeEvent, void> {
    if (this.#isRead) throw new Error("the events of an exchange can be read once");
    this.#isRead = true;
    for await (const event of this.#events) {
      yield event;
      if (event.type === "exchange_ended" && event.agent === "main") return;
    }
  }
}
