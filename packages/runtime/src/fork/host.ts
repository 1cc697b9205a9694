/** Runs forks in this process: from the Agent call of a turn to the notification of their end.
 *  Invariant: the task owns the run: whoever started it may look away, and its end is told once; an abort goes downwards
 *  only; every child is closed, also after a failure.
 *  Elsewhere: what a child is made of (../session), its bytes and order (family.ts), states (../tasks). */

import { type Block, FORK_PLACEHOLDER_RESULT, type JsonObject, noUsage, promptTokens } from "@prefork/wire";
import { escapeTags, noteText, oneLine } from "../context/index.ts";
import type { EventBody, ExchangeEnd } from "../events.ts";
import {
  type ExchangeResult,
  type Lineage,
  type NextRequest,
  type Run,
  runExchange,
  type StartedFamily,
  type Tail,
} from "../loop/index.ts";
import type { Clock, Delegated, DelegatedCall, Ids } from "../ports.ts";
import {
  isEnded,
  stateWords,
  summaryOf,
  type Task,
  type TaskEnd,
  type TaskResult,
  type TaskTable,
} from "../tasks/index.ts";
import { type FamilyStart, growFamily } from "./family.ts";
import type { ForkGate } from "./gate.ts";
import { readReport } from "./report.ts";

/** A child that is composed and ready to run. */
export type Child = AsyncDisposable & {
  /** The session that keeps its own entries. */
  readonly session: string;
  readonly run: (signal: AbortSignal) => Run;
};

export type ChildStart = {
  readonly task: string;
  readonly label: string;
  readonly directive: string;
  /** The parent's, at the end of what is shared. */
  readonly line: Lineage;
  /** What only this child is told. */
  readonly words: readonly Block[];
  readonly first: NextRequest;
  readonly emit: (event: EventBody) => void;
};

export type ForkHostOptions = {
  readonly table: TaskTable;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly gate: () => ForkGate;
  readonly familyStart: (line: Lineage) => Pick<FamilyStart, "facts" | "ttl">;
  readonly openChild: (start: ChildStart) => Promise<Child>;
  readonly emit: (event: EventBody, agent?: string) => void;
  readonly mostAtOnce: number;
};

type Spawn = { readonly task: string; readonly label: string; readonly directive: string };

const FORK = { kind: "fork", agentType: "fork", querySource: "agent:builtin:fork" } as const;

const LABEL_CHARACTERS = 120;

const refused = (text: string): Delegated => ({ text, isError: true });

export class ForkHost {
  readonly #options: ForkHostOptions;
  readonly #stops = new Map<string, AbortController>();
  readonly #ends = new Map<string, Promise<void>>();
  /** Asked for by calls of the present turn. */
  #asked: Spawn[] = [];
  #signal: AbortSignal | undefined;

  constructor(options: ForkHostOptions) {
    this.#options = options;
  }

  /** An exchange begins: aborting this ends every fork that is started from now on. What a turn before it asked for and
   *  never came to start, because the journal failed under it, is told as aborted. */
  under(signal: AbortSignal): void {
    this.#signal = signal;
    for (const { task } of this.#asked.splice(0))
      this.#neverStarted(task, "the turn that asked for it did not come to its end");
  }

  /** The Agent tool: answered by the one constant, so that all siblings share its bytes. */
  readonly agent: DelegatedCall = async (args) => {
    const { description, prompt, subagent_type: type, isolation } = args;
    if (typeof description !== "string" || typeof prompt !== "string")
      return refused("Agent needs description and prompt.");
    if (isolation !== undefined) return refused("Worktrees are not available here; start the agent without isolation.");
    if (type !== undefined && type !== "fork")
      return refused(`There is no agent ${JSON.stringify(type)} here; leave subagent_type out to fork.`);
    const { table, ids, clock, mostAtOnce } = this.#options;
    const gate = this.#options.gate();
    if (!gate.allowed) return refused(`No fork was started: ${gate.reason}. Do the work yourself.`);
    const underWay = table.running.length;
    if (underWay >= mostAtOnce)
      return refused(`No fork was started: ${underWay} tasks are under way, and at most ${mostAtOnce} may be.`);
    const spawn = { task: ids.next("task"), label: oneLine(description, LABEL_CHARACTERS), directive: prompt };
    // Before the call is answered: after a crash a call that nobody came to start is told as interrupted, not forgotten.
    table.add({
      ...{ id: spawn.task, label: spawn.label, family: this.#asked[0]?.task ?? spawn.task, ...FORK },
      state: { kind: "queued" },
      startedAt: clock.now(),
    });
    this.#asked.push(spawn);
    return { text: FORK_PLACEHOLDER_RESULT };
  };

  /** What the calls of this turn asked for, once. */
  readonly family = (): StartedFamily | undefined => {
    const spawns = this.#asked;
    this.#asked = [];
    if (spawns.length === 0) return undefined;
    return { launch: (line, held) => this.#launch(spawns, { line, held }) };
  };

  readonly notices = (): Tail => {
    const { table } = this.#options;
    const notices = [...table.notices];
    return {
      blocks: notices.map(({ text }) => ({ type: "text", text })),
      also: table.delivering(notices),
      entered: () => {
        table.delivered(notices);
        for (const { id, task } of notices) this.#options.emit({ type: "notification_entered", id, taskId: task });
      },
    };
  };

  /** Waits until there is something to tell, or nobody is left who could. False: there is nothing. */
  async wake(signal: AbortSignal): Promise<boolean> {
    const { table } = this.#options;
    const { promise: aborted, resolve } = Promise.withResolvers<void>();
    const onAbort = (): void => resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    while (this.#stops.size > 0 && !signal.aborted && !mustHear(table)) {
      const ends = [...this.#stops.keys()].flatMap((id) => this.#ends.get(id) ?? []);
      await Promise.race([aborted, ...ends]);
    }
    signal.removeEventListener("abort", onAbort);
    return table.notices.length > 0 && !signal.aborted;
  }

  readonly taskOutput: DelegatedCall = async (args, { signal }) => {
    const { table } = this.#options;
    const ids = Array.isArray(args.task_ids) ? args.task_ids.filter((id) => typeof id === "string") : [];
    const unknown = ids.filter((id) => !table.find(id));
    if (unknown.length > 0) return refused(`There is no task ${unknown.join(", ")}.`);
    await this.#join(ids, args, signal);
    const tasks = ids.flatMap((id) => table.find(id) ?? []);
    for (const task of tasks) if (isEnded(task)) table.seen(task.id);
    return { text: tasks.map(taskText).join("\n\n") };
  };

  readonly taskStop: DelegatedCall = async ({ task_id: id }) => {
    const task = typeof id === "string" ? this.#options.table.find(id) : undefined;
    if (!task) return refused(`There is no task ${String(id)}.`);
    if (isEnded(task)) return { text: `${task.id} had ended before: ${stateWords(task)}.` };
    this.#stops.get(task.id)?.abort();
    await this.#ends.get(task.id);
    return { text: `${task.id} was ended.` };
  };

  /** Ends all, and waits until they have. */
  async close(): Promise<void> {
    for (const stop of this.#stops.values()) stop.abort();
    await Promise.all(this.#ends.values());
  }

  async #join(ids: readonly string[], { wait, timeout_ms: ms }: JsonObject, signal: AbortSignal): Promise<void> {
    if (wait !== "any" && wait !== "all") return;
    const ends = ids.map((id) => this.#ends.get(id) ?? Promise.resolve());
    const over = AbortSignal.any([signal, AbortSignal.timeout(typeof ms === "number" ? ms : 60_000)]);
    const timed = new Promise<void>((resolve) => over.addEventListener("abort", () => resolve(), { once: true }));
    if (over.aborted) return;
    await Promise.race([wait === "any" ? Promise.race(ends) : Promise.all(ends), timed]);
  }

  async #launch(
    spawns: readonly Spawn[],
    { line, held }: Pick<FamilyStart, "held"> & { readonly line: Lineage },
  ): Promise<string> {
    const { clock, familyStart, emit } = this.#options;
    const family = growFamily({
      shared: line.state,
      held,
      directives: spawns.map(({ directive }) => directive),
      now: clock.now(),
      ...familyStart(line),
    });
    const name = spawns[0]?.task ?? "";
    emit({ type: "family_launched", family: name, forks: spawns.length, reason: family.reason });
    const words = (at: number): readonly Block[] => family.children[at] ?? [];
    const opened = await Promise.all(
      spawns.map((spawn, at) => this.#open({ ...spawn, line, words: words(at), first: family.fork })),
    );
    // In the order of the calls, however long each took to open: the first one leads.
    opened.forEach((one, at) => {
      const spawn = spawns[at];
      if (!spawn) return;
      if (typeof one === "string") this.#neverStarted(spawn.task, one);
      else this.#start(spawn, one, { line, expected: family.inheritable(at) });
    });
    line.plan(family.parent);
    return startedText(
      spawns,
      opened.map((one) => (typeof one === "string" ? one : undefined)),
    );
  }

  /** Gives why it could not be opened, if so. */
  async #open(start: Omit<ChildStart, "emit">): Promise<OpenedChild | string> {
    const { openChild, emit } = this.#options;
    const uses = { count: 0 };
    const tell = (event: EventBody): void => {
      if (event.type === "call_started") uses.count += 1;
      emit(event, start.task);
    };
    try {
      return { child: await openChild({ ...start, emit: tell }), uses };
    } catch (error) {
      return reasonOf(error);
    }
  }

  #start(
    { task, label }: Spawn,
    { child, uses }: OpenedChild,
    { line, expected }: { readonly line: Lineage; readonly expected: number },
  ): void {
    const { table, emit } = this.#options;
    const stop = new AbortController();
    const signal = this.#signal ? AbortSignal.any([stop.signal, this.#signal]) : stop.signal;
    table.step(task, { type: "started", session: child.session });
    emit({ type: "fork_started", taskId: task, label, session: child.session, cacheKeyHash: line.prefix.hash });
    this.#stops.set(task, stop);
    this.#ends.set(task, this.#finish(task, child, { signal, uses, expected }));
  }

  #neverStarted(task: string, reason: string): void {
    const nothing = { usage: noUsage, usd: 0, turns: 0, toolUses: 0, ms: 0 };
    this.#end(task, { end: "failed", result: { summary: "not started", text: `Not started: ${reason}`, ...nothing } });
  }

  async #finish(task: string, child: Child, { signal, uses, expected }: Finishing): Promise<void> {
    const { clock } = this.#options;
    const begun = clock.now();
    let result: ExchangeResult;
    try {
      const run = child.run(signal);
      const first = { isChecked: false };
      result = await runExchange({ ...run, emit: (event) => verify(event, { run, task, expected, first }) }, signal);
    } catch (error) {
      result = { end: "provider-failed", reason: reasonOf(error), text: "", turns: 0, usage: noUsage, usd: 0 };
    } finally {
      await Promise.resolve(child[Symbol.asyncDispose]()).catch(() => undefined);
    }
    const { turns, usage, usd } = result;
    const end = endOf(result.end);
    this.#stops.delete(task);
    const summary = summaryOf(result.text, end);
    const spent = { usage, usd, turns, toolUses: uses.count, ms: clock.now() - begun };
    this.#end(task, { end, result: { summary, text: reportText(result, end), ...spent } });
    this.#ends.delete(task);
  }

  #end(task: string, { end, result }: { readonly end: TaskEnd; readonly result: TaskResult }): void {
    const { table, clock, emit } = this.#options;
    try {
      table.step(task, { type: "ended", end, at: clock.now(), result });
    } catch (error) {
      // Kept as running: the next life of the session tells it as interrupted, so nothing is lost.
      emit({ type: "journal_troubled", problem: reasonOf(error) });
    }
    const { turns, usage, usd } = result;
    emit({ type: "task_ended", taskId: task, end, turns, usage, usd }, task);
  }
}

type Finishing = {
  readonly signal: AbortSignal;
  readonly uses: { readonly count: number };
  readonly expected: number;
};

type OpenedChild = { readonly child: Child; readonly uses: { readonly count: number } };

type Verifying = {
  readonly run: Run;
  readonly task: string;
  readonly expected: number;
  readonly first: { isChecked: boolean };
};

/** The first request of a fork is held against what it could have read. */
const verify = (event: EventBody, { run, task, expected, first }: Verifying): void => {
  run.emit(event);
  if (event.type !== "turn_ended" || first.isChecked) return;
  first.isChecked = true;
  const { usage } = event;
  if (usage.read < expected / 2)
    run.emit({ type: "fork_cache_missed", taskId: task, expected, read: usage.read, prompt: promptTokens(usage) });
};

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** One that failed is heard of at once; what went well waits for its siblings. */
const mustHear = (table: TaskTable): boolean =>
  table.notices.some(({ task: id }) => {
    const task = table.find(id);
    return task?.state.kind === "ended" && task.state.end !== "reported";
  });

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

const reportText = ({ text, reason }: ExchangeResult, end: TaskEnd): string => {
  if (end !== "reported")
    return [`Ended as ${end}: ${reason}`, ...(text === "" ? [] : [`What it had said:\n${text}`])].join("\n");
  const read = readReport(text);
  return read.kind === "report" ? text : `${text}\n\n[${read.note}]`;
};

const taskText = (task: Task): string => {
  const head = `${task.id} (${task.label}): ${stateWords(task)}`;
  return task.result ? `${head}\n${task.result.text}` : head;
};

/** What only the parent is told: which task is which call. */
const startedText = (spawns: readonly Spawn[], problems: readonly (string | undefined)[]): string => {
  const lines = spawns.map(({ task, label }, at) => {
    const problem = problems[at];
    const state = problem === undefined ? "async_launched" : `not started: ${oneLine(problem)}`;
    return escapeTags(`- ${task}: ${label} (${state})`);
  });
  const words = [
    "You are the main agent. Your Agent calls were started in the background, in this order:",
    ...lines,
    "Each reports by a task notification; do not guess what it finds, and do not do its part yourself.",
  ];
  return noteText({ kind: "tasks", text: words.join("\n") });
};
