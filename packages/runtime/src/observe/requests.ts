/** Which requests do these journals tell of, what did each send, and which one does each go on from? Pure.
 *  Invariant: one item for every request that was journalled, answered or not, and for every answer without a request of
 *  its own; so no answer is left out and none counts twice. In the order of the time they were asked.
 *  Elsewhere: the bytes (line.ts), what the provider should have known of them (entries.ts). */

import type { MarkerPlace, Segment, Usage } from "@prefork/wire";
import type { EpochReason } from "../events.ts";
import type { RequestEntry, ResponseEntry, StoredEntry } from "../journal/index.ts";
import type { ChangedBytes, Line, Point } from "./line.ts";

export type SentAnswer = {
  readonly seq: number;
  readonly at: number;
  readonly ms: number;
  readonly usage: Usage;
  readonly usd?: number;
  /** The provider's name for it. */
  readonly id: string;
};

export type Billed = { readonly usage: Usage; readonly usd?: number };

/** What the provider said of a request, whether its answer came to its end or not. */
export const reportOf = ({ answer, broken }: Pick<SentRequest, "answer" | "broken">): Billed | undefined =>
  answer ?? broken;

export type SentRequest = {
  readonly agent: string;
  readonly session: string;
  /** `aside`: sent on top of the conversation, which goes on without it. */
  readonly kind: "turn" | "aside";
  readonly turn: number;
  readonly seq: number;
  /** When it was about to be sent; it may have waited for others of its family after that. */
  readonly askedAt: number;
  readonly model: string;
  readonly point: Point;
  /** Segments before this one are known as they were sent. */
  readonly exactUpTo: number;
  /** Undefined where only the answer is journalled. */
  readonly markers: readonly MarkerPlace[] | undefined;
  readonly answer?: SentAnswer;
  /** What answers to it that had begun and were not finished took. */
  readonly broken?: Billed;
  /** The request of the same context that was answered last before this one: its own line's, or its parent's. */
  readonly goesOnFrom: SentRequest | undefined;
  /** Nothing of this epoch was answered before, and why it began. */
  readonly opens?: EpochReason;
  /** The first ones of a fork, until one is answered: the chain hash of what it inherits. */
  readonly forkedFrom?: string;
};

/** Of every line; those of a parent are found before its children's. */
export const requestsOf = (lines: ReadonlyMap<string, Line>): readonly SentRequest[] => {
  const bySession = new Map<string, readonly SentRequest[]>();
  for (const [session, line] of lines)
    bySession.set(session, requestsIn(line, line.parent && bySession.get(line.parent.session)));
  return merged([...bySession.values()].map((own) => [...own]));
};

/** By the time they were asked, each line in its own order. Where that is the same, a parent goes on after its children
 *  have begun. */
const merged = (queues: readonly SentRequest[][]): readonly SentRequest[] => {
  const all: SentRequest[] = [];
  const comesFirst = (a: SentRequest, b: SentRequest): boolean =>
    a.askedAt < b.askedAt || (a.askedAt === b.askedAt && isParentsNext(b) && !isParentsNext(a));
  for (;;) {
    let first: SentRequest[] | undefined;
    for (const queue of queues) {
      const [candidate, best] = [queue[0], first?.[0]];
      if (candidate && (!best || comesFirst(candidate, best))) first = queue;
    }
    const next = first?.shift();
    if (!next) return all;
    all.push(next);
  }
};

/** Of a parent, the request that goes out with its forks: it has their marker, and inherits nothing. */
export const isParentsNext = ({ markers = [], forkedFrom }: SentRequest): boolean =>
  forkedFrom === undefined &&
  markers.some(({ role }) => role === "shared") &&
  !markers.some(({ role }) => role === "inherited");

/** Of forks that keep no entries, several requests in one sum, and of summaries that broke off: nothing can be learned from
 *  it but what it cost. */
export const unkeptIn = ({ journal }: Line): readonly Unkept[] =>
  journal.entries.flatMap(({ entry, at, seq }) => {
    if (entry.kind !== "billed" || entry.turn > 0) return [];
    const { usage, usd, for: kind = "unkept" } = entry;
    return [{ usage, ...(usd === undefined ? {} : { usd }), at, seq, kind }];
  });

type Unkept = Billed & {
  readonly at: number;
  readonly seq: number;
  readonly kind: "unkept" | "stored" | "storage";
};

const requestsIn = (line: Line, above: readonly SentRequest[] | undefined): readonly SentRequest[] => {
  const found: SentRequest[] = [];
  const { entries } = line.journal;
  const taken = new Set<number>();
  for (const [place, stored] of entries.entries()) {
    const { entry, seq } = stored;
    if (entry.kind !== "request" && (entry.kind !== "response" || taken.has(seq))) continue;
    const point = line.at(seq);
    if (!point) continue;
    const asked =
      entry.kind === "request" ? asRequest(entry, { stored, entries, place }) : withoutRequest(entry, stored);
    if (asked.request.answer) taken.add(asked.request.answer.seq);
    const last = found.findLast((one) => one.kind === "turn" && one.answer && one.point.epoch === point.epoch);
    const inherited = lastBefore(above, { line, point });
    const isFirstOfFork = !point.isOwnEpoch && last === undefined && asked.request.kind === "turn";
    found.push({
      ...{ agent: line.journal.agent, session: line.journal.session, point, model: point.epoch?.head.model ?? "" },
      exactUpTo: exactUpTo(point, asked.prefixHash),
      ...asked.request,
      goesOnFrom: last ?? inherited,
      ...(last === undefined && point.isOwnEpoch ? { opens: point.epoch?.reason ?? "start" } : {}),
      ...(isFirstOfFork && line.parent ? { forkedFrom: line.parent.hash } : {}),
    });
  }
  return found;
};

type Asked = {
  readonly request: Pick<SentRequest, "kind" | "turn" | "seq" | "askedAt" | "markers" | "answer" | "broken">;
  /** Of what was sent, where the journal says it. */
  readonly prefixHash?: string;
};

type AroundRequest = {
  readonly stored: StoredEntry;
  readonly entries: readonly StoredEntry[];
  readonly place: number;
};

const asRequest = (entry: RequestEntry, { stored, entries, place }: AroundRequest): Asked => {
  const { turn, markers, prefixHash } = entry;
  const answer = answerTo(turn, entries, place);
  const broken = brokenAt(entries, place);
  return {
    request: {
      ...{ kind: "turn", turn, seq: stored.seq, askedAt: stored.at, markers },
      ...(answer ? { answer } : {}),
      ...(broken ? { broken } : {}),
    },
    prefixHash,
  };
};

/** A summary, a keep-alive, or an answer whose request can no longer be read: it was billed all the same. */
const withoutRequest = (entry: ResponseEntry, stored: StoredEntry): Asked => ({
  request: {
    ...{ kind: entry.turn === 0 ? "aside" : "turn", turn: entry.turn, seq: stored.seq },
    ...{ askedAt: stored.at - entry.ms, markers: undefined },
    answer: answerOf(entry, stored),
  },
});

/** A request that was broken off is followed by the next one, and never by its answer. */
const answerTo = (turn: number, entries: readonly StoredEntry[], place: number): SentAnswer | undefined => {
  for (let at = place + 1; at < entries.length; at += 1) {
    const stored = entries[at];
    if (!stored || stored.entry.kind === "request") return undefined;
    if (stored.entry.kind === "response" && stored.entry.turn === turn) return answerOf(stored.entry, stored);
  }
  return undefined;
};

const brokenAt = (entries: readonly StoredEntry[], place: number): Billed | undefined => {
  for (let at = place + 1; at < entries.length; at += 1) {
    const entry = entries[at]?.entry;
    if (!entry || entry.kind === "request") return undefined;
    if (entry.kind === "billed" && entry.turn > 0)
      return { usage: entry.usage, ...(entry.usd === undefined ? {} : { usd: entry.usd }) };
  }
  return undefined;
};

const answerOf = ({ id, usage, usd, ms }: ResponseEntry, { seq, at }: StoredEntry): SentAnswer => ({
  ...{ seq, at, ms, usage, id },
  ...(usd === undefined ? {} : { usd }),
});

type Inheriting = { readonly line: Line; readonly point: Point };

/** What the parent had sent when the child branched off: nothing, where a rewrite came between. A child that begins its
 *  context with a head of its own should have had the parent's. */
const lastBefore = (
  above: readonly SentRequest[] | undefined,
  { line, point }: Inheriting,
): SentRequest | undefined => {
  const seq = line.parent?.seq ?? -1;
  const last = above?.findLast((request) => request.kind === "turn" && request.answer && request.seq <= seq);
  const isRendered = point.isOwnEpoch && point.epoch?.reason === "start";
  return isRendered || last?.point.epoch === point.epoch ? last : undefined;
};

const exactUpTo = ({ prefix, changed }: Point, sent: string | undefined): number => {
  if (sent === undefined ? !changed : prefix?.hash === sent) return Number.POSITIVE_INFINITY;
  return changed?.segment ?? 0;
};

/** What this request's bytes differ in from those of the one that it should go on from; undefined where they do not. */
export const changeBefore = (request: SentRequest): ChangedBytes | undefined => {
  const { goesOnFrom: before, point } = request;
  const [ours, theirs] = [point.prefix, before?.point.prefix];
  if (!before || !ours || !theirs) return undefined;
  // What was sent no longer stands here: nothing can be held against it.
  if (request.exactUpTo !== Number.POSITIVE_INFINITY) return undefined;
  // The journal was damaged after the one and before the other, which began anew from there: it can only say where.
  if (before.exactUpTo !== Number.POSITIVE_INFINITY) return point.changed ?? before.point.changed;
  if (ours.startsWith(theirs)) return undefined;
  const diverged = ours.firstDivergence(theirs);
  return diverged && { segment: diverged.segment, path: diverged.path };
};

export const segmentsAt = (request: SentRequest): readonly Segment[] =>
  (request.markers ?? []).flatMap(({ segment }) => {
    const at = segment < request.exactUpTo ? request.point.prefix?.segmentAt(segment) : undefined;
    return at ? [at] : [];
  });
