/** Did a run that may write in one folder change anything outside it, by whatever route?
 *  Invariant: judged by what is on the disk before and after, never by what was requested: a denied attempt is not a breach, a change
 *  that nobody requested is one. What cannot be watched is reported before the run, not after.
 *  Elsewhere: recording a tree (tree-record.ts), restoring it (revert.ts), denying calls (../rules). */

import type { BigIntStats } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { Folder, isSame, openRoot, RootError } from "../files/index.ts";
import { partsBelow, type Refused } from "../paths/index.ts";
import { type Keep, keepCopy } from "./keep-copy.ts";
import { type Breach, type Difference, openBreaches, type Reverted, restoreRights, revertBreaches } from "./revert.ts";
import {
  isClosedToUs,
  keyOf,
  type RecordBounds,
  type Recorded,
  type RecordedTree,
  recordTree,
  rightsOf,
  TooManyFiles,
  type TreeRecord,
} from "./tree-record.ts";

export type WatchOptions = {
  /** Trees that must stay as they are. */
  readonly folders: readonly string[];
  /** Folders the run may write in; they may stand inside a watched tree. */
  readonly allowed: readonly string[];
  readonly maxFiles?: number; // default: 50,000
  /** Bytes of each tree kept in memory so that changes can be undone. */
  readonly maxBytes?: number; // default: 64 MiB
  /** Files over that bound: refuse to watch, or watch them and only tell of changes. */
  readonly beyond?: "refuse" | "report"; // default: refuse
  /** Paths that are not looked at, with all below them. */
  readonly leaveOut?: (path: string) => boolean; // default: none
};

const MAX_FILES = 50_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** Times are put back through floating point, which keeps microseconds. */
const SAME_TIME_NS = 2_000n;

const isSameTime = (a: bigint, b: bigint): boolean => (a > b ? a - b : b - a) <= SAME_TIME_NS;

/** A new change time alone is no difference where the bytes are known to be equal: links come and go. */
const isUnchanged = (before: Recorded, now: Recorded): boolean => {
  if (before.isAllowed && now.isAllowed) return true;
  const [a, b] = [before.stats, now.stats];
  if (before.kind !== now.kind || a.mode !== b.mode || a.uid !== b.uid || a.gid !== b.gid) return false;
  if (before.kind === "folder") return true; // what is in it is compared by itself
  if (before.kind === "link") return now.content !== undefined && (before.content?.equals(now.content) ?? false);
  if (before.kind === "other") return a.ino === b.ino && a.rdev === b.rdev;
  if (a.size !== b.size || !isSameTime(a.mtimeNs, b.mtimeNs)) return false;
  if (a.ino === b.ino && a.dev === b.dev && a.ctimeNs === b.ctimeNs) return true;
  return before.content !== undefined && now.content !== undefined && before.content.equals(now.content);
};

const differences = (before: TreeRecord, now: TreeRecord): readonly Omit<Difference, "path">[] => [
  ...[...before].flatMap(([key, seen]): readonly Omit<Difference, "path">[] => {
    const found = now.get(key);
    if (found === undefined) return [{ change: "removed", before: seen, now: undefined }];
    return isUnchanged(seen, found) ? [] : [{ change: "changed", before: seen, now: found }];
  }),
  ...[...now].flatMap(([key, found]): readonly Omit<Difference, "path">[] =>
    before.has(key) ? [] : [{ change: "created", before: undefined, now: found }],
  ),
];

/** The watched folder is held, so it is compared even where its name has come to mean another one, or none: that is a
 *  change too, and one that only a person can undo. Its rights can be put back. */
const ownDifference = async ({ folder, stats }: RecordedTree): Promise<readonly Omit<Difference, "path">[]> => {
  const before = { names: [], kind: "folder", stats, content: undefined } as const;
  const now = await lstat(folder.path, { bigint: true }).catch(() => undefined);
  if (now === undefined) return [{ change: "removed", before, now: undefined }];
  if (isSame(now, stats) && now.mode === stats.mode && now.uid === stats.uid && now.gid === stats.gid) return [];
  return [{ change: "changed", before, now: { ...before, kind: now.isDirectory() ? "folder" : "other", stats: now } }];
};

/** A breach with the time of the change, as the file system tells it. */
export type DatedBreach = Breach & { readonly atMs: number };

/** A breach that was put back or not; `copy` holds what stood there. */
export type PutBack = Breach & { readonly reverted: boolean; readonly copy?: string };

export type Comparison =
  | { readonly ok: true; readonly breaches: readonly DatedBreach[] }
  | (Refused & { readonly breaches: readonly DatedBreach[] });

type Seen = { readonly tree: RecordedTree; readonly difference: Difference; readonly breach: DatedBreach };

const changedMs = ({ ctimeNs }: Pick<BigIntStats, "ctimeNs">): number => Number(ctimeNs / 1_000n) / 1_000;

/** What is gone has no time; the nearest folder that is still there has that of the last change in it. */
const goneMs = (names: readonly Buffer[], now: TreeRecord, top: BigIntStats): number => {
  for (let length = names.length - 1; length > 0; length--) {
    const folder = now.get(keyOf(names.slice(0, length)));
    if (folder) return changedMs(folder.stats);
  }
  return changedMs(top);
};

const leftOutIn = (folder: Folder, { leaveOut }: WatchOptions): Pick<RecordBounds, "leaveOut"> =>
  leaveOut ? { leaveOut: (key) => leaveOut(join(folder.path.toString(), Buffer.from(key, "latin1").toString())) } : {};

export type Held = { readonly folder: Folder; readonly stats: BigIntStats };

const hold = async (path: string): Promise<Held> => {
  await using root = await openRoot(path);
  const folder = await Folder.open(root.path);
  return { folder, stats: await folder.handle.stat({ bigint: true }) };
};

/** A run's before, held until its after. */
export class Watch implements AsyncDisposable {
  readonly #trees: readonly RecordedTree[];
  readonly #options: WatchOptions;
  readonly #others = new Set<string>();
  readonly #seen = new Map<string, Seen>();

  /** Held open, so that what is passed over stays what it was when the run began, whatever its name comes to mean. */
  readonly #allowed: readonly Held[];

  /** Use `watchTrees`. */
  constructor(trees: readonly RecordedTree[], allowed: readonly Held[], options: WatchOptions) {
    this.#trees = trees;
    this.#allowed = allowed;
    this.#options = options;
  }

  /** Somebody else changed this on purpose while the run went on: it, and what is below it, is nobody's breach. */
  accountFor(path: string): void {
    this.#others.add(path);
  }

  /** What is different now, outside the allowed folders. Changes nothing. Where a tree cannot be compared as a whole,
   *  the refusal says why, and the breaches are those that were found all the same. */
  async compare(): Promise<Comparison> {
    this.#seen.clear();
    const reasons: string[] = [];
    for (const [at, tree] of this.#trees.entries()) {
      try {
        const incomplete = await this.#compareTree(tree, at);
        if (incomplete !== undefined) reasons.push(`${tree.folder.path} has ${incomplete} now`);
      } catch (error) {
        reasons.push(`${tree.folder.path}: ${(error as Error).message}`);
      }
    }
    const breaches = [...this.#seen.values()].map(({ breach }) => breach).sort((a, b) => (a.path < b.path ? -1 : 1));
    if (reasons.length === 0) return { ok: true, breaches };
    return { ok: false, reason: `the tree could not be compared: ${reasons.join(", ")}`, breaches };
  }

  async #compareTree(tree: RecordedTree, at: number): Promise<string | undefined> {
    const { maxFiles = MAX_FILES, maxBytes = MAX_BYTES } = this.#options;
    const { folder, record: before } = tree;
    await folder.verify();
    const top = await folder.handle.stat({ bigint: true });
    const own = await ownDifference(tree);
    const opens = isClosedToUs(top) && !isClosedToUs(tree.stats);
    if (opens) await folder.handle.chmod(rightsOf(tree.stats));
    const except = this.#allowed.map(({ stats }) => stats);
    const bounds = { maxFiles: maxFiles * 2, maxBytes, except, before };
    const { record, incomplete } = await recordTree(folder, { ...bounds, ...leftOutIn(folder, this.#options) }).finally(
      () => (opens ? folder.handle.chmod(rightsOf(top)) : undefined),
    );
    for (const found of [...own, ...differences(before, record)]) {
      const names = (found.before ?? found.now)?.names ?? [];
      const path = join(folder.path.toString(), Buffer.from(keyOf(names), "latin1").toString());
      const atMs = found.now ? changedMs(found.now.stats) : goneMs(names, record, top);
      if (!this.#isAccountedFor(path))
        this.#seen.set(`${at}:${keyOf(names)}`, {
          ...{ tree, difference: { ...found, path } },
          breach: { path, change: found.change, atMs },
        });
    }
    return incomplete;
  }

  /** Puts back everything the last comparison found, exactly: bytes, bits, owners, times, links, folders. Only where
   *  nobody else worked in the trees meanwhile: a person's own change that was not accounted for would be undone too. */
  async revert(): Promise<readonly Reverted[]> {
    const results = await this.#revert([...this.#seen.values()]);
    return [...results.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** The same for these breaches of the last comparison, in their order. What stands there now is kept first, and what
   *  cannot be kept is left as it is. They are known by themselves: two names that are no text may look the same. */
  async putBack(breaches: readonly DatedBreach[], keep: Keep): Promise<readonly PutBack[]> {
    const seen = [...this.#seen.values()];
    const kept = new Map<DatedBreach, string | undefined>();
    const meant = new Set(breaches);
    const own = seen.filter(({ breach }) => meant.has(breach));
    for (const tree of this.#trees)
      await openBreaches(
        tree,
        own.filter((each) => each.tree === tree).map(({ difference }) => difference),
      );
    for (const { tree, difference, breach } of own) {
      const copied = await keepCopy(tree, difference, keep);
      if (copied.ok) kept.set(breach, copied.copy);
      else await restoreRights(tree.folder, difference);
    }
    const results = await this.#revert(seen.filter(({ breach }) => kept.has(breach)));
    return breaches.map((breach) => {
      const [copy, { path, change }] = [kept.get(breach), breach];
      const reverted = results.get(breach)?.reverted === true;
      return { path, change, reverted, ...(copy === undefined ? {} : { copy }) };
    });
  }

  async #revert(meant: readonly Seen[]): Promise<ReadonlyMap<DatedBreach, Reverted>> {
    const results = new Map<DatedBreach, Reverted>();
    for (const tree of this.#trees) {
      const found = meant.filter((seen) => seen.tree === tree);
      const reverted = await revertBreaches(
        tree,
        found.map(({ difference }) => difference),
      );
      // One result for each difference, in their order.
      for (const [at, { breach }] of found.entries()) results.set(breach, reverted[at] as Reverted);
    }
    this.#seen.clear();
    return results;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#trees, ...this.#allowed].map(({ folder }) => folder.close()));
  }

  #isAccountedFor(path: string): boolean {
    const parts = path.split("/").filter(Boolean);
    return [...this.#others].some((other) => partsBelow(other.split("/").filter(Boolean), parts) !== undefined);
  }
}

/** Records the trees before a run. A refusal says why they cannot be watched; the run's filter then denies writing. */
export const watchTrees = async (
  options: WatchOptions,
): Promise<{ readonly ok: true; readonly watch: Watch } | Refused> => {
  const { maxFiles = MAX_FILES, maxBytes = MAX_BYTES, beyond = "refuse" } = options;
  const [allowed, trees]: [Held[], RecordedTree[]] = [[], []];
  const giveUp = async (reason: string): Promise<Refused> => {
    await Promise.all([...trees, ...allowed].map(({ folder }) => folder.close()));
    return { ok: false, reason };
  };
  try {
    for (const path of options.allowed) allowed.push(await hold(path));
    const except = allowed.map(({ stats }) => stats);
    for (const path of options.folders) {
      const held = await hold(path);
      trees.push({ ...held, record: new Map() });
      const leftOut = leftOutIn(held.folder, options);
      const { record, isWhole } = await recordTree(held.folder, { maxFiles, maxBytes, except, ...leftOut });
      trees[trees.length - 1] = { ...held, record };
      if (!isWhole && beyond === "refuse")
        return giveUp(`${path} has more than ${maxBytes} bytes, or files that cannot be read`);
    }
    return { ok: true, watch: new Watch(trees, allowed, options) };
  } catch (error) {
    if (error instanceof TooManyFiles) return giveUp(`the watched trees have ${error.message}`);
    if (error instanceof RootError) return giveUp(error.message);
    if ((error as NodeJS.ErrnoException).syscall !== undefined) return giveUp((error as Error).message);
    await giveUp("");
    throw error;
  }
};
