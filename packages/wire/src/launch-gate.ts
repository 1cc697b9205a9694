/** Who of a family is sent when. The leader goes first and writes what all share; the others follow once that can be
 *  read.
 *  Invariant: while an unanswered leader is under way nobody else is sent; a leader that fails hands over to the next;
 *  the wait has an end.
 *  Elsewhere: whether waiting pays (economics/), what is sent (family.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import type { LaunchDecision } from "./economics/index.ts";

export type LaunchOrder = Pick<LaunchDecision, "launch" | "waitCapMs">;

export class LaunchGate {
  readonly #order: LaunchOrder;
  readonly #wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly #waiting: Waiter[] = [];
  #leader: Leader | undefined;
  #open: boolean;

  constructor(order: LaunchOrder, wait: (ms: number, signal: AbortSignal) => Promise<void> = realWait) {
    this.#order = order;
    this.#wait = wait;
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
    if (!this.#open && this.#leader !== undefined) await this.#queue(ticket, signal);
    else if (!this.#open) this.#lead(ticket);
    return { readable: () => this.#readable(ticket), failed: () => this.#failed(ticket) };
  }

  #lead(ticket: symbol): void {
    const cap = new AbortController();
    this.#leader = { ticket, cap };
    this.#wait(this.#order.waitCapMs, cap.signal).then(
      () => this.#readable(ticket),
      () => undefined, // it was readable, or had failed, before the time was up
    );
  }

  #queue(ticket: symbol, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const waiter = { ticket, go };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiting.push(waiter);
    });
  }

  #readable(ticket: symbol): void {
    if (!this.#resign(ticket)) return;
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

const realWait = async (ms: number, signal: AbortSignal): Promise<void> => {
  await sleep(ms, undefined, { signal });
};
