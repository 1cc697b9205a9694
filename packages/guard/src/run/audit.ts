/** Did a run that may write in one folder change anything outside it, by whatever route?
 *  Invariant: judged by what is on the disk before and after, never by what was requested: a denied attempt is not a
 *  breach, a change that nobody requested is one. What cannot be watched is reported before the run, not after.
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
  /** Folders the run may write in; they may be inside a watched tree. */
  readonly allowed: readonly string[];
  readonly maxFiles?: number; // default: 50,000
  /** Bytes of each tree kept in memory so that changes can be undone. */
  readonly maxBytes?: number; // default: 64 MiB
  /** What to do with more bytes than that: refuse to watch, or watch the rest and only report changes. */
  readonly beyond?: "refuse" | "report"; // default: refuse
  /** Paths that are not watched, including everything below them. */
  readonly exclude?: (path: string) => boolean; // default: none
};

const MAX_FILES = 50_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** Restoring a time goes through a floating-point number, which keeps only microseconds. */
const SAME_TIME_NS = 2_000n;

const isSameTime = (a: bigint, b: bigint): boolean => (a > b ? a - b : b - a) <= SAME_TIME_NS;

/** A new change time alone is not a difference if the bytes are known to be equal: adding or removing a hard link
 *  changes it. */
const isUnchanged = (before: Recorded, now: Recorded): boolean => {
  if (before.isAllowed && now.isAllowed) return true;
  const [a, b] = [before.stats, now.stats];
  if (before.kind !== now.kind || a.mode !== b.mode || a.uid !== b.uid || a.gid !== b.gid) return false;
  if (before.kind === "folder") return true; // its contents are compared separately
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

/** The watched folder is kept open, so it is compared even if its name now refers to another folder or to none. That
 *  is a change too, and only a person can undo it. Its permissions can be restored. */
const ownDifference = async ({ folder, stats }: RecordedTree): Promise<readonly Omit<Difference, "path">[]> => {
  const before = { names: [], kind: "folder", stats, content: undefined } as const;
  const now = await lstat(folder.path, { bigint: true }).catch(() => undefined);
  if (now === undefined) return [{ change: "removed", before, now: undefined }];
  if (isSame(now, stats) && now.mode === stats.mode && now.uid === stats.uid && now.gid === stats.gid) return [];
  return [{ change: "changed", before, now: { ...before, kind: now.isDirectory() ? "folder" : "other", stats: now } }];
};

/** A breach with the time of the change, according to the file system. */
export type DatedBreach = Breach & { readonly atMs: number };

/** A breach, and whether it was reverted; `copy` is a copy of what was there. */
export type RevertedBreach = Breach & { readonly reverted: boolean; readonly copy?: string };

export type Comparison =
  | { readonly ok: true; readonly breaches: readonly DatedBreach[] }
  | (Refused & { readonly breaches: readonly DatedBreach[] });

type Seen = { readonly tree: RecordedTree; readonly difference: Difference; readonly breach: DatedBreach };

const changedMs = ({ ctimeNs }: Pick<BigIntStats, "ctimeNs">): number => Number(ctimeNs / 1_000n) / 1_000;

/** A deleted file has no time. The nearest folder that still exists has the time of the last change in it. */
const goneMs = (names: readonly Buffer[], now: TreeRecord, top: BigIntStats): number => {
  for (let length = names.length - 1; length > 0; length--) {
    const folder = now.get(keyOf(names.slice(0, length)));
    if (folder) return changedMs(folder.stats);
  }
  return changedMs(top);
};

const exclusionIn = (folder: Folder, { exclude }: WatchOptions): Pick<RecordBounds, "exclude"> =>
  exclude ? { exclude: (key) => exclude(join(folder.path.toString(), Buffer.from(key, "latin1").toString())) } : {};

export type Held = { readonly folder: Folder; readonly stats: BigIntStats };

const hold = async (path: string): Promise<Held> => {
  await using root = await openRoot(path);
  const folder = await Folder.open(root.path);
  return { folder, stats: await folder.handle.stat({ bigint: true }) };
};

/** The state before a run, kept until the run ends. */
export class Watch implements AsyncDisposable {
  readonly #trees: readonly RecordedTree[];
  readonly #options: WatchOptions;
  readonly #others = new Set<string>();
  readonly #seen = new Map<string, Seen>();

  /** Kept open, so that the excluded folders stay the same ones during the whole run, whatever their names refer to
   *  later. */
  readonly #allowed: readonly Held[];

  /** Use `watchTrees`. */
  constructor(trees: readonly RecordedTree[], allowed: readonly Held[], options: WatchOptions) {
    this.#trees = trees;
    this.#allowed = allowed;
    this.#options = options;
  }

  /** Somebody else changed this path on purpose during the run. Neither it nor anything below it counts as a breach. */
  accountFor(path: string): void {
    this.#others.add(path);
  }

  /** What is different now, outside the allowed folders. Changes nothing. If a tree cannot be compared completely, the
   *  refusal says why and contains the breaches that were found anyway. */
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
    const { record, incomplete } = await recordTree(folder, {
      ...bounds,
      ...exclusionIn(folder, this.#options),
    }).finally(() => (opens ? folder.handle.chmod(rightsOf(top)) : undefined));
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

  /** Restores everything the last comparison found, exactly: bytes, permissions, owners, times, links, folders. Call
   *  it only if nobody else worked in the trees in the meantime: it would also undo a person's change that was not
   *  accounted for. */
  async revert(): Promise<readonly Reverted[]> {
    const results = await this.#revert([...this.#seen.values()]);
    return [...results.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** The same for these breaches of the last comparison, in their order. First it copies what is there now; whatever
   *  cannot be copied is left as it is. Breaches are compared by identity, because two names that are not valid text
   *  may look the same. */
  async revertSome(breaches: readonly DatedBreach[], keep: Keep): Promise<readonly RevertedBreach[]> {
    const seen = [...this.#seen.values()];
    const kept = new Map<DatedBreach, string | undefined>();
    const selected = new Set(breaches);
    const own = seen.filter(({ breach }) => selected.has(breach));
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

  async #revert(selected: readonly Seen[]): Promise<ReadonlyMap<DatedBreach, Reverted>> {
    const results = new Map<DatedBreach, Reverted>();
    for (const tree of this.#trees) {
      const found = selected.filter((seen) => seen.tree === tree);
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
      const leftOut = exclusionIn(held.folder, options);
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
