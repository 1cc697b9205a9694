/** A conversation with an agent that works: prompts in, events and results out, everything kept.
 *  Invariant: one exchange at a time; nothing of a session is shared with another; whatever ends an exchange, the journal
 *  says so and the next prompt can follow.
 *  Elsewhere: making one (open.ts), turns (../loop), what is told besides (surroundings.ts), making room (compacting.ts). */

import {
  type Block,
  type Client,
  InputError,
  type ModelFacts,
  noUsage,
  type ToolResultBlock,
  text,
} from "@prefork/wire";
import { firstContent, type Prompt } from "../context/index.ts";
import type { EventBody, Todo } from "../events.ts";
import type { Mode } from "../guard/index.ts";
import { JournalError, type JournalWriter, type PlainEntry } from "../journal/index.ts";
import {
  type Account,
  type Dispatch,
  type ExchangeResult,
  type Lineage,
  type Run,
  runBatch,
  runExchange,
  type Spent,
  type Tail,
} from "../loop/index.ts";
import type { Registry } from "../tools/index.ts";
import { type Compacted, compact } from "./compacting.ts";
import type { EventHub, EventReader } from "./event-hub.ts";
import { Exchange } from "./exchange.ts";
import type { Guarding } from "./guarding.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { FilledOptions, SessionLimits } from "./options.ts";
import type { SurroundingsWatch } from "./surroundings.ts";
import type { ToolWorld } from "./tool-world.ts";

/** What a session is composed of; made in open.ts. */
export type SessionParts = {
  readonly options: FilledOptions;
  readonly journal: JournalWriter;
  readonly line: Lineage;
  readonly client: Client;
  readonly account: Account;
  readonly guarding: Guarding;
  readonly world: ToolWorld;
  readonly watch: SurroundingsWatch;
  readonly registry: Registry;
  readonly hub: EventHub;
  readonly facts: ModelFacts | undefined;
  readonly lastPrompt: string;
  readonly openCalls: OpenCalls;
  /** What happened before anybody could listen. */
  readonly before: readonly EventBody[];
};

export type PromptOptions = {
  readonly signal?: AbortSignal; // ends this exchange only
  readonly limits?: Pick<SessionLimits, "maxTurns" | "ms">; // default: the session's
};

const PROMPT_SLOT = "prompt";

export class Session implements AsyncDisposable {
  readonly id: string;
  readonly model: string;
  readonly engine: string;
  readonly #parts: SessionParts;
  #before: readonly EventBody[];
  #lastPrompt: string;
  #left = 0;
  #running: Promise<unknown> | undefined;
  #closed: Promise<void> | undefined;
  readonly #closing = new AbortController();

  /** Use `createSession` or `resumeSession`. */
  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.id = parts.journal.id;
    this.model = parts.line.state.head.model;
    this.engine = parts.options.engine.name;
    this.#before = parts.before;
    this.#lastPrompt = parts.lastPrompt;
  }

  get mode(): Mode {
    return this.#parts.guarding.mode;
  }
  get spent(): Spent {
    return this.#parts.account.spent;
  }
  get todos(): readonly Todo[] {
    return this.#parts.world.todos;
  }

  /** Takes effect from the next call on; the model is told at the next boundary. */
  setMode(mode: Mode): void {
    const { guarding, hub } = this.#parts;
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
    const { signal } = this.#closing;
    return this.#alone(async () => {
      try {
        const results = await this.#answerOpenCalls(this.#dispatch(), signal);
        if (results.length > 0) this.#parts.line.enter({ role: "user", content: results });
        return await this.#compact("asked", { signal, follows: "wait", ...(focus === undefined ? {} : { focus }) });
      } catch (error) {
        if (!(error instanceof JournalError)) throw error;
        this.#parts.hub.emit({ type: "compaction_failed", reason: error.message });
        return { kind: "failed", reason: error.message };
      }
    });
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
    const { world, client, hub, journal } = this.#parts;
    this.#closing.abort();
    await this.#running;
    try {
      await world[Symbol.asyncDispose]();
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
    const run = this.#run(bounds, all);
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
      await this.#enterPrompt(prompt, run, signal);
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      return { end: "journal-failed", reason: error.message, text: "", turns: 0, usage: noUsage, usd: 0 };
    }
    return runExchange(run, signal);
  }

  async #enterPrompt(prompt: Prompt, run: Run, signal: AbortSignal): Promise<void> {
    const { line, watch, guarding, hub } = this.#parts;
    const around = await watch.read(guarding.mode);
    const words = wordsOf(prompt);
    const results = await this.#answerOpenCalls(run.dispatch, signal);
    const isFirst = line.prefix.messages === 0;
    const telling = isFirst ? undefined : watch.changes(guarding.mode, around);
    const content: readonly Block[] = isFirst
      ? firstContent(around, prompt)
      : [...results, ...(telling?.blocks ?? []), ...(typeof prompt === "string" ? [text(prompt)] : prompt)];
    const { also, entered } = telling ?? watch.begun(around);
    const prompted: PlainEntry = { kind: "state", slot: PROMPT_SLOT, value: words.slice(0, 8_000) };
    line.enter({ role: "user", content }, { source: "prompt", also: [...also, prompted] });
    entered();
    this.#lastPrompt = words;
    hub.emit({ type: "prompt_entered", text: words });
    for (const { kind, text: note } of telling?.notes ?? []) hub.emit({ type: "note_entered", kind, text: note });
  }

  /** What a crash or a full disk left without a result. */
  #answerOpenCalls(dispatch: Dispatch, signal: AbortSignal): Promise<readonly ToolResultBlock[]> {
    return this.#parts.openCalls.results(async (calls, known) => {
      const { results } = await runBatch(calls, dispatch, { signal, known });
      return results;
    });
  }

  #run({ maxTurns, ms }: Pick<SessionLimits, "maxTurns" | "ms">, signal: AbortSignal): Run {
    const { options, line, client, account, facts, hub } = this.#parts;
    const { clock, maxTokens, ttl, settings } = options;
    const thinks = settings.thinking !== undefined && settings.thinking.type !== "disabled";
    return {
      ...{ line, client, account, facts, maxTokens, ttl },
      emit: (event) => hub.emit(event),
      now: clock.now,
      dispatch: this.#dispatch(),
      limits: {
        ...(maxTurns === undefined ? {} : { maxTurns }),
        ...(ms === undefined ? {} : { deadline: clock.now() + ms }),
      },
      tail: () => this.#tail(),
      insideLastResult: thinks && facts?.earlierThinking === "last-turn",
      makeRoom: async (why) => {
        const made = await this.#compact(why, { signal, follows: "go-on" });
        return made.kind === "compacted";
      },
    };
  }

  #tail(): Tail {
    const { watch, guarding, hub, world } = this.#parts;
    const { notes, blocks, also, entered } = watch.changes(guarding.mode);
    return {
      blocks,
      also: [...also, ...world.learned()],
      entered: () => {
        entered();
        for (const { kind, text: words } of notes) hub.emit({ type: "note_entered", kind, text: words });
      },
    };
  }

  #dispatch(): Dispatch {
    const { registry, guarding, world, journal, openCalls, hub, options } = this.#parts;
    const { permissions, clock, ids } = options;
    return {
      registry,
      guard: () => guarding.context(),
      ask: async (question, signal) =>
        permissions.ask?.({ ...question, id: ids.next("question"), agent: "main" }, signal) ?? { kind: "deny" },
      allowAlways: async (rule) => {
        guarding.allow(rule);
        await permissions.remember?.(rule);
      },
      contextOf: (call, signal) => world.context(call, signal),
      shorten: (callId, tool, content) => world.shorten(callId, tool, content),
      shortenBatch: (results, toolOf) => world.shortenBatch(results, toolOf),
      record: {
        started: (callId, name, readOnly) => void journal.append({ kind: "call_started", callId, name, readOnly }),
        ended: (callId, result, ms) => {
          // What the tool has learned counts with its result: a crash before the batch ends must not take one of them.
          const entries: readonly PlainEntry[] = [{ kind: "call_ended", callId, result, ms }, ...world.learned()];
          journal.appendAll(entries.map((entry) => ({ entry })));
          openCalls.ended(result);
        },
      },
      emit: (event) => hub.emit(event),
      now: clock.now,
    };
  }

  async #compact(
    why: "threshold" | "context-full" | "asked",
    {
      signal,
      follows,
      focus,
    }: { readonly signal: AbortSignal; readonly follows: "go-on" | "wait"; readonly focus?: string },
  ): Promise<Compacted> {
    const { line, client, account, facts, hub, journal, world, watch, guarding, options } = this.#parts;
    const { window, compactAt, maxTokens, clock } = options;
    const made = await compact(why, {
      left: this.#left,
      ...{ line, client, account, facts, journal, world, watch, window, compactAt, maxTokens, follows },
      mode: guarding.mode,
      lastPrompt: this.#lastPrompt,
      emit: (event) => hub.emit(event),
      now: clock.now,
      signal,
      ...(focus === undefined ? {} : { focus }),
    });
    if (made.kind === "compacted") this.#left = made.left;
    return made;
  }
}

const wordsOf = (prompt: Prompt): string =>
  typeof prompt === "string"
    ? prompt
    : prompt.flatMap((block) => (block.type === "text" ? [block.text] : [`[${block.type}]`])).join("\n");

/** What ended because its time was up was not interrupted by anybody. */
const timed = (result: ExchangeResult, timer: AbortSignal | undefined): ExchangeResult =>
  result.end === "aborted" && timer?.aborted
    ? { ...result, end: "out-of-time", reason: "the time limit is reached" }
    : result;
