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

/** What the next request goes on from. All of it is by reference: keeping one costs nothing. */
export type LineageState = {
  readonly protocol: Protocol;
  readonly prefix: FrozenPrefix;
  /** Of the last request. */
  readonly markers: readonly Marker[];
  /** Was that one answered? */
  readonly unanswered?: boolean;
  readonly head: Head;
  readonly epoch: number;
  readonly measured: Measured | undefined;
  /** That came since then. */
  readonly pictures: Pictures;
  /** Requests sent so far. */
  readonly turns: number;
  /** Of this epoch, the last request that was answered: what it sent, that with its answer, when it was sent (an entry's
   *  life counts from there, however long the answer took), and the answer's id. */
  readonly asked?: FrozenPrefix;
  readonly answered?: FrozenPrefix;
  readonly askedAt?: number;
  /** When that answer had come; unknown in a later life of the session. */
  readonly answeredAt?: number;
  readonly responseId?: string;
  /** Of this epoch's requests: tokens that the one before had sent, and how many of them were read. */
  readonly warmth?: { readonly could: number; readonly did: number };
};

/** How the next request is sent, where it is not sent like any other: the first ones of a family. */
export type NextRequest = {
  readonly markers?: (prefix: FrozenPrefix) => readonly Marker[]; // default: as of any other
  /** Resolves when it may be sent. */
  readonly admit: (signal: AbortSignal) => Promise<Ticket>;
  /** Nobody is waited for any more, so it is not sent before a rewrite for their sake. Default: never. */
  readonly isOver?: () => boolean;
  /** The answer that the provider compares a cache miss with, where it does that. */
  readonly diagnoseAgainst?: string;
};

/** What a context begins with. */
export type LineageStart = { readonly head: Head; readonly messages?: readonly Message[]; readonly source?: string };

/** `protocol`: where it is another one from here on. */
type NewEpoch = LineageStart & { readonly protocol?: Protocol };

export class Lineage {
  readonly #journal: LineageJournal;
  readonly #entered: ((message: Message) => void) | undefined;
  #state: LineageState;
  #next: NextRequest | undefined;

  /** Use `beginLineage` or `resumeLineage`. `entered` hears of every message that is put at the end. */
  constructor(journal: LineageJournal, state: LineageState, entered?: (message: Message) => void) {
    this.#journal = journal;
    this.#state = state;
    this.#entered = entered;
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
    this.#state = { ...this.#state, prefix, pictures: addPictures(this.#state.pictures, message.content) };
    this.#entered?.(message);
  }

  /** Puts a message at the end that `extend` goes on with: what a family shares. */
  enterOpen(message: Message): void {
    const { prefix, drafts } = growMessage(this.prefix, message, { open: true });
    this.#journal.appendAll(drafts);
    this.#state = { ...this.#state, prefix, pictures: addPictures(this.#state.pictures, message.content) };
  }

  /** Puts more blocks into the user message that is still open. */
  extend(
    blocks: readonly Block[],
    { source, also = [] }: { readonly source?: string; readonly also?: readonly PlainEntry[] } = {},
  ): void {
    const { prefix, drafts } = growBlocks(this.prefix, blocks, source);
    this.#journal.appendAll([...drafts, ...also.map((entry) => ({ entry }))]);
    this.#state = { ...this.#state, prefix, pictures: addPictures(this.#state.pictures, blocks) };
    this.#entered?.({ role: "user", content: blocks });
  }

  /** Puts at the end what was grown before, for several lines at once. */
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

  /** Once: only the first request after a fan-out is sent in the family's order. */
  takePlan(): NextRequest | undefined {
    const next = this.#next;
    this.#next = undefined;
    return next;
  }

  /** A deliberate rewrite: from here on the context begins with this. `also`: what is true from the same moment on. */
  startEpoch(reason: EpochReason, beginning: NewEpoch, also: readonly PlainEntry[] = []): void {
    this.#next = undefined; // of bytes that are gone
    const { turns } = this.#state;
    const { protocol = this.#state.protocol } = beginning;
    const epoch = this.#state.epoch + 1;
    const [prefix, drafts] = grown(protocol, { ...beginning, epoch, reason });
    this.#journal.appendAll([...drafts, ...also.map((entry) => ({ entry }))]);
    const pictures = picturesIn(beginning);
    this.#state = { protocol, prefix, markers: [], head: beginning.head, epoch, measured: undefined, pictures, turns };
  }

  /** A request is about to be sent. Gives its number. */
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

  /** A request broke off after its answer had begun: what that took. */
  recordBrokenAnswer({ usage, usd }: Took): void {
    this.#journal.appendAll([
      { entry: brokenEntry(this.#state.turns, { usage, ...(usd === undefined ? {} : { usd }) }) },
    ]);
  }

  /** A request was answered: what it said and what it took. */
  async recordAnswer(response: ModelResponse, facts: Answering): Promise<void> {
    const { id, model, stop, usage } = response;
    const { message, usd, ms, refused, broken } = facts;
    const { turns, prefix: asked } = this.#state;
    const measured = { bytes: asked.byteLength, tokens: promptTokens(usage) };
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
    const lost = broken ? [brokenEntry(turns, broken)] : [];
    if (message) this.enter(message, { also: [...lost, took, ...ended] });
    else this.#journal.appendAll([...lost, took].map((entry) => ({ entry })));
    const warmth = warmer(this.#state, usage);
    const answeredAt = facts.askedAt + ms;
    const last = { asked, answered: this.prefix, askedAt: facts.askedAt, answeredAt, responseId: id, warmth };
    this.#state = { ...this.#state, ...last, measured, pictures: noPictures, unanswered: false };
    await this.#journal.flush();
  }
}

/** Prompts that are too short to be kept say nothing. */
const warmer = ({ warmth, measured, head }: LineageState, { read }: Usage): NonNullable<LineageState["warmth"]> => {
  const { could, did } = warmth ?? { could: 0, did: 0 };
  const before = measured?.tokens ?? 0;
  if (before < (modelFacts(head.model)?.minimumPrefix ?? 0)) return { could, did };
  return { could: could + before, did: did + Math.min(before, read) };
};

type Took = { readonly usage: Usage; readonly usd?: number };

const brokenEntry = (turn: number, took: Took): PlainEntry => ({ kind: "billed", turn, ...took });

type Answering = {
  /** What answers to it that broke off had taken before. */
  readonly broken?: Took;
  readonly message?: Message;
  /** Answers to calls of the message that may not run: entered with it, so that no later life of the session runs them. */
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

/** A line that begins with this. */
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

/** A line that goes on where its journal ends; undefined where that holds no epoch. */
export const resumeLineage = (
  journal: LineageJournal,
  replayed: Replayed,
  entered?: (message: Message) => void,
): Lineage | undefined => {
  const {
    openEpoch: began,
    protocol,
    prefix,
    markers,
    lastTurn,
    exact,
    measured,
    asked,
    askedAt,
    lastResponse,
  } = replayed;
  const { isAnswered } = replayed;
  if (!began || !protocol || !prefix) return undefined;
  const state: LineageState = {
    protocol,
    prefix,
    markers,
    head: began.head,
    epoch: began.epoch,
    measured: exact ? measured : undefined,
    pictures: replayed.pictures,
    turns: lastTurn,
    unanswered: !isAnswered,
    ...(exact && asked && askedAt !== undefined ? { asked, askedAt } : {}),
    ...(exact && lastResponse ? { responseId: lastResponse.id } : {}),
  };
  return new Lineage(journal, state, entered);
};
