/** A conversation with an agent that works: prompts in, events and results out, everything kept.
 *  Invariant: one exchange at a time; nothing of a session is shared with another; whatever ends an exchange, the journal
 *  says so and the next prompt can follow.
 *  Elsewhere: making one (open.ts), the agent that works (../agent), turns (../loop). */

import { type Client, InputError, noUsage } from "@prefork/wire";
import type { Agent, Compacted } from "../agent/index.ts";
import type { Prompt } from "../context/index.ts";
import type { EventBody, Todo } from "../events.ts";
import type { ForkHost } from "../fork/index.ts";
import type { Mode } from "../guard/index.ts";
import { JournalError, type JournalWriter } from "../journal/index.ts";
import { type ExchangeResult, type Run, runExchange, type Spent, spentSince, type TurnLimits } from "../loop/index.ts";
import type { Task, TaskTable } from "../tasks/index.ts";
import type { EventHub, EventReader } from "./event-hub.ts";
import { Exchange } from "./exchange.ts";
import type { FilledOptions, SessionLimits } from "./options.ts";

/** What a session is composed of; made in open.ts. */
export type SessionParts = {
  readonly options: FilledOptions;
  readonly agent: Agent;
  readonly journal: JournalWriter;
  readonly client: Client;
  readonly hub: EventHub;
  readonly host: ForkHost;
  readonly table: TaskTable;
  /** What happened before anybody could listen. */
  readonly before: readonly EventBody[];
};

export type PromptOptions = {
  readonly signal?: AbortSignal; // ends this exchange only
  readonly limits?: Pick<SessionLimits, "maxTurns" | "ms">; // default: the session's
};

export class Session implements AsyncDisposable {
  readonly id: string;
  readonly model: string;
  readonly engine: string;
  readonly #parts: SessionParts;
  #before: readonly EventBody[];
  #running: Promise<unknown> | undefined;
  #closed: Promise<void> | undefined;
  readonly #closing = new AbortController();

  /** Use `createSession` or `resumeSession`. */
  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.id = parts.journal.id;
    this.model = parts.agent.line.state.head.model;
    this.engine = parts.options.engine.name;
    this.#before = parts.before;
  }

  get mode(): Mode {
    return this.#parts.agent.guarding.mode;
  }
  get spent(): Spent {
    return this.#parts.agent.account.spent;
  }
  /** What was started beside the conversation. */
  get tasks(): readonly Task[] {
    return this.#parts.table.all;
  }
  get todos(): readonly Todo[] {
    return this.#parts.agent.world.todos;
  }

  /** Takes effect from the next call on; the model is told at the next boundary. */
  setMode(mode: Mode): void {
    const { agent, hub } = this.#parts;
    const { guarding } = agent;
    const from = guarding.mode;
    if (from === mode) return;
    guarding.setMode(mode);
    hub.emit({ type: "mode_changed", from, to: mode });
  }

  /** Everything that happens from now on. */
  events(): EventReader {
    return this.#parts.hub.read();
  }

  prompt(prompt: Prompt, options: PromptOptions = {}): Exchange {
    this.#mustBeFree();
    if (typeof prompt === "string" && prompt.trim() === "") throw new InputError("the prompt is empty");
    const events = this.#parts.hub.read();
    const stop = new AbortController();
    const result = this.#alone(() => this.#exchange(prompt, { ...options, stop: stop.signal }));
    return new Exchange(events, result, (reason) => stop.abort(reason));
  }

  /** Sums the conversation up now and goes on from the summary. */
  async compact(focus?: string): Promise<Compacted> {
    this.#mustBeFree();
    return this.#alone(() => this.#parts.agent.compactNow(this.#closing.signal, focus));
  }

  /** Ends what runs and gives everything back; a second time it does nothing. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const { agent, client, hub, host, journal } = this.#parts;
    this.#closing.abort();
    await this.#running;
    await host.close();
    try {
      await agent[Symbol.asyncDispose]();
    } finally {
      client.close();
      hub.close();
      await journal.close();
    }
  }

  #mustBeFree(): void {
    if (this.#closing.signal.aborted) throw new InputError("the session is closed");
    if (this.#running !== undefined) throw new InputError("an exchange is under way; wait for its result or abort it");
  }

  /** Whoever learns that it is over, by its outcome or by its last event, can begin the next. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const working = work().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    const running = working.catch(() => undefined);
    this.#running = running;
    return working;
  }

  async #exchange(
    prompt: Prompt,
    { signal, stop, limits }: PromptOptions & { readonly stop: AbortSignal },
  ): Promise<ExchangeResult> {
    const { options, hub, journal } = this.#parts;
    await Promise.resolve(); // so that whoever prompts can listen first
    for (const event of this.#before) hub.emit(event);
    this.#before = [];
    const bounds = { ...options.limits, ...limits };
    const { ms } = bounds;
    const timer = ms === undefined ? undefined : AbortSignal.timeout(ms);
    const signals = [stop, this.#closing.signal, signal, options.signal, timer].filter((one) => one !== undefined);
    const all = AbortSignal.any(signals);
    const run = this.#parts.agent.run(this.#turnLimits(bounds), all);
    this.#parts.host.under(all);
    const result = timed(await this.#converse(prompt, run, all), timer);
    const { end, reason, turns, usage, usd } = result;
    try {
      journal.append({ kind: "exchange_ended", reason: end, facts: { turns } });
      await journal.flush();
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      hub.emit({ type: "journal_troubled", problem: error.message });
    }
    this.#running = undefined; // nothing is left to do, and a reader of the event may go on at once
    hub.emit({ type: "exchange_ended", end, reason, turns, usage, usd });
    return result;
  }

  async #converse(prompt: Prompt, run: Run, signal: AbortSignal): Promise<ExchangeResult> {
    try {
      await this.#parts.agent.enterPrompt(prompt, signal);
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      return { end: "journal-failed", reason: error.message, text: "", turns: 0, usage: noUsage, usd: 0 };
    }
    const before = run.account.spent;
    const result = await this.#withTasks(await runExchange(run, signal), run, signal);
    return { ...result, ...spentSince(before, run.account.spent) }; // what children spent while it waited counts too
  }

  /** With nobody to say more, an exchange goes on until all that it started has reported. */
  async #withTasks(first: ExchangeResult, run: Run, signal: AbortSignal): Promise<ExchangeResult> {
    const { host, agent } = this.#parts;
    let result = first;
    while (result.end === "done" && (await host.wake(signal))) {
      agent.enterNotices();
      const { maxTurns } = run.limits;
      const limits = {
        ...run.limits,
        ...(maxTurns === undefined ? {} : { maxTurns: Math.max(0, maxTurns - result.turns) }),
      };
      const next = await runExchange({ ...run, limits }, signal);
      const reason = next.end === "max-turns" ? `the limit of ${maxTurns} turns is reached` : next.reason;
      const said = next.text === "" ? result.text : next.text;
      result = { ...next, reason, text: said, turns: result.turns + next.turns };
    }
    return result;
  }

  #turnLimits({ maxTurns, ms }: Pick<SessionLimits, "maxTurns" | "ms">): TurnLimits {
    const { clock } = this.#parts.options;
    return {
      ...(maxTurns === undefined ? {} : { maxTurns }),
      ...(ms === undefined ? {} : { deadline: clock.now() + ms }),
    };
  }
}

/** What ended because its time was up was not interrupted by anybody. */
const timed = (result: ExchangeResult, timer: AbortSignal | undefined): ExchangeResult =>
  result.end === "aborted" && timer?.aborted
    ? { ...result, end: "out-of-time", reason: "the time limit is reached" }
    : result;
