/** Runs forks in this process: from the Agent call of a turn to the notification of their end.
 *  Invariant: the task owns the run: whoever started it may look away, and its end is told once; an abort goes downwards
 *  only; every child is closed, also after a failure.
 *  Elsewhere: what a child is made of (../session), its bytes and order (family.ts), states (../tasks). */

import { FORK_PLACEHOLDER_RESULT, type JsonObject, noUsage, promptTokens } from "@prefork/wire";
import type { EventBody, ExchangeEnd } from "../events.ts";
import {
  type ExchangeResult,
  type Lineage,
  type Run,
  runExchange,
  type StartedFamily,
  type Tail,
} from "../loop/index.ts";
import type { Clock, Delegated, DelegatedCall, Ids } from "../ports.ts";
import { isEnded, stateWords, summaryOf, type Task, type TaskEnd, type TaskTable } from "../tasks/index.ts";
import { type FamilyStart, type GrownFamily, growFamily } from "./family.ts";
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
  readonly line: Lineage;
  readonly family: GrownFamily;
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

  /** Aborting this ends every fork that is started from now on. */
  under(signal: AbortSignal): void {
    this.#signal = signal;
  }

  /** The Agent tool: answered by the one constant, so that all siblings share its bytes. */
  readonly agent: DelegatedCall = async (args) => {
    const { description, prompt, subagent_type: type, isolation } = args;
    if (typeof description !== "string" || typeof prompt !== "string")
      return refused("Agent needs description and prompt.");
    if (isolation !== undefined) return refused("Worktrees are not available here; start the agent without isolation.");
    if (type !== undefined && type !== "fork")
      return refused(`There is no agent ${JSON.stringify(type)} here; leave subagent_type out to fork.`);
    const gate = this.#options.gate();
    if (!gate.allowed) return refused(`No fork was started: ${gate.reason}. Do the work yourself.`);
    const underWay = this.#options.table.running.length + this.#asked.length;
    if (underWay >= this.#options.mostAtOnce)
      return refused(
        `No fork was started: ${underWay} tasks are under way, and at most ${this.#options.mostAtOnce} may be.`,
      );
    this.#asked.push({ task: this.#options.ids.next("task"), label: description, directive: prompt });
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
    const opened = await Promise.all(spawns.map((spawn) => this.#open(spawn, { line, family })));
    // In the order of the calls, however long each took to open: the first one leads.
    opened.forEach((one, at) => {
      const spawn = spawns[at];
      if (spawn && typeof one !== "string") this.#start(spawn, one, { line, family, name });
    });
    line.plan(family.parent);
    return startedText(
      spawns,
      opened.map((one) => (typeof one === "string" ? one : undefined)),
    );
  }

  /** Gives why it could not be opened, if so. */
  async #open(
    { task, label, directive }: Spawn,
    { line, family }: { readonly line: Lineage; readonly family: GrownFamily },
  ): Promise<OpenedChild | string> {
    const { openChild, emit } = this.#options;
    const uses = { count: 0 };
    const tell = (event: EventBody): void => {
      if (event.type === "call_started") uses.count += 1;
      emit(event, label);
    };
    try {
      return { child: await openChild({ task, label, directive, line, family, emit: tell }), uses };
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  #start(
    spawn: Spawn,
    { child, uses }: OpenedChild,
    { line, family, name }: { readonly line: Lineage; readonly family: GrownFamily; readonly name: string },
  ): void {
    const { table, clock, emit } = this.#options;
    const { task, label } = spawn;
    const stop = new AbortController();
    const signal = this.#signal ? AbortSignal.any([stop.signal, this.#signal]) : stop.signal;
    const facts = { kind: "fork", agentType: "fork", querySource: "agent:builtin:fork" } as const;
    table.add({
      ...{ id: task, label, family: name, session: child.session, ...facts },
      state: { kind: "queued" },
      startedAt: clock.now(),
    });
    table.step(task, { type: "started" });
    emit({ type: "fork_started", taskId: task, label, session: child.session, cacheKeyHash: line.prefix.hash });
    this.#stops.set(task, stop);
    this.#ends.set(task, this.#finish(spawn, child, { signal, uses, family }));
  }

  async #finish(
    { task, label }: Spawn,
    child: Child,
    {
      signal,
      uses,
      family,
    }: { readonly signal: AbortSignal; readonly uses: { readonly count: number }; readonly family: GrownFamily },
  ): Promise<void> {
    const { table, clock, emit } = this.#options;
    const begun = clock.now();
    const first = { isChecked: false };
    let result: ExchangeResult;
    try {
      const run = child.run(signal);
      const watched: Run = { ...run, emit: (event) => this.#verify(event, { run, task, label, family, first }) };
      result = await runExchange(watched, signal);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      result = { end: "provider-failed", reason, text: "", turns: 0, usage: noUsage, usd: 0 };
    } finally {
      await Promise.resolve(child[Symbol.asyncDispose]()).catch(() => undefined);
    }
    const end = endOf(result.end);
    this.#stops.delete(task);
    try {
      table.step(task, {
        type: "ended",
        end,
        at: clock.now(),
        result: {
          summary: summaryOf(result.text, end),
          text: reportText(result, end),
          usage: result.usage,
          usd: result.usd,
          turns: result.turns,
          toolUses: uses.count,
          ms: clock.now() - begun,
        },
      });
    } catch (error) {
      // Kept as running: the next life of the session tells it as interrupted, so nothing is lost.
      emit({ type: "journal_troubled", problem: error instanceof Error ? error.message : String(error) });
    }
    emit({ type: "task_ended", taskId: task, end, turns: result.turns, usage: result.usage, usd: result.usd }, label);
  }

  /** The first request of a fork is held against what it could have read. */
  #verify(event: EventBody, { run, task, family, first }: Verifying): void {
    run.emit(event);
    if (event.type !== "turn_ended" || first.isChecked) return;
    first.isChecked = true;
    const read = event.usage.read;
    const { inheritable: expected } = family;
    const ratio = expected === 0 ? 1 : read / expected;
    if (ratio < 0.5)
      run.emit({ type: "fork_cache_missed", taskId: task, expected, read, prompt: promptTokens(event.usage) });
  }
}

type OpenedChild = { readonly child: Child; readonly uses: { readonly count: number } };

type Verifying = {
  readonly run: Run;
  readonly task: string;
  readonly label: string;
  readonly family: GrownFamily;
  readonly first: { isChecked: boolean };
};

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
  const lines = spawns.map(({ task, label }, at) =>
    problems[at] === undefined ? `- ${task}: ${label} (async_launched)` : `- ${label}: not started, ${problems[at]}`,
  );
  return `<note kind="tasks">You are the main agent. Your Agent calls were started in the background, in this order:\n${lines.join("\n")}\nEach reports by a task notification; do not guess what it finds, and do not do its part yourself.</note>`;
};
