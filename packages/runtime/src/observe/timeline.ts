/** What did an agent's context look like at each entry of its journal? Pure.
 *  Invariant: as long as every hash agrees, the prefix at a point has the bytes that were sent, and all points share
 *  them. From the first hash that does not, a point says how far its bytes can be trusted and where the change is.
 *  Elsewhere: what replaces lost bytes (replay of ../journal), which requests were sent (requests.ts). */

import {
  type Block,
  type Divergence,
  type FrozenPrefix,
  protocols as knownProtocols,
  type Protocol,
} from "@prefork/wire";
import {
  type EpochEntry,
  isWireEntry,
  type OpenedEntry,
  type ParentPointer,
  type Replayed,
  replay,
  type StoredEntry,
  tryExtendPrefix,
  type WireEntry,
} from "../journal/index.ts";

/** One agent and the entries of its journal. */
export type AgentJournal = {
  /** `main`, or the id of a task. */
  readonly agent: string;
  readonly session: string;
  readonly entries: readonly StoredEntry[];
};

/** The first segment whose bytes differ from those that were sent before. */
export type ChangedBytes = Pick<Divergence, "segment" | "path">;

/** The state of an agent's context right after an entry. */
export type TimelinePoint = {
  readonly seq: number;
  readonly epoch: EpochEntry | undefined;
  /** The epoch began in this journal and was not inherited. */
  readonly isOwnEpoch: boolean;
  readonly prefix: FrozenPrefix | undefined;
  /** Where the journal no longer has what was sent; absent as long as every hash agrees. */
  readonly changed?: ChangedBytes;
  /** How often a user message came after the model's thinking, which some models then drop. */
  readonly thinkingPassed: number;
  readonly thinks: boolean;
};

export type AgentTimeline = {
  readonly journal: AgentJournal;
  readonly parent: ParentPointer | undefined;
  /** After the entry with this number, or the last one before it. */
  readonly at: (seq: number) => TimelinePoint | undefined;
  /** As far as it can still be rebuilt. Where bytes are lost, it has what a resumed session would send instead. */
  readonly replayedAt: (seq: number) => Replayed;
};

/** For all agents of a family. A parent comes before its children. */
export const timelinesOf = (
  journals: readonly AgentJournal[],
  protocols: readonly Protocol[] = knownProtocols,
): ReadonlyMap<string, AgentTimeline> => {
  const lines = new Map<string, AgentTimeline>();
  for (const journal of journals) lines.set(journal.session, timelineOf(journal, { lines, protocols }));
  return lines;
};

type FamilyContext = { readonly lines: ReadonlyMap<string, AgentTimeline>; readonly protocols: readonly Protocol[] };

const timelineOf = (journal: AgentJournal, { lines, protocols }: FamilyContext): AgentTimeline => {
  const { entries } = journal;
  const pointer = openedIn(entries)?.parent;
  const parent = pointer && lines.get(pointer.session);
  const replayedAt = (seq: number): Replayed =>
    replay(entries, {
      protocols,
      until: seq,
      ...(parent && pointer ? { inherited: parent.replayedAt(pointer.seq) } : {}),
    });
  const points: TimelinePoint[] = [];
  const inherited = inheritedPoint(pointer && parent?.at(pointer.seq), pointer);
  let point = inherited;
  for (const stored of entries) {
    if (stored.sent && isWireEntry(stored.entry)) {
      const { entry, sent } = stored;
      point = advance(point, { entry, pieces: sent.pieces, hash: sent.hash, seq: stored.seq, protocols, replayedAt });
    } else if (stored.entry.kind === "branch") {
      const { after } = stored.entry;
      point = { ...(points.findLast((each) => each.seq <= after) ?? inherited), seq: stored.seq };
    } else point = { ...point, seq: stored.seq };
    points.push(point);
  }
  const bySeq = new Map(points.map((each) => [each.seq, each]));
  const at = (seq: number): TimelinePoint | undefined => bySeq.get(seq) ?? points.findLast((each) => each.seq <= seq);
  return { journal, parent: pointer, replayedAt, at };
};

export const openedIn = (entries: readonly StoredEntry[]): OpenedEntry | undefined => {
  const first = entries[0]?.entry;
  return first?.kind === "opened" ? first : undefined;
};

const START: TimelinePoint = {
  ...{ seq: 0, epoch: undefined, isOwnEpoch: false, prefix: undefined },
  ...{ thinkingPassed: 0, thinks: false },
};

/** If a parent's entries have changed, they give bytes that the child never sent. */
const inheritedPoint = (from: TimelinePoint | undefined, pointer: ParentPointer | undefined): TimelinePoint => {
  if (!from || !pointer) return START;
  const inherited = { ...from, seq: 0, isOwnEpoch: false };
  if (from.prefix?.hash === pointer.hash || from.changed) return inherited;
  return { ...inherited, changed: { segment: 0, path: "" } };
};

type NextEntry = {
  readonly entry: WireEntry;
  readonly pieces: readonly Buffer[];
  readonly hash: string;
  readonly seq: number;
  readonly protocols: readonly Protocol[];
  readonly replayedAt: (seq: number) => Replayed;
};

const advance = (before: TimelinePoint, growing: NextEntry): TimelinePoint => {
  const { entry, hash, seq, pieces, protocols, replayedAt } = growing;
  const protocol = entry.kind === "epoch" ? protocols.find(({ name }) => name === entry.protocol) : undefined;
  const start: TimelinePoint =
    entry.kind === "epoch"
      ? { ...START, seq, epoch: entry, isOwnEpoch: true }
      : { ...before, seq, ...thinkingAfter(before, entry) };
  if (start.changed) return { ...start, prefix: replayedAt(seq).prefix };
  for (const sent of [pieces, undefined]) {
    const prefix = tryExtendPrefix(start.prefix, { entry, protocol, sent });
    if (prefix?.hash === hash) return { ...start, prefix };
  }
  const prefix = replayedAt(seq).prefix;
  return { ...start, prefix, changed: changeAfter(start.prefix, prefix) };
};

const thinkingAfter = (
  { thinks, thinkingPassed }: TimelinePoint,
  entry: Exclude<WireEntry, EpochEntry>,
): Pick<TimelinePoint, "thinks" | "thinkingPassed"> => {
  const [role, content] =
    entry.kind === "message" ? [entry.message.role, entry.message.content] : ["user", entry.blocks];
  const has = (...types: readonly Block["type"][]): boolean => content.some(({ type }) => types.includes(type));
  if (role === "assistant") return { thinks: thinks || has("thinking", "redacted_thinking"), thinkingPassed };
  const passes = thinks && has("text", "image", "document");
  return passes ? { thinks: false, thinkingPassed: thinkingPassed + 1 } : { thinks, thinkingPassed };
};

/** The first segment of an entry: a hash covers all blocks that were entered together, so nothing more precise is
 *  known. */
const changeAfter = (before: FrozenPrefix | undefined, after: FrozenPrefix | undefined): ChangedBytes => {
  const segment = (before?.tip?.index ?? -1) + 1;
  return { segment, path: (before && after?.firstDivergence(before)?.path) ?? "" };
};
