/** What do the entries of a journal add up to? Pure.
 *  Invariant: as long as every hash agrees, the prefix has the bytes that were sent. If one does not, a problem is
 *  reported and the rest is encoded again from the neutral messages, with every call answered, so that the session can
 *  continue. After a branch everything about the conversation is as it was at the entry that the branch names; what was
 *  spent, tasks and other facts about the session only accumulate.
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
import {
  type BranchEntry,
  type CallEndedEntry,
  type EpochEntry,
  type ForkEntry,
  isLineSlot,
  type JournalEntry,
  type JournalProblem,
  type NoticeEntry,
  type OpenedEntry,
  type RequestEntry,
  type ResponseEntry,
  type SentBytes,
  type StoredEntry,
  type WireEntry,
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
  /** The highest number of an epoch, on whichever line; 0 before the first one. */
  readonly lastEpoch: number;
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
  const { until = Number.POSITIVE_INFINITY } = options;
  const counted = entries.filter(({ seq }) => seq <= until);
  const replaying = new Replayer(options, branchPoints(counted));
  for (const stored of counted) replaying.take(stored);
  return replaying.result();
};

/** The entries that the conversation ever went back to, in their order. */
const branchPoints = (entries: readonly StoredEntry[]): readonly number[] => {
  const points = entries.flatMap(({ entry }) => (entry.kind === "branch" ? [entry.after] : []));
  return [...new Set(points)].sort((a, b) => a - b);
};

type GrownBy = Pick<StoredEntry, "line" | "seq"> & { readonly sent: SentBytes };

type CallFacts =
  | { readonly status: "started"; readonly readOnly: boolean }
  | (Omit<CallEndedEntry, "kind" | "callId"> & { readonly status: "ended" });

const LOST_RESULT =
  "The result of this call was lost, so its effect is unknown. Look at the present state before you rely on it.";

/** Everything about the conversation. A branch restores all of it. */
type LineFacts = {
  grown: PrefixState;
  /** The number of the entry that last extended the prefix. */
  grownAt: number;
  shared: FrozenPrefix | undefined;
  forkedFrom: FrozenPrefix | undefined;
  calls: Map<string, CallFacts>;
  isAnswered: boolean;
  places: readonly MarkerPlace[] | undefined;
  /** The prefix of the last request. */
  asking: FrozenPrefix | undefined;
  asked: FrozenPrefix | undefined;
  askedAt: number | undefined;
  measured: Replayed["measured"];
  pictures: Pictures;
  lastResponse: ResponseEntry | undefined;
};

const emptyLine = (): LineFacts => ({
  ...{ grown: emptyPrefixState, grownAt: 0, shared: undefined, forkedFrom: undefined, calls: new Map() },
  ...{ isAnswered: true, places: undefined, asking: undefined, asked: undefined, askedAt: undefined },
  ...{ measured: undefined, pictures: noPictures, lastResponse: undefined },
});

type Checkpoint = { readonly line: LineFacts; readonly slots: ReadonlyMap<string, Json> };

class Replayer {
  readonly #options: ReplayOptions;
  /** Entries whose checkpoint a later branch needs; those that were not passed yet. */
  readonly #points: number[];
  readonly #checkpoints = new Map<number, Checkpoint>();
  readonly #problems: JournalProblem[] = [];
  readonly #state = new Map<string, Json>();
  #notices = new Map<string, NoticeEntry>();
  readonly #allNotices = new Map<string, NoticeEntry>();
  readonly #noticed = new Set<string>();
  readonly #lastNotices = new Map<string, NumberedNotice>();
  readonly #stateSeqs = new Map<string, number>();
  readonly #forks = new Map<string, ForkEntry>();
  #line = emptyLine();
  #opened: OpenedEntry | undefined;
  #directed = false;
  #usage = noUsage;
  #usd = 0;
  #turns = 0;
  #lastTurn = 0;
  #lastEpoch = 0;
  #unanswered: RequestEntry | undefined;
  #lastSeq = 0;
  #lastAt = 0;

  constructor(options: ReplayOptions, branchPoints: readonly number[]) {
    this.#options = options;
    this.#points = [...branchPoints];
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
    const grown = { epoch: began, protocol, prefix, exact, messages };
    this.#line = { ...this.#line, grown, measured, pictures, asked, askedAt };
    this.#lastEpoch = began?.epoch ?? 0;
  }

  take(stored: StoredEntry): void {
    // Before the next entry, and not after the one that is named: that line may be lost.
    while ((this.#points[0] ?? Number.POSITIVE_INFINITY) < stored.seq)
      this.#checkpoints.set(this.#points.shift() ?? 0, this.#checkpoint());
    this.#lastSeq = stored.seq;
    this.#lastAt = stored.at;
    this.#enter(stored.entry, stored);
  }

  #enter(entry: JournalEntry, stored: StoredEntry): void {
    const line = this.#line;
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
        if (line.grown.exact && entry.prefixHash !== line.grown.prefix?.hash) {
          const detail = `the request of turn ${entry.turn} was sent with other bytes`;
          this.#problems.push({ line: stored.line, kind: "changed", detail });
        }
        line.places = entry.markers;
        this.#unanswered = entry;
        line.isAnswered = false;
        this.#lastTurn = entry.turn;
        line.asking = line.grown.prefix;
        return;
      case "response":
        this.#usage = addUsage(this.#usage, entry.usage);
        this.#usd += entry.usd ?? 0;
        this.#turns += 1;
        line.lastResponse = entry;
        if (this.#unanswered?.turn === entry.turn && line.asking !== undefined) {
          line.measured = { bytes: line.asking.byteLength, tokens: promptTokens(entry.usage) };
          line.pictures = noPictures;
          line.asked = line.asking;
          line.askedAt = stored.at - entry.ms;
          line.isAnswered = true;
        }
        this.#unanswered = undefined;
        return;
      case "billed":
        this.#usage = addUsage(this.#usage, entry.usage);
        this.#usd += entry.usd ?? 0;
        return;
      case "call_started":
        line.calls.set(entry.callId, { status: "started", readOnly: entry.readOnly });
        return;
      case "call_ended": {
        const { kind: _kind, callId, ...facts } = entry;
        line.calls.set(callId, { status: "ended", ...facts });
        return;
      }
      case "state":
        this.#state.set(entry.slot, entry.value);
        this.#stateSeqs.set(entry.slot, stored.seq);
        return;
      case "notice":
        if (!this.#noticed.has(entry.id)) this.#notices.set(entry.id, entry);
        this.#allNotices.set(entry.id, entry);
        this.#lastNotices.set(entry.source ?? "", { id: entry.id, text: entry.text, seq: stored.seq });
        this.#noticed.add(entry.id);
        return;
      case "notice_delivered":
        this.#notices.delete(entry.id);
        this.#noticed.add(entry.id);
        return;
      case "fork":
        this.#forks.set(entry.session, entry);
        if (entry.after >= line.grownAt) line.forkedFrom = line.grown.prefix;
        return;
      case "unfork":
        this.#forks.delete(entry.session);
        return;
      case "branch":
        this.#goBack(entry, stored);
        return;
      case "exchange_ended":
        this.#unanswered = undefined;
        return;
    }
  }

  result(): Replayed {
    const { grown, shared, forkedFrom, isAnswered, measured, pictures, lastResponse, askedAt, asked } = this.#line;
    const { epoch, protocol, prefix, exact, messages } = grown;
    return {
      opened: this.#opened,
      inherited: this.#options.inherited,
      openEpoch: epoch,
      lastEpoch: this.#lastEpoch,
      protocol,
      prefix,
      exact,
      markers: this.#markers(),
      isAnswered,
      messages,
      hasDirective: this.#directed,
      shared,
      forkedFrom,
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
      measured,
      pictures,
      lastResponse,
      askedAt,
      asked,
      unanswered: this.#unanswered,
      forks: [...this.#forks.values()],
      lastSeq: this.#lastSeq,
      lastAt: this.#lastAt,
      problems: this.#problems,
    };
  }

  #checkpoint(): Checkpoint {
    const line = { ...this.#line, calls: new Map(this.#line.calls) };
    return { line, slots: new Map([...this.#state].filter(([slot]) => isLineSlot(slot))) };
  }

  #goBack({ after, prefixHash, pending }: BranchEntry, { line, seq }: StoredEntry): void {
    const point = this.#checkpoints.get(after);
    if (!point) {
      const detail = `the conversation went back to entry ${after}, which does not come before this one`;
      this.#problems.push({ line, kind: "lost", detail });
      return;
    }
    // A family that was started from here before is of the line that was left.
    this.#line = { ...point.line, calls: new Map(point.line.calls), grownAt: seq, forkedFrom: undefined };
    for (const slot of [...this.#state.keys()].filter(isLineSlot)) this.#state.delete(slot);
    for (const [slot, value] of point.slots) this.#state.set(slot, value);
    this.#unanswered = undefined;
    this.#notices = new Map(pending.flatMap((id) => [...this.#noticeById(id)]));
    const { exact, prefix } = this.#line.grown;
    if (exact && prefix?.hash !== prefixHash)
      this.#problems.push({ line, kind: "changed", detail: "the conversation went back to other bytes" });
  }

  #noticeById(id: string): readonly (readonly [string, NoticeEntry])[] {
    const notice = this.#allNotices.get(id);
    return notice ? [[id, notice]] : [];
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
    if (!this.#directed) this.#line.shared = this.#line.grown.prefix;
    this.#directed = true;
  }

  #grow(entry: WireEntry, { sent, line, seq }: GrownBy): void {
    const [grown, problem] = regrow(
      this.#line.grown,
      { entry, sent },
      {
        protocols: this.#options.protocols ?? knownProtocols,
        resultOf: (id) => this.#resultOf(id),
      },
    );
    this.#line.grown = grown;
    this.#line.grownAt = seq;
    if (problem) this.#problems.push({ line, ...problem });
    if (entry.kind !== "epoch")
      this.#line.pictures = addPictures(
        this.#line.pictures,
        entry.kind === "message" ? entry.message.content : entry.blocks,
      );
    else {
      const { calls, isAnswered, asking, lastResponse } = this.#line;
      this.#line = { ...emptyLine(), grown, grownAt: seq, calls, isAnswered, asking, lastResponse, places: [] };
      this.#lastEpoch = Math.max(this.#lastEpoch, entry.epoch);
    }
    // A provider may reuse an id in a later turn.
    if (entry.kind === "message" && entry.message.role === "assistant") this.#line.calls.clear();
  }

  /** Old marker positions mean nothing in bytes that no cache knows. */
  #markers(): readonly Marker[] {
    const { prefix, exact } = this.#line.grown;
    if (!prefix || !exact) return [];
    return this.#line.places ? markersAt(prefix, this.#line.places) : (this.#options.inherited?.markers ?? []);
  }

  /** For a call whose result is no longer in the context: the result recorded when the call ended, if that is left. */
  #resultOf(id: string): ToolResultBlock {
    const known = this.#line.calls.get(id);
    return known?.status === "ended" ? known.result : { ...toolResult(id, LOST_RESULT), isError: true };
  }

  #openCall(id: string): readonly OpenCall[] {
    const known = this.#line.calls.get(id);
    const inherited = this.#options.inherited?.openCalls.find(({ call }) => call.id === id);
    if (!known && inherited) return [inherited];
    const last = this.#line.grown.messages.findLast(({ role }) => role === "assistant");
    const call = last?.content.find((block) => block.type === "tool_use" && block.id === id);
    if (call?.type !== "tool_use") return [];
    return [known ? { call, ...known } : { call, status: "never-started" }];
  }
}
