/** One agent: a line of context, the tools it works with, and what it may do. The main agent of a session is one, a fork
 *  is another.
 *  Invariant: an agent owns all that changes while it runs; it knows no other agent, and what it needs of one comes in
 *  through ports.
 *  Elsewhere: turns (run.ts), exchanges of a session (../session), making a child (../fork). */

import {
  type Block,
  type Client,
  type JsonObject,
  type ModelFacts,
  type ToolResultBlock,
  type Ttl,
  text,
} from "@prefork/wire";
import { firstContent, type Note, noteText, type OpenTask, type Prompt } from "../context/index.ts";
import type { EventBody, NoteKind } from "../events.ts";
import { type Journal, JournalError, type PlainEntry } from "../journal/index.ts";
import type { Ask, Clock, Ids } from "../ports.ts";
import type { Registry } from "../tools/index.ts";
import { type Account, estimatePrompt } from "./account.ts";
import { type Compacted, type CompactionCause, compact, reasonToLeave } from "./compacting.ts";
import { type Dispatch, runBatch } from "./dispatch.ts";
import type { Guarding } from "./guarding.ts";
import type { Lineage } from "./lineage.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { AgentHooks } from "./options.ts";
import type { Run, StartedFamily, Tail } from "./run.ts";
import type { TurnLimits } from "./stop.ts";
import type { SurroundingsWatch } from "./surroundings.ts";
import type { ToolWorld } from "./tool-world.ts";

/** What stays the same while an agent runs. */
export type AgentSettings = {
  /** `main`, or the id of a task. */
  readonly name: string;
  /** What it is for, where it is not the main agent. */
  readonly scope?: string;
  /** Of a fork: what it was told. It is told so again when its context is summed up. */
  readonly directive?: string;
  readonly maxTokens: number;
  readonly ttl: Ttl;
  readonly window: number;
  readonly compactAt: number;
  readonly thinks: boolean;
};

export type AgentParts = {
  readonly settings: AgentSettings;
  readonly journal: Journal;
  readonly line: Lineage;
  readonly client: Client;
  readonly account: Account;
  readonly facts: ModelFacts | undefined;
  readonly guarding: Guarding;
  readonly world: ToolWorld;
  readonly watch: SurroundingsWatch;
  readonly registry: Registry;
  readonly openCalls: OpenCalls;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly ask?: Ask;
  readonly remember?: (rule: string) => Promise<void>;
  /** What its calls of this turn have started. */
  readonly family?: () => StartedFamily | undefined;
  /** What tasks, or a parent, have to tell at the next boundary. */
  readonly notices?: () => Tail;
  /** Keeps a batch from waiting for its slow calls. */
  readonly beside?: Dispatch["beside"];
  /** Where it may work, if that is not wherever its guard lets it. */
  readonly bounds?: Dispatch["bounds"];
  readonly hooks?: AgentHooks;
  /** What runs beside it now, for a summary. */
  readonly tasks?: () => readonly OpenTask[];
  readonly emit: (event: EventBody) => void;
  readonly lastPrompt: string;
};

const PROMPT_SLOT = "prompt";

export class Agent implements AsyncDisposable {
  readonly #parts: AgentParts;
  #lastPrompt: string;
  /** Tokens right after room was made; 0 before. */
  #left = 0;
  /** Tokens when a summary last failed; 0 where none has since the last that did not. */
  #failedAt = 0;

  constructor(parts: AgentParts) {
    this.#parts = parts;
    this.#lastPrompt = parts.lastPrompt;
  }

  get line(): Lineage {
    return this.#parts.line;
  }
  get account(): Account {
    return this.#parts.account;
  }
  get guarding(): Guarding {
    return this.#parts.guarding;
  }
  get world(): ToolWorld {
    return this.#parts.world;
  }

  /** Everything that turns need, until `signal` ends them. */
  run(limits: TurnLimits, signal: AbortSignal): Run {
    const { settings, line, client, account, facts, emit, clock, family } = this.#parts;
    const { maxTokens, ttl, thinks } = settings;
    return {
      ...{ line, client, account, facts, maxTokens, ttl, emit, limits },
      now: clock.now,
      dispatch: this.dispatch(),
      ...(family ? { family } : {}),
      tail: () => this.#tail(),
      insideLastResult: thinks && facts?.earlierThinking === "last-turn",
      makeRoom: async (why) => (await this.compact(why, { signal, follows: "go-on" })).kind === "compacted",
    };
  }

  /** Enters what the user says, with what changed around the conversation. */
  async enterPrompt(prompt: Prompt, signal: AbortSignal): Promise<void> {
    const { line, watch, guarding, emit } = this.#parts;
    const around = await watch.read(guarding.mode);
    const words = wordsOf(prompt);
    const hooked = await this.#hookedNotes(words, signal);
    const results = await this.#answerOpenCalls(signal);
    const isFirst = line.prefix.messages === 0;
    const telling = isFirst ? undefined : watch.changes(guarding.mode, around);
    const told = isFirst ? NOTHING_TOLD : (this.#parts.notices?.() ?? NOTHING_TOLD);
    const before = hooked.map((note) => text(noteText(note)));
    const content: readonly Block[] = isFirst
      ? firstContent(around, prompt, before)
      : [
          ...results,
          ...(telling?.blocks ?? []),
          ...told.blocks,
          ...before,
          ...(typeof prompt === "string" ? [text(prompt)] : prompt),
        ];
    const { also, entered } = telling ?? watch.begun(around);
    const prompted: PlainEntry = { kind: "state", slot: PROMPT_SLOT, value: words.slice(0, 8_000) };
    line.enter({ role: "user", content }, { source: "prompt", also: [...also, ...told.also, prompted] });
    entered();
    told.entered();
    this.#lastPrompt = words;
    emit({ type: "prompt_entered", text: words });
    this.#tellNotes([...(telling?.notes ?? []), ...hooked]);
  }

  /** Enters what there is to tell, where nobody else speaks. False: nothing. */
  enterNotices(): boolean {
    const { line } = this.#parts;
    const { blocks, also, entered } = this.#tail();
    if (blocks.length === 0) return false;
    line.enter({ role: "user", content: blocks }, { source: "notice", also });
    entered();
    return true;
  }

  /** Goes on where an earlier life of it stopped: calls that were under way are answered, then these words follow. */
  async takeUp(words: readonly Block[], signal: AbortSignal): Promise<void> {
    const { line } = this.#parts;
    const results = await this.#answerOpenCalls(signal);
    const { blocks, also, entered } = this.#tail();
    line.enter({ role: "user", content: [...results, ...blocks, ...words] }, { source: "notice", also });
    entered();
  }

  /** Sums the conversation up on request; the user speaks next. */
  async compactNow(signal: AbortSignal, focus?: string): Promise<Compacted> {
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

  async compact(why: CompactionCause, asking: Compacting): Promise<Compacted> {
    const { line, client, account, facts, journal, world, watch, guarding, settings, clock, emit } = this.#parts;
    const { window, compactAt, maxTokens, directive } = settings;
    const needless = reasonToLeave(why, {
      ...{ line, window, compactAt, maxTokens },
      left: this.#left,
      failedAt: this.#failedAt,
    });
    if (needless !== undefined) return { kind: "left", reason: needless };
    // It would lose what its family is about to share with it, and be sent beside their leader.
    const { planned } = line;
    if (why === "threshold" && planned && !planned.isOver?.())
      return { kind: "left", reason: "its family is sent first" };
    await this.#parts.hooks?.beforeCompaction({ agent: settings.name, why }, asking.signal);
    const made = await compact(why, {
      ...{ line, client, account, facts, journal, world, watch, window, compactAt, maxTokens, emit, ...asking },
      tasks: this.#parts.tasks?.() ?? [],
      ...(directive === undefined ? {} : { directive }),
      mode: guarding.mode,
      lastPrompt: this.#lastPrompt,
      now: clock.now,
    });
    if (made.kind === "compacted") this.#left = made.left;
    if (made.kind !== "left")
      this.#failedAt = made.kind === "failed" ? estimatePrompt(line.prefix.byteLength, line.state) : 0;
    return made;
  }

  dispatch(): Dispatch {
    const { registry, guarding, world, journal, openCalls, emit, settings, clock, ids } = this.#parts;
    const { ask, remember, beside, bounds, hooks } = this.#parts;
    const { name: agent } = settings;
    const asker = { agent: settings.name, ...(settings.scope === undefined ? {} : { scope: settings.scope }) };
    return {
      registry,
      guard: () => guarding.context(),
      ask: async (question, signal) =>
        ask?.({ ...question, ...asker, id: ids.next("question") }, signal) ?? { kind: "deny" },
      allowAlways: async (rule) => {
        guarding.allow(rule);
        await remember?.(rule);
      },
      contextOf: (call, signal) => world.context(call, signal),
      shorten: (callId, tool, content) => world.shorten(callId, tool, content),
      shortenBatch: (results, toolOf) => world.shortenBatch(results, toolOf),
      record: {
        started: (callId, name, readOnly) => {
          // Where there is no effect, a crash leaves nothing to ask about: the call is made again.
          if (!readOnly) journal.append({ kind: "call_started", callId, name, readOnly });
        },
        ended: (callId, result, ms) => {
          // What the tool has learned counts with its result: a crash before the batch ends must not take one of them.
          const learned = world.learned().map((entry) => ({ entry }));
          journal.appendAll([{ entry: { kind: "call_ended", callId, result, ms } }, ...learned]);
          openCalls.ended(result);
        },
        read: (result) => openCalls.ended(result),
      },
      emit,
      now: clock.now,
      ...(beside ? { beside } : {}),
      ...(bounds ? { bounds } : {}),
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

  /** What extensions add to a prompt of the user. A child's comes from its parent. */
  async #hookedNotes(words: string, signal: AbortSignal): Promise<readonly Note[]> {
    const { hooks, settings } = this.#parts;
    if (!hooks || settings.name !== "main") return [];
    const notes = await hooks.promptEntered({ text: words }, signal);
    return notes.map((note) => ({ kind: "reminder", text: note }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.world[Symbol.asyncDispose]();
  }

  /** What a crash or a full disk left without a result. */
  #answerOpenCalls(signal: AbortSignal): Promise<readonly ToolResultBlock[]> {
    return this.#parts.openCalls.results(async (calls, known) => {
      const { results } = await runBatch(calls, this.dispatch(), { signal, known });
      return results;
    });
  }

  #tail(): Tail {
    const { watch, guarding, world } = this.#parts;
    const { notes, blocks, also, entered } = watch.changes(guarding.mode);
    const told = this.#parts.notices?.() ?? NOTHING_TOLD;
    return {
      blocks: [...blocks, ...told.blocks],
      also: [...also, ...told.also, ...world.learned()],
      entered: () => {
        entered();
        told.entered();
        this.#tellNotes(notes);
      },
    };
  }

  #tellNotes(notes: readonly { readonly kind: NoteKind; readonly text: string }[]): void {
    for (const { kind, text: words } of notes) this.#parts.emit({ type: "note_entered", kind, text: words });
  }
}

const NOTHING_TOLD: Tail = { blocks: [], also: [], entered: () => {} };

type Compacting = { readonly signal: AbortSignal; readonly follows: "go-on" | "wait"; readonly focus?: string };

const wordsOf = (prompt: Prompt): string =>
  typeof prompt === "string"
    ? prompt
    : prompt.flatMap((block) => (block.type === "text" ? [block.text] : [`[${block.type}]`])).join("\n");
