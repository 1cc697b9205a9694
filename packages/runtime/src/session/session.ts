/** A conversation with an agent that works: prompts in, events and results out, everything kept.
 *  One exchange runs at a time. Sessions share nothing. Whatever ends an exchange, the journal says so and the next
 *  prompt can follow.
 *  Elsewhere: opening a session (open.ts), the agent and its turns (../agent). */

import type { Mode } from "@prefork/guard";
import { InputError, noUsage } from "@prefork/wire";
import type { MergeOutcome, UndoResult, Worktrees } from "@prefork/worktrees";
import {
  type Agent,
  type AgentRun,
  type CompactionResult,
  type Engines,
  type ExchangeResult,
  runExchange,
  spentSince,
  type TurnLimits,
} from "../agent/index.ts";
import { type ForkHandle, type MergeBackOptions, mergeBack } from "../children/index.ts";
import type { Prompt } from "../context/index.ts";
import type { Todo } from "../events.ts";
import type { Extensions } from "../extensions/index.ts";
import type { CacheSafeParams, ForkOptions, StoredPrefixes } from "../fork/index.ts";
import { JournalError, type JournalWriter } from "../journal/index.ts";
import type { RewindOptions, RewindResult, SessionControl, Spent, TreeNode } from "../ports.ts";
import type { Questions, Task } from "../tasks/index.ts";
import type { Background } from "./background.ts";
import { createControl, type RunningExchange } from "./control.ts";
import type { EventHub, EventReader } from "./event-hub.ts";
import { Exchange, endsExchange } from "./event-hub.ts";
import { checkExchangeLimits, type ResolvedOptions, type SessionLimits } from "./options.ts";
import { type RewindParts, rewindSession, treeOf } from "./rewind.ts";
import { createSetup, type SessionSetup } from "./setup.ts";

/** What a session is composed of, in open.ts. */
export type SessionParts = Pick<
  Background,
  "launcher" | "runs" | "table" | "slot" | "keepAlive" | "isolated" | "inbox" | "taskTools"
> & {
  readonly questions: Questions | undefined;
  readonly options: ResolvedOptions;
  readonly agent: Agent;
  readonly journal: JournalWriter;
  readonly engines: Engines;
  readonly stored: Pick<StoredPrefixes, "close" | "releaseEnded">;
  readonly hub: EventHub;
  readonly extensions: Extensions;
  readonly rewinding: RewindParts;
};

export type PromptOptions = {
  readonly signal?: AbortSignal; // ends this exchange only
  readonly limits?: Pick<SessionLimits, "maxTurns" | "ms">; // default: the session's
  /** "leave": the exchange ends when the model is done, whatever still runs; the session then continues by itself when it is
   *  notified. Default: wait, until everything that it started has reported. */
  readonly tasks?: "wait" | "leave";
};

export class Session implements AsyncDisposable {
  readonly id: string;
  readonly model: string;
  readonly engine: string;
  /** Rules, conventions and tool servers that apply to it. */
  readonly setup: SessionSetup;
  readonly #parts: SessionParts;
  #running: Promise<unknown> | undefined;
  #closed: Promise<void> | undefined;
  readonly #closing = new AbortController();
  #isWatching = false;
  /** The exchange that a task's notice started. */
  #selfStarted: Promise<unknown> | undefined;
  #exchanging: RunningExchange | undefined;

  /** Use `createSession` or `resumeSession`. */
  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.id = parts.journal.id;
    this.model = parts.agent.line.state.head.model;
    this.engine = parts.options.engine.name;
    this.setup = createSetup(parts);
  }

  get mode(): Mode {
    return this.#parts.agent.guard.mode;
  }
  get spent(): Spent {
    return this.#parts.agent.account.spent;
  }
  /** What was started in the background. */
  get tasks(): readonly Task[] {
    return this.#parts.table.all;
  }
  get todos(): readonly Todo[] {
    return this.#parts.agent.world.todos;
  }

  /** Takes effect with the next call; the model is told at the next boundary. */
  setMode(mode: Mode): void {
    const { agent, hub } = this.#parts;
    const { guard } = agent;
    const from = guard.mode;
    if (from === mode) return;
    guard.setMode(mode);
    hub.emit({ type: "mode_changed", from, to: mode });
  }

  /** All events from now on. */
  events(): EventReader {
    return this.#parts.hub.read();
  }

  /** For attached clients: a terminal, another process, a page. Any number may attach. */
  control(): SessionControl {
    return createControl(
      {
        id: this.id,
        prompt: async (prompt, options) => this.prompt(prompt, options).result(),
        stopTask: (taskId) => this.stopTask(taskId),
        tree: () => this.tree(),
        rewind: (options) => this.rewind(options),
        running: () => this.#exchanging,
      },
      this.#parts,
    );
  }

  prompt(prompt: Prompt, options: PromptOptions = {}): Exchange {
    const before = this.#mustBeFree();
    if (typeof prompt === "string" && prompt.trim() === "") throw new InputError("the prompt is empty");
    checkExchangeLimits(options.limits ?? {});
    let isOwn = before === undefined;
    void before?.then(() => {
      isOwn = true;
    });
    const events = this.#parts.hub.read({ isLast: endsExchange, accepts: () => isOwn });
    const stop = new AbortController();
    const result = this.#runExclusively(async (done) => {
      await before;
      this.#markRunning(stop, result);
      return this.#exchange(prompt, { ...options, stop: stop.signal, done });
    });
    if (!before) this.#markRunning(stop, result);
    return new Exchange(events, result, (reason) => stop.abort(reason));
  }

  /** What a fork would inherit now: the conversation after its last answer. */
  get snapshot(): CacheSafeParams | undefined {
    return this.#parts.slot.get();
  }

  /** A child that knows this conversation, works in parallel and shares its cache. The conversation is not told about it
   *  unless it is moved to the background. */
  fork(options: ForkOptions): ForkHandle {
    this.#mustBeOpen();
    return this.#parts.launcher.fork(options);
  }

  /** The worktrees of the repository that this session works in. */
  worktrees(): Promise<Worktrees> {
    return this.#parts.isolated.open();
  }

  /** Merges the work of children in worktrees into the checkout, one after another. */
  async merge(tasks: readonly string[], options: MergeBackOptions = {}): Promise<readonly MergeOutcome[]> {
    this.#mustBeOpen();
    const { launcher, runs } = this.#parts;
    return mergeBack(await this.worktrees(), tasks, { ...options, waking: { host: launcher, runs } });
  }

  /** Undoes the last `which` merges, or all merges of the last command (`"group"`). */
  async undoMerge(which: number | "group" = 1): Promise<readonly UndoResult[]> {
    return (await this.worktrees()).undo(which);
  }

  /** Children that share everything but their last block. They are started together, in the cheapest order. */
  forkAll(list: readonly ForkOptions[]): readonly ForkHandle[] {
    this.#mustBeOpen();
    return this.#parts.launcher.forkAll(list);
  }

  /** Stops waiting for this task, or for all tasks; the task keeps running. The conversation is notified when it ends. */
  background(taskId?: string): void {
    this.#parts.launcher.background(taskId);
  }

  /** Stops a task. What it has done so far is kept. */
  async stopTask(taskId: string): Promise<Task> {
    this.#mustHave(taskId);
    await this.#parts.launcher.stop(taskId);
    return this.#mustHave(taskId);
  }

  /** Resumes a task that has ended, from its journal, and resolves when it has ended again. */
  async resumeTask(
    taskId: string,
    how: Pick<ForkOptions, "filter"> & { readonly message?: string } = {},
  ): Promise<Task> {
    this.#mustBeOpen();
    const { launcher, runs } = this.#parts;
    this.#mustHave(taskId);
    const problem = await launcher.resume(taskId, { ...how, by: "user" });
    if (problem !== undefined) throw new InputError(`${taskId} cannot be resumed: ${problem}`);
    await runs.whenEnded([taskId], "all");
    return this.#mustHave(taskId);
  }

  /** Compacts the conversation now. */
  async compact(focus?: string, { signal }: Pick<PromptOptions, "signal"> = {}): Promise<CompactionResult> {
    const before = this.#mustBeFree();
    const stop = signal ? AbortSignal.any([this.#closing.signal, signal]) : this.#closing.signal;
    return this.#runExclusively(async () => {
      await before;
      return this.#parts.agent.compactNow(stop, focus);
    });
  }

  /** The points at which this session can be continued, oldest first. */
  tree(): readonly TreeNode[] {
    this.#mustBeOpen();
    return treeOf(this.#parts.rewinding).nodes;
  }

  /** Goes back to a node of the tree, or forward to one that was left. Nothing is lost: what is left stays in the tree.
   *  The next request sends the bytes that were sent up to that point, so it reads them from the cache while the entry
   *  lives. Running forks are not affected. Rejects while an exchange runs. */
  async rewind(options: RewindOptions): Promise<RewindResult> {
    this.#mustBeOpen();
    if (this.#running !== undefined)
      throw new InputError("an exchange is running; wait for its end or stop it, then rewind");
    return this.#runExclusively(() => rewindSession(this.#parts.rewinding, options));
  }

  /** While it is idle it continues by itself when a task has ended, as after a prompt with `tasks: "leave"`. */
  continueWithTasks(): void {
    this.#mustBeOpen();
    this.#watchTasks().catch((error: unknown) =>
      this.#parts.hub.emit({
        type: "journal_troubled",
        problem: error instanceof Error ? error.message : String(error),
      }),
    );
  }

  /** Stops what runs and releases everything. A second call is a no-op. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const { agent, engines, hub, runs, journal, extensions, stored } = this.#parts;
    this.#closing.abort();
    const files = this.#parts.rewinding.files.close();
    await this.#running;
    await files;
    await runs.close();
    await stored.close();
    try {
      await agent[Symbol.asyncDispose]();
    } finally {
      engines.close();
      await extensions.close(this.id);
      hub.close();
      await journal.close();
    }
  }

  #mustBeOpen(): void {
    if (this.#closing.signal.aborted) throw new InputError("the session is closed");
  }

  #mustHave(taskId: string): Task {
    const task = this.#parts.table.find(taskId);
    if (!task) throw new InputError(`there is no task ${taskId} in this session`);
    return task;
  }

  /** Returns what the next exchange has to wait for: an exchange that the session started by itself and the caller cannot
   *  know about. */
  #mustBeFree(): Promise<unknown> | undefined {
    this.#mustBeOpen();
    if (this.#running === this.#selfStarted) return this.#running;
    if (this.#running !== undefined) throw new InputError("an exchange is running; wait for its result or abort it");
    return undefined;
  }

  #markRunning(stop: AbortController, result: Promise<unknown>): void {
    const ended = (): void => {
      if (this.#exchanging === exchanging) this.#exchanging = undefined;
    };
    const exchanging: RunningExchange = { abort: () => stop.abort(), ended: result.then(ended, ended) };
    this.#exchanging = exchanging;
  }

  /** A caller that sees the end, in the result or in the last event, can start the next exchange. If another exchange is
   *  already waiting for this one, it counts as running. */
  #runExclusively<T>(work: (done: () => void) => Promise<T>): Promise<T> {
    const done = (): void => {
      if (this.#running === running) this.#running = undefined;
    };
    const working = work(done).finally(done);
    const running = working.catch(() => undefined);
    this.#running = running;
    return working;
  }

  /** Without a prompt it continues with the notices of its tasks. */
  async #exchange(
    prompt: Prompt | undefined,
    { signal, stop, done, limits, tasks = "wait" }: ExchangeArgs,
  ): Promise<ExchangeResult> {
    const { options, hub, journal, launcher } = this.#parts;
    await Promise.resolve(); // so that the caller can listen first
    hub.stopBuffering();
    const bounds = { ...options.limits, ...limits };
    const { ms } = bounds;
    const timer = ms === undefined ? undefined : AbortSignal.timeout(ms);
    const lasting = [this.#closing.signal, options.signal].filter((one) => one !== undefined);
    const all = AbortSignal.any([...lasting, ...[stop, signal, timer].filter((one) => one !== undefined)]);
    const run = this.#parts.agent.run(this.#turnLimits(bounds), all);
    launcher.beginExchange(tasks === "wait" ? all : AbortSignal.any(lasting));
    const result = timed(await this.#converse(prompt, { run, tasks }, all), timer);
    this.#parts.runs.setParentSignal(options.signal); // what a program starts from now on does not belong to this exchange
    const { end, reason, turns, usage, usd } = result;
    try {
      await this.#parts.rewinding.files.settle();
      journal.append({ kind: "exchange_ended", reason: end, facts: { turns } });
      await journal.flush();
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      hub.emit({ type: "journal_troubled", problem: error.message });
    }
    done(); // nothing is left to do, and a reader of the event may start the next exchange at once
    hub.emit({ type: "exchange_ended", end, reason, turns, usage, usd });
    if (tasks === "leave" && !this.#closing.signal.aborted) this.continueWithTasks();
    return result;
  }

  async #converse(
    prompt: Prompt | undefined,
    { run, tasks }: ConversationArgs,
    signal: AbortSignal,
  ): Promise<ExchangeResult> {
    const { agent, stored } = this.#parts;
    const { files } = this.#parts.rewinding;
    try {
      if (prompt !== undefined) {
        files.beginExchange(signal);
        await agent.enterPrompt(prompt, signal);
        files.promptEntered();
      } else agent.enterNotices();
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      return { end: "journal-failed", reason: error.message, text: "", turns: 0, usage: noUsage, usd: 0 };
    }
    const before = run.account.spent;
    const first = await runExchange(run, signal);
    const result = tasks === "wait" ? await this.#withTasks(first, run, signal) : first;
    await stored.releaseEnded(); // undelivered notices do not keep a stored prefix alive
    return { ...result, ...spentSince(before, run.account.spent) }; // what children spent while it waited counts too
  }

  /** The exchange continues until everything that it started has reported. */
  async #withTasks(first: ExchangeResult, run: AgentRun, signal: AbortSignal): Promise<ExchangeResult> {
    const { agent, runs } = this.#parts;
    let result = first;
    while (result.end === "done" && (await this.#waitForNotices(signal))) {
      agent.enterNotices();
      const { maxTurns } = run.limits;
      const limits = {
        ...run.limits,
        ...(maxTurns === undefined ? {} : { maxTurns: Math.max(0, maxTurns - result.turns) }),
      };
      const next = await runExchange({ ...run, limits }, signal);
      const reason = next.end === "max-turns" ? `the limit of ${maxTurns} turns is reached` : next.reason;
      const lastText = next.text === "" ? result.text : next.text;
      result = { ...next, reason, text: lastText, turns: result.turns + next.turns };
    }
    if (!signal.aborted) return result;
    // After an interrupt nothing continues unnoticed, except what a program started by itself.
    await runs.whenEnded(
      runs.ids.filter((id) => runs.find(id)?.signal.aborted),
      "all",
    );
    return result.end === "done" ? { ...result, end: "aborted", reason: "interrupted" } : result;
  }

  /** Waits until the model must be notified, and keeps its cache entry alive meanwhile. */
  async #waitForNotices(signal: AbortSignal): Promise<boolean> {
    const { launcher, keepAlive } = this.#parts;
    const waiting = new AbortController();
    const keepingWarm = keepAlive?.keepWarm(AbortSignal.any([waiting.signal, signal]));
    try {
      return await launcher.waitForNotices(signal);
    } finally {
      waiting.abort();
      await keepingWarm;
    }
  }

  /** An idle session continues by itself when a task has ended. */
  async #watchTasks(): Promise<void> {
    if (this.#isWatching) return;
    this.#isWatching = true;
    try {
      while (await this.#waitForNotices(this.#closing.signal)) {
        if (this.#running !== undefined)
          await this.#running; // it delivers the notices at its own boundaries
        else {
          const stop = new AbortController();
          const exchange = this.#runExclusively((done) =>
            this.#exchange(undefined, { stop: stop.signal, tasks: "leave", done }),
          );
          this.#markRunning(stop, exchange);
          this.#selfStarted = this.#running;
          const { end } = await exchange;
          if (end !== "done") return; // undelivered notices go out with the next prompt
        }
      }
    } finally {
      this.#isWatching = false;
    }
  }

  #turnLimits({ maxTurns, ms }: Pick<SessionLimits, "maxTurns" | "ms">): TurnLimits {
    const { clock } = this.#parts.options;
    return {
      ...(maxTurns === undefined ? {} : { maxTurns }),
      ...(ms === undefined ? {} : { deadline: clock.now() + ms }),
    };
  }
}

/** `done`: called when the next one may begin. */
type ExchangeArgs = PromptOptions & { readonly stop: AbortSignal; readonly done: () => void };
type ConversationArgs = { readonly run: AgentRun; readonly tasks: "wait" | "leave" };

/** An exchange that ended because its time was up was not interrupted by anybody. */
const timed = (result: ExchangeResult, timer: AbortSignal | undefined): ExchangeResult =>
  result.end === "aborted" && timer?.aborted
    ? { ...result, end: "out-of-time", reason: "the time limit is reached" }
    : result;
