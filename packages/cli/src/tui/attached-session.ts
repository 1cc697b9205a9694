/** A session of another process, for the terminal.
 *  Invariant: leaving never stops it. The screen shows what it would show if it had been there from the start: what was said
 *  before comes from the journal, then the events that the session has kept, then live ones. A streamed answer whose
 *  beginning was missed is shown when it is complete.
 *  Elsewhere: the connection (../attach), which session it is (../commands: attach.ts), a session of this process
 *  (local-session.ts). */

import type { RuntimeEvent } from "@prefork/runtime";
import { readFamily, type SessionStore } from "@prefork/runtime/observe";
import { modelFacts } from "@prefork/wire";
import type { ConnectedControl, ConnectionEnd } from "../attach/index.ts";
import { readEarlierThan } from "./earlier-blocks.ts";
import type { Attachment, OpenedSession } from "./terminal-session.ts";

export type AttachRequest = {
  /** Undefined: its process is gone. */
  readonly connect: () => Promise<ConnectedControl | undefined>;
  readonly store: SessionStore;
  readonly isReadOnly: boolean;
  readonly task?: string | undefined;
};

type Over = Awaited<Attachment["over"]>;

export const openAttachedSession = async (request: AttachRequest): Promise<OpenedSession> => {
  const { connect, store, isReadOnly, task } = request;
  const connected = await connect();
  if (!connected) throw new Error("The session has just ended.");
  const { session, cwd, pid } = connected.about;
  const following = new Following(connected, connect);
  const [first, events] = await peek(following.events());
  const { model } = await readFamily(store, session);
  const window = modelFacts(model)?.window;
  return {
    get control() {
      return following.control;
    },
    notices: [],
    ...(first ? { earlier: await readEarlierThan(store, session, first.at) } : {}),
    ...(window === undefined ? {} : { window }),
    attachment: {
      ...{ session, cwd, model, pid, isReadOnly, events, over: following.over },
      ...(task === undefined ? {} : { task }),
    },
    close: async () => following.control[Symbol.dispose](),
  };
};

/** The first event, and all of them. */
const peek = async (
  events: AsyncGenerator<RuntimeEvent>,
): Promise<readonly [RuntimeEvent | undefined, AsyncIterable<RuntimeEvent>]> => {
  const first = await events.next();
  const all = async function* (): AsyncGenerator<RuntimeEvent> {
    if (!first.done) yield first.value;
    yield* events;
  };
  return [first.done ? undefined : first.value, all()];
};

/** A connection that was too slow is made again. */
class Following {
  readonly #connect: AttachRequest["connect"];
  readonly #over = Promise.withResolvers<Over>();
  readonly #shown = new ShownEvents();
  #control: ConnectedControl;

  constructor(control: ConnectedControl, connect: AttachRequest["connect"]) {
    this.#control = control;
    this.#connect = connect;
  }

  get control(): ConnectedControl {
    return this.#control;
  }

  get over(): Promise<Over> {
    return this.#over.promise;
  }

  async *events(): AsyncGenerator<RuntimeEvent> {
    for (;;) {
      yield* this.#eventsOf(this.#control);
      const end = await this.#control.ended;
      if (end.kind === "left") return;
      const again = end.kind === "slow" ? await this.#connect() : undefined;
      if (!again) return this.#over.resolve(overText(end, this.#control.about));
      this.#control = again;
    }
  }

  async *#eventsOf(control: ConnectedControl): AsyncGenerator<RuntimeEvent> {
    using events = control.subscribe(this.#shown.lastSeq + 1);
    for await (const event of events) if (this.#shown.accepts(event)) yield event;
  }
}

/** Which events of a session can be shown? A session keeps no pieces of answers, so somebody who attaches in the middle of
 *  an answer would take its end for the whole. */
export class ShownEvents {
  /** Agents whose turn we follow without a gap since its start. */
  readonly #followed = new Set<string>();
  lastSeq = 0;

  accepts({ seq, type, agent }: Pick<RuntimeEvent, "seq" | "type" | "agent">): boolean {
    if (seq !== this.lastSeq + 1) this.#followed.clear();
    this.lastSeq = seq;
    if (type === "turn_started") this.#followed.add(agent);
    return (type !== "text_grew" && type !== "thinking_grew") || this.#followed.has(agent);
  }
}

const overText = ({ kind, message }: ConnectionEnd, { session, pid }: ConnectedControl["about"]): Over => {
  const resume = `To resume it: prefork --resume ${session}`;
  if (kind === "ended") return { code: 0, text: `Session ${session} has ended. ${resume}` };
  if (kind === "full" || kind === "broken") return { code: 1, text: `Session ${session}: ${message}` };
  return { code: 1, text: `The connection to session ${session} was lost: process ${pid} has ended. ${resume}` };
};
