/** What did one agent's context look like at each entry of its journal? Pure.
 *  Invariant: while every hash agrees, the prefix of a point has the bytes that were sent, and all points share them. From
 *  the first hash that does not, a point says how far its bytes can be trusted and where the change stands.
 *  Elsewhere: what replaces lost bytes (replay of ../journal), who sent what from here (requests.ts). */

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

/** One agent and what its journal says. */
export type AgentJournal = {
  /** `main`, or the id of a task. */
  readonly agent: string;
  readonly session: string;
  readonly entries: readonly StoredEntry[];
};

/** The first segment whose bytes are not those that were sent before. */
export type ChangedBytes = Pick<Divergence, "segment" | "path">;

/** A line right after one of its entries. */
export type Point = {
  readonly seq: number;
  readonly epoch: EpochEntry | undefined;
  /** The epoch began in this journal, and was not inherited. */
  readonly isOwnEpoch: boolean;
  readonly prefix: FrozenPrefix | undefined;
  /** Where the journal no longer says what was sent; absent while every hash agrees. */
  readonly changed?: ChangedBytes;
  /** How often new words of the user came after thinking of the model, which some models then leave out. */
  readonly thinkingPassed: number;
  readonly thinks: boolean;
};

export type Line = {
  readonly journal: AgentJournal;
  readonly parent: ParentPointer | undefined;
  /** After the entry with this number, or the last one before it. */
  readonly at: (seq: number) => Point | undefined;
  /** As far as it can still be made: where bytes are lost, what a session that goes on would send instead. */
  readonly replayedAt: (seq: number) => Replayed;
};

/** Of all agents of a family; a parent stands before its children. */
export const linesOf = (
  journals: readonly AgentJournal[],
  protocols: readonly Protocol[] = knownProtocols,
): ReadonlyMap<string, Line> => {
  const lines = new Map<string, Line>();
  for (const journal of journals) lines.set(journal.session, lineOf(journal, { lines, protocols }));
  return lines;
};

type Around = { readonly lines: ReadonlyMap<string, Line>; readonly protocols: readonly Protocol[] };

const lineOf = (journal: AgentJournal, { lines, protocols }: Around): Line => {
  const { entries } = journal;
  const pointer = openedIn(entries)?.parent;
  const parent = pointer && lines.get(pointer.session);
  const replayedAt = (seq: number): Replayed =>
    replay(entries, {
      protocols,
      until: seq,
      ...(parent && pointer ? { inherited: parent.replayedAt(pointer.seq) } : {}),
    });
  const points: Point[] = [];
  let point = inheritedPoint(pointer && parent?.at(pointer.seq), pointer);
  for (const stored of entries) {
    if (stored.sent && isWireEntry(stored.entry)) {
      const { entry, sent } = stored;
      point = grown(point, { entry, pieces: sent.pieces, hash: sent.hash, seq: stored.seq, protocols, replayedAt });
    } else point = { ...point, seq: stored.seq };
    points.push(point);
  }
  const bySeq = new Map(points.map((each) => [each.seq, each]));
  const at = (seq: number): Point | undefined => bySeq.get(seq) ?? points.findLast((each) => each.seq <= seq);
  return { journal, parent: pointer, replayedAt, at };
};

export const openedIn = (entries: readonly StoredEntry[]): OpenedEntry | undefined => {
  const first = entries[0]?.entry;
  return first?.kind === "opened" ? first : undefined;
};

const NOTHING: Point = {
  ...{ seq: 0, epoch: undefined, isOwnEpoch: false, prefix: undefined },
  ...{ thinkingPassed: 0, thinks: false },
};

/** A parent whose entries are no longer what they were gives bytes that the child never sent. */
const inheritedPoint = (from: Point | undefined, pointer: ParentPointer | undefined): Point => {
  if (!from || !pointer) return NOTHING;
  const inherited = { ...from, seq: 0, isOwnEpoch: false };
  if (from.prefix?.hash === pointer.hash || from.changed) return inherited;
  return { ...inherited, changed: { segment: 0, path: "" } };
};

type Growing = {
  readonly entry: WireEntry;
  readonly pieces: readonly Buffer[];
  readonly hash: string;
  readonly seq: number;
  readonly protocols: readonly Protocol[];
  readonly replayedAt: (seq: number) => Replayed;
};

const grown = (before: Point, growing: Growing): Point => {
  const { entry, hash, seq, pieces, protocols, replayedAt } = growing;
  const protocol = entry.kind === "epoch" ? protocols.find(({ name }) => name === entry.protocol) : undefined;
  const start: Point =
    entry.kind === "epoch"
      ? { ...NOTHING, seq, epoch: entry, isOwnEpoch: true }
      : { ...before, seq, ...thinkingAfter(before, entry) };
  if (start.changed) return { ...start, prefix: replayedAt(seq).prefix };
  for (const sent of [pieces, undefined]) {
    const prefix = tryExtendPrefix(start.prefix, { entry, protocol, sent });
    if (prefix?.hash === hash) return { ...start, prefix };
  }
  const prefix = replayedAt(seq).prefix;
  return { ...start, prefix, changed: placeAfter(start.prefix, prefix) };
};

const thinkingAfter = (
  { thinks, thinkingPassed }: Point,
  entry: Exclude<WireEntry, EpochEntry>,
): Pick<Point, "thinks" | "thinkingPassed"> => {
  const [role, content] =
    entry.kind === "message" ? [entry.message.role, entry.message.content] : ["user", entry.blocks];
  const has = (...types: readonly Block["type"][]): boolean => content.some(({ type }) => types.includes(type));
  if (role === "assistant") return { thinks: thinks || has("thinking", "redacted_thinking"), thinkingPassed };
  const passes = thinks && has("text", "image", "document");
  return passes ? { thinks: false, thinkingPassed: thinkingPassed + 1 } : { thinks, thinkingPassed };
};

/** The first segment of an entry: a hash covers all blocks that were entered together, so no more can be told. */
const placeAfter = (before: FrozenPrefix | undefined, after: FrozenPrefix | undefined): ChangedBytes => {
  const segment = (before?.tip?.index ?? -1) + 1;
  return { segment, path: (before && after?.firstDivergence(before)?.path) ?? "" };
};
