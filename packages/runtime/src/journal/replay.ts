/** What do the entries of a journal add up to? Pure.
 *  Invariant: as long as every hash agrees, the prefix has the bytes that were sent. If one does not, a problem is
 *  reported and the rest is encoded again from the neutral messages, with every call answered, so that the session can
 *  continue.
 *  Elsewhere: reading the file (read.ts), rebuilding the prefix (growth.ts), who continues the session (../agent). */

import {
  addUsage,
  type Block,
  type FrozenPrefix,
  type Json,
  protocols as knownProtocols,
  type Marker,
  type MarkerPlace,
  type Message,
  markersAt,
  noUsage,
  type Protocol,
  promptTokens,
  type ToolResultBlock,
  type ToolUseBlock,
  toolResult,
  type Usage,
} from "@prefork/wire";
import type {
  CallEndedEntry,
  EpochEntry,
  ForkEntry,
  JournalEntry,
  JournalProblem,
  NoticeEntry,
  OpenedEntry,
  RequestEntry,
  ResponseEntry,
  SentBytes,
  StoredEntry,
  WireEntry,
} from "./entry.ts";
import { addPictures, emptyPrefixState, noPictures, type Pictures, type PrefixState, regrow } from "./growth.ts";

/** A call of the last assistant message without a result in the prefix, and how far it got. */
export type OpenCall = { readonly call: ToolUseBlock } & (
  | { readonly status: "never-started" }
  | { readonly status: "started"; readonly readOnly: boolean }
  | { readonly status: "ended"; readonly result: ToolResultBlock; readonly ms: number; readonly state?: Json }
);

export type Replayed = {
  readonly opened: OpenedEntry | undefined;
  /** For a fork: its parent where it branched off. Prefix, messages and markers continue from there. */
  readonly inherited: Replayed | undefined;
  /** The current epoch with its head; undefined before the first one. */
  readonly openEpoch: EpochEntry | undefined;
  readonly protocol: Protocol | undefined;
  readonly prefix: FrozenPrefix | undefined;
  /** Has every hash of this epoch agreed, so that the provider's cache knows these bytes? */
  readonly exact: boolean;
  /** The markers of the last request of this epoch. */
  readonly markers: readonly Marker[];
  /** Was that request answered? True if none was sent. */
  readonly isAnswered: boolean;
  /** All messages since the epoch began. */
  readonly messages: readonly Message[];
  /** Has it ever received a fork's directive from us? */
  readonly hasDirective: boolean;
  /** For a fork, what it shares with its siblings: everything before its own directive. */
  readonly shared: FrozenPrefix | undefined;
  /** The prefix when a fork last branched off: the end of what its family shares. Of this epoch. */
  readonly forkedFrom: FrozenPrefix | undefined;
  readonly openCalls: readonly OpenCall[];
  readonly state: ReadonlyMap<string, Json>;
  /** Not delivered yet, oldest first. */
  readonly notices: readonly NoticeEntry[];
  /** The ids of all notices, delivered or not. */
  readonly noticeIds: ReadonlySet<string>;
  /** The last notice of each source, delivered or not, with the number of its entry. */
  readonly lastNotices: ReadonlyMap<string, NumberedNotice>;
  /** For each state slot, the number of the entry that last set it. */
  readonly stateSeqs: ReadonlyMap<string, number>;
  readonly usage: Usage;
  readonly usd: number;
  /** The number of answered requests. */
  readonly turns: number;
  /** The number of the last request, answered or not. */
  readonly lastTurn: number;
  /** What the provider last counted in this epoch: that many bytes were that many tokens. */
  readonly measured: { readonly bytes: number; readonly tokens: number } | undefined;
  /** Pictures added since then. */
  readonly pictures: Pictures;
  readonly lastResponse: ResponseEntry | undefined;
  /** When the last answered request of this epoch was sent. */
  readonly askedAt: number | undefined;
  /** The prefix of that request. */
  readonly asked: FrozenPrefix | undefined;
  /** The last request, if nothing of its answer was recorded. */
  readonly unanswered: RequestEntry | undefined;
  readonly forks: readonly ForkEntry[];
  readonly lastSeq: number;
  readonly lastAt: number;
  readonly problems: readonly JournalProblem[];
};

export type NumberedNotice = Pick<NoticeEntry, "id" | "text"> & { readonly seq: number };

export type ReplayOptions = {
  /** By the name in the epoch. Default: all protocols of the wire package. */
  readonly protocols?: readonly Protocol[];
  readonly inherited?: Replayed;
  /** Entries after this one are ignored. */
  readonly until?: number;
};

export const replay = (entries: readonly StoredEntry[], options: ReplayOptions = {}): Replayed => {
  const replaying = new Replayer(options);
  for (const stored of entries) {
    if (stored.seq > (options.until ?? Number.POSITIVE_INFINITY)) break;
    replaying.take(stored);
  }
  return replaying.result();
};

type GrownBy = Pick<StoredEntry, "line" | "seq"> & { readonly sent: SentBytes };

type CallFacts =
  | { readonly status: "started"; readonly readOnly: boolean }
  | (Omit<CallEndedEntry, "kind" | "callId"> & { readonly status: "ended" });

const LOST_RESULT =
  "The result of this call was lost, so its effect is unknown. Look at the present state before you rely on it.";

class Replayer {
  readonly #options: ReplayOptions;
  readonly #problems: JournalProblem[] = [];
  readonly #state = new Map<string, Json>();
  readonly #notices = new Map<string, NoticeEntry>();
  readonly #noticed = new Set<string>();
  readonly #lastNotices = new Map<string, NumberedNotice>();
  readonly #stateSeqs = new Map<string, number>();
  readonly #forks = new Map<string, ForkEntry>();
  readonly #calls = new Map<string, CallFacts>();
  #opened: OpenedEntry | undefined;
  #grown: PrefixState = emptyPrefixState;
  #directed = false;
  #shared: FrozenPrefix | undefined;
  #forkedFrom: FrozenPrefix | undefined;
  /** The number of the entry that last extended the prefix. */
  #grownAt = 0;
  #isAnswered = true;
  #places: readonly MarkerPlace[] | undefined;
  #usage = noUsage;
  #usd = 0;
  #turns = 0;
  #lastTurn = 0;
  /** The prefix of the last request. */
  #asking: FrozenPrefix | undefined;
  #asked: FrozenPrefix | undefined;
  #askedAt: number | undefined;
  #measured: Replayed["measured"];
  #pictures = noPictures;
  #lastResponse: ResponseEntry | undefined;
  #unanswered: RequestEntry | undefined;
  #lastSeq = 0;
  #lastAt = 0;

  constructor(options: ReplayOptions) {
    this.#options = options;
    if (!options.inherited) return;
    const {
      openEpoch: began,
      protocol,
      prefix,
      exact,
      messages,
      measured,
      pictures,
      asked,
      askedAt,
    } = options.inherited;
    this.#grown = { epoch: began, protocol, prefix, exact, messages };
    this.#measured = measured;
    this.#pictures = pictures;
    this.#asked = asked;
    this.#askedAt = askedAt;
  }

  take(stored: StoredEntry): void {
    this.#lastSeq = stored.seq;
    this.#lastAt = stored.at;
    this.#enter(stored.entry, stored);
  }

  #enter(entry: JournalEntry, stored: StoredEntry): void {
    switch (entry.kind) {
      case "opened":
        this.#opened ??= entry;
        return;
      case "epoch":
      case "message":
      case "blocks":
        if (entry.kind !== "epoch" && entry.source === "directive") this.#enterDirective();
        if (entry.kind !== "epoch")
          this.#markDelivered(entry.kind === "message" ? entry.message.content : entry.blocks);
        if (stored.sent) this.#grow(entry, { ...stored, sent: stored.sent });
        return;
      case "request":
        if (this.#grown.exact && entry.prefixHash !== this.#grown.prefix?.hash) {
          const detail = `the request of turn ${entry.turn} was sent with other bytes`;
          this.#problems.push({ line: stored.line, kind: "changed", detail });
        }
        this.#places = entry.markers;
        this.#unanswered = entry;
        this.#isAnswered = false;
        this.#lastTurn = entry.turn;
        this.#asking = this.#grown.prefix;
        return;
      case "response":
        this.#usage = addUsage(this.#usage, entry.usage);
        this.#usd += entry.usd ?? 0;
        this.#turns += 1;
        this.#lastResponse = entry;
        if (this.#unanswered?.turn === entry.turn && this.#asking !== undefined) {
          this.#measured = { bytes: this.#asking.byteLength, tokens: promptTokens(entry.usage) };
          this.#pictures = noPictures;
          this.#asked = this.#asking;
          this.#askedAt = stored.at - entry.ms;
          this.#isAnswered = true;
        }
        this.#unanswered = undefined;
        return;
      case "billed":
        this.#usage = addUsage(this.#usage, entry.usage);
        this.#usd += entry.usd ?? 0;
        return;
      case "call_started":
        this.#calls.set(entry.callId, { status: "started", readOnly: entry.readOnly });
        return;
      case "call_ended": {
        const { kind: _kind, callId, ...facts } = entry;
        this.#calls.set(callId, { status: "ended", ...facts });
        return;
      }
      case "state":
        this.#state.set(entry.slot, entry.value);
        this.#stateSeqs.set(entry.slot, stored.seq);
        return;
      case "notice":
        if (!this.#noticed.has(entry.id)) this.#notices.set(entry.id, entry);
        this.#lastNotices.set(entry.source ?? "", { id: entry.id, text: entry.text, seq: stored.seq });
        this.#noticed.add(entry.id);
        return;
      case "notice_delivered":
        this.#notices.delete(entry.id);
        this.#noticed.add(entry.id);
        return;
      case "fork":
        this.#forks.set(entry.session, entry);
        if (entry.after >= this.#grownAt) this.#forkedFrom = this.#grown.prefix;
        return;
      case "unfork":
        this.#forks.delete(entry.session);
        return;
      case "exchange_ended":
        this.#unanswered = undefined;
        return;
    }
  }

  result(): Replayed {
    const { epoch, protocol, prefix, exact, messages } = this.#grown;
    return {
      opened: this.#opened,
      inherited: this.#options.inherited,
      openEpoch: epoch,
      protocol,
      prefix,
      exact,
      markers: this.#markers(),
      isAnswered: this.#isAnswered,
      messages,
      hasDirective: this.#directed,
      shared: this.#shared,
      forkedFrom: this.#forkedFrom,
      openCalls: (prefix?.pending ?? []).flatMap((id) => this.#openCall(id)),
      state: this.#state,
      notices: [...this.#notices.values()],
      noticeIds: this.#noticed,
      lastNotices: this.#lastNotices,
      stateSeqs: this.#stateSeqs,
      usage: this.#usage,
      usd: this.#usd,
      turns: this.#turns,
      lastTurn: this.#lastTurn,
      measured: this.#measured,
      pictures: this.#pictures,
      lastResponse: this.#lastResponse,
      askedAt: this.#askedAt,
      asked: this.#asked,
      unanswered: this.#unanswered,
      forks: [...this.#forks.values()],
      lastSeq: this.#lastSeq,
      lastAt: this.#lastAt,
      problems: this.#problems,
    };
  }

  /** If a notice's text is in the context, it was delivered, even if the line that says so is lost. */
  #markDelivered(content: readonly Block[]): void {
    if (this.#notices.size === 0) return;
    for (const block of content) {
      if (block.type === "tool_result") this.#markDelivered(block.content);
      if (block.type !== "text") continue;
      const delivered = [...this.#notices.values()].find(({ text }) => text === block.text);
      if (delivered) this.#notices.delete(delivered.id);
    }
  }

  #enterDirective(): void {
    if (!this.#directed) this.#shared = this.#grown.prefix;
    this.#directed = true;
  }

  #grow(entry: WireEntry, { sent, line, seq }: GrownBy): void {
    const [grown, problem] = regrow(
      this.#grown,
      { entry, sent },
      {
        protocols: this.#options.protocols ?? knownProtocols,
        resultOf: (id) => this.#resultOf(id),
      },
    );
    this.#grown = grown;
    this.#grownAt = seq;
    if (problem) this.#problems.push({ line, ...problem });
    if (entry.kind !== "epoch")
      this.#pictures = addPictures(this.#pictures, entry.kind === "message" ? entry.message.content : entry.blocks);
    else {
      this.#places = [];
      this.#pictures = noPictures;
      this.#measured = undefined;
      this.#asked = undefined;
      this.#askedAt = undefined;
      this.#forkedFrom = undefined;
      this.#shared = undefined;
    }
    // A provider may reuse an id in a later turn.
    if (entry.kind === "message" && entry.message.role === "assistant") this.#calls.clear();
  }

  /** Old marker positions mean nothing in bytes that no cache knows. */
  #markers(): readonly Marker[] {
    const { prefix, exact } = this.#grown;
    if (!prefix || !exact) return [];
    return this.#places ? markersAt(prefix, this.#places) : (this.#options.inherited?.markers ?? []);
  }

  /** For a call whose result is no longer in the context: the result recorded when the call ended, if that is left. */
  #resultOf(id: string): ToolResultBlock {
    const known = this.#calls.get(id);
    return known?.status === "ended" ? known.result : { ...toolResult(id, LOST_RESULT), isError: true };
  }

  #openCall(id: string): readonly OpenCall[] {
    const known = this.#calls.get(id);
    const inherited = this.#options.inherited?.openCalls.find(({ call }) => call.id === id);
    if (!known && inherited) return [inherited];
    const last = this.#grown.messages.findLast(({ role }) => role === "assistant");
    const call = last?.content.find((block) => block.type === "tool_use" && block.id === id);
    if (call?.type !== "tool_use") return [];
    return [known ? { call, ...known } : { call, status: "never-started" }];
  }
}
