/** What waits to be sent to one client.
 *  Invariant: it never grows without end. A client that falls behind first loses progress events (level debug), which
 *  are also not kept for a replay; one that falls further behind is told so and dropped, and may connect again from the
 *  last event it got.
 *  Elsewhere: what is sent (attached-client.ts). */

import type { Socket } from "node:net";
import type { RuntimeEvent } from "@prefork/runtime";
import { encodeFrame, type Goodbye, type ServerFrame } from "./frames.ts";

/** What may be encoded and not yet sent. */
const MAX_ENCODED_BYTES = 1024 * 1024;
/** More than a whole replay: a session keeps 5,500 events and 16 million characters. */
const MAX_WAITING = 20_000;
const MAX_WAITING_CHARACTERS = 40_000_000;
/** From here on, progress is not worth sending. */
const MAX_PROGRESS = 200;
/** Frames that were sent are removed from the list this many at a time. */
const MAX_SENT_KEPT = 1_000;
/** How long a dropped client may take to read what it was sent. */
const LAST_WORDS_MS = 5_000;

type Waiting = { readonly frame: ServerFrame; readonly size: number };

export class Outbox {
  readonly #socket: Socket;
  #waiting: Waiting[] = [];
  #next = 0;
  #characters = 0;
  #isClosed = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("drain", () => this.#flush());
  }

  send(frame: ServerFrame): void {
    if (this.#isClosed) return;
    const waiting = this.#waiting.length - this.#next;
    if (frame.type === "event" && frame.event.level === "debug" && waiting > MAX_PROGRESS) return;
    const size = sizeOf(frame);
    if (waiting >= MAX_WAITING || this.#characters + size > MAX_WAITING_CHARACTERS) {
      this.close({ type: "goodbye", reason: "slow", message: "events were not read in time" });
      return;
    }
    this.#waiting.push({ frame, size });
    this.#characters += size;
    this.#flush();
  }

  /** After these words nothing is sent any more. */
  close(goodbye: Goodbye): void {
    if (this.#isClosed) return;
    // At the end of a session its last events still count; a client that is dropped for another reason has no use for them.
    if (goodbye.reason === "ended") this.#flush({ isLast: true });
    this.#isClosed = true;
    this.#waiting = [];
    this.#socket.end(encodeFrame(goodbye));
    setTimeout(() => this.#socket.destroy(), LAST_WORDS_MS).unref();
  }

  #flush({ isLast = false } = {}): void {
    while (!this.#isClosed && (isLast || this.#socket.writableLength < MAX_ENCODED_BYTES)) {
      const first = this.#waiting[this.#next];
      if (first === undefined) break;
      this.#next += 1;
      this.#characters -= first.size;
      this.#socket.write(encodeFrame(first.frame));
    }
    if (this.#next < this.#waiting.length && this.#next < MAX_SENT_KEPT) return;
    this.#waiting = this.#waiting.slice(this.#next);
    this.#next = 0;
  }
}

/** The characters of its texts, which make up most of a frame. */
const sizeOf = (frame: ServerFrame): number =>
  200 + (frame.type === "event" ? eventSize(frame.event) : JSON.stringify(frame).length);

const eventSize = (event: RuntimeEvent): number =>
  ("text" in event ? event.text.length : 0) + ("args" in event ? JSON.stringify(event.args).length : 0);
