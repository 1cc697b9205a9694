/** The line of prefixes that one agent grows: what is in its context, and the only way to add to it.
 *  An entry is in the journal before it is in the prefix. Inside an epoch the prefix only grows. What belongs together
 *  is one write, and a write that fails changes nothing here.
 *  Elsewhere: bytes (@prefork/wire), lines on disk (../journal), what is added (turn.ts). */

import {
  type Block,
  type FrozenPrefix,
  type Head,
  type Marker,
  type Message,
  type ModelResponse,
  markerPlaces,
  modelFacts,
  type Protocol,
  promptTokens,
  type Ticket,
  type ToolResultBlock,
  type Usage,
} from "@prefork/wire";
import type { EpochReason } from "../events.ts";
import {
  addPictures,
  type Draft,
  type Growth,
  growBlocks,
  growEpoch,
  growMessage,
  type Journal,
  noPictures,
  type Pictures,
  type PlainEntry,
  type Replayed,
} from "../journal/index.ts";
import type { Reservation } from "../ports.ts";
import type { Measured } from "./account.ts";

export type LineageJournal = Pick<Journal, "appendAll" | "flush">;

/** What the next request continues from. All of it is by reference: keeping one costs nothing. */
export type LineageState = {
  readonly protocol: Protocol;
  readonly prefix: FrozenPrefix;
  /** The markers of the last request. */
  readonly markers: readonly Marker[];
  /** Is the last request still unanswered? */
  readonly unanswered?: boolean;
  readonly head: Head;
  readonly epoch: number;
  readonly measured: Measured | undefined;
  /** Pictures that were added since then. */
  readonly pictures: Pictures;
  /** Requests sent so far. */
  readonly turns: number;
  /** The last answered request of this epoch: what it sent, the same with its answer, when it was sent (an entry's lifetime
   *  counts from there, however long the answer took), and the answer's id. */
  readonly lastSent?: FrozenPrefix;
  readonly answered?: FrozenPrefix;
  readonly askedAt?: number;
  /** When that answer was complete; unknown after a resume. */
  readonly answeredAt?: number;
  readonly responseId?: string;
  /** For the requests of this epoch: tokens that could have been read from the cache, and tokens that were read. */
  readonly warmth?: { readonly readable: number; readonly read: number };
};

/** How the next request is sent, if it belongs to a family. */
export type NextRequest = {
  readonly markers?: (prefix: FrozenPrefix) => readonly Marker[]; // default: the same as for any other request
  /** Resolves when it may be sent. */
  readonly admit: (signal: AbortSignal) => Promise<Ticket>;
  /** Is nobody waiting for anybody any more? Then a rewrite of the context need not wait for the family. Default: never. */
  readonly isOver?: () => boolean;
  /** The id of the answer with which the provider compares a cache miss, if it does that. */
  readonly diagnoseAgainst?: string;
};

/** What a context begins with. */
export type LineageStart = { readonly head: Head; readonly messages?: readonly Message[]; readonly source?: string };

/** `protocol`: if it changes with this epoch. */
type NewEpoch = LineageStart & { readonly protocol?: Protocol };

type LineageOrigin = LineageState & { readonly lastEpoch?: number };

export class Lineage {
  readonly #journal: LineageJournal;
  readonly #entered: ((message: Message) => void) | undefined;
  #state: LineageState;
  #next: NextRequest | undefined;
  /** The highest number of an epoch. After going back it is higher than that of the current one. */
  #lastEpoch: number;

  /** Use `beginLineage` or `resumeLineage`. `entered` is called for every message that is added. */
  constructor(journal: LineageJournal, { lastEpoch, ...state }: LineageOrigin, entered?: (message: Message) => void) {
    this.#journal = journal;
    this.#state = state;
    this.#entered = entered;
    this.#lastEpoch = lastEpoch ?? state.epoch;
  }

  get state(): LineageState {
    return this.#state;
  }
  get prefix(): FrozenPrefix {
    return this.#state.prefix;
  }

  /** Adds a message; calls that it leaves open are answered by the placeholder. `also`: entries of the same write. */
  enter(
    message: Message,
    { source, also = [] }: { readonly source?: string; readonly also?: readonly PlainEntry[] } = {},
  ): void {
    const { prefix, drafts } = growMessage(this.prefix, message, source === undefined ? {} : { source });
    this.#journal.appendAll([...drafts, ...also.map((entry) => ({ entry }))]);
    this.#state = { ...this.#state, prefix, pictures: addPictures(this.#state.pictures, message.content) };
    this.#entered?.(message);
  }

  /** Adds a message that `extend` continues: what a family shares. */
  enterOpen(message: Message): void {
    const { prefix, drafts } = growMessage(this.prefix, message, { open: true });
    this.#journal.appendAll(drafts);
    this.#state = { ...this.#state, prefix, pictures: addPictures(this.#state.pictures, message.content) };
  }

  /** Adds blocks to the user message that is still open. */
  extend(
    blocks: readonly Block[],
    { source, also = [] }: { readonly source?: string; readonly also?: readonly PlainEntry[] } = {},
  ): void {
    const { prefix, drafts } = growBlocks(this.prefix, blocks, source);
    this.#journal.appendAll([...drafts, ...also.map((entry) => ({ entry }))]);
    this.#state = { ...this.#state, prefix, pictures: addPictures(this.#state.pictures, blocks) };
    this.#entered?.({ role: "user", content: blocks });
  }

  /** Adds a prefix that was grown once for several lines. */
  adopt({ prefix, drafts }: Growth): void {
    this.#journal.appendAll(drafts);
    this.#state = { ...this.#state, prefix };
  }

  /** The next request belongs to a family. */
  planNext(next: NextRequest): void {
    this.#next = next;
  }

  get plannedNext(): NextRequest | undefined {
    return this.#next;
  }

  /** Takes the plan: only the first request after a fan-out is sent in the family's order. */
  takePlan(): NextRequest | undefined {
    const next = this.#next;
    this.#next = undefined;
    return next;
  }

  /** A deliberate rewrite: from here on the context begins with this. `also`: entries of the same write. */
  startEpoch(reason: EpochReason, beginning: NewEpoch, also: readonly PlainEntry[] = []): void {
    this.#next = undefined; // it was planned for bytes that are gone
    const { turns } = this.#state;
    const { protocol = this.#state.protocol } = beginning;
    const epoch = this.#lastEpoch + 1;
    const [prefix, drafts] = grown(protocol, { ...beginning, epoch, reason });
    this.#journal.appendAll([...drafts, ...also.map((entry) => ({ entry }))]);
    const pictures = picturesIn(beginning);
    this.#lastEpoch = epoch;
    this.#state = { protocol, prefix, markers: [], head: beginning.head, epoch, measured: undefined, pictures, turns };
  }

  /** Continues from an earlier point of the same journal, which already says so. */
  goBack(replayed: Replayed): void {
    const state = stateIn(replayed);
    if (!state) throw new TypeError("there is nothing to go back to");
    this.#next = undefined; // of bytes that this line does not have
    this.#state = state;
  }

  /** Records a request that is about to be sent, and returns its number. */
  recordRequest(
    markers: readonly Marker[],
    { maxTokens, reserved }: { readonly maxTokens: number; readonly reserved: Reservation },
  ): number {
    const turns = this.#state.turns + 1;
    const reservedUsd = reserved.usd > 0 ? { reservedUsd: reserved.usd } : {};
    const places = markerPlaces(markers);
    const prefixHash = this.prefix.hash;
    this.#journal.appendAll([
      { entry: { kind: "request", turn: turns, markers: places, prefixHash, maxTokens, ...reservedUsd } },
    ]);
    this.#state = { ...this.#state, markers, turns, unanswered: true };
    return turns;
  }

  /** Records the cost of a request that broke off after its answer had begun. */
  recordBrokenAnswer({ usage, usd }: Billed): void {
    this.#journal.appendAll([
      { entry: brokenEntry(this.#state.turns, { usage, ...(usd === undefined ? {} : { usd }) }) },
    ]);
  }

  /** Records an answer and its cost. */
  async recordAnswer(response: ModelResponse, facts: Answering): Promise<void> {
    const { id, model, stop, usage } = response;
    const { message, usd, ms, refused, broken } = facts;
    const { turns, prefix: lastSent } = this.#state;
    const measured = { bytes: lastSent.byteLength, tokens: promptTokens(usage) };
    const answer: PlainEntry = {
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
    const lost = broken ? [brokenEntry(turns, broken)] : [];
    if (message) this.enter(message, { also: [...lost, answer, ...ended] });
    else this.#journal.appendAll([...lost, answer].map((entry) => ({ entry })));
    const warmth = addWarmth(this.#state, usage);
    const answeredAt = facts.askedAt + ms;
    const last = { lastSent, answered: this.prefix, askedAt: facts.askedAt, answeredAt, responseId: id, warmth };
    this.#state = { ...this.#state, ...last, measured, pictures: noPictures, unanswered: false };
    await this.#journal.flush();
  }
}

/** Prompts that are too short to be cached do not count. */
const addWarmth = ({ warmth, measured, head }: LineageState, usage: Usage): NonNullable<LineageState["warmth"]> => {
  const { readable, read } = warmth ?? { readable: 0, read: 0 };
  const before = measured?.tokens ?? 0;
  if (before < (modelFacts(head.model)?.minimumPrefix ?? 0)) return { readable, read };
  return { readable: readable + before, read: read + Math.min(before, usage.read) };
};

type Billed = { readonly usage: Usage; readonly usd?: number };

const brokenEntry = (turn: number, answer: Billed): PlainEntry => ({ kind: "billed", turn, ...answer });

type Answering = {
  /** The cost of earlier answers to it that broke off. */
  readonly broken?: Billed;
  readonly message?: Message;
  /** Results for calls of the message that may not run. They enter with it, so that no later run of the session runs them. */
  readonly refused: readonly ToolResultBlock[];
  readonly usd?: number;
  readonly ms: number;
  readonly askedAt: number;
};

const picturesIn = ({ messages = [] }: LineageStart): Pictures =>
  messages.reduce((sum, { content }) => addPictures(sum, content), noPictures);

type Epoch = LineageStart & { readonly epoch: number; readonly reason: EpochReason };

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

/** A new line. */
export const beginLineage = (journal: LineageJournal, protocol: Protocol, beginning: LineageStart): Lineage => {
  const [prefix, drafts] = grown(protocol, { ...beginning, epoch: 1, reason: "start" });
  journal.appendAll(drafts);
  return new Lineage(journal, {
    protocol,
    prefix,
    markers: [],
    head: beginning.head,
    epoch: 1,
    measured: undefined,
    pictures: picturesIn(beginning),
    turns: 0,
  });
};

/** A line that continues where its journal ends; undefined if the journal has no epoch. */
export const resumeLineage = (
  journal: LineageJournal,
  replayed: Replayed,
  entered?: (message: Message) => void,
): Lineage | undefined => {
  const state = stateIn(replayed);
  return state && new Lineage(journal, { ...state, lastEpoch: replayed.lastEpoch }, entered);
};

const stateIn = (replayed: Replayed): LineageState | undefined => {
  const {
    openEpoch: began,
    protocol,
    prefix,
    markers,
    lastTurn,
    exact,
    measured,
    asked: lastSent,
    askedAt,
    lastResponse,
  } = replayed;
  const { isAnswered } = replayed;
  if (!began || !protocol || !prefix) return undefined;
  return {
    protocol,
    prefix,
    markers,
    head: began.head,
    epoch: began.epoch,
    measured: exact ? measured : undefined,
    pictures: replayed.pictures,
    turns: lastTurn,
    unanswered: !isAnswered,
    ...(exact && lastSent && askedAt !== undefined ? { lastSent, askedAt } : {}),
    ...(exact && lastResponse ? { responseId: lastResponse.id } : {}),
  };
};
