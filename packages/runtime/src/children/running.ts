/** One running task, as its caller sees it.
 *  Its signal comes from above and never goes there. Time that it waits for a person does not count. Whoever looks on may
 *  leave, and it continues.
 *  Elsewhere: all of them together (runs.ts), what runs (child.ts). */

import type { Ticket } from "@prefork/wire";
import type { EventBody } from "../events.ts";
import type { Expectation, FamilyAlarm, Observer } from "../fork/index.ts";
import type {
  Budget,
  ChildEnding,
  ChildPlan,
  Clock,
  ForkPlan,
  Mail,
  OpenChild,
  Report,
  TaskEnd,
  TaskResult,
} from "../ports.ts";
import { Denials } from "../tasks/index.ts";

/** A child that is about to be started. */
export type RunStart = {
  readonly child: ChildPlan;
  /** What it spends from. */
  readonly budget: Budget;
  /** Waits for the turn of its first request. Default: it is sent at once. */
  readonly admit?: ((signal: AbortSignal) => Promise<Ticket>) | undefined;
  /** Resolves when it may be opened. Default: at once. */
  readonly ready?: Promise<unknown> | undefined;
  /** Is the parent's model told how it ended? */
  readonly notifies: boolean;
  /** A program started it, so it belongs to the session and does not end with an exchange. Default: false. */
  readonly startedByProgram?: boolean;
  readonly expectation?: Expectation | undefined;
  /** Shared by a family: one warning for all of it. */
  readonly alarm?: FamilyAlarm;
  readonly signal?: AbortSignal | undefined;
  readonly observers?: readonly Observer[];
};

export type Ended = {
  readonly end: TaskEnd;
  readonly result: TaskResult;
  /** Present if the report has the requested form. */
  readonly report?: Report;
};

/** Our own type, because a user's program may compile against declarations older than ES2024. */
type Deferred<T> = {
  readonly promise: Promise<T>;
  readonly resolve: (value: T | PromiseLike<T>) => void;
  readonly reject: (reason?: unknown) => void;
};

/** Turns that a child has for its report once its calls are refused. */
const LAST_TURNS = 3;

export class Running {
  readonly start: RunStart;
  readonly ended: Deferred<Ended> = Promise.withResolvers<Ended>();
  /** Resolves when nobody waits for it in the foreground any more. */
  readonly detached: Deferred<void> = Promise.withResolvers<void>();
  readonly signal: AbortSignal;
  readonly #stop = new AbortController();
  readonly #denials = new Denials();
  readonly #proposed = new Map<string, string>();
  readonly #timer: Timer | undefined;
  #leave: (() => void) | undefined;
  child: OpenChild | undefined;
  notifies: boolean;
  toolUses = 0;
  /** Its first request has been compared with what it could have read. */
  isChecked = false;
  #isOver = false;
  #turnsLeft = Number.POSITIVE_INFINITY;
  /** The calls of one turn were made before the model could read the first refusal, so they count once. */
  #isDenied = false;

  constructor(start: RunStart, { clock, above }: { readonly clock: Clock; readonly above: AbortSignal | undefined }) {
    this.start = start;
    this.notifies = start.notifies;
    const signals = [this.#stop.signal, above, start.signal].filter((one) => one !== undefined);
    this.signal = signals.length === 1 ? this.#stop.signal : AbortSignal.any(signals);
    const { ms } = this.plan.limits;
    if (ms !== undefined)
      this.#timer = new Timer(ms, clock, () => this.#endAs({ end: "timed-out", reason: "the time limit is reached" }));
  }

  get plan(): ForkPlan {
    return this.start.child.fork;
  }

  get id(): string {
    return this.plan.task;
  }

  /** While it waits in the queue, only an abort matters. A combined signal keeps its listeners alive for as long as one of its
   *  sources may still abort, so nothing listens longer than it must. */
  onAbortInQueue(leave: () => void): void {
    this.#leave = leave;
    if (this.signal.aborted)
      queueMicrotask(leave); // the caller looks for it first
    else this.signal.addEventListener("abort", leave, { once: true });
  }

  leaveQueue(): void {
    if (this.#leave) this.signal.removeEventListener("abort", this.#leave);
    this.#leave = undefined;
  }

  begin(child: OpenChild): void {
    this.child = child;
    this.#timer?.resume();
  }

  /** A message of the parent, for its next boundary. "too late": its last turn is over, and it reads nothing more. */
  steer(mail: Mail): "given" | "not begun" | "too late" {
    if (this.#isOver) return "too late";
    if (!this.child) return "not begun";
    return this.child.steer(mail) ? "given" : "too late";
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Time does not count while it waits for a person's answer. */
  setWaiting(isWaiting: boolean): void {
    if (isWaiting) this.#timer?.pause();
    else this.#timer?.resume();
  }

  markOver(): void {
    this.#isOver = true;
    this.#timer?.pause();
  }

  /** Counts what it does, and ends a run that makes no progress. Returns an event to emit besides. */
  observe(event: EventBody): EventBody | undefined {
    switch (event.type) {
      case "call_proposed":
        this.#proposed.set(event.callId, `${event.tool} ${JSON.stringify(event.args)}`);
        return undefined;
      case "call_started":
        this.toolUses += 1;
        this.#denials.recordApproval();
        return undefined;
      case "call_ended": {
        const what = this.#proposed.get(event.callId) ?? event.tool;
        this.#proposed.delete(event.callId);
        if (event.fault !== "denied") return undefined;
        this.#denied(what);
        return { type: "fork_tool_denied", taskId: this.id, tool: event.tool, reason: event.text };
      }
      case "turn_started":
        this.#isDenied = false;
        this.#turnsLeft -= 1;
        if (this.#turnsLeft < 0)
          this.#endAs({ end: "failed", reason: "it went on calling tools after all of them were refused" });
        return undefined;
      default:
        return undefined;
    }
  }

  #denied(what: string): void {
    if (this.#isDenied) return;
    this.#isDenied = true;
    const verdict = this.#denials.recordDenial(what);
    if (verdict.kind !== "end" || this.#turnsLeft !== Number.POSITIVE_INFINITY) return;
    this.#turnsLeft = LAST_TURNS;
    this.child?.refuseCalls(
      `${verdict.reason} No further call will run: report now what you have, and what you would need.`,
    );
  }

  #endAs(ending: ChildEnding): void {
    this.child?.stop(ending);
    this.#stop.abort();
  }
}

/** Counts only while it runs. */
class Timer {
  readonly #over: () => void;
  readonly #clock: Clock;
  #leftMs: number;
  #since = 0;
  #timeout: NodeJS.Timeout | undefined;

  constructor(ms: number, clock: Clock, over: () => void) {
    this.#leftMs = ms;
    this.#clock = clock;
    this.#over = over;
  }

  resume(): void {
    if (this.#timeout) return;
    this.#since = this.#clock.now();
    this.#timeout = setTimeout(this.#over, Math.max(0, this.#leftMs));
  }

  pause(): void {
    if (!this.#timeout) return;
    clearTimeout(this.#timeout);
    this.#timeout = undefined;
    this.#leftMs -= this.#clock.now() - this.#since;
  }
}
