/** The worktrees of one repository: made for tasks, finished, merged, undone, removed, repaired.
 *  Invariant: everything that changes the checkout or removes something happens alone; what a crash left is seen to
 *  before anything else is done.
 *  Elsewhere: each of these in a file of its own; who asks for them (../session, the command line). */

import { type Checked, runCheck } from "./check.ts";
import { openCopy } from "./copies.ts";
import { type Created, type CreateOptions, createWorktree, type Place } from "./create.ts";
import { filesOf, inWords, WorktreeError } from "./errors.ts";
import type { Steps } from "./git.ts";
import { handBack } from "./hand-back.ts";
import { diffOf, type Looked, lookAt } from "./look.ts";
import { type MergeOptions, type MergeOutcome, mergeQueue, nextGroup } from "./merge.ts";
import type { ConflictedFile } from "./merge-plan.ts";
import { previewQueue } from "./preview.ts";
import { isUnmerged, type MergePoint, type Worktree, type WorktreeTable } from "./records.ts";
import { dropRefs, missingOf, savedRef } from "./refs.ts";
import { leftUnderWay, mend, type Repaired, repair } from "./repair.ts";
import { mustBeReady, openRepository, type Repository } from "./repository.ts";
import { type Snapshot, takeSnapshot, type UntrackedLimit } from "./snapshot.ts";
import { WorktreeStore } from "./store.ts";
import { type Undone, type UndoOptions, undoable, undoPoint } from "./undo.ts";
import { commitWork, finishWork, ignoredIn, removeWorktree, type Work } from "./work.ts";

export type WorktreesOptions = {
  /** A folder in the checkout. */
  readonly cwd: string;
  /** The user's state folder. */
  readonly state: string;
  readonly now?: () => number;
  readonly environment?: Readonly<Record<string, string | undefined>>; // default: the process's
  /** Told before every git call and every record. */
  readonly step?: Steps;
  readonly patienceMs?: number;
};

export type Pruned = { readonly task: string } & (
  | { readonly kind: "removed" }
  | { readonly kind: "kept"; readonly reason: string }
);

/** Merges whose way back is kept, the latest. */
const KEPT_POINTS = 50;

export class Worktrees {
  readonly #options: WorktreesOptions;
  readonly #store: WorktreeStore;
  readonly #step: Steps;
  #repository: Repository;

  private constructor(options: WorktreesOptions, { store, repository }: Place) {
    this.#options = options;
    this.#store = store;
    this.#repository = repository;
    this.#step = options.step ?? (() => {});
  }

  /** Throws a WorktreeError where there is no repository with files. */
  static async open(options: WorktreesOptions): Promise<Worktrees> {
    const repository = await openRepository(options.cwd, options);
    const { state, now = Date.now, step, patienceMs } = options;
    const store = await WorktreeStore.open({
      ...{ state, now, commonDir: repository.commonDir },
      ...(step ? { step } : {}),
      ...(patienceMs === undefined ? {} : { patienceMs }),
    });
    return new Worktrees(options, { store, repository });
  }

  /** Why no work can branch off here now; undefined where it can. Leaves nothing behind. */
  static async refusal(cwd: string): Promise<string | undefined> {
    try {
      await mustBeReady(await openRepository(cwd));
      return undefined;
    } catch (error) {
      if (error instanceof WorktreeError) return error.message;
      throw error;
    }
  }

  get top(): string {
    return this.#repository.top;
  }

  /** What all checkouts of the repository share. */
  get commonDir(): string {
    return this.#repository.commonDir;
  }

  /** Contents that filters of the repository would change; they stand in copies as git stores them. */
  get filters(): readonly string[] {
    return this.#repository.filters;
  }

  /** The checkout as it is now, for one task or for several that start together. */
  async snapshot(limit: UntrackedLimit = {}): Promise<Snapshot> {
    const { repository, store } = await this.#place();
    await mustBeReady(repository);
    const take = (): Promise<Snapshot> =>
      store.scratch((scratch) => takeSnapshot(repository, `${scratch}/index`, limit));
    return inWords(take, "the checkout could not be read");
  }

  async create(options: Omit<CreateOptions, "cwd">): Promise<Created> {
    const place = await this.#place();
    const { cwd } = this.#options;
    return inWords(() => createWorktree(place, { ...options, cwd }), `no worktree could be made for ${options.task}`);
  }

  /** It was set up: what is ignored in it by now is not its agent's. */
  async ready(task: string): Promise<void> {
    const { repository } = this.#here;
    const copy = await openCopy(repository, (await this.find(task)).path);
    await this.#store.append({ kind: "ready", task, ignored: copy ? await ignoredIn(copy) : [] });
  }

  /** Its agent goes on in it, after an end. */
  async enter(task: string): Promise<Worktree> {
    const worktree = await this.find(task);
    const { repository } = await this.#place();
    if (worktree.state.kind === "gone" || !(await openCopy(repository, worktree.path)))
      throw new WorktreeError("unknown-task", `the worktree of ${task} was removed, so it cannot go on there`);
    await this.#store.append({ kind: "entered", task, by: this.#store.self });
    return worktree;
  }

  async finish(task: string, how: { readonly message: string; readonly end: string }) {
    return finishWork(await this.#place(), await this.find(task), how);
  }

  async find(task: string): Promise<Worktree> {
    const worktree = (await this.#store.read()).worktrees.get(task);
    if (worktree) return worktree;
    throw new WorktreeError("unknown-task", `there is no worktree of ${task}; prefork worktrees lists them`);
  }

  table(): Promise<WorktreeTable> {
    return this.#store.read();
  }

  /** What a task has done so far, committed or not. */
  async work(task: string): Promise<Work> {
    const worktree = await this.find(task);
    return commitWork(await this.#place(), worktree, `Kept while ${task} was looked at\n`);
  }

  /** The same for somebody who asks: nothing is committed. */
  async look(task: string): Promise<Looked> {
    return lookAt(await this.#place(), await this.find(task));
  }

  /** What a task has changed, as text. */
  async diff(task: string): Promise<string> {
    return diffOf(await this.#place(), await this.find(task));
  }

  /** Brings work back, one task after another. */
  async merge(tasks: readonly string[], options: MergeOptions = {}): Promise<readonly MergeOutcome[]> {
    if (options.isPreview) return previewQueue(await this.#place(), tasks, options);
    const work = async (): Promise<readonly MergeOutcome[]> => {
      const place = await this.#place();
      await mend(place);
      return mergeQueue({ ...place, step: this.#step }, tasks, options);
    };
    return this.#store.alone(work, "merge");
  }

  /** Tasks that git keeps work of here, and that no record knows: the repository was somewhere else when they were made. */
  async unnoted(): Promise<readonly string[]> {
    const { worktrees } = await this.#store.read();
    const listed = await this.#repository.git.line([
      "for-each-ref",
      "--format=%(refname:lstrip=3)",
      "refs/prefork/base/",
    ]);
    return listed.split("\n").filter((task) => task !== "" && !worktrees.has(task));
  }

  /** For merges by several calls that are to be taken back as one. */
  async newGroup(): Promise<number> {
    return nextGroup(await this.#store.read());
  }

  /** Puts the checkout's changes into a copy that conflicts with them, for its agent to resolve. Gives the files. */
  async handBack(task: string): Promise<readonly ConflictedFile[]> {
    const work = async (): Promise<readonly ConflictedFile[]> => handBack(await this.#place(), await this.find(task));
    return this.#store.alone(work, "hand back");
  }

  /** A check for `merge`: a command of the user's in the checkout. */
  check(command: string, signal?: AbortSignal): () => Promise<Checked> {
    const environment = this.#options.environment ?? process.env;
    return () => runCheck(command, { cwd: this.#options.cwd, environment, ...(signal ? { signal } : {}) });
  }

  /** Takes back the last merges: so many, or all of the last command. */
  async undo(which: number | "group", options: UndoOptions = {}): Promise<readonly Undone[]> {
    const work = async (): Promise<readonly Undone[]> => {
      const place = await this.#place();
      const { top } = place.repository;
      // One that was begun and came to no end is what is asked for now, and ends here.
      const begun = (await this.#store.read()).points.filter((one) => one.state === "undoing" && one.top === top);
      await mend(place);
      const undone = begun.map(({ point, task }): Undone => ({ point, task, files: [] }));
      const chosen = toUndo((await this.#store.read()).points, { which, top, begun });
      for (const { point } of chosen) undone.push(await undoPoint(place, point, options));
      return undone;
    };
    return this.#store.alone(work, "undo");
  }

  /** What a crash left, and nobody has seen to. */
  async underWay(): Promise<ReturnType<typeof leftUnderWay>> {
    return leftUnderWay(this.#here, await this.#store.read());
  }

  async repair(): Promise<readonly Repaired[]> {
    return this.#store.alone(async () => repair(await this.#place()), "repair");
  }

  /** Removes what is merged or empty; with `forced` also these tasks, whatever they hold. */
  async prune({ forced = [] }: { readonly forced?: readonly string[] } = {}): Promise<readonly Pruned[]> {
    const work = async (): Promise<readonly Pruned[]> => {
      const place = await this.#place();
      await repair(place);
      const { worktrees, points } = await this.#store.read();
      const pruned: Pruned[] = [];
      for (const worktree of worktrees.values())
        if (worktree.state.kind !== "gone") pruned.push(await pruneOne(place, worktree, forced));
      await this.#dropOldPoints(points);
      return pruned;
    };
    return this.#store.alone(work, "prune");
  }

  get #here(): Place {
    return { store: this.#store, repository: this.#repository };
  }

  /** The repository as it is now: its head moves, and a task may have changed its settings. */
  async #place(): Promise<Place> {
    this.#repository = await openRepository(this.#options.cwd, { ...this.#options, before: this.#repository });
    return this.#here;
  }

  async #dropOldPoints(points: readonly MergePoint[]): Promise<void> {
    const kept = undoable(points);
    const missing = await missingOf(
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

const pruneOne = async (place: Place, worktree: Worktree, forced: readonly string[]): Promise<Pruned> => {
  const { task } = worktree;
  const isForced = forced.includes(task);
  if (worktree.state.kind !== "finished") return { task, kind: "kept", reason: "it is still at work" };
  if ((await missingOf(place.repository, [worktree.base])).size > 0) {
    await place.store.append({ kind: "removed", task }); // of a repository that is not here any more
    return { task, kind: "removed" };
  }
  if (isUnmerged(worktree) && !isForced)
    return { task, kind: "kept", reason: `not merged: ${filesOf(worktree.files)}` };
  try {
    await removeWorktree(place, worktree, { forced: isForced });
    return { task, kind: "removed" };
  } catch (error) {
    return { task, kind: "kept", reason: error instanceof Error ? error.message : String(error) };
  }
};

const toUndo = (
  points: readonly MergePoint[],
  {
    which,
    top,
    begun,
  }: { readonly which: number | "group"; readonly top: string; readonly begun: readonly MergePoint[] },
): readonly MergePoint[] => {
  const all = undoable(points).filter((point) => point.top === top);
  const last = begun.at(-1) ?? all[0];
  if (!last) throw new WorktreeError("unknown-task", "there is no merge to take back in this checkout");
  if (which === "group") return all.filter(({ group }) => group === last.group);
  return all.slice(0, Math.max(0, which - begun.length));
};
