/** Copies one request and its answer while they are forwarded.
 *  Invariant: nothing here waits or can make anything else wait; what does not fit is dropped and reported; bytes are
 *  copied once, into a piece that can be handed over.
 *  Elsewhere: what is forwarded (server-pass.ts), what is done with it (analysis.ts). */

import { headerValue, type RawHeaders } from "./headers.ts";
import type { RequestMessage, SkipReason, TapMessage } from "./messages.ts";
import type { Outcome } from "./report.ts";

export type Tap = {
  readonly sent: (chunk: Buffer) => void;
  readonly sentAll: () => void;
  readonly answered: (status: number, headers: RawHeaders) => void;
  readonly received: (chunk: Buffer) => void;
  readonly ended: (outcome: Outcome) => void;
};

export type TapOptions = {
  readonly now: () => number;
  readonly post: (message: TapMessage) => void;
  /** Is there room for this many more bytes? `hold` adjusts how many are waiting here. */
  readonly hasRoom: (bytes: number) => boolean;
  readonly hold: (bytes: number) => void;
  /** Longer bodies are not analysed. */
  readonly bodyLimit: number;
  /** A client disconnected before its request was complete. */
  readonly unfinished: () => void;
};

/** Answers are handed over in pieces of this size; the first piece at once, because it contains the usage. */
const PIECE_BYTES = 64 * 1024;

class Pieces {
  readonly #hold: (bytes: number) => void;
  #chunks: Buffer[] = [];
  length = 0;

  constructor(hold: (bytes: number) => void) {
    this.#hold = hold;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.length += chunk.length;
    this.#hold(chunk.length);
  }

  /** In its own buffer, to be handed over as a whole. */
  take(): Uint8Array {
    const whole = Buffer.allocUnsafeSlow(this.length);
    let at = 0;
    for (const chunk of this.#chunks) at += chunk.copy(whole, at);
    this.drop();
    return whole;
  }

  drop(): void {
    this.#hold(-this.length);
    this.#chunks = [];
    this.length = 0;
  }
}

export const openTap = (
  facts: Omit<RequestMessage, "type" | "startedAt" | "body">,
  { now, post, hasRoom, hold, bodyLimit, unfinished }: TapOptions,
): Tap => {
  const { id } = facts;
  const request = new Pieces(hold);
  const answer = new Pieces(hold);
  let state: "sending" | "asked" | "answering" | "ignoring" | "ended" = "sending";
  let skipped: SkipReason | undefined;
  let head: { readonly status: number; readonly headers: RawHeaders } | undefined;

  const ask = (body: Uint8Array | SkipReason): void => {
    request.drop();
    state = "asked";
    post({ ...facts, type: "asked", startedAt: now(), body });
  };
  /** The bytes since the last call. After a gap the rest could not be parsed. */
  const taken = (): { readonly bytes?: Uint8Array } => {
    return answer.length === 0 || state !== "answering" ? {} : { bytes: answer.take() };
  };
  /** Called with the first byte of an answer, or at its end if it has none. */
  const begin = (): void => {
    if (state !== "asked" || !head) return;
    const { status, headers } = head;
    // A refused request has no usage.
    state = status >= 200 && status < 300 ? "answering" : "ignoring";
    if (state === "ignoring") answer.drop();
    const [contentType, encoding] = [headerValue(headers, "content-type"), headerValue(headers, "content-encoding")];
    post({ type: "answered", id, status, contentType, encoding, firstByteAt: now(), ...taken() });
  };

  return {
    sent: (chunk) => {
      if (state !== "sending" || skipped) return;
      if (request.length + chunk.length > bodyLimit) skipped = "too long";
      else if (!hasRoom(chunk.length)) skipped = "the analysis was behind";
      if (skipped) request.drop();
      else request.add(chunk);
    },
    sentAll: () => {
      if (state === "sending") ask(skipped ?? request.take());
    },
    answered: (status, headers) => {
      head = { status, headers };
      if (state === "sending") ask("not sent completely");
    },
    received: (chunk) => {
      if (state !== "asked" && state !== "answering") return;
      if (!hasRoom(chunk.length)) {
        begin();
        answer.drop();
        state = "ignoring";
        return;
      }
      answer.add(chunk);
      begin();
      if (answer.length < PIECE_BYTES) return;
      const { bytes } = taken();
      if (bytes) post({ type: "bytes", id, bytes });
    },
    ended: (outcome) => {
      if (state === "ended") return;
      if (state === "sending" && outcome === "aborted") {
        state = "ended";
        request.drop();
        unfinished();
        return;
      }
      if (state === "sending") ask("not sent completely");
      begin();
      post({ type: "ended", id, outcome, endedAt: now(), ...taken() });
      answer.drop();
      state = "ended";
    },
  };
};
