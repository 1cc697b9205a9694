/** Every moment of a run at which something else could happen: each journal entry, each new id, each wait for a port.
 *  Invariant: two runs of the same script pass the same moments in the same order; nothing here takes time.
 *  Elsewhere: what is done at a moment (backgrounding.ts, ../tasks/killed-family.ts). */

import type { Client } from "@prefork/wire";
import type { Ask, Clock, Engine, Ids } from "../../src/index.ts";

/** Called at each moment with where it is. */
export type Passing = (where: string) => void;

/** Stands still, so that two runs write the same times. Every entry of every journal asks for the time first. */
export const passingClock = (pass: Passing, now: number): Clock => ({
  now: () => {
    pass("the time");
    return now;
  },
});

/** Counted by kind: the same things have the same names in every run. */
export const passingIds = (pass: Passing): Ids => {
  const counts = new Map<string, number>();
  return {
    next: (kind) => {
      pass(`a new ${kind}`);
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      return `${kind}-${count}`;
    },
  };
};

export const passingAsk =
  (pass: Passing, ask: Ask): Ask =>
  async (question, signal) => {
    pass("a question");
    const answer = await ask(question, signal);
    pass("an answer");
    return answer;
  };

/** Before each request, and after each event of its answer. */
export const passingEngine = (pass: Passing, engine: Engine): Engine => ({
  ...engine,
  connect: () => passingClient(pass, engine.connect()),
});

const passingClient = (pass: Passing, client: Client): Client => ({
  ...client,
  stream: async function* (prepared, signal) {
    pass("a request");
    const events = client.stream(prepared, signal);
    for (;;) {
      const next = await events.next();
      pass("an event");
      if (next.done) return next.value;
      yield next.value;
    }
  },
});
