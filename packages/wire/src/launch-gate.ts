/** Decides when each member of a family is sent. The leader goes first and writes the shared entry; the others follow
 *  when it can be read, within the rate at which the provider still routes them to one machine.
 *  Invariant: while the leader is unanswered nobody else is sent; if a leader fails, the next member leads; a member
 *  that arrives after the shared entry has expired leads again; every wait ends, and no timer outlives the members that
 *  wait.
 *  Elsewhere: whether waiting pays off (cost/), what is sent (family.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import type { LaunchDecision } from "./cost/index.ts";
import type { Pacing, Protocol } from "./protocols/index.ts";

export type LaunchOrder = Pick<LaunchDecision, "launch" | "waitCapMs"> &
  Pacing & {
    /** How long the shared entry can be read after its last use. Default: forever. */
    readonly lifetimeMs?: number;
  };

/** Clock and timer, replaceable in tests. */
export type GateClock = {
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly now: () => number;
};

const MINUTE_MS = 60_000;

/** How long cold followers wait: the leader has to write the whole prefix again. */
const COLD_WAIT_MS = 60_000;

/** Time for a request to arrive. */
const TRANSIT_MARGIN_MS = 10_000;

/** If an entry becomes readable only after a complete answer, followers wait longer, and it still pays off. */
const WHOLE_ANSWER_MS = 120_000;

/** The launch order of a family for this wire format. */
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
  readonly #clock: GateClock;
  readonly #waiting: Waiter[] = [];
  /** Members that only wait for the request rate. */
  readonly #paced: Waiter[] = [];
  /** When the latest members were sent, oldest first. */
  readonly #sent: number[] = [];
  #pacing: AbortController | undefined;
  /** When the gate opens; set once the leader reports readable, plus settle time. */
  #opensAt: number | undefined;
  #settling: AbortController | undefined;
  #leader: Leader | undefined;
  #open: boolean;
  /** The shared entry had expired, so all of it is written again. */
  #isRewrite = false;
  /** When the last member was admitted. */
  #usedAt: number | undefined;

  constructor(order: LaunchOrder, clock: GateClock = systemClock) {
    this.#order = order;
    this.#clock = clock;
    this.#open = order.launch === "at-once";
  }

  /** No member has to wait here any more. */
  get isOpen(): boolean {
    return this.#open;
  }

  /** Resolves when this member may be sent, with a ticket to report what became of it. Rejects if aborted first. */
  async admit(signal?: AbortSignal): Promise<Ticket> {
    signal?.throwIfAborted();
    const ticket = Symbol("member");
    this.#openWhenDue();
    this.#closeIfExpired();
    if (!this.#open && (this.#leader !== undefined || this.#opensAt !== undefined)) {
      const turn = this.#queue(this.#waiting, ticket, signal);
      this.#openWhenDue();
      await turn;
    } else if (!this.#open) this.#lead(ticket);
    try {
      signal?.throwIfAborted();
      await this.#inPace(ticket, signal);
    } catch (error) {
      this.#failed(ticket); // it may be the leader, and it will not be sent
      throw error;
    }
    this.#usedAt = this.#clock.now();
    return { readable: () => this.#readable(ticket), failed: () => this.#failed(ticket) };
  }

  /** Closes the gate again if the shared entry has expired; otherwise each late member would write it. A member is late if
   *  it waited for a free slot. */
  #closeIfExpired(): void {
    const { lifetimeMs } = this.#order;
    if (!this.#open || this.#usedAt === undefined || lifetimeMs === undefined) return;
    if (this.#clock.now() - this.#usedAt < lifetimeMs - TRANSIT_MARGIN_MS) return;
    this.#open = false;
    this.#opensAt = undefined;
    this.#isRewrite = true;
  }

  #lead(ticket: symbol): void {
    const cap = new AbortController();
    this.#leader = { ticket, cap };
    const { waitCapMs } = this.#order;
    this.#clock.wait(this.#isRewrite ? Math.max(waitCapMs, COLD_WAIT_MS) : waitCapMs, cap.signal).then(
      () => this.#readable(ticket), // the wait is capped: treat the entry as readable
      () => undefined, // it was readable, or had failed, before the time was up
    );
  }

  async #inPace(ticket: symbol, signal: AbortSignal | undefined): Promise<void> {
    if (this.#takeSlot()) return;
    const turn = this.#queue(this.#paced, ticket, signal);
    this.#keepPace();
    await turn;
  }

  /** Counts a member as sent now, if the request rate allows it. */
  #takeSlot(): boolean {
    const { perMinute } = this.#order;
    if (perMinute === undefined) return true;
    const now = this.#clock.now();
    while ((this.#sent[0] ?? now) <= now - MINUTE_MS) this.#sent.shift();
    if (this.#sent.length >= perMinute) return false;
    this.#sent.push(now);
    return true;
  }

  /** Admits the next member when the oldest request in the one-minute window leaves it. */
  #keepPace(): void {
    if (this.#pacing || this.#paced.length === 0) return;
    this.#pacing = new AbortController();
    const { signal } = this.#pacing;
    const due = (this.#sent[0] ?? 0) + MINUTE_MS - this.#clock.now();
    this.#clock.wait(Math.max(1, due), signal).then(
      () => {
        if (signal.aborted) return;
        this.#pacing = undefined;
        while (this.#paced.length > 0 && this.#takeSlot()) this.#paced.shift()?.go();
        this.#keepPace();
      },
      () => undefined, // no member waits any more
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
    if (!this.#endLead(ticket)) return;
    this.#opensAt = this.#clock.now() + (this.#order.settleMs ?? 0);
    this.#openWhenDue();
  }

  /** Opens when the entry is readable. A timer runs only while somebody waits for it. */
  #openWhenDue(): void {
    if (this.#open || this.#opensAt === undefined) return;
    const left = this.#opensAt - this.#clock.now();
    if (left <= 0) this.#openGate();
    else if (this.#waiting.length > 0 && !this.#settling) {
      this.#settling = new AbortController();
      const { signal } = this.#settling;
      this.#clock.wait(left, signal).then(
        () => {
          if (!signal.aborted) this.#openGate();
        },
        () => undefined, // no member waits any more
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

  #openGate(): void {
    this.#open = true;
    for (const { go } of this.#waiting.splice(0)) go();
  }

  #failed(ticket: symbol): void {
    if (!this.#endLead(ticket)) return;
    const next = this.#waiting.shift();
    if (!next) return;
    // Set before `go` runs, so that a member that asks in between finds the lead taken.
    this.#lead(next.ticket);
    next.go();
  }

  /** False if `ticket` does not lead. The cap ends with the lead, so that no timer outlives the family. */
  #endLead(ticket: symbol): boolean {
    if (ticket !== this.#leader?.ticket) return false;
    this.#leader.cap.abort();
    this.#leader = undefined;
    return true;
  }
}

type Leader = { readonly ticket: symbol; readonly cap: AbortController };
type Waiter = { readonly ticket: symbol; readonly go: () => void };

export type Ticket = {
  /** Others can now read what this member wrote. */
  readonly readable: () => void;
  /** It ended before that. */
  readonly failed: () => void;
};

const systemClock: GateClock = {
  wait: (ms, signal) => realWait(ms, signal),
  now: () => performance.now(),
};

const realWait = async (ms: number, signal: AbortSignal): Promise<void> => {
  await sleep(ms, undefined, { signal });
};
