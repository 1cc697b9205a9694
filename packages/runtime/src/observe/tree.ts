/** At which points can a session be continued, and what would that cost?
 *  Invariant: every entry of the journal belongs to exactly one node, the one that was current when it was written. So
 *  the state before a node is that before its first entry, and the state after a node is that before the next one,
 *  whichever line the next one is on.
 *  Elsewhere: going there (../session), what a branch means (../journal). */

import {
  costOf,
  entryLifetimeMs,
  type Head,
  InputError,
  type Json,
  LIFETIME_MS,
  modelFacts,
  promptTokens,
  serviceOf,
  type Ttl,
} from "@prefork/wire";
import { estimateTokens } from "../agent/index.ts";
import {
  FILES_SLOT,
  lineUpTo,
  readJournal,
  type SessionStore,
  type StoredEntry,
  toShortLine,
  toTitle,
  userWords,
} from "../journal/index.ts";
import type { ContinuationPrice, RewindOptions, TreeNode } from "../ports.ts";
import { describeState, tasksIn } from "../tasks/index.ts";

/** Where a rewind leads. */
export type RewindPoint = {
  /** The last entry that counts. */
  readonly after: number;
  /** The prompt that comes next on the line that is left, in full. */
  readonly prompt?: string;
  /** The files at that point, as they were recorded. Absent if nothing was. */
  readonly files?: Json;
};

export type SessionTree = {
  /** In the order in which they began. */
  readonly nodes: readonly TreeNode[];
  /** Throws InputError if there is no such node. */
  readonly pointAt: (at: Pick<RewindOptions, "to" | "place">) => RewindPoint;
};

/** The tree of a session that nobody need have open, oldest node first. `id` in full. */
export const sessionTree = async (store: SessionStore, id: string): Promise<readonly TreeNode[]> =>
  readTree((await readJournal(store, id)).entries, store.now()).nodes;

/** Pure. */
export const readTree = (entries: readonly StoredEntry[], now: number): SessionTree => {
  const drafts = draftNodes(entries);
  const lastSeq = entries.at(-1)?.seq ?? 0;
  const isOnLine = lineUpTo(entries, lastSeq);
  const forks = forksIn(entries);
  const nodes = drafts.map((draft, at): TreeNode => {
    const { id, parent, left, kind, entry, title, context } = draft;
    const end = drafts[at + 1]?.entry ?? lastSeq + 1;
    return {
      ...{ id, ...(parent ? { parent } : {}), ...(left ? { left } : {}), at: draft.at, kind, title, entry },
      forks: forks.filter(({ seq }) => seq >= entry && seq < end).map(({ seq: _seq, ...fork }) => fork),
      current: at === drafts.length - 1,
      onLine: isOnLine(entry),
      files: draft.files !== undefined,
      ...continuation(context, now),
    };
  });
  return { nodes, pointAt: (at) => pointIn({ drafts, lastSeq }, at) };
};

type DraftNode = Pick<TreeNode, "id" | "parent" | "left" | "at" | "kind" | "entry"> & {
  title: string;
  prompt?: string;
  files?: Json;
  /** At its end. */
  context: ContextFacts;
};

const draftNodes = (entries: readonly StoredEntry[]): readonly DraftNode[] => {
  const nodes: DraftNode[] = [];
  const context = new ContextTracker();
  let previous: StoredEntry | undefined;
  for (const stored of entries) {
    const { entry, seq, at } = stored;
    const tip = nodes.at(-1);
    const words = isPrompt(stored) ? userWords(entry) : undefined;
    if (words && tip && previous && isPrompt(previous)) {
      // One write: the results that a prompt had to bring along, then the prompt.
      tip.title = toTitle(words.text);
      tip.prompt = words.text;
    } else if (words) {
      const title = toTitle(words.text);
      nodes.push({ ...nodeAt(stored, tip?.id), kind: "prompt", title, prompt: words.text, context: EMPTY });
    } else if (entry.kind === "epoch" && entry.reason === "compaction")
      nodes.push({ ...nodeAt(stored, tip?.id), kind: "compaction", title: "compacted", context: EMPTY });
    else if (entry.kind === "branch") {
      const parent = nodes.findLast((node) => node.entry <= entry.after);
      const title = parent ? `continues ${parent.title === "" ? parent.id : parent.title}` : "starts over";
      const left = tip ? { left: tip.id } : {};
      nodes.push({ ...nodeAt(stored, parent?.id), ...left, kind: "branch", title: toShortLine(title), context: EMPTY });
    }
    context.take(stored);
    const current = nodes.at(-1);
    if (current) {
      current.context = context.facts;
      if (entry.kind === "state" && entry.slot === FILES_SLOT) current.files ??= entry.value;
    }
    previous = { ...stored, seq, at };
  }
  return nodes;
};

const nodeAt = ({ seq, at }: StoredEntry, parent: string | undefined): Pick<DraftNode, "id" | "entry" | "at"> => ({
  ...{ id: `n${seq}`, entry: seq, at },
  ...(parent === undefined ? {} : { parent }),
});

const isPrompt = ({ entry }: StoredEntry): boolean =>
  (entry.kind === "message" || entry.kind === "blocks") && entry.source === "prompt";

type ForkRow = TreeNode["forks"][number] & { readonly seq: number };

const forksIn = (entries: readonly StoredEntry[]): readonly ForkRow[] => {
  const states = new Map<string, Json>();
  const startedAt = new Map<string, number>();
  for (const { entry, seq } of entries)
    if (entry.kind === "state" && entry.slot.startsWith("task:")) {
      states.set(entry.slot, entry.value);
      if (!startedAt.has(entry.slot)) startedAt.set(entry.slot, seq);
    }
  return tasksIn(states).flatMap((task) => {
    if (task.kind !== "fork" && task.kind !== "agent") return [];
    const seq = startedAt.get(`task:${task.id}`) ?? 0;
    return [{ seq, task: task.id, label: toShortLine(task.label), state: describeState(task) }];
  });
};

type TreeParts = { readonly drafts: readonly DraftNode[]; readonly lastSeq: number };

const pointIn = (
  { drafts, lastSeq }: TreeParts,
  { to, place = "before" }: Pick<RewindOptions, "to" | "place">,
): RewindPoint => {
  const at = drafts.findIndex(({ id }) => id === to);
  const node = drafts[at];
  if (!node) throw new InputError(`there is no node ${JSON.stringify(to)} in this session; its tree lists them`);
  const next = place === "before" ? node : drafts[at + 1];
  return {
    after: next ? next.entry - 1 : lastSeq,
    ...(next?.prompt === undefined || place === "after" ? {} : { prompt: next.prompt }),
    ...(next?.files === undefined ? {} : { files: next.files }),
  };
};

/** What is known about the cache of the context at a point. */
type ContextFacts = {
  readonly head: Head | undefined;
  readonly bytes: number;
  /** The last answered request of this context. */
  readonly asked: AskedFacts | undefined;
};

type AskedFacts = {
  readonly bytes: number;
  readonly tokens: number;
  readonly at: number;
  readonly ttl: Ttl | undefined;
};

const EMPTY: ContextFacts = { head: undefined, bytes: 0, asked: undefined };

class ContextTracker {
  #facts = EMPTY;
  #asking: { readonly turn: number; readonly bytes: number; readonly ttl: Ttl | undefined } | undefined;
  readonly #history: (readonly [seq: number, facts: ContextFacts])[] = [];

  get facts(): ContextFacts {
    return this.#facts;
  }

  take({ entry, sent, seq, at }: StoredEntry): void {
    const { bytes } = this.#facts;
    const added = sent?.pieces.reduce((sum, piece) => sum + piece.length, 0) ?? 0;
    if (entry.kind === "epoch") this.#facts = { head: entry.head, bytes: added, asked: undefined };
    else if (sent) this.#facts = { ...this.#facts, bytes: bytes + added };
    else if (entry.kind === "request") {
      const lifetimes = entry.markers.map(({ ttl }) => ttl).toSorted((a, b) => LIFETIME_MS[a] - LIFETIME_MS[b]);
      this.#asking = { turn: entry.turn, bytes, ttl: lifetimes[0] };
    } else if (entry.kind === "response" && entry.turn === this.#asking?.turn) {
      const { bytes: sentBytes, ttl } = this.#asking;
      this.#facts = {
        ...this.#facts,
        asked: { bytes: sentBytes, tokens: promptTokens(entry.usage), at: at - entry.ms, ttl },
      };
    } else if (entry.kind === "branch")
      this.#facts = this.#history.findLast(([seq]) => seq <= entry.after)?.[1] ?? EMPTY;
    else return;
    this.#history.push([seq, this.#facts]);
  }
}

const continuation = (
  { head, bytes, asked }: ContextFacts,
  now: number,
): Pick<TreeNode, "warmUntil" | "priceToContinue"> => {
  if (!head) return {};
  const facts = modelFacts(head.model);
  const tokens = estimateTokens(bytes, asked);
  const isCached = asked !== undefined && asked.tokens >= (facts?.minimumPrefix ?? 0);
  const warmUntil = isCached ? asked.at + entryLifetimeMs(asked.ttl ?? "5m", facts) : undefined;
  const read = asked && warmUntil !== undefined && now < warmUntil ? asked.tokens : 0;
  const written = tokens - read;
  const usage = { plain: 0, read, written: { [asked?.ttl ?? "5m"]: written }, output: 0 };
  const usd = costOf(usage, facts, serviceOf(head.settings, now))?.total;
  const priceToContinue: ContinuationPrice = { read, written, ...(usd === undefined ? {} : { usd }) };
  return { ...(warmUntil === undefined ? {} : { warmUntil }), priceToContinue };
};
