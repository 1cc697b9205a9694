/** Starts agents in the background, for the main agent's model and for programs, and controls them afterwards. Every
 *  way to start an agent first checks whether it is allowed. An agent that was asked for has a row before its call is
 *  answered, so that a crash forgets nothing. Siblings start from the same bytes, and limits apply to every way to
 *  start.
 *  Elsewhere: what runs (runs.ts), bytes and order (../fork: family.ts), opening a child (local-host.ts). */

import { addAbortListener } from "node:events";
import {
  FORK_PLACEHOLDER_RESULT,
  type FrozenPrefix,
  InputError,
  type ToolResultBlock,
  type ToolUseBlock,
} from "@prefork/wire";
import type { Account, Lineage, SlowCallPolicy, StartedFamily } from "../agent/index.ts";
import { escapeTags, noteText, oneLine } from "../context/index.ts";
import type { RuntimeEvent } from "../events.ts";
import {
  type CacheSafeParams,
  checkMessages,
  createPlan,
  FamilyAccounts,
  type FamilyConditions,
  type ForkGate,
  type ForkOptions,
  type ForkSettings,
  parsePlan,
  planToJson,
  ResumedFamilies,
  readAgentCall,
} from "../fork/index.ts";
import type { ChildHost, Delegated, DelegatedCall, ForkPlan, Ids } from "../ports.ts";
import { describeState, type Inbox, isEnded, type TaskTable } from "../tasks/index.ts";
import { FamilyStarter, type FamilyStarterOptions, NO_FORKS } from "./family-starts.ts";
import { ForkHandle, noEvents, taskEvents } from "./handle.ts";
import type { RunStart } from "./running.ts";
import { MovedCalls, neverStarted, type Runs } from "./runs.ts";

/** `by`: who wrote the message. Default: the main agent. */
export type ResumeOptions = { readonly message?: string; readonly by?: "user" } & Pick<ForkOptions, "filter">;

export type ChildLauncherOptions = FamilyStarterOptions & {
  readonly settings: ForkSettings;
  readonly table: TaskTable;
  readonly inbox: Inbox;
  readonly runs: Runs;
  readonly ids: Ids;
  readonly gate: () => ForkGate;
  /** The session's account, from which all families spend. */
  readonly account: () => Account;
  readonly snapshot: () => CacheSafeParams | undefined;
  readonly host: ChildHost;
  /** Does a call of another tool start a fork? A skill may. */
  readonly startsFork?: (call: ToolUseBlock) => boolean;
  /** Stops a background shell of this name, if there is one. */
  readonly stopShell: (id: string) => Promise<unknown>;
  readonly listen: () => AsyncIterableIterator<RuntimeEvent>;
};

export const refusal = (words: string): Delegated => ({ text: words, isError: true });

export class ChildLauncher {
  readonly #options: ChildLauncherOptions;
  /** Plans that calls of the current turn requested. */
  #requested: ForkPlan[] = [];
  /** What the present turn has started, in the foreground or not, and its family. */
  #turn: Turn | undefined;
  /** Why another agent was started instead of a fork, by task. */
  readonly #whyNotFork = new Map<string, string>();
  readonly #accounts: FamilyAccounts;
  readonly #resumedFamilies: ResumedFamilies;
  readonly #movedCalls: MovedCalls;
  readonly #starts: FamilyStarter;
  #started = 0;

  constructor(options: ChildLauncherOptions) {
    this.#options = options;
    const { table, settings, account } = options;
    this.#movedCalls = new MovedCalls(options);
    this.#starts = new FamilyStarter(options);
    this.#resumedFamilies = new ResumedFamilies(() => options.line().state.protocol.pacing);
    this.#started = table.all.filter(({ kind }) => kind === "fork" || kind === "agent").length;
    this.#accounts = new FamilyAccounts({ limits: settings.family, table, session: account });
  }

  /** An exchange begins: aborting this ends every task that is started from now on. Agents that an earlier turn asked for and
   *  that were never started, because the journal failed, are reported as failed. */
  beginExchange(signal: AbortSignal | undefined): void {
    this.#options.runs.setParentSignal(signal);
    this.#turn = undefined;
    for (const { task } of this.#requested.splice(0)) {
      const { end, result } = neverStarted("failed", "the turn that asked for it did not finish");
      this.#options.table.step(task, { type: "ended", end, result, at: this.#options.clock.now() });
    }
  }

  /** The Agent tool. For an agent in the background the answer is one constant, so that all siblings share its bytes. */
  readonly agent: DelegatedCall = async (args, { signal, callId }) => {
    const { settings } = this.#options;
    const request = readAgentCall(args, { settings, gate: this.#options.gate() });
    if (!request.ok) return refusal(request.reason);
    const full = this.#full();
    if (full !== undefined) return refusal(full);
    const plan = {
      ...createPlan(request.requested, this.#names(), settings),
      ...(request.blocksCaller ? { call: callId } : {}),
    };
    this.#turn ??= { family: plan.task, tasks: [] };
    const { family, tasks } = this.#turn;
    if (tasks.length >= settings.mostPerFamily)
      return refusal(`Not started: one turn may start at most ${settings.mostPerFamily} agents.`);
    tasks.push(plan.task);
    const siblings = { family: this.#accounts.of(family), siblings: this.#turn };
    this.#started += 1;
    // Before the call is answered: an agent that a crash kept from starting is then reported, not forgotten.
    this.#add(plan, family);
    if (!request.blocksCaller) {
      if (request.whyNotFork !== undefined) this.#whyNotFork.set(plan.task, request.whyNotFork);
      this.#requested.push(plan);
      return { text: FORK_PLACEHOLDER_RESULT };
    }
    await this.#options.runs.start([{ ...this.#starts.startEmpty(plan, siblings), notifies: false }]);
    return this.#foreground(plan, signal);
  };

  /** Takes what the calls of this turn asked for. */
  readonly family = (): StartedFamily | undefined => {
    const plans = this.#requested;
    const turn = this.#turn ?? { family: "", tasks: [] };
    this.#requested = [];
    this.#turn = undefined;
    return plans.length === 0
      ? undefined
      : { launch: (line, lastResult) => this.#launch(plans, { turn, line, lastResult }) };
  };

  /** Other calls of a turn that starts agents do not delay them for long. */
  readonly slowCalls = (calls: readonly ToolUseBlock[]): SlowCallPolicy | undefined => {
    const { settings, startsFork } = this.#options;
    if (settings.forksOff || !calls.some((call) => call.name === "Agent" || startsFork?.(call))) return undefined;
    return { ms: settings.otherToolsMs, move: (moved) => this.#movedCalls.move(moved) };
  };

  /** Resumes a task that has ended, from its journal. Returns the reason if it cannot. */
  async resume(id: string, how: ResumeOptions = {}): Promise<string | undefined> {
    const { table, runs } = this.#options;
    const { message, by } = how;
    const gate = this.#options.gate();
    if (!gate.allowed && gate.isFinal) return gate.reason;
    const task = table.find(id);
    if (!task || !isEnded(task)) return task ? `it is ${describeState(task)}` : "there is no such task";
    const plan = parsePlan(task.plan);
    if (!plan || task.session === undefined) return "it has no journal to resume from";
    if (plan.isFiltered && !how.filter)
      return "its tools were narrowed by the program that started it, and only that program can resume it";
    if (runs.find(id)) return "it runs already";
    if (how.message === undefined && task.state.kind === "ended" && task.state.end === "reported")
      return "it has reported; send it a message that says what else to do";
    const resumed = { ...plan, runId: this.#options.ids.next("run") };
    const mail =
      message === undefined ? {} : { mail: { id: this.#options.ids.next("notice"), message, ...(by ? { by } : {}) } };
    if (!table.step(id, { type: "woken", ...mail })) return `it is ${describeState(task)}`;
    this.#options.origins.set(id, { filter: how.filter });
    const begins = { kind: "resume", session: task.session, mail: table.find(id)?.mail ?? [] } as const;
    const start: RunStart = {
      child: {
        fork: resumed,
        siblings: { family: task.family, tasks: [id] },
        begins,
        ...(task.spent ? { spent: task.spent } : {}),
      },
      budget: this.#accounts.of(task.family),
      admit: (signal) => this.#resumedFamilies.admit(task.family, signal),
      notifies: true,
      startedByProgram: by === "user",
    };
    const [problem] = await runs.start([start]);
    return problem;
  }

  /** For a resumed session that ended between a fan-out and its own next request: no request writes that family's
   *  shared entry again. `session`: the session of one member. */
  rejoin(line: Lineage, { shared, session }: { readonly shared: FrozenPrefix; readonly session: string }): void {
    const family = this.#options.table.all.find((task) => task.session === session)?.family ?? session;
    this.#resumedFamilies.ofParent(family, line, { shared, conditions: this.#conditionsFor(line.prefix.model) });
  }

  /** A fork for a program, from the conversation after its last answer. */
  fork(options: ForkOptions): ForkHandle {
    const [handle] = this.forkAll([options]);
    if (!handle) throw new InputError("a fork needs a prompt or messages");
    return handle;
  }

  /** Forks that share everything but their last block, started together. */
  forkAll(list: readonly ForkOptions[]): readonly ForkHandle[] {
    const { settings, runs } = this.#options;
    const gate = this.#options.gate();
    if (!gate.allowed) throw new InputError(`cannot fork: ${gate.reason}`);
    const full = this.#full(list.length);
    if (full !== undefined) throw new InputError(full);
    if (list.length > settings.mostPerFamily)
      throw new InputError(
        `a family may have at most ${settings.mostPerFamily} forks, and ${list.length} were requested`,
      );
    const snapshot = this.#options.snapshot();
    if (!snapshot) throw new InputError("there is nothing to fork from: the conversation has not begun");
    for (const { messages } of list) if (messages) checkMessages(messages);
    const plans = list.map((options) => createPlan(options, this.#names(), settings));
    const [first] = plans;
    if (!first) return [];
    const isKept = plans.some(({ skipTranscript }) => !skipTranscript);
    const family = isKept ? this.#accounts.of(first.task) : this.#accounts.unkept();
    const siblings = { family: first.task, tasks: plans.map(({ task }) => task) };
    const forking = { parent: snapshot, lastResult: undefined, parentFollows: false, options: list, family, siblings };
    const { starts, onAllEnded } = this.#starts.startForks(plans, { ...forking, startedByProgram: true });
    this.#started += plans.length;
    for (const plan of plans) if (!plan.skipTranscript) this.#add(plan, first.task);
    const started = runs.start(
      this.#prepared(starts).map((start) => ({ ...start, notifies: false, startedByProgram: true })),
    );
    void this.#afterAllEnded(plans, onAllEnded);
    return plans.map((plan) => this.#handle(plan, started));
  }

  /** Moves a task that somebody waits for to the background; without an id, all of them. */
  background(id?: string): void {
    const { runs, emit } = this.#options;
    for (const running of id === undefined ? runs.ids.map((each) => runs.find(each)) : [runs.find(id)]) {
      if (!running || running.notifies) continue;
      if (running.plan.skipTranscript) {
        if (id === undefined) continue;
        throw new InputError(
          "a fork without a transcript cannot move to the background, because nothing would report its end",
        );
      }
      running.notifies = true;
      running.detached.resolve();
      emit({ type: "task_backgrounded", taskId: running.id });
    }
  }

  /** Stops a task of any kind. What it has done so far is kept. */
  async stop(id: string): Promise<void> {
    const { runs, stopShell } = this.#options;
    runs.find(id)?.stop();
    this.#movedCalls.stop(id);
    await Promise.all([stopShell(id), runs.whenEnded([id], "all")]);
  }

  /** Waits until there is a notice that must be read, or no task is left that could send one. False: there is no notice. */
  async waitForNotices(signal: AbortSignal): Promise<boolean> {
    const { runs, inbox } = this.#options;
    const { promise: aborted, resolve } = Promise.withResolvers<void>();
    using _listening = addAbortListener(signal, () => resolve());
    while (runs.hasNotifying && !signal.aborted && !this.#mustNotify()) await Promise.race([aborted, runs.nextEnd]);
    return inbox.notices.length > 0 && !signal.aborted;
  }

  /** A failure is reported at once. A success waits for its siblings, unless each task is to be reported. */
  #mustNotify(): boolean {
    const { table, inbox, settings } = this.#options;
    return inbox.notices.some(({ task: id }) => {
      const task = table.find(id);
      if (!task || settings.wake === "each") return true;
      if (task.state.kind === "ended" && task.state.end !== "reported") return true;
      return table.hasFamilyEnded(task.family);
    });
  }

  #conditionsFor(model: string): FamilyConditions {
    const { conditionsFor, clock } = this.#options;
    return { ...conditionsFor(model), now: clock.now() };
  }

  /** Why nothing more may be started; undefined: it may. */
  #full(wanted = 1): string | undefined {
    const { mostPerSession: most } = this.#options.settings;
    if (this.#started + wanted <= most) return undefined;
    return `Not started: this session has started ${this.#started} agents, and may start ${most} in all.`;
  }

  #names(): { readonly task: string; readonly runId: string } {
    return { task: this.#options.ids.next("task"), runId: this.#options.ids.next("run") };
  }

  #add(plan: ForkPlan, family: string): void {
    const { table, clock } = this.#options;
    const { task: id, label, agentType, querySource } = plan;
    const kind = agentType === "fork" ? "fork" : "agent";
    const row = { id, kind, label, agentType, querySource, family, plan: planToJson(plan) } as const;
    table.add({ ...row, state: { kind: "queued" }, startedAt: clock.now() });
  }

  async #launch(plans: readonly ForkPlan[], { turn, line, lastResult }: Launching): Promise<string> {
    const { runs } = this.#options;
    const forks = plans.filter(({ agentType }) => agentType === "fork");
    const others = plans.filter(({ agentType }) => agentType !== "fork");
    const problems = new Map<string, string>();
    const family = this.#accounts.of(turn.family);
    let { starts, next, onAllEnded } = NO_FORKS;
    try {
      const forking = { parent: line.state, lastResult, parentFollows: true, options: [], startedByProgram: false };
      ({ starts, next, onAllEnded } = this.#starts.startForks(forks, { ...forking, family, siblings: turn }));
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      for (const { task } of forks) problems.set(task, this.#refuse(task, error.message));
    }
    const agents = others.map((plan) => this.#starts.startEmpty(plan, { family, siblings: turn }));
    const all = this.#prepared([...starts, ...agents]);
    const started = await runs.start(all.map((start) => ({ ...start, notifies: true })));
    started.forEach((problem, at) => {
      const id = all[at]?.child.fork.task;
      if (problem !== undefined && id !== undefined) problems.set(id, problem);
    });
    void this.#afterAllEnded(forks, onAllEnded);
    if (next) line.planNext(next);
    const note = describeStarted(plans, { problems, whyNotFork: this.#whyNotFork });
    this.#whyNotFork.clear();
    return note;
  }

  /** If a host cannot prepare, the children that need it fail with the reason. */
  #prepared(starts: readonly Unstarted[]): readonly Unstarted[] {
    const ready = this.#options.host.prepare?.(starts.map(({ child }) => child)).catch(() => undefined);
    return starts.map((start) => ({ ...start, ready }));
  }

  async #afterAllEnded(plans: readonly ForkPlan[], onAllEnded: () => Promise<void>): Promise<void> {
    await this.#options.runs.whenEnded(
      plans.map(({ task }) => task),
      "all",
    );
    await onAllEnded();
  }

  #refuse(task: string, reason: string): string {
    const { table, clock } = this.#options;
    const { end, result } = neverStarted("failed", reason);
    table.step(task, { type: "ended", end, result, at: clock.now() }, { notify: false });
    return reason;
  }

  /** Waits until a task ends or is moved to the background. */
  async #foreground({ task }: ForkPlan, signal: AbortSignal): Promise<Delegated> {
    const { runs, settings } = this.#options;
    const running = runs.find(task);
    if (!running) return this.#outcomeText(task);
    using _listening = addAbortListener(signal, () => running.stop());
    const { autoBackgroundMs } = settings;
    const timer = autoBackgroundMs > 0 ? setTimeout(() => this.background(task), autoBackgroundMs) : undefined;
    const first = await Promise.race([running.ended.promise, running.detached.promise]);
    clearTimeout(timer);
    if (first) return this.#outcomeText(task);
    return {
      text: `async_launched: ${task} continues in the background, and will report through a task notification.`,
    };
  }

  #outcomeText(id: string): Delegated {
    const task = this.#options.table.find(id);
    if (!task?.result || task.state.kind !== "ended") return refusal(`${id} did not start.`);
    return task.state.end === "reported" ? { text: task.result.text } : refusal(task.result.text);
  }

  #handle(plan: ForkPlan, started: Promise<unknown>): ForkHandle {
    const { runs, listen } = this.#options;
    const running = runs.find(plan.task);
    if (!running) throw new Error(`${plan.task} was not started`);
    const isOver = (): boolean => runs.find(plan.task) !== running;
    return new ForkHandle({
      id: plan.task,
      label: plan.label,
      running: started.then(() => running),
      events: () =>
        isOver() ? noEvents() : taskEvents(listen(), { task: plan.task, agent: plan.agentId ?? plan.task }),
      abort: () => running.stop(),
      background: () => this.background(plan.task),
    });
  }
}

type Turn = { readonly family: string; readonly tasks: string[] };

type Unstarted = Omit<RunStart, "notifies">;

type Launching = {
  readonly turn: Turn;
  readonly line: Lineage;
  readonly lastResult: ToolResultBlock | undefined;
};

/** Tells the parent which task belongs to which call. This is in the parent's own last block and never in a result, so that
 *  children share everything before it. */

type Starting = {
  readonly problems: ReadonlyMap<string, string>;
  readonly whyNotFork: ReadonlyMap<string, string>;
};

export const describeStarted = (plans: readonly ForkPlan[], { problems, whyNotFork }: Starting): string => {
  const lines = plans.map(({ task, label, agentType }) => {
    const problem = problems.get(task);
    const state = problem === undefined ? "async_launched" : `not started: ${oneLine(problem)}`;
    const reason = whyNotFork.get(task);
    const why = reason === undefined ? "" : `; no fork: ${oneLine(reason)}, so it knows only its prompt`;
    const kind = agentType === "fork" ? "" : `${agentType}, `;
    return escapeTags(`- ${task}: ${label} (${kind}${state}${why})`);
  });
  const words = [
    "You are the main agent. Your Agent calls were started in the background, in this order:",
    ...lines,
    "Each reports by a task notification; do not guess what it finds, and do not do its part yourself.",
  ];
  return noteText({ kind: "tasks", text: words.join("\n") });
};
