/** One agent: a line of context, the tools it works with, and what it may do. The main agent of a session is one, a fork
 *  is another; both are made here from their parts.
 *  An agent owns all that changes while it runs. It knows no other agent, and what it needs of one comes in through ports.
 *  Elsewhere: its parts (options.ts), turns (run.ts), the exchanges of a session (../session), making a child (../children). */

import {
  type Block,
  type Json,
  type JsonObject,
  type KeySettings,
  type Protocol,
  type ToolResultBlock,
  text,
} from "@prefork/wire";
import { firstContent, type Note, noteText, type Prompt } from "../context/index.ts";
import type { NoteKind } from "../events.ts";
import { JournalError, type PlainEntry, type Replayed } from "../journal/index.ts";
import { type Account, estimatePrompt } from "./account.ts";
import { type CompactionCause, type CompactionResult, compact, reasonNotToCompact } from "./compacting.ts";
import { type Dispatch, runBatch } from "./dispatch.ts";
import type { AgentEngine } from "./engine.ts";
import { AgentGuard } from "./guard.ts";
import type { Lineage } from "./lineage.ts";
import { nothingLeftOpen, OpenCalls, readLeftOpen } from "./open-calls.ts";
import type { AgentParts, TailNotes } from "./options.ts";
import type { AgentRun, TurnLimits } from "./run.ts";
import { SurroundingsWatch } from "./surroundings.ts";
import { ToolWorld } from "./tool-world.ts";

export const PRODUCT = "prefork";

/** Gives providers that route by a key the same key for a conversation and all its forks, so that they reach the
 *  machine with its cache entries. */
export const withRoutingKey = (settings: KeySettings, { routes }: Protocol, key: string): KeySettings =>
  routes && settings.cacheKey === undefined ? { ...settings, cacheKey: key } : settings;

/** The same for the main agent and for all agents that it starts: each has its own guard and tools. */
export const makeAgent = async (parts: AgentParts): Promise<Agent> => {
  const { options, registry, journal, line, rights, move, replayed } = parts;
  const { cwd, directories, home } = options;
  const guard = new AgentGuard({
    ...{ ...rights, roots: [cwd, ...directories], cwd, home, move },
    outputs: journal.outputs.path,
    readingTools: registry.tools.filter(({ readOnly }) => readOnly).map(({ name }) => name),
    tools: registry.tools.map(({ name }) => name),
  });
  const world = await ToolWorld.open(parts, guard);
  const watch = new SurroundingsWatch(parts, guard);
  const leftOpen = replayed ? readLeftOpen(replayed, { registry, guard }) : nothingLeftOpen;
  return new Agent(parts, { guard, world, watch, openCalls: new OpenCalls(line, leftOpen) });
};

/** What an agent opens for itself. */
type AgentOwn = {
  readonly guard: AgentGuard;
  readonly world: ToolWorld;
  readonly watch: SurroundingsWatch;
  readonly openCalls: OpenCalls;
};

const PROMPT_SLOT = "prompt";

/** The last prompt that was entered. */
export const promptIn = (state: ReadonlyMap<string, Json> | undefined): string => {
  const prompt = state?.get(PROMPT_SLOT);
  return typeof prompt === "string" ? prompt : "";
};

export class Agent implements AsyncDisposable {
  readonly guard: AgentGuard;
  readonly world: ToolWorld;
  readonly #parts: AgentParts;
  readonly #watch: SurroundingsWatch;
  #openCalls: OpenCalls;
  #lastPrompt: string;
  /** Tokens right after room was made; 0 before. */
  #left = 0;
  /** Tokens when the last summary failed; 0 if it succeeded. */
  #failedAt = 0;

  /** Use `makeAgent`. */
  constructor(parts: AgentParts, { guard, world, watch, openCalls }: AgentOwn) {
    this.#parts = parts;
    this.guard = guard;
    this.world = world;
    this.#watch = watch;
    this.#openCalls = openCalls;
    this.#lastPrompt = parts.lastPrompt;
  }

  get line(): Lineage {
    return this.#parts.line;
  }
  get account(): Account {
    return this.#parts.account;
  }
  get engine(): AgentEngine {
    return this.#parts.engine;
  }

  /** Everything that turns need, until `signal` ends them. */
  run(limits: TurnLimits, signal: AbortSignal): AgentRun {
    const { settings, engine } = this.#parts;
    return {
      ...this.#parts,
      limits,
      dispatch: this.dispatch(),
      tail: () => this.#tail(),
      insideLastResult: settings.thinks && engine.facts?.earlierThinking === "last-turn",
      makeRoom: async (why) => (await this.compact(why, { signal, follows: "go-on" })).kind === "compacted",
    };
  }

  /** Enters a prompt, together with changes in the conversation's surroundings. */
  async enterPrompt(prompt: Prompt, signal: AbortSignal): Promise<void> {
    const { line, emit, notices } = this.#parts;
    const { mode } = this.guard;
    const surroundings = await this.#watch.read(mode);
    const words = wordsOf(prompt);
    const hooked = await this.#hookedNotes(words, signal);
    const results = await this.#answerOpenCalls(signal);
    const isFirst = line.prefix.messages === 0;
    const changes = isFirst ? undefined : this.#watch.changes(this.guard.mode, surroundings);
    const pending = isFirst ? NO_NOTES : (notices?.() ?? NO_NOTES);
    const before = hooked.map((note) => text(noteText(note)));
    const content: readonly Block[] = isFirst
      ? firstContent(surroundings, prompt, before)
      : [
          ...results,
          ...(changes?.blocks ?? []),
          ...pending.blocks,
          ...before,
          ...(typeof prompt === "string" ? [text(prompt)] : prompt),
        ];
    const { also, entered } = changes ?? this.#watch.startAnew(surroundings);
    const prompted: PlainEntry = { kind: "state", slot: PROMPT_SLOT, value: words.slice(0, 8_000) };
    line.enter({ role: "user", content }, { source: "prompt", also: [...also, ...pending.also, prompted] });
    entered();
    pending.entered();
    this.#lastPrompt = words;
    emit({ type: "prompt_entered", text: words });
    this.#tellNotes([...(changes?.notes ?? []), ...hooked]);
  }

  /** Enters pending notices without a prompt. False: there are none. */
  enterNotices(): boolean {
    const { line } = this.#parts;
    const { blocks, also, entered } = this.#tail();
    if (blocks.length === 0) return false;
    line.enter({ role: "user", content: blocks }, { source: "notice", also });
    entered();
    return true;
  }

  /** Continues where an earlier run of the agent stopped: calls in flight are answered, then these blocks follow. */
  async resumeWith(words: readonly Block[], signal: AbortSignal): Promise<void> {
    const { line } = this.#parts;
    const results = await this.#answerOpenCalls(signal);
    const { blocks, also, entered } = this.#tail();
    line.enter({ role: "user", content: [...results, ...blocks, ...words] }, { source: "notice", also });
    entered();
  }

  /** Compacts the conversation on request; the user speaks next. */
  async compactNow(signal: AbortSignal, focus?: string): Promise<CompactionResult> {
    const { line, emit } = this.#parts;
    try {
      const results = await this.#answerOpenCalls(signal);
      if (results.length > 0) line.enter({ role: "user", content: results });
      return await this.compact("asked", { signal, follows: "wait", ...(focus === undefined ? {} : { focus }) });
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      emit({ type: "compaction_failed", reason: error.message });
      return { kind: "failed", reason: error.message };
    }
  }

  /** Continues from an earlier point of its journal, which already says so. No exchange may run. */
  goBack(replayed: Replayed): void {
    const { line, registry } = this.#parts;
    line.goBack(replayed);
    this.#watch.goBack(replayed.state);
    this.world.goBack(replayed.state);
    this.#openCalls = new OpenCalls(line, readLeftOpen(replayed, { registry, guard: this.guard }));
    this.#lastPrompt = promptIn(replayed.state);
    this.#left = 0;
    this.#failedAt = 0;
  }

  async compact(why: CompactionCause, asking: Compacting): Promise<CompactionResult> {
    const { line, settings, extensions } = this.#parts;
    const needless = reasonNotToCompact(why, this.#parts, { left: this.#left, failedAt: this.#failedAt });
    if (needless !== undefined) return { kind: "left", reason: needless };
    // A compaction now would lose what the family is about to share, and its request would race the family's leader.
    const { plannedNext: planned } = line;
    if (why === "threshold" && planned && !planned.isOver?.())
      return { kind: "left", reason: "its family is sent first" };
    await extensions.hooks?.beforeCompaction({ agent: settings.name, why }, asking.signal);
    const own = { world: this.world, watch: this.#watch, mode: this.guard.mode, lastPrompt: this.#lastPrompt };
    const made = await compact(why, { ...this.#parts, ...own, ...asking });
    if (made.kind === "compacted") this.#left = made.left;
    if (made.kind !== "left")
      this.#failedAt = made.kind === "failed" ? estimatePrompt(line.prefix.byteLength, line.state) : 0;
    return made;
  }

  dispatch(): Dispatch {
    const { registry, journal, emit, settings, options, ask, remember, slowCalls, bounds, extensions } = this.#parts;
    const { guard, world } = this;
    const openCalls = this.#openCalls;
    const { hooks } = extensions;
    const { clock, ids } = options;
    const { name: agent } = settings;
    const asker = { agent: settings.name, ...(settings.scope === undefined ? {} : { scope: settings.scope }) };
    return {
      registry,
      guard: () => guard.context(),
      ask: async (question, signal) =>
        ask?.({ ...question, ...asker, id: ids.next("question") }, signal) ?? { kind: "deny" },
      allowAlways: async (rule) => {
        guard.allow(rule);
        await remember?.(rule);
      },
      contextOf: (call, signal) => world.context(call, signal),
      shorten: (callId, tool, content) => world.shorten(callId, tool, content),
      shortenBatch: (results, toolOf) => world.shortenBatch(results, toolOf),
      record: {
        started: (callId, name, readOnly) => {
          // A call without an effect simply runs again after a crash.
          if (!readOnly) journal.append({ kind: "call_started", callId, name, readOnly });
        },
        ended: (callId, result, ms) => {
          // What the tool has learned is written with its result: a crash must not lose only one of them.
          const learned = world.takeLearned().map((entry) => ({ entry }));
          journal.appendAll([{ entry: { kind: "call_ended", callId, result, ms } }, ...learned]);
          openCalls.ended(result);
        },
        read: (result) => openCalls.ended(result),
      },
      emit,
      now: clock.now,
      slowCalls,
      bounds,
      beforeEffect: this.#parts.effects?.before,
      ...(hooks
        ? {
            hooks: {
              before: (callId, call, signal) => {
                const touches = (args: JsonObject) =>
                  registry.touches({ name: call.tool, input: JSON.stringify(args) });
                return hooks.beforeCall({ callId, agent, ...call }, { signal, touches });
              },
              after: (callId, call, signal) => hooks.afterCall({ callId, agent, ...call }, signal),
            },
          }
        : {}),
    };
  }

  /** What extensions add to a user's prompt. The prompt of a child comes from its parent. */
  async #hookedNotes(words: string, signal: AbortSignal): Promise<readonly Note[]> {
    const { settings } = this.#parts;
    const { hooks } = this.#parts.extensions;
    if (!hooks || settings.name !== "main") return [];
    const notes = await hooks.promptEntered({ text: words }, signal);
    return notes.map((note) => ({ kind: "reminder", text: note }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.world[Symbol.asyncDispose]();
  }

  /** Results for calls that a crash or a full disk left without one. */
  #answerOpenCalls(signal: AbortSignal): Promise<readonly ToolResultBlock[]> {
    return this.#openCalls.results(async (calls, known) => {
      const { results } = await runBatch(calls, this.dispatch(), { signal, known });
      return results;
    });
  }

  #tail(): TailNotes {
    const { notes, blocks, also, entered } = this.#watch.changes(this.guard.mode);
    const pending = this.#parts.notices?.() ?? NO_NOTES;
    return {
      blocks: [...blocks, ...pending.blocks],
      also: [...also, ...pending.also, ...this.world.takeLearned()],
      entered: () => {
        entered();
        pending.entered();
        this.#tellNotes(notes);
      },
    };
  }

  #tellNotes(notes: readonly { readonly kind: NoteKind; readonly text: string }[]): void {
    for (const { kind, text: words } of notes) this.#parts.emit({ type: "note_entered", kind, text: words });
  }
}

const NO_NOTES: TailNotes = { blocks: [], also: [], entered: () => {} };

type Compacting = { readonly signal: AbortSignal; readonly follows: "go-on" | "wait"; readonly focus?: string };

const wordsOf = (prompt: Prompt): string =>
  typeof prompt === "string"
    ? prompt
    : prompt.flatMap((block) => (block.type === "text" ? [block.text] : [`[${block.type}]`])).join("\n");
