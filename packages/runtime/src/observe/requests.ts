/** Which requests do these journals contain, what did each send, and which earlier request does each continue? Pure.
 *  Invariant: one item for every journalled request, answered or not, and for every answer without a request of its
 *  own; so no answer is lost or counted twice. In the order in which they were sent.
 *  Elsewhere: the bytes (timeline.ts), what the provider should have cached of them (entries.ts). */

import type { MarkerPlace, Segment, Usage } from "@prefork/wire";
import type { EpochReason } from "../events.ts";
import { lineUpTo, type RequestEntry, type ResponseEntry, type StoredEntry } from "../journal/index.ts";
import type { AgentTimeline, ChangedBytes, TimelinePoint } from "./timeline.ts";

export type SentAnswer = {
  readonly seq: number;
  readonly at: number;
  readonly ms: number;
  readonly usage: Usage;
  readonly usd?: number;
  /** The provider's id. */
  readonly id: string;
};

export type BilledUsage = { readonly usage: Usage; readonly usd?: number };

/** The provider's report for a request, whether or not its answer was finished. */
export const reportedUsage = ({
  answer,
  interrupted: broken,
}: Pick<SentRequest, "answer" | "interrupted">): BilledUsage | undefined => answer ?? broken;

export type SentRequest = {
  readonly agent: string;
  readonly session: string;
  /** `aside`: a side request on top of the conversation, which continues without it. */
  readonly kind: "turn" | "aside";
  readonly turn: number;
  readonly seq: number;
  /** When it was about to be sent. After that it may have waited for others of its family. */
  readonly askedAt: number;
  readonly model: string;
  readonly point: TimelinePoint;
  /** Segments before this one are known as they were sent. */
  readonly exactUpTo: number;
  /** Undefined if only the answer is journalled. */
  readonly markers: readonly MarkerPlace[] | undefined;
  readonly answer?: SentAnswer;
  /** Usage of answers to it that began but were not finished. */
  readonly interrupted?: BilledUsage;
  /** The last answered request of the same context before this one: its own agent's, or its parent's. */
  readonly previous: SentRequest | undefined;
  /** Set if nothing of this epoch was answered before: why the epoch began. */
  readonly startsEpoch?: EpochReason;
  /** For the first requests of a fork, until one is answered: the chain hash of what it inherits. */
  readonly forkedFrom?: string;
};

/** For all agents. A parent's requests are found before its children's. */
export const requestsOf = (lines: ReadonlyMap<string, AgentTimeline>): readonly SentRequest[] => {
  const bySession = new Map<string, readonly SentRequest[]>();
  for (const [session, line] of lines)
    bySession.set(session, requestsIn(line, line.parent && bySession.get(line.parent.session)));
  return mergeByTime([...bySession.values()].map((own) => [...own]));
};

/** Ordered by the time they were sent, each agent's requests in their own order. At the same time, a parent
 *  continues after its children have begun. */
const mergeByTime = (queues: readonly SentRequest[][]): readonly SentRequest[] => {
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

/** A parent's request that is sent with its forks: it has their marker, and inherits nothing. */
export const isParentsNext = ({ markers = [], forkedFrom }: SentRequest): boolean =>
  forkedFrom === undefined &&
  markers.some(({ role }) => role === "shared") &&
  !markers.some(({ role }) => role === "inherited");

/** Bills without a request: several requests of a fork that keeps no entries, or interrupted summaries. Only their
 *  cost is known. */
export const unjournalledBills = ({ journal }: AgentTimeline): readonly UnjournalledBill[] =>
  journal.entries.flatMap(({ entry, at, seq }) => {
    if (entry.kind !== "billed" || entry.turn > 0) return [];
    const { usage, usd, for: kind = "unkept" } = entry;
    return [{ usage, ...(usd === undefined ? {} : { usd }), at, seq, kind }];
  });

type UnjournalledBill = BilledUsage & {
  readonly at: number;
  readonly seq: number;
  readonly kind: "unkept" | "stored" | "storage";
};

const requestsIn = (line: AgentTimeline, above: readonly SentRequest[] | undefined): readonly SentRequest[] => {
  const found: SentRequest[] = [];
  const { entries } = line.journal;
  const taken = new Set<number>();
  for (const [place, stored] of entries.entries()) {
    const { entry, seq } = stored;
    if (entry.kind !== "request" && (entry.kind !== "response" || taken.has(seq))) continue;
    const point = line.at(seq);
    if (!point) continue;
    const facts =
      entry.kind === "request" ? fromRequestEntry(entry, { stored, entries, place }) : fromResponseEntry(entry, stored);
    if (facts.request.answer) taken.add(facts.request.answer.seq);
    const isOnLine = lineUpTo(entries, seq);
    const last = found.findLast(
      (one) => one.kind === "turn" && one.answer && one.point.epoch === point.epoch && isOnLine(one.seq),
    );
    const inherited = lastInherited(above, { line, point });
    const isFirstOfFork = !point.isOwnEpoch && last === undefined && facts.request.kind === "turn";
    found.push({
      ...{ agent: line.journal.agent, session: line.journal.session, point, model: point.epoch?.head.model ?? "" },
      exactUpTo: exactUpTo(point, facts.prefixHash),
      ...facts.request,
      previous: last ?? inherited,
      ...(last === undefined && point.isOwnEpoch ? { startsEpoch: point.epoch?.reason ?? "start" } : {}),
      ...(isFirstOfFork && line.parent ? { forkedFrom: line.parent.hash } : {}),
    });
  }
  return found;
};

type RequestFacts = {
  readonly request: Pick<SentRequest, "kind" | "turn" | "seq" | "askedAt" | "markers" | "answer" | "interrupted">;
  /** Hash of what was sent, if the journal says it. */
  readonly prefixHash?: string;
};

type EntryPosition = {
  readonly stored: StoredEntry;
  readonly entries: readonly StoredEntry[];
  readonly place: number;
};

const fromRequestEntry = (entry: RequestEntry, { stored, entries, place }: EntryPosition): RequestFacts => {
  const { turn, markers, prefixHash } = entry;
  const answer = findAnswer(turn, entries, place);
  const broken = findInterruptedBill(entries, place);
  return {
    request: {
      ...{ kind: "turn", turn, seq: stored.seq, askedAt: stored.at, markers },
      ...(answer ? { answer } : {}),
      ...(broken ? { interrupted: broken } : {}),
    },
    prefixHash,
  };
};

/** A summary, a keep-alive, or an answer whose request can no longer be read. It was billed all the same. */
const fromResponseEntry = (entry: ResponseEntry, stored: StoredEntry): RequestFacts => ({
  request: {
    ...{ kind: entry.turn === 0 ? "aside" : "turn", turn: entry.turn, seq: stored.seq },
    ...{ askedAt: stored.at - entry.ms, markers: undefined },
    answer: answerOf(entry, stored),
  },
});

/** An interrupted request is followed by the next one, never by its answer. */
const findAnswer = (turn: number, entries: readonly StoredEntry[], place: number): SentAnswer | undefined => {
  for (let at = place + 1; at < entries.length; at += 1) {
    const stored = entries[at];
    if (!stored || stored.entry.kind === "request") return undefined;
    if (stored.entry.kind === "response" && stored.entry.turn === turn) return answerOf(stored.entry, stored);
  }
  return undefined;
};

const findInterruptedBill = (entries: readonly StoredEntry[], place: number): BilledUsage | undefined => {
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

type InheritingRequest = { readonly line: AgentTimeline; readonly point: TimelinePoint };

/** What the parent had last sent when the child branched off; nothing if there was a rewrite in between. A child
 *  that begins its context with its own head should have had the parent's. */
const lastInherited = (
  above: readonly SentRequest[] | undefined,
  { line, point }: InheritingRequest,
): SentRequest | undefined => {
  const seq = line.parent?.seq ?? -1;
  const last = above?.findLast((request) => request.kind === "turn" && request.answer && request.seq <= seq);
  const isRendered = point.isOwnEpoch && point.epoch?.reason === "start";
  return isRendered || last?.point.epoch === point.epoch ? last : undefined;
};

const exactUpTo = ({ prefix, changed }: TimelinePoint, sent: string | undefined): number => {
  if (sent === undefined ? !changed : prefix?.hash === sent) return Number.POSITIVE_INFINITY;
  return changed?.segment ?? 0;
};

/** Where this request's bytes differ from those of the request that it should continue; undefined if they do not. */
export const changeSinceLast = (request: SentRequest): ChangedBytes | undefined => {
  const { previous: before, point } = request;
  const [ours, theirs] = [point.prefix, before?.point.prefix];
  if (!before || !ours || !theirs) return undefined;
  // What was sent is no longer known, so nothing can be compared.
  if (request.exactUpTo !== Number.POSITIVE_INFINITY) return undefined;
  // The journal was damaged between the two, and the later one started over from there. Only the location is known.
  if (before.exactUpTo !== Number.POSITIVE_INFINITY) return point.changed ?? before.point.changed;
  if (ours.startsWith(theirs)) return undefined;
  const diverged = ours.firstDivergence(theirs);
  return diverged && { segment: diverged.segment, path: diverged.path };
};

export const markedSegments = (request: SentRequest): readonly Segment[] =>
  (request.markers ?? []).flatMap(({ segment }) => {
    const at = segment < request.exactUpTo ? request.point.prefix?.segmentAt(segment) : undefined;
    return at ? [at] : [];
  });
