/** Who of a family is sent when. The leader goes first and writes what all share; the others follow once that can be
 *  read, and no faster than their provider keeps them together.
 *  Invariant: while an unanswered leader is under way nobody else is sent; a leader that fails hands over to the next;
 *  whoever comes when what they share has expired leads anew; the wait has an end, and no timer outlives those who wait.
 *  Elsewhere: whether waiting pays (economics/), what is sent (family.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import type { LaunchDecision } from "./cost/index.ts";
import type { Pacing, Protocol } from "./protocols/index.ts";

export type LaunchOrder = Pick<LaunchDecision, "launch" | "waitCapMs"> &
  Pacing & {
    /** How long what they share can be read after somebody last used it. Default: for as long as anybody comes. */
    readonly lifetimeMs?: number;
  };

/** Waiting and the time, for tests. */
export type GateEdge = {
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly now: () => number;
};

const MINUTE_MS = 60_000;

/** As long as cold followers wait: what the leader has to write again is the whole prefix. */
const COLD_WAIT_MS = 60_000;

/** What a request takes to arrive. */
const ON_THE_WAY_MS = 10_000;

/** An answer is longer than its first event: where only a whole one can be read, it is worth waiting for. */
const WHOLE_ANSWER_MS = 120_000;

/** How a family that is launched so is sent by this format. */
export const launchOrder = (
  { launch, waitCapMs }: Pick<LaunchDecision, "launch" | "waitCapMs">,
  { readable, pacing }: Pick<Protocol, "readable" | "pacing">,
): LaunchOrder => ({
  launch,
  waitCapMs: readable === "complete" && launch === "leader-first" ? Math.max(waitCapMs, WHOLE_ANSWER_MS) : waitCapMs,
  ...pacing,
});

export class LaunchGate {
  readonly #order: LaunchOrder;
  readonly #edge: GateEdge;
  readonly #waiting: Waiter[] = [];
  /** May be sent but for the pace. */
  readonly #paced: Waiter[] = [];
  /** When the last ones were sent, oldest first. */
  readonly #sent: number[] = [];
  #pacing: AbortController | undefined;
  /** When what the leader wrote is built, once it can be read. */
  #opensAt: number | undefined;
  #settling: AbortController | undefined;
  #leader: Leader | undefined;
  #open: boolean;
  /** What they share had expired, so all of it is written again. */
  #isAnew = false;
  /** When the last one was let go. */
  #usedAt: number | undefined;

  constructor(order: LaunchOrder, edge: GateEdge = realEdge) {
    this.#order = order;
    this.#edge = edge;
    this.#open = order.launch === "at-once";
  }

  /** Nobody waits here any more. */
  get isOpen(): boolean {
    return this.#open;
  }

  /** Resolves when this member may be sent, with a ticket that says what became of it. Rejects when aborted first. */
  async admit(signal?: AbortSignal): Promise<Ticket> {
    signal?.throwIfAborted();
    const ticket = Symbol("member");
    this.#openInTime();
    this.#closeIfExpired();
    if (!this.#open && (this.#leader !== undefined || this.#opensAt !== undefined)) {
      const turn = this.#queue(this.#waiting, ticket, signal);
      this.#openInTime();
      await turn;
    } else if (!this.#open) this.#lead(ticket);
    try {
      signal?.throwIfAborted();
      await this.#inPace(ticket, signal);
    } catch (error) {
      this.#failed(ticket); // it may lead, and is not sent
      throw error;
    }
    this.#usedAt = this.#edge.now();
    return { readable: () => this.#readable(ticket), failed: () => this.#failed(ticket) };
  }

  /** Those who come late, because they waited for a place, would each write what all share. */
  #closeIfExpired(): void {
    const { lifetimeMs } = this.#order;
    if (!this.#open || this.#usedAt === undefined || lifetimeMs === undefined) return;
    if (this.#edge.now() - this.#usedAt < lifetimeMs - ON_THE_WAY_MS) return;
    this.#open = false;
    this.#opensAt = undefined;
    this.#isAnew = true;
  }

  #lead(ticket: symbol): void {
    const cap = new AbortController();
    this.#leader = { ticket, cap };
    const { waitCapMs } = this.#order;
    this.#edge.wait(this.#isAnew ? Math.max(waitCapMs, COLD_WAIT_MS) : waitCapMs, cap.signal).then(
      () => this.#readable(ticket),
      () => undefined, // it was readable, or had failed, before the time was up
    );
  }

  async #inPace(ticket: symbol, signal: AbortSignal | undefined): Promise<void> {
    if (this.#isInPace()) return;
    const turn = this.#queue(this.#paced, ticket, signal);
    this.#keepPace();
    await turn;
  }

  /** True: it counts as sent now. */
  #isInPace(): boolean {
    const { perMinute } = this.#order;
    if (perMinute === undefined) return true;
    const now = this.#edge.now();
    while ((this.#sent[0] ?? now) <= now - MINUTE_MS) this.#sent.shift();
    if (this.#sent.length >= perMinute) return false;
    this.#sent.push(now);
    return true;
  }

  /** Lets the next one go when the oldest of the last minute is that old. */
  #keepPace(): void {
    if (this.#pacing || this.#paced.length === 0) return;
    this.#pacing = new AbortController();
    const { signal } = this.#pacing;
    const due = (this.#sent[0] ?? 0) + MINUTE_MS - this.#edge.now();
    this.#edge.wait(Math.max(1, due), signal).then(
      () => {
        if (signal.aborted) return;
        this.#pacing = undefined;
        while (this.#paced.length > 0 && this.#isInPace()) this.#paced.shift()?.go();
        this.#keepPace();
      },
      () => undefined, // nobody waits any more
    );
  }

  #queue(queue: Waiter[], ticket: symbol, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const waiter = { ticket, go };
      const leave = (): void => {
        queue.splice(queue.indexOf(waiter), 1);
        this.#forgetTimers();
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", leave, { once: true });
      queue.push(waiter);
    });
  }

  #readable(ticket: symbol): void {
    if (!this.#resign(ticket)) return;
    this.#opensAt = this.#edge.now() + (this.#order.settleMs ?? 0);
    this.#openInTime();
  }

  /** Opens when what was written is built; a timer runs only while somebody waits for it. */
  #openInTime(): void {
    if (this.#open || this.#opensAt === undefined) return;
    const left = this.#opensAt - this.#edge.now();
    if (left <= 0) this.#letGo();
    else if (this.#waiting.length > 0 && !this.#settling) {
      this.#settling = new AbortController();
      const { signal } = this.#settling;
      this.#edge.wait(left, signal).then(
        () => {
          if (!signal.aborted) this.#letGo();
        },
        () => undefined, // nobody waits any more
      );
    }
  }

  #forgetTimers(): void {
    if (this.#paced.length === 0) {
      this.#pacing?.abort();
      this.#pacing = undefined;
    }
    if (this.#waiting.length === 0) {
      this.#settling?.abort();
      this.#settling = undefined;
    }
  }

  #letGo(): void {
    this.#open = true;
    for (const { go } of this.#waiting.splice(0)) go();
  }

  #failed(ticket: symbol): void {
    if (!this.#resign(ticket)) return;
    const next = this.#waiting.shift();
    if (!next) return;
    // Before it runs: whoever asks in between must find the lead taken.
    this.#lead(next.ticket);
    next.go();
  }

  /** False when `ticket` does not lead. The cap ends with the lead, so that no timer outlives the family. */
  #resign(ticket: symbol): boolean {
    if (ticket !== this.#leader?.ticket) return false;
    this.#leader.cap.abort();
    this.#leader = undefined;
    return true;
  }
}

type Leader = { readonly ticket: symbol; readonly cap: AbortController };
type Waiter = { readonly ticket: symbol; readonly go: () => void };

export type Ticket = {
  /** What this member writes can be read by others now. */
  readonly readable: () => void;
  /** It ended before that. */
  readonly failed: () => void;
};

const realEdge: GateEdge = {
  wait: (ms, signal) => realWait(ms, signal),
  now: () => performance.now(),
};

const realWait = async (ms: number, signal: AbortSignal): Promise<void> => {
  await sleep(ms, undefined, { signal });
};
