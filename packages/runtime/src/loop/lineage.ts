/** The line of prefixes that one agent grows: what is in its context, and the only way for more to get there.
 *  Invariant: an entry is in the journal before it is in the prefix; inside an epoch the prefix only grows; what belongs
 *  together is one write. A write that fails changes nothing here.
 *  Elsewhere: bytes (@prefork/wire), lines on the disk (../journal), what is said (turn.ts). */

import {
  type Block,
  type FrozenPrefix,
  type Head,
  type Marker,
  type Message,
  type ModelResponse,
  markerPlaces,
  type Protocol,
  promptTokens,
  type Ticket,
  type ToolResultBlock,
} from "@prefork/wire";
import type { EpochReason } from "../events.ts";
import {
  type Draft,
  growBlocks,
  growEpoch,
  growMessage,
  type JournalWriter,
  type PlainEntry,
  type Replayed,
} from "../journal/index.ts";
import type { Hold, Measured } from "./account.ts";

export type LineageJournal = Pick<JournalWriter, "appendAll" | "flush">;

/** What the next request goes on from. All of it is by reference: keeping one costs nothing. */
export type LineageState = {
  readonly protocol: Protocol;
  readonly prefix: FrozenPrefix;
  /** Of the last request. */
  readonly markers: readonly Marker[];
  readonly head: Head;
  readonly epoch: number;
  readonly measured: Measured | undefined;
  /** Requests sent so far. */
  readonly turns: number;
  /** When the last one was answered; undefined after a restart. */
  readonly answeredAt?: number;
};

/** How the next request is sent, where it is not sent like any other: the first ones of a family. */
export type NextRequest = {
  readonly markers: (prefix: FrozenPrefix) => readonly Marker[];
  /** Resolves when it may be sent. */
  readonly admit: (signal: AbortSignal) => Promise<Ticket>;
};

/** What a context begins with. */
export type Beginning = { readonly head: Head; readonly messages?: readonly Message[]; readonly source?: string };

export class Lineage {
  readonly #journal: LineageJournal;
  #state: LineageState;
  #next: NextRequest | undefined;

  /** Use `beginLineage` or `resumeLineage`. */
  constructor(journal: LineageJournal, state: LineageState) {
    this.#journal = journal;
    this.#state = state;
  }

  get state(): LineageState {
    return this.#state;
  }
  get prefix(): FrozenPrefix {
    return this.#state.prefix;
  }

  /** Puts a message at the end; calls that it would leave open are answered by the placeholder. `also`: what is true from
   *  the same moment on. */
  enter(
    message: Message,
    { source, also = [] }: { readonly source?: string; readonly also?: readonly PlainEntry[] } = {},
  ): void {
    const { prefix, drafts } = growMessage(this.prefix, message, source === undefined ? {} : { source });
    this.#journal.appendAll([...drafts, ...also.map((entry) => ({ entry }))]);
    this.#state = { ...this.#state, prefix };
  }

  /** Puts a message at the end that `extend` goes on with: what a family shares. */
  enterOpen(message: Message): void {
    const { prefix, drafts } = growMessage(this.prefix, message, { open: true });
    this.#journal.appendAll(drafts);
    this.#state = { ...this.#state, prefix };
  }

  /** Puts more blocks into the user message that is still open. */
  extend(
    blocks: readonly Block[],
    { source, also = [] }: { readonly source?: string; readonly also?: readonly PlainEntry[] } = {},
  ): void {
    const { prefix, drafts } = growBlocks(this.prefix, blocks, source);
    this.#journal.appendAll([...drafts, ...also.map((entry) => ({ entry }))]);
    this.#state = { ...this.#state, prefix };
  }

  /** The next request belongs to a family. */
  plan(next: NextRequest): void {
    this.#next = next;
  }

  /** Once: only the first request after a fan-out is sent in the family's order. */
  takePlan(): NextRequest | undefined {
    const next = this.#next;
    this.#next = undefined;
    return next;
  }

  /** A deliberate rewrite: from here on the context begins with this. `also`: what is true from the same moment on. */
  startEpoch(reason: EpochReason, beginning: Beginning, also: readonly PlainEntry[] = []): void {
    const { protocol, turns } = this.#state;
    const epoch = this.#state.epoch + 1;
    const [prefix, drafts] = grown(protocol, { ...beginning, epoch, reason });
    this.#journal.appendAll([...drafts, ...also.map((entry) => ({ entry }))]);
    this.#state = { protocol, prefix, markers: [], head: beginning.head, epoch, measured: undefined, turns };
  }

  /** A request is about to be sent. Gives its number. */
  asking(markers: readonly Marker[], { maxTokens, held }: { readonly maxTokens: number; readonly held: Hold }): number {
    const turns = this.#state.turns + 1;
    const reserved = held.usd > 0 ? { reservedUsd: held.usd } : {};
    const places = markerPlaces(markers);
    const prefixHash = this.prefix.hash;
    this.#journal.appendAll([
      { entry: { kind: "request", turn: turns, markers: places, prefixHash, maxTokens, ...reserved } },
    ]);
    this.#state = { ...this.#state, markers, turns };
    return turns;
  }

  /** A request was answered: what it said and what it took. */
  async answered(response: ModelResponse, facts: Answering): Promise<void> {
    const { id, model, stop, usage } = response;
    const { message, usd, ms, refused } = facts;
    const { turns } = this.#state;
    const measured = { bytes: this.prefix.byteLength, tokens: promptTokens(usage) };
    const took: PlainEntry = {
      kind: "response",
      turn: turns,
      id,
      model,
      stop,
      usage,
      ms,
      ...(usd === undefined ? {} : { usd }),
    };
    const ended = refused.map(
      (result): PlainEntry => ({ kind: "call_ended", callId: result.toolUseId, result, ms: 0 }),
    );
    if (message) this.enter(message, { also: [took, ...ended] });
    else this.#journal.appendAll([{ entry: took }]);
    this.#state = { ...this.#state, measured, answeredAt: facts.at };
    await this.#journal.flush();
  }
}

type Answering = {
  readonly message?: Message;
  /** Answers to calls of the message that may not run: entered with it, so that no later life of the session runs them. */
  readonly refused: readonly ToolResultBlock[];
  readonly usd?: number;
  readonly ms: number;
  readonly at: number;
};

type Epoch = Beginning & { readonly epoch: number; readonly reason: EpochReason };

const grown = (
  protocol: Protocol,
  { head, messages = [], source, epoch, reason }: Epoch,
): readonly [FrozenPrefix, readonly Draft[]] => {
  const first = growEpoch(protocol, { epoch, reason, head });
  let { prefix } = first;
  const drafts = [...first.drafts];
  for (const message of messages) {
    const next = growMessage(prefix, message, source === undefined ? {} : { source });
    prefix = next.prefix;
    drafts.push(...next.drafts);
  }
  return [prefix, drafts];
};

/** A line that begins with this. */
export const beginLineage = (journal: LineageJournal, protocol: Protocol, beginning: Beginning): Lineage => {
  const [prefix, drafts] = grown(protocol, { ...beginning, epoch: 1, reason: "start" });
  journal.appendAll(drafts);
  return new Lineage(journal, {
    protocol,
    prefix,
    markers: [],
    head: beginning.head,
    epoch: 1,
    measured: undefined,
    turns: 0,
  });
};

/** A line that goes on where its journal ends; undefined where that holds no epoch. */
export const resumeLineage = (journal: LineageJournal, replayed: Replayed): Lineage | undefined => {
  const { began, protocol, prefix, markers, lastTurn, exact, measured } = replayed;
  if (!began || !protocol || !prefix) return undefined;
  return new Lineage(journal, {
    protocol,
    prefix,
    markers,
    head: began.head,
    epoch: began.epoch,
    measured: exact ? measured : undefined,
    turns: lastTurn,
  });
};
