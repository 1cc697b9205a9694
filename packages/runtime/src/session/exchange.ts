/** An exchange under way: from a prompt to the stop, as events and as a result.
 *  Invariant: it runs whether or not anybody reads; reading is possible once, from the first event on; the result can be
 *  asked for any number of times and is the same.
 *  Elsewhere: what runs (../agent), every event of a session (event-hub.ts). */

import { InputError } from "@prefork/wire";
import type { ExchangeResult } from "../agent/index.ts";
import type { RuntimeEvent } from "../events.ts";
import type { EndingReader } from "./event-hub.ts";

export class Exchange implements AsyncIterable<RuntimeEvent> {
  readonly #events: EndingReader;
  readonly #result: Promise<ExchangeResult>;
  readonly #abort: (reason?: unknown) => void;
  #reading: "possible" | "begun" | "given up" = "possible";

  constructor(events: EndingReader, result: Promise<ExchangeResult>, abort: (reason?: unknown) => void) {
    this.#events = events;
    this.#result = result;
    this.#abort = abort;
    // Nobody may be waiting for it; whoever asks gets the rejection all the same.
    // A defect has no last event, and is thrown to the reader too.
    result.finally(() => events.end(result)).catch(() => {});
  }

  /** Ends this exchange; what runs is interrupted and everything so far is kept. */
  abort(reason?: unknown): void {
    this.#abort(reason);
  }

  result(): Promise<ExchangeResult> {
    if (this.#reading === "possible") {
      // Without a reader nothing should be kept for one.
      this.#events[Symbol.dispose]();
      this.#reading = "given up";
    }
    return this.#result;
  }

  [Symbol.asyncIterator](): AsyncIterator<RuntimeEvent, void> {
    if (this.#reading === "begun") throw new InputError("the events of an exchange can be read once");
    if (this.#reading === "given up")
      throw new InputError("the events of an exchange are kept until its result is asked for; read them first");
    this.#reading = "begun";
    return this.#events;
  }
}

/** What a reader of one exchange is given last. */
export const endsExchange = ({ type, agent }: RuntimeEvent): boolean => type === "exchange_ended" && agent === "main";
