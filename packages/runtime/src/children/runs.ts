/** The child runs that an agent has started: begun in order, a bounded number at once, each ended once.
 *  The task owns its run: the caller need not wait for it, and its end is reported once. An abort only goes downwards, to
 *  the run's own children. A queued run is never lost.
 *  Elsewhere: one run (running.ts), what asks for runs (launcher.ts), where they run (the port `ChildHost`, ../ports.ts),
 *  states and notifications (../tasks). */

import { FORK_PLACEHOLDER_RESULT, noUsage, type Ticket, text } from "@prefork/wire";
import type { MovedCall } from "../agent/index.ts";
import { oneLine } from "../context/index.ts";
import type { EventBody } from "../events.ts";
import { findCacheMiss } from "../fork/index.ts";
import type { Ask, ChildEntry, ChildHost, ChildParent, Clock, Ids, OpenChild, TaskEnd, TaskResult } from "../ports.ts";
import type { TaskTable } from "../tasks/index.ts";
import { type Ended, Running, type RunStart } from "./running.ts";

export type RunsOptions = {
  readonly host: ChildHost;
  readonly table: TaskTable;
  readonly clock: Clock;
  /** Answers the questions of all of them. Absent: there is nobody. */
  readonly ask?: Ask | undefined;
  /** `agent`: who it happened to; default: the main agent. */
  readonly emit: (event: EventBody, agent?: string) => void;
  /** How many run at once; others wait in the queue. */
  readonly atOnce: number;
  /** The agent that starts them. */
  readonly parent: string;
  /** Records the cost of a run that has no journal of its own. */
  readonly spent: (result: TaskResult) => void;
  /** Called when the first one begins and when the last one has ended. */
  readonly busy?: (isBusy: boolean) => void;
  /** Aborting this ends all runs, no matter what started them. */
  readonly lasting?: AbortSignal;
};

export class Runs {
  readonly #options: RunsOptions;
  readonly #all = new Map<string, Running>();
  readonly #queue: Running[] = [];
  /** Other work that is waited for like a run. */
  readonly #others = new Map<string, Promise<unknown>>();
  #taken = 0;
  #next = Promise.withResolvers<void>();
  #above: AbortSignal | undefined;

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  /** Aborting this ends everything that is started from now on. */
  setParentSignal(signal: AbortSignal | undefined): void {
    this.#above = signal;
  }

  /** How many more could begin now. */
  get freePlaces(): number {
    return Math.max(0, this.#options.atOnce - this.#taken - this.#queue.length);
  }

  get ids(): readonly string[] {
    return [...this.#all.keys()];
  }
  /** The tasks whose end the parent's model must be told. */
  get notifying(): readonly string[] {
    const runs = [...this.#all.values()].filter(({ notifies }) => notifies).map(({ id }) => id);
    return [...runs, ...this.#others.keys()];
  }

  /** Is there any such task? */
  get hasNotifying(): boolean {
    if (this.#others.size > 0) return true;
    for (const { notifies } of this.#all.values()) if (notifies) return true;
    return false;
  }
  /** Resolves when the next of them ends, whichever it is. */
  get nextEnd(): Promise<void> {
    return this.#next.promise;
  }

  /** Other work that ends like a task. */
  accompany(id: string, work: Promise<unknown>): void {
    this.#others.set(
      id,
      work.finally(() => {
        this.#others.delete(id);
        this.#tellEnd();
      }),
    );
  }

  find(id: string): Running | undefined {
    return this.#all.get(id);
  }

  /** Starts these in order. Resolves once all that need not wait have begun, with the reason for each that could not. */
  async start(starts: readonly RunStart[]): Promise<readonly (string | undefined)[]> {
    const { clock } = this.#options;
    const { lasting } = this.#options;
    const added = starts.map(
      (start) => new Running(start, { clock, above: start.startedByProgram ? lasting : this.#above }),
    );
    if (added.length > 0 && this.#all.size === 0) this.#options.busy?.(true);
    for (const running of added) {
      this.#all.set(running.id, running);
      this.#queue.push(running);
      // A run that is stopped in the queue has nothing else to end.
      running.onAbortInQueue(() => this.#leaveQueue(running));
    }
    const problems = await this.#fill();
    return added.map(({ id }) => problems.get(id));
  }

  /** Resolves when all, or any, of these have ended. Unknown ids count as ended. */
  async whenEnded(ids: readonly string[], how: "all" | "any"): Promise<void> {
    const ends = ids.map((id) => this.#all.get(id)?.ended.promise ?? this.#others.get(id) ?? Promise.resolve());
    await (how === "any" ? Promise.race(ends) : Promise.all(ends));
  }

  /** Stops all, and waits until they have ended. */
  async close(): Promise<void> {
    const all = [...this.#all.values()];
    for (const running of all) running.stop();
    await Promise.all([...all.map(({ ended }) => ended.promise), ...this.#others.values()]);
  }

  async #fill(): Promise<ReadonlyMap<string, string>> {
    const places = Math.max(0, this.#options.atOnce - this.#taken);
    const next = this.#queue.filter(({ signal }) => !signal.aborted).slice(0, places);
    for (const running of next) this.#queue.splice(this.#queue.indexOf(running), 1);
    this.#taken += next.length;
    const problems = new Map<string, string>();
    // The first one leads: it is sent before any work is done for those that wait for its answer.
    const [leader, ...followers] = next;
    if (leader) await this.#begin(leader, { problems, before: Promise.resolve() });
    let before = Promise.resolve();
    for (const running of followers) before = this.#begin(running, { problems, before });
    await before;
    return problems;
  }

  /** Opens it in parallel with the others and starts it after the one before it, so that they are sent in order. */
  async #begin(running: Running, { problems, before }: Beginning): Promise<void> {
    running.leaveQueue();
    const child = await this.#open(running);
    await before;
    if (typeof child === "string") {
      problems.set(running.id, child);
      this.#neverStarted(running, child);
    } else void this.#work(running, child);
  }

  /** Returns the reason if it could not be opened. */
  async #open(running: Running): Promise<OpenChild | string> {
    const { child, ready } = running.start;
    try {
      await ready;
      return await this.#options.host.open(child, this.#parentOf(running), running.signal);
    } catch (error) {
      return errorMessage(error);
    }
  }

  /** What one child has of this agent. */
  #parentOf(running: Running): ChildParent {
    const { ask, emit } = this.#options;
    const { plan, start } = running;
    const agent = plan.agentId ?? plan.task;
    let ticket: Ticket | undefined;
    return {
      emit: (event) => {
        emit(event, agent);
        const also = running.observe(event);
        if (also) emit(also, agent);
        this.#verify(running, event);
      },
      append: (entry) => this.#appended(running, entry),
      budget: start.budget,
      awaitTurn: async (signal) => {
        ticket = await start.admit?.(signal);
      },
      reportTurn: (state) => ticket?.[state](),
      ask:
        ask &&
        (async (question, signal) => {
          this.#waits(running, true);
          try {
            return await ask(question, signal);
          } finally {
            this.#waits(running, false);
          }
        }),
    };
  }

  #waits(running: Running, isWaiting: boolean): void {
    running.setWaiting(isWaiting);
    const { skipTranscript, task } = running.plan;
    if (skipTranscript) return;
    this.#options.table.step(task, isWaiting ? { type: "waits", reason: "permission" } : { type: "resumed" });
  }

  #appended(running: Running, entry: ChildEntry): void {
    if (entry.kind === "exchange_ended") {
      running.markOver();
      return;
    }
    const { task, agentId = task } = running.plan;
    const failed = (error: unknown): void =>
      this.#options.emit({ type: "observer_failed", taskId: task, reason: errorMessage(error) }, agentId);
    for (const observe of running.start.observers ?? [])
      try {
        // It may be an async function, whose rejection nobody else would catch.
        Promise.resolve(observe(entry.message)).catch(failed);
      } catch (error) {
        failed(error);
      }
  }

  /** Compares what the first request of a fork read with what it could have read. */
  #verify(running: Running, event: EventBody): void {
    const { expectation, alarm } = running.start;
    if (running.isChecked || event.type !== "turn_ended" || !expectation) return;
    running.isChecked = true;
    const { clock } = this.#options;
    const { task, agentId = task } = running.plan;
    const emit = (found: EventBody): void => this.#options.emit(found, agentId);
    const { usage, missed: diagnosed, ms } = event;
    const miss = findCacheMiss({
      expectation,
      diverged: running.child?.diverged,
      usage,
      askedAt: clock.now() - ms,
      diagnosed,
    });
    if (alarm) alarm.memberVerified(task, miss, emit);
    else if (miss) emit({ type: "fork_cache_missed", taskId: task, ...miss });
  }

  async #work(running: Running, child: OpenChild): Promise<void> {
    const { table, clock, emit, parent } = this.#options;
    const { plan } = running;
    const startedAt = clock.now();
    try {
      const session = child.session === undefined ? {} : { session: child.session };
      // Kept with the task until they are in its own journal, which ignores messages that it already has.
      for (const mail of table.find(plan.task)?.mail ?? []) child.steer(mail);
      if (!plan.skipTranscript) table.step(plan.task, { type: "started", ...session });
      const { task: taskId, runId, label, querySource, mode, skipTranscript } = plan;
      const about = { taskId, runId, parent, label, querySource, mode, skipTranscript };
      emit({ type: "fork_started", ...about, ...session, cacheKeyHash: child.cacheKeyHash });
      running.begin(child);
    } catch (error) {
      child.stop({ end: "failed", reason: errorMessage(error) });
    }
    const { end, report, ...result } = await child.result();
    const ended = { ...result, toolUses: running.toolUses, ms: clock.now() - startedAt };
    this.#end(running, { end, result: ended, ...(report ? { report } : {}) });
  }

  #leaveQueue(running: Running): void {
    const at = this.#queue.indexOf(running);
    if (at < 0) return;
    this.#queue.splice(at, 1);
    this.#taken += 1; // given back with its end
    this.#end(running, neverStarted("aborted", "stopped before its turn came"));
  }

  #neverStarted(running: Running, reason: string): void {
    this.#end(running, running.signal.aborted ? neverStarted("aborted", reason) : neverStarted("failed", reason));
  }

  #end(running: Running, outcome: Ended): void {
    const { table, clock, emit } = this.#options;
    const { plan } = running;
    const { end, result } = outcome;
    this.#all.delete(running.id); // it is too late to move it to the background: the waiting caller gets the outcome
    try {
      if (!plan.skipTranscript) {
        const step = { type: "ended", end, at: clock.now(), result } as const;
        table.step(plan.task, step, { notify: running.notifies });
      } else this.#options.spent(result);
    } catch (error) {
      // The row still says that it runs, so the next run of the session reports it as interrupted. Nothing is lost.
      emit({ type: "journal_troubled", problem: errorMessage(error) });
    }
    const { turns, usage, usd } = result;
    running.start.alarm?.memberLeft(plan.task);
    if (this.#all.size === 0) this.#options.busy?.(false);
    this.#taken -= 1;
    const reason = end === "reported" ? {} : { reason: oneLine(result.text, MOST_REASON) };
    emit({ type: "task_ended", taskId: plan.task, end, ...reason, turns, usage, usd }, plan.agentId ?? plan.task);
    running.ended.resolve(outcome);
    this.#tellEnd();
    void this.#fill();
  }

  #tellEnd(): void {
    const { resolve } = this.#next;
    this.#next = Promise.withResolvers<void>();
    resolve();
  }
}

type Beginning = { readonly problems: Map<string, string>; readonly before: Promise<void> };

const MOST_REASON = 300;

export const neverStarted = (end: TaskEnd, reason: string): Ended => ({
  end,
  result: {
    summary: "not started",
    text: `Not started: ${reason}`,
    usage: noUsage,
    usd: 0,
    turns: 0,
    toolUses: 0,
    ms: 0,
  },
});

export const errorMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Calls of a turn that starts agents and that take too long: they continue as tasks of their own. Such a call is answered
 *  by the constant that all siblings share, and its result is reported like a task's. */

export type MovedCallsOptions = {
  readonly table: TaskTable;
  readonly runs: Runs;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly emit: (event: EventBody, agent?: string) => void;
};

type Over = { readonly words: string; readonly end: "reported" | "failed" | "aborted"; readonly ms: number };

export class MovedCalls {
  readonly #options: MovedCallsOptions;
  readonly #stops = new Map<string, () => void>();
  readonly #stopped = new Set<string>();

  constructor(options: MovedCallsOptions) {
    this.#options = options;
  }

  /** Interrupts one; a no-op if there is none of this name. */
  stop(id: string): void {
    this.#stops.get(id)?.();
  }

  move({ callId, tool, result, stop }: MovedCall): readonly [ReturnType<typeof text>] {
    const { table, ids, clock, runs, emit } = this.#options;
    const id = ids.next("task");
    const startedAt = clock.now();
    const label = oneLine(`${tool} (${callId})`);
    const row = { id, kind: "call", label, agentType: tool, querySource: "main", family: id } as const;
    table.add({ ...row, state: { kind: "running" }, startedAt });
    const ended = result.then(
      ({ content, fault }) => {
        const words = content.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n");
        this.#ended(id, { words, end: fault === undefined ? "reported" : "failed", ms: clock.now() - startedAt });
      },
      (error: unknown) => this.#ended(id, { words: errorMessage(error), end: "failed", ms: clock.now() - startedAt }),
    );
    this.#stops.set(id, () => {
      this.#stopped.add(id);
      stop();
    });
    runs.accompany(id, ended);
    emit({ type: "task_backgrounded", taskId: id });
    return [text(FORK_PLACEHOLDER_RESULT)];
  }

  #ended(id: string, { words, ms, ...over }: Over): void {
    const { table, clock, emit } = this.#options;
    const end = this.#stopped.delete(id) ? "aborted" : over.end;
    this.#stops.delete(id);
    const spent = neverStarted(end, "").result;
    const result = { ...spent, summary: oneLine(words, 80), text: words, toolUses: 1, ms };
    try {
      table.step(id, { type: "ended", end, at: clock.now(), result });
    } catch (error) {
      emit({ type: "journal_troubled", problem: errorMessage(error) });
    }
    emit({ type: "task_ended", taskId: id, end, turns: 0, usage: result.usage, usd: 0 }, id);
  }
}
