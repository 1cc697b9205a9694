/** The worktrees of one repository: created for tasks, finished, merged, undone, removed, repaired.
 *  Invariant: everything that changes the checkout or removes something holds the lock; what a crash interrupted is repaired
 *  first.
 *  Elsewhere: each operation in its own file; the callers (@prefork/runtime, the command line). */

import { type CheckResult, runCheck } from "./check.ts";
import { type CreatedWorktree, type CreateOptions, createWorktree, type WorktreeContext } from "./create.ts";
import { changedFilesText, WorktreeError, withWorktreeErrors } from "./errors.ts";
import type { StepCallback } from "./git.ts";
import { handBack } from "./hand-back.ts";
import { inspectWorktree, type WorktreeInspection, worktreeDiff } from "./inspect.ts";
import { type MergeOptions, type MergeOutcome, mergeQueue, nextGroup } from "./merge.ts";
import type { ConflictedFile } from "./merge-plan.ts";
import { openWorktree } from "./open-worktree.ts";
import { previewQueue } from "./preview.ts";
import { isUnmerged, type MergePoint, type Worktree, type WorktreeTable } from "./records.ts";
import { dropRefs, findMissing, savedRef } from "./refs.ts";
import { findInterrupted, type RepairReport, repair, repairUnfinished } from "./repair.ts";
import { openRepository, type Repository, requireReady } from "./repository.ts";
import { type Snapshot, takeSnapshot, type UntrackedLimit } from "./snapshot.ts";
import { WorktreeStore } from "./store.ts";
import { type UndoOptions, type UndoResult, undoablePoints, undoPoint } from "./undo.ts";
import { commitWork, finishWork, ignoredIn, removeWorktree, type Work } from "./work.ts";

export type WorktreesOptions = {
  /** A folder in the checkout. */
  readonly cwd: string;
  /** The user's state folder. */
  readonly state: string;
  readonly now?: () => number;
  readonly environment?: Readonly<Record<string, string | undefined>>; // default: the process's
  /** Called before every git call and every record. */
  readonly step?: StepCallback;
  readonly lockTimeoutMs?: number;
};

export type PruneResult = { readonly task: string } & (
  | { readonly kind: "removed" }
  | { readonly kind: "kept"; readonly reason: string }
);

/** How many of the latest merges can be undone. */
const KEPT_POINTS = 50;

export class Worktrees {
  readonly #options: WorktreesOptions;
  readonly #store: WorktreeStore;
  readonly #step: StepCallback;
  #repository: Repository;

  private constructor(options: WorktreesOptions, { store, repository }: WorktreeContext) {
    this.#options = options;
    this.#store = store;
    this.#repository = repository;
    this.#step = options.step ?? (() => {});
  }

  /** Throws a WorktreeError if there is no repository with files. */
  static async open(options: WorktreesOptions): Promise<Worktrees> {
    const repository = await openRepository(options.cwd, options);
    const { state, now = Date.now, step, lockTimeoutMs: patienceMs } = options;
    const store = await WorktreeStore.open({
      ...{ state, now, commonDir: repository.commonDir },
      ...(step ? { step } : {}),
      ...(patienceMs === undefined ? {} : { lockTimeoutMs: patienceMs }),
    });
    return new Worktrees(options, { store, repository });
  }

  /** Why no worktree can be created here now; undefined if one can. Changes nothing. */
  static async refusal(cwd: string): Promise<string | undefined> {
    try {
      await requireReady(await openRepository(cwd));
      return undefined;
    } catch (error) {
      if (error instanceof WorktreeError) return error.message;
      throw error;
    }
  }

  get top(): string {
    return this.#repository.top;
  }

  /** The git folder that all checkouts of the repository share. */
  get commonDir(): string {
    return this.#repository.commonDir;
  }

  /** Filters of the repository, which are switched off: their files appear in worktrees as git stores them. */
  get filters(): readonly string[] {
    return this.#repository.filters;
  }

  /** A snapshot of the checkout, for one task or for several that start together. */
  async snapshot(limit: UntrackedLimit = {}): Promise<Snapshot> {
    const { repository, store } = await this.#reopen();
    await requireReady(repository);
    const take = (): Promise<Snapshot> =>
      store.scratch((scratch) => takeSnapshot(repository, `${scratch}/index`, limit));
    return withWorktreeErrors(take, "the checkout could not be read");
  }

  async create(options: Omit<CreateOptions, "cwd">): Promise<CreatedWorktree> {
    const place = await this.#reopen();
    const { cwd } = this.#options;
    return withWorktreeErrors(
      () => createWorktree(place, { ...options, cwd }),
      `no worktree could be created for ${options.task}`,
    );
  }

  /** Its setup is done: ignored files that exist by now are not its agent's. */
  async markReady(task: string): Promise<void> {
    const { repository } = this.#context;
    const copy = await openWorktree(repository, (await this.find(task)).path);
    await this.#store.append({ kind: "ready", task, ignored: copy ? await ignoredIn(copy) : [] });
  }

  /** Its agent works in it again, after it had ended. */
  async enter(task: string): Promise<Worktree> {
    const worktree = await this.find(task);
    const { repository } = await this.#reopen();
    if (worktree.state.kind === "gone" || !(await openWorktree(repository, worktree.path)))
      throw new WorktreeError("unknown-task", `the worktree of ${task} was removed, so the task cannot resume in it`);
    await this.#store.append({ kind: "entered", task, by: this.#store.self });
    return worktree;
  }

  async finish(task: string, how: { readonly message: string; readonly end: string }) {
    return finishWork(await this.#reopen(), await this.find(task), how);
  }

  async find(task: string): Promise<Worktree> {
    const worktree = (await this.#store.read()).worktrees.get(task);
    if (worktree) return worktree;
    throw new WorktreeError("unknown-task", `${task} has no worktree (prefork worktrees lists them)`);
  }

  table(): Promise<WorktreeTable> {
    return this.#store.read();
  }

  /** Commits what a task has done so far, and returns it. */
  async work(task: string): Promise<Work> {
    const worktree = await this.find(task);
    return commitWork(await this.#reopen(), worktree, `Kept while ${task} was inspected\n`);
  }

  /** What a task has done so far, without committing it. */
  async inspect(task: string): Promise<WorktreeInspection> {
    return inspectWorktree(await this.#reopen(), await this.find(task));
  }

  /** What a task has changed, as a diff. */
  async diff(task: string): Promise<string> {
    return worktreeDiff(await this.#reopen(), await this.find(task));
  }

  /** Merges work into the checkout, one task after another. */
  async merge(tasks: readonly string[], options: MergeOptions = {}): Promise<readonly MergeOutcome[]> {
    if (options.isPreview) return previewQueue(await this.#reopen(), tasks, options);
    const work = async (): Promise<readonly MergeOutcome[]> => {
      const place = await this.#reopen();
      await repairUnfinished(place);
      return mergeQueue({ ...place, step: this.#step }, tasks, options);
    };
    return this.#store.exclusive(work, "merge");
  }

  /** Tasks with refs in this repository but without records: they were created when the repository was at another path. */
  async unrecorded(): Promise<readonly string[]> {
    const { worktrees } = await this.#store.read();
    const listed = await this.#repository.git.line([
      "for-each-ref",
      "--format=%(refname:lstrip=3)",
      "refs/prefork/base/",
    ]);
    return listed.split("\n").filter((task) => task !== "" && !worktrees.has(task));
  }

  /** A group for merges of several calls that can be undone together. */
  async newGroup(): Promise<number> {
    return nextGroup(await this.#store.read());
  }

  /** Puts the checkout's conflicting changes into a worktree, for its agent to resolve. Returns the files. */
  async handBack(task: string): Promise<readonly ConflictedFile[]> {
    const work = async (): Promise<readonly ConflictedFile[]> => handBack(await this.#reopen(), await this.find(task));
    return this.#store.exclusive(work, "hand back");
  }

  /** A check for `merge`: runs a command of the user in the checkout. */
  check(command: string, signal?: AbortSignal): () => Promise<CheckResult> {
    const environment = this.#options.environment ?? process.env;
    return () => runCheck(command, { cwd: this.#options.cwd, environment, ...(signal ? { signal } : {}) });
  }

  /** Undoes the last merges: a number of them, or all of the last command. */
  async undo(which: number | "group", options: UndoOptions = {}): Promise<readonly UndoResult[]> {
    const work = async (): Promise<readonly UndoResult[]> => {
      const place = await this.#reopen();
      const { top } = place.repository;
      // An interrupted undo is finished first, and counts.
      const interrupted = (await this.#store.read()).points.filter((one) => one.state === "undoing" && one.top === top);
      await repairUnfinished(place);
      const undone = interrupted.map(({ point, task }): UndoResult => ({ point, task, files: [] }));
      const chosen = selectPoints((await this.#store.read()).points, { which, top, interrupted });
      for (const { point } of chosen) undone.push(await undoPoint(place, point, options));
      return undone;
    };
    return this.#store.exclusive(work, "undo");
  }

  /** What a crash interrupted and nobody has repaired. */
  async interrupted(): Promise<ReturnType<typeof findInterrupted>> {
    return findInterrupted(this.#context, await this.#store.read());
  }

  async repair(): Promise<readonly RepairReport[]> {
    return this.#store.exclusive(async () => repair(await this.#reopen()), "repair");
  }

  /** Removes worktrees that are merged or empty, and those of the `forced` tasks, whatever they contain. */
  async prune({ forced = [] }: { readonly forced?: readonly string[] } = {}): Promise<readonly PruneResult[]> {
    const work = async (): Promise<readonly PruneResult[]> => {
      const place = await this.#reopen();
      await repair(place);
      const { worktrees, points } = await this.#store.read();
      const pruned: PruneResult[] = [];
      for (const worktree of worktrees.values())
        if (worktree.state.kind !== "gone") pruned.push(await pruneOne(place, worktree, forced));
      await this.#dropOldPoints(points);
      return pruned;
    };
    return this.#store.exclusive(work, "prune");
  }

  get #context(): WorktreeContext {
    return { store: this.#store, repository: this.#repository };
  }

  /** Reads the repository again: its HEAD moves, and a task may have changed its settings. */
  async #reopen(): Promise<WorktreeContext> {
    this.#repository = await openRepository(this.#options.cwd, { ...this.#options, before: this.#repository });
    return this.#context;
  }

  async #dropOldPoints(points: readonly MergePoint[]): Promise<void> {
    const kept = undoablePoints(points);
    const missing = await findMissing(
      this.#repository,
      kept.flatMap(({ saved }) => (saved === "" ? [] : [saved])),
    );
    const old = [...kept.slice(KEPT_POINTS), ...kept.slice(0, KEPT_POINTS).filter(({ saved }) => missing.has(saved))];
    for (const { point } of old) await this.#store.append({ kind: "dropped", point });
    const undone = points.filter(({ state }) => state === "undone");
    const refs = [...old, ...undone].filter(({ saved }) => saved !== "").map(({ point }) => ({ ref: savedRef(point) }));
    if (refs.length > 0) await dropRefs(this.#repository, refs);
  }
}

const pruneOne = async (
  place: WorktreeContext,
  worktree: Worktree,
  forced: readonly string[],
): Promise<PruneResult> => {
  const { task } = worktree;
  const isForced = forced.includes(task);
  if (worktree.state.kind !== "finished") return { task, kind: "kept", reason: "it is still working" };
  if ((await findMissing(place.repository, [worktree.base])).size > 0) {
    await place.store.append({ kind: "removed", task }); // it belonged to a repository that is gone
    return { task, kind: "removed" };
  }
  if (isUnmerged(worktree) && !isForced)
    return { task, kind: "kept", reason: `not merged: ${changedFilesText(worktree.files)}` };
  try {
    await removeWorktree(place, worktree, { forced: isForced });
    return { task, kind: "removed" };
  } catch (error) {
    return { task, kind: "kept", reason: error instanceof Error ? error.message : String(error) };
  }
};

const selectPoints = (
  points: readonly MergePoint[],
  {
    which,
    top,
    interrupted,
  }: { readonly which: number | "group"; readonly top: string; readonly interrupted: readonly MergePoint[] },
): readonly MergePoint[] => {
  const all = undoablePoints(points).filter((point) => point.top === top);
  const last = interrupted.at(-1) ?? all[0];
  if (!last) throw new WorktreeError("unknown-task", "there is no merge to undo in this checkout");
  if (which === "group") return all.filter(({ group }) => group === last.group);
  return all.slice(0, Math.max(0, which - interrupted.length));
};

/** The unmerged tasks that started together with a task, or with the last one, in their order. */
export const familyOf = async (worktrees: Worktrees, task?: string): Promise<readonly string[]> => {
  const all = [...(await worktrees.table()).worktrees.values()].filter(({ state }) => state.kind !== "gone");
  const first = task === undefined ? all.findLast(isUnmerged) : all.find((one) => one.task === task);
  return all
    .filter((one) => first && startedTogether(one, first) && isUnmerged(one))
    .toSorted((one, other) => (one.order ?? 0) - (other.order ?? 0))
    .map((one) => one.task);
};

/** They share a snapshot. Records of earlier versions have only its commit, which two snapshots may share. */
const startedTogether = (one: Worktree, other: Worktree): boolean =>
  one.family === other.family && one.origin === other.origin;
