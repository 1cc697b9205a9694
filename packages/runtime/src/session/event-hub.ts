/** Who receives the events of a session, and how one exchange is read.
 *  Every reader gets every event in order. A slow reader loses only events of level debug, and delays nobody else. A
 *  reader that leaves is forgotten. An exchange runs whether or not anybody reads it.
 *  Elsewhere: what can happen (../events.ts), what must survive (../journal). */

import { InputError } from "@prefork/wire";
import type { ExchangeResult } from "../agent/index.ts";
import { type EventBody, levelOf, type RuntimeEvent } from "../events.ts";

/** How many events are kept for clients that attach later. */
const MOST_KEPT = 5_000;
const MOST_KEPT_CHARACTERS = 16_000_000;

/** A reader that is further behind gets no more events of level debug. */
const MOST_WAITING = 10_000;

export type EventReader = AsyncIterableIterator<RuntimeEvent> & Disposable;

/** A reader that can be ended: events that it already has can still be read. Whoever reads to the end waits for `outcome` and
 *  gets its rejection. */
export type EndingReader = EventReader & { readonly end: (outcome?: Promise<unknown>) => void };

export type ReaderOptions = {
  readonly isLast?: (event: RuntimeEvent) => boolean; // default: none is
  /** Is what happens now meant for this reader? Default: yes. */
  readonly accepts?: () => boolean;
};

type Waiter = (result: IteratorResult<RuntimeEvent> | Promise<IteratorResult<RuntimeEvent>>) => void;

const OVER: IteratorResult<RuntimeEvent> = { value: undefined, done: true };

class Reader implements EndingReader {
  readonly #leave: (reader: Reader) => void;
  readonly #reading: Required<ReaderOptions>;
  #waiting: RuntimeEvent[] = [];
  #waiters: Waiter[] = [];
  #isDone = false;
  #outcome: Promise<unknown> | undefined;

  constructor(leave: (reader: Reader) => void, { isLast = () => false, accepts = () => true }: ReaderOptions) {
    this.#leave = leave;
    this.#reading = { isLast, accepts };
  }

  give(event: RuntimeEvent): void {
    const { isLast, accepts } = this.#reading;
    if (this.#isDone || !accepts()) return;
    const waiter = this.#waiters.shift();
    if (waiter) waiter({ value: event, done: false });
    else if (event.level !== "debug" || this.#waiting.length < MOST_WAITING) this.#waiting.push(event);
    if (isLast(event)) this.end();
  }

  end(outcome?: Promise<unknown>): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#outcome = outcome;
    this.#leave(this);
    for (const waiter of this.#waiters.splice(0)) waiter(this.#over());
  }

  next(): Promise<IteratorResult<RuntimeEvent>> {
    const value = this.#waiting.shift();
    if (value) return Promise.resolve({ value, done: false });
    if (this.#isDone) return this.#over();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  return(): Promise<IteratorResult<RuntimeEvent>> {
    this.#waiting = [];
    this.#outcome = undefined;
    this.end();
    return this.#over();
  }

  [Symbol.asyncIterator](): EventReader {
    return this;
  }

  [Symbol.dispose](): void {
    void this.return();
  }

  #over(): Promise<IteratorResult<RuntimeEvent>> {
    return this.#outcome?.then(() => OVER) ?? Promise.resolve(OVER);
  }
}

export type EventPlace = {
  readonly session: string;
  readonly now: () => number;
  /** The family of a task. */
  readonly familyOf: (agent: string) => string | undefined;
};

export class EventHub {
  readonly #place: EventPlace;
  readonly #readers = new Set<Reader>();
  /** Events from before anybody could listen, for readers that come before the first exchange. */
  #early: RuntimeEvent[] | undefined = [];
  /** Once a client could attach: the latest events, without those of level debug. */
  #kept: RuntimeEvent[] | undefined;
  #keptCharacters = 0;
  readonly #followers = new Set<(event: RuntimeEvent) => void>();
  #seq = 0;
  #isClosed = false;

  constructor(place: EventPlace) {
    this.#place = place;
  }

  emit(body: EventBody, agent = "main"): void {
    this.#seq += 1;
    const { session, now, familyOf } = this.#place;
    const family = agent === "main" ? undefined : familyOf(agent);
    const event: RuntimeEvent = {
      ...{ session, ...(family === undefined ? {} : { family }) },
      ...{ ...body, seq: this.#seq, at: now(), level: levelOf(body), agent },
    };
    if (this.#early && this.#early.length < MOST_WAITING) this.#early.push(event);
    if (this.#kept) this.#remember(event);
    for (const reader of this.#readers) reader.give(event);
    for (const follower of this.#followers) follower(event);
  }

  /** Calls the follower for each event before the code that caused it continues. */
  follow(follower: (event: RuntimeEvent) => void): Disposable {
    this.#followers.add(follower);
    return { [Symbol.dispose]: () => void this.#followers.delete(follower) };
  }

  /** From now on early events are no longer kept for later readers. */
  stopBuffering(): void {
    this.#early = undefined;
  }

  /** Reads from now on, until the hub closes, the reader leaves, or it gets the event that `isLast`. */
  read(reading: ReaderOptions = {}): EndingReader {
    const reader = new Reader((reader) => this.#readers.delete(reader), reading);
    this.#readers.add(reader);
    for (const event of this.#early ?? []) reader.give(event);
    if (this.#isClosed) reader.end();
    return reader;
  }

  /** From now on the latest events are kept. */
  keepHistory(): void {
    if (this.#kept) return;
    this.#kept = [];
    for (const event of this.#early ?? []) this.#remember(event);
  }

  /** The kept events from this seq on, then live ones. Without a seq: live ones only. */
  replay(fromSeq?: number): EndingReader & { readonly keptFrom: number } {
    const reader = new Reader((reader) => this.#readers.delete(reader), {});
    const kept = this.#kept ?? [];
    if (fromSeq !== undefined) for (const event of kept) if (event.seq >= fromSeq) reader.give(event);
    this.#readers.add(reader);
    if (this.#isClosed) reader.end();
    return Object.assign(reader, { keptFrom: kept[0]?.seq ?? this.#seq + 1 });
  }

  #remember(event: RuntimeEvent): void {
    if (event.level === "debug" || !this.#kept) return;
    this.#kept.push(event);
    this.#keptCharacters += sizeOf(event);
    // Many at a time: removing the first element of a long list for each event would be expensive.
    if (this.#kept.length <= MOST_KEPT * 1.1 && this.#keptCharacters <= MOST_KEPT_CHARACTERS) return;
    let gone = Math.max(0, this.#kept.length - MOST_KEPT);
    for (const dropped of this.#kept.slice(0, gone)) this.#keptCharacters -= sizeOf(dropped);
    while (this.#keptCharacters > MOST_KEPT_CHARACTERS && gone < this.#kept.length) {
      const dropped = this.#kept[gone++];
      this.#keptCharacters -= dropped ? sizeOf(dropped) : 0;
    }
    this.#kept.splice(0, gone);
  }

  close(): void {
    this.#isClosed = true;
    for (const reader of this.#readers) reader.end();
  }
}

/** Characters of its texts, which make up most of an event's size. */
const sizeOf = (event: RuntimeEvent): number => {
  const text = "text" in event ? event.text.length : 0;
  return "args" in event ? text + JSON.stringify(event.args).length : text;
};

/** An exchange in progress, as events and as a result. Its events can be read once, from the first one on; its result can be
 *  asked for any number of times. */

export class Exchange implements AsyncIterable<RuntimeEvent> {
  readonly #events: EndingReader;
  readonly #result: Promise<ExchangeResult>;
  readonly #abort: (reason?: unknown) => void;
  #reading: "possible" | "begun" | "given up" = "possible";

  constructor(events: EndingReader, result: Promise<ExchangeResult>, abort: (reason?: unknown) => void) {
    this.#events = events;
    this.#result = result;
    this.#abort = abort;
    // There may be no waiter yet; a caller that asks later still gets the rejection.
    // A defect has no last event, so it is thrown to the reader too.
    result.finally(() => events.end(result)).catch(() => {});
  }

  /** Ends this exchange. What runs is interrupted, and everything so far is kept. */
  abort(reason?: unknown): void {
    this.#abort(reason);
  }

  result(): Promise<ExchangeResult> {
    if (this.#reading === "possible") {
      // Without a reader, nothing needs to be buffered.
      this.#events[Symbol.dispose]();
      this.#reading = "given up";
    }
    return this.#result;
  }

  [Symbol.asyncIterator](): AsyncIterator<RuntimeEvent, void> {
    if (this.#reading === "begun") throw new InputError("the events of an exchange can be read only once");
    if (this.#reading === "given up")
      throw new InputError("the events of an exchange are kept only until its result is requested; read them first");
    this.#reading = "begun";
    return this.#events;
  }
}

/** The last event of an exchange. */
export const endsExchange = ({ type, agent }: RuntimeEvent): boolean => type === "exchange_ended" && agent === "main";
