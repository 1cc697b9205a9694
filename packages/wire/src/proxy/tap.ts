/** One request and its answer, listened to while they pass.
 *  Invariant: nothing here waits or can make anything else wait; what is too much is let go and said so; bytes are
 *  copied once, into a piece that can be handed over.
 *  Elsewhere: what is passed (server-pass.ts), what becomes of it (analysis.ts). */

import type { RawHeaders } from "./headers.ts";
import { valueOf } from "./headers.ts";
import type { Asked, Outcome, Skipped, TapMessage } from "./messages.ts";

export type Tap = {
  readonly sent: (chunk: Buffer) => void;
  readonly sentAll: () => void;
  readonly answered: (status: number, headers: RawHeaders) => void;
  readonly received: (chunk: Buffer) => void;
  readonly ended: (outcome: Outcome) => void;
};

export type TapEdge = {
  readonly now: () => number;
  readonly post: (message: TapMessage) => void;
  /** Is there room for so many bytes more? */
  readonly hasRoom: (bytes: number) => boolean;
  /** Longer bodies are not looked at. */
  readonly bodyLimit: number;
  /** A client that left before its request was whole. */
  readonly unfinished: () => void;
};

/** Answers are handed over in pieces of this size; the first at once, since it tells what was read. */
const PIECE_BYTES = 64 * 1024;

class Pieces {
  #chunks: Buffer[] = [];
  length = 0;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.length += chunk.length;
  }

  /** In a buffer of its own, to be handed over whole. */
  take(): Uint8Array {
    const whole = Buffer.allocUnsafeSlow(this.length);
    let at = 0;
    for (const chunk of this.#chunks) at += chunk.copy(whole, at);
    this.drop();
    return whole;
  }

  drop(): void {
    this.#chunks = [];
    this.length = 0;
  }
}

export const openTap = (
  facts: Omit<Asked, "type" | "startedAt" | "body">,
  { now, post, hasRoom, bodyLimit, unfinished }: TapEdge,
): Tap => {
  const { id } = facts;
  const request = new Pieces();
  const answer = new Pieces();
  let state: "sending" | "asked" | "answering" | "deaf" | "ended" = "sending";
  let skipped: Skipped | undefined;
  let head: { readonly status: number; readonly headers: RawHeaders } | undefined;

  const ask = (body: Uint8Array | Skipped): void => {
    request.drop();
    state = "asked";
    post({ ...facts, type: "asked", startedAt: now(), body });
  };
  /** With the first byte of an answer, or with its end if it has none. */
  const begin = (): void => {
    if (state !== "asked" || !head) return;
    const { status, headers } = head;
    // What a provider refused has no usage.
    state = status >= 200 && status < 300 ? "answering" : "deaf";
    const [contentType, encoding] = [valueOf(headers, "content-type"), valueOf(headers, "content-encoding")];
    post({ type: "answered", id, status, contentType, encoding, firstByteAt: now() });
  };
  const hand = (): void => {
    if (answer.length === 0) return;
    if (hasRoom(answer.length)) {
      post({ type: "bytes", id, bytes: answer.take() });
      return;
    }
    // What follows a gap cannot be read: its usage shows as unstated.
    answer.drop();
    state = "deaf";
  };

  return {
    sent: (chunk) => {
      if (state !== "sending" || skipped) return;
      request.add(chunk);
      if (request.length <= bodyLimit) return;
      skipped = "too long";
      request.drop();
    },
    sentAll: () => {
      if (state !== "sending") return;
      if (skipped) ask(skipped);
      else if (!hasRoom(request.length)) ask("the analysis was behind");
      else ask(request.take());
    },
    answered: (status, headers) => {
      head = { status, headers };
      if (state === "sending") ask("answered before it was sent");
    },
    received: (chunk) => {
      const isFirst = state === "asked";
      begin();
      if (state !== "answering") return;
      answer.add(chunk);
      if (isFirst || answer.length >= PIECE_BYTES) hand();
    },
    ended: (outcome) => {
      if (state === "ended") return;
      if (state === "sending") {
        state = "ended";
        request.drop();
        unfinished();
        return;
      }
      begin();
      hand();
      state = "ended";
      post({ type: "ended", id, outcome });
    },
  };
};
