/** Everything that an agent has started and that runs beside it: started in order, a bounded number at once, ended once.
 *  Invariant: the task owns the run: whoever started it may look away, and its end is told once; an abort goes downwards
 *  only; every child is closed, also after a failure; what waits for a place is not lost.
 *  Elsewhere: one of them (running.ts), who asks for them (host.ts), states and notices (../tasks). */

import { addUsage, noUsage } from "@prefork/wire";
import { CUT_AGAIN, type ExchangeResult, type Run, runExchange } from "../agent/index.ts";
import { oneLine } from "../context/index.ts";
import type { EventBody, ExchangeEnd } from "../events.ts";
import { cacheKeyHash, MOST_TURNS, missOf } from "../fork/index.ts";
import type { Clock } from "../ports.ts";
import { summarizeReport, type TaskEnd, type TaskResult, type TaskTable } from "../tasks/index.ts";
import { readReport } from "./report.ts";
import { type Child, type Ended, Running, type RunStart } from "./running.ts";

export type RunsOptions = {
  readonly table: TaskTable;
  readonly clock: Clock;
  /** `agent`: who it happened to; default: the main agent. */
  readonly emit: (event: EventBody, agent?: string) => void;
  /** Further ones wait for a place. */
  readonly atOnce: number;
  /** The agent that starts them. */
  readonly parent: string;
  /** What a run took that leaves no journal of its own. */
  readonly spent: (result: TaskResult) => void;
  /** Told when the first begins and when the last has ended. */
  readonly busy?: (isBusy: boolean) => void;
  /** Aborting this ends all, whoever started them. */
  readonly lasting?: AbortSignal;
};

export class Runs {
  readonly #options: RunsOptions;
  readonly #all = new Map<string, Running>();
  readonly #queue: Running[] = [];
  /** Work of other kinds that is waited for with them. */
  readonly #others = new Map<string, Promise<unknown>>();
  #taken = 0;
  #next = Promise.withResolvers<void>();
  #above: AbortSignal | undefined;

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  /** Aborting this ends everything that is started from now on. */
  under(signal: AbortSignal | undefined): void {
    this.#above = signal;
  }

  /** How many of these could begin now. */
  get places(): number {
    return Math.max(0, this.#options.atOnce - this.#taken - this.#queue.length);
  }

  get ids(): readonly string[] {
    return [...this.#all.keys()];
  }
  /** Those whose end the parent's model has to hear of. */
  get told(): readonly string[] {
    const runs = [...this.#all.values()].filter(({ notifies }) => notifies).map(({ id }) => id);
    return [...runs, ...this.#others.keys()];
  }

  /** Is there any of these? */
  get tells(): boolean {
    if (this.#others.size > 0) return true;
    for (const { notifies } of this.#all.values()) if (notifies) return true;
    return false;
  }
  /** Resolves when the next of them ends, whichever it is. */
  get nextEnd(): Promise<void> {
    return this.#next.promise;
  }

  /** Something else that ends as a task does. */
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

  /** Starts these in their order. Resolves once all that found a place have begun, with the reason for each that could
   *  not. */
  async start(starts: readonly RunStart[]): Promise<readonly (string | undefined)[]> {
    const { clock } = this.#options;
    const { lasting } = this.#options;
    const added = starts.map((start) => new Running(start, { clock, above: start.isPrograms ? lasting : this.#above }));
    if (added.length > 0 && this.#all.size === 0) this.#options.busy?.(true);
    for (const running of added) {
      this.#all.set(running.id, running);
      this.#queue.push(running);
      // One that waits for a place when it is stopped has nothing to end but itself.
      running.waitsWith(() => this.#leaveQueue(running));
    }
    const problems = await this.#fill();
    return added.map(({ id }) => problems.get(id));
  }

  /** Resolves when all, or any, of these have ended; at once for those that are not here. */
  async ended(ids: readonly string[], how: "all" | "any"): Promise<void> {
    const ends = ids.map((id) => this.#all.get(id)?.ended.promise ?? this.#others.get(id) ?? Promise.resolve());
    await (how === "any" ? Promise.race(ends) : Promise.all(ends));
  }

  /** Ends all, and waits until they have. */
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
    // The first one leads: it is on its way before anything is done for those that wait for its answer.
    const [leader, ...followers] = next;
    if (leader) await this.#begin(leader, { problems, before: Promise.resolve() });
    let before = Promise.resolve();
    for (const running of followers) before = this.#begin(running, { problems, before });
    await before;
    return problems;
  }

  /** Opens it beside the others, and starts it after the one before it: they are sent in the order they were asked for. */
  async #begin(running: Running, { problems, before }: Beginning): Promise<void> {
    running.hasPlace();
    const child = await this.#open(running);
    await before;
    if (typeof child === "string") {
      problems.set(running.id, child);
      this.#neverStarted(running, child);
    } else void this.#work(running, child);
  }

  /** Gives why it could not be opened, if so. */
  async #open(running: Running): Promise<Child | string> {
    const { table, emit } = this.#options;
    const { plan, open } = running.start;
    const agent = plan.agentId ?? plan.task;
    try {
      return await open({
        signal: running.signal,
        emit: (event) => {
          emit(event, agent);
          const also = running.noticed(event);
          if (also) emit(also, agent);
        },
        entered: (message) => {
          const failed = (error: unknown): void =>
            emit({ type: "observer_failed", taskId: plan.task, reason: reasonOf(error) }, agent);
          for (const observe of running.start.observers ?? [])
            try {
              // It may be an async function: what it rejects with is nobody else's to catch.
              Promise.resolve(observe(message)).catch(failed);
            } catch (error) {
              failed(error);
            }
        },
        waits: (isWaiting) => {
          running.waits(isWaiting);
          if (!plan.skipTranscript)
            table.step(plan.task, isWaiting ? { type: "waits", reason: "permission" } : { type: "resumed" });
        },
      });
    } catch (error) {
      return reasonOf(error);
    }
  }

  async #work(running: Running, child: Child): Promise<void> {
    const { table, clock, emit, parent } = this.#options;
    const { plan } = running.start;
    const begun = clock.now();
    let result: ExchangeResult;
    try {
      const session = child.session === undefined ? {} : { session: child.session };
      // Kept with the task until they are in its own journal, which knows what it was given before.
      for (const mail of table.find(plan.task)?.mail ?? []) child.steer(mail);
      if (!plan.skipTranscript) table.step(plan.task, { type: "started", ...session });
      const { task: taskId, runId, label, querySource, mode, skipTranscript } = plan;
      const hash = cacheKeyHash({
        ...child.line.state,
        prefix: running.start.expectation?.parent ?? child.line.prefix,
      });
      const about = { taskId, runId, parent, label, querySource, mode, skipTranscript };
      emit({ type: "fork_started", ...about, ...session, cacheKeyHash: hash });
      running.begin(child);
      result = await untilDone(running, child);
    } catch (error) {
      result = { ...NOTHING, end: "provider-failed", reason: reasonOf(error) };
    }
    running.over();
    const outcome = await this.#outcome(running, child, { result, ms: clock.now() - begun });
    await Promise.resolve(child[Symbol.asyncDispose]()).catch((error: unknown) =>
      emit({ type: "journal_troubled", problem: reasonOf(error) }),
    );
    this.#end(running, outcome);
  }

  async #outcome(running: Running, child: Child, { result, ms }: Worked): Promise<Ended> {
    const { turns, usage, usd } = result;
    const audited = await child.audit?.();
    const ended = running.ending && result.end === "aborted" ? running.ending.end : endOf(result.end);
    const end = audited?.breach === undefined ? ended : "failed";
    const why = (result.end === "aborted" ? running.ending?.reason : undefined) ?? result.reason;
    const reason = audited?.breach ?? why;
    const spent = { usage, usd, turns, toolUses: running.toolUses, ms };
    const summary = summarizeReport(result.text, end);
    const cut = result.reason === CUT_AGAIN.reason ? [CUT_AGAIN.reason] : [];
    const kept = [...(audited?.notes ?? []), ...(await child.settle(end, result.text))];
    if (end !== "reported")
      return {
        end,
        result: { summary, text: withNotes(unfinishedText(result.text, { end, reason }), kept), ...spent },
      };
    if (running.start.plan.protocol === "none" || running.start.plan.agentType !== "fork")
      return { end, result: { summary, text: withNotes(result.text, [...cut, ...kept]), ...spent } };
    const read = readReport(result.text);
    const form = read.kind === "text" ? [read.note] : [];
    const claims = await child.check(read.kind === "report" ? read.report : undefined, read.text);
    const text = withNotes(result.text, [...cut, ...form, ...claims, ...kept]);
    return { end, result: { summary, text, ...spent }, ...(read.kind === "report" ? { report: read.report } : {}) };
  }

  #leaveQueue(running: Running): void {
    const at = this.#queue.indexOf(running);
    if (at < 0) return;
    this.#queue.splice(at, 1);
    this.#taken += 1; // given back with its end
    this.#end(running, notRun("aborted", "stopped before its turn came"));
  }

  #neverStarted(running: Running, reason: string): void {
    this.#end(running, running.signal.aborted ? notRun("aborted", reason) : notRun("failed", reason));
  }

  #end(running: Running, outcome: Ended): void {
    const { table, clock, emit } = this.#options;
    const { plan } = running.start;
    const { end, result } = outcome;
    this.#all.delete(running.id); // it is too late to look away now: whoever waits gets the outcome
    try {
      if (!plan.skipTranscript) {
        const step = { type: "ended", end, at: clock.now(), result } as const;
        table.step(plan.task, step, { notify: running.notifies });
      } else this.#options.spent(result);
    } catch (error) {
      // Kept as running: the next life of the session tells it as interrupted, so nothing is lost.
      emit({ type: "journal_troubled", problem: reasonOf(error) });
    }
    const { turns, usage, usd } = result;
    running.start.alarm?.left(plan.task);
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

/** A message that came while its last turn was under way is still answered. */
const untilDone = async (running: Running, child: Child): Promise<ExchangeResult> => {
  const { signal, start } = running;
  const { turns: most = MOST_TURNS } = start.plan.limits;
  const once = (maxTurns: number): Promise<ExchangeResult> => {
    const run = child.run({ maxTurns }, signal);
    return runExchange({ ...run, emit: verifying(running, run) }, signal);
  };
  let result = await once(most);
  while (result.end === "done" && (child.goOn() || (await reconsiders(child)))) {
    const next = await once(Math.max(0, most - result.turns));
    result = {
      ...next,
      text: next.text === "" ? result.text : next.text,
      turns: result.turns + next.turns,
      usage: addUsage(result.usage, next.usage),
      usd: result.usd + next.usd,
    };
  }
  return result;
};

/** What it has to hear then is entered as any other message is, and so is what came meanwhile. */
const reconsiders = async (child: Child): Promise<boolean> => {
  await child.reconsider?.();
  return child.goOn();
};

const withNotes = (text: string, notes: readonly string[]): string =>
  [text, ...notes.map((note) => `[${note}]`)].join("\n\n");

type Beginning = { readonly problems: Map<string, string>; readonly before: Promise<void> };
type Worked = { readonly result: ExchangeResult; readonly ms: number };

const MOST_REASON = 300;

const NOTHING = { text: "", turns: 0, usage: noUsage, usd: 0 } as const;

export const notRun = (end: TaskEnd, reason: string): Ended => ({
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

/** The first request of a fork is held against what it could have read. */
const verifying = (running: Running, run: Run): Run["emit"] => {
  const { expectation, plan, alarm } = running.start;
  return (event) => {
    run.emit(event);
    if (running.isChecked || event.type !== "turn_ended" || !expectation) return;
    running.isChecked = true;
    const { usage, missed } = event;
    const child = run.line.state.asked ?? run.line.prefix;
    const { askedAt } = run.line.state;
    const miss = missOf({ expectation, child, usage, askedAt, diagnosed: missed });
    if (alarm) alarm.checked(plan.task, miss, run.emit);
    else if (miss) run.emit({ type: "fork_cache_missed", taskId: plan.task, ...miss });
  };
};

export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const endOf = (end: ExchangeEnd): TaskEnd => {
  switch (end) {
    case "done":
      return "reported";
    case "aborted":
      return "aborted";
    case "max-turns":
      return "out-of-turns";
    case "over-budget":
      return "over-budget";
    case "out-of-time":
      return "timed-out";
    case "refused":
    case "context-full":
    case "provider-failed":
    case "journal-failed":
      return "failed";
  }
};

const unfinishedText = (said: string, { end, reason }: { readonly end: TaskEnd; readonly reason: string }): string =>
  [`Ended as ${end}: ${reason}`, ...(said === "" ? [] : [`What it had said:\n${said}`])].join("\n");
