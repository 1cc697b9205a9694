/** Which entries of a journal belong to a conversation that has gone back, and which entry makes it go back? Pure.
 *  Invariant: every entry belongs to exactly one line where it was written, and a line is the entries up to the one it
 *  branched off, then its own. A notice is pending on a line exactly if that line has not been told and should be: it
 *  was told to no line yet, or its task was started on this line.
 *  Elsewhere: what the entries of a line add up to (replay.ts), the points that people can choose (../observe). */

import { type BranchEntry, type StoredEntry, tipAfter } from "./entry.ts";
import { type Replayed, type ReplayOptions, replay } from "./replay.ts";

/** Is this entry on the line that ends at the entry `end`? */
export type OnLine = (seq: number) => boolean;

export const lineUpTo = (entries: readonly StoredEntry[], end: number): OnLine => {
  const branches = entries.flatMap(({ entry, seq }) => (entry.kind === "branch" ? [{ seq, after: entry.after }] : []));
  const spans: (readonly [from: number, to: number])[] = [];
  for (let to = end; ; ) {
    const branch = branches.findLast(({ seq }) => seq <= to);
    spans.push([branch?.seq ?? 0, to]);
    // A damaged branch could name a later entry.
    if (!branch || branch.after >= branch.seq) break;
    to = branch.after;
  }
  return (seq) => spans.some(([from, to]) => seq >= from && seq <= to);
};

export type GoingBack = {
  readonly entry: BranchEntry;
  /** What the journal adds up to once the entry is written. */
  readonly replayed: Replayed;
};

/** Prepares a return to the state after the entry `after`. Nothing is written here. */
export const goBack = (
  entries: readonly StoredEntry[],
  after: number,
  options: Omit<ReplayOptions, "until"> = {},
): GoingBack => {
  const tips = entries.flatMap(({ seq, entry, sent }) => (seq <= after ? (tipAfter(entry, sent) ?? []) : []));
  const prefixHash = tips.at(-1) ?? options.inherited?.prefix?.hash ?? "";
  const entry = { kind: "branch", after, prefixHash, pending: pendingAfter(entries, after) } as const;
  const last = entries.at(-1);
  const stored: StoredEntry = { seq: (last?.seq ?? 0) + 1, at: last?.at ?? 0, line: 0, offset: 0, entry };
  return { entry, replayed: replay([...entries, stored], options) };
};

const TASK_SLOT = "task:";

type KnownNotice = { readonly id: string; readonly task: string; readonly toldAt: number[] };

const pendingAfter = (entries: readonly StoredEntry[], after: number): readonly string[] => {
  const isOnLine = lineUpTo(entries, after);
  const notices = new Map<string, KnownNotice>();
  const startedAt = new Map<string, number>();
  const ended = new Set<string>();
  let untold = new Set<string>();
  for (const { entry, seq } of entries) {
    if (entry.kind === "branch") untold = new Set(entry.pending);
    if (entry.kind === "notice" && !notices.has(entry.id)) {
      notices.set(entry.id, { id: entry.id, task: entry.source ?? "", toldAt: [] });
      untold.add(entry.id);
    }
    if (entry.kind === "notice_delivered") {
      notices.get(entry.id)?.toldAt.push(seq);
      untold.delete(entry.id);
    }
    if (entry.kind !== "state" || !entry.slot.startsWith(TASK_SLOT)) continue;
    const task = entry.slot.slice(TASK_SLOT.length);
    if (!startedAt.has(task)) startedAt.set(task, seq);
    if (hasEnded(entry.value)) ended.add(task);
    else ended.delete(task);
  }
  const all = [...notices.values()];
  const isPending = ({ id, task, toldAt }: KnownNotice): boolean => {
    if (toldAt.some(isOnLine)) return false;
    if (untold.has(id)) return true;
    // An earlier end of a task that was resumed is no longer true.
    const isLatest = all.findLast((other) => other.task === task)?.id === id;
    return isLatest && ended.has(task) && isOnLine(startedAt.get(task) ?? 0);
  };
  return all.filter(isPending).map(({ id }) => id);
};

const hasEnded = (task: unknown): boolean =>
  typeof task === "object" &&
  task !== null &&
  "state" in task &&
  typeof task.state === "object" &&
  task.state !== null &&
  "kind" in task.state &&
  task.state.kind === "ended";
