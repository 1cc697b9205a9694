/** Worktrees for the children of a session: when they are created, what is kept of them, how their work comes back,
 *  and what a child is told about its own.
 *  Siblings that start together start from one state of the checkout. A worktree that cannot be created is a failed
 *  start, never a child in the checkout. However a child ends, its work is committed before that end is reported.
 *  Elsewhere: the worktrees themselves (@prefork/worktrees), what a child may touch (workspace.ts). */

import { isAbsolute, join } from "node:path";
import { shownName } from "@prefork/guard/internal";
import type { Addition, Block, ToolResultBlock } from "@prefork/wire";
import { InputError } from "@prefork/wire";
import { type MergeOutcome, WorktreeError, Worktrees } from "@prefork/worktrees";
import { runCheck, type Snapshot, type Work } from "@prefork/worktrees/internal";
import type { AgentOptions } from "../agent/index.ts";
import { oneLine } from "../context/index.ts";
import type { EventBody } from "../events.ts";
import { parsePlan } from "../fork/index.ts";
import type { ForkPlan, Siblings } from "../ports.ts";
import type { Task } from "../tasks/index.ts";

/** A child's worktree. */
export type ChildWorktree = {
  readonly task: string;
  /** The folders that it and its parent work in. */
  readonly folders: Folders;
  /** The tops of both checkouts. */
  readonly tops: Folders;
  /** The folder of the repository that git needs in the worktree. */
  readonly repository: string;
  readonly leftOut: readonly string[];
};

export type SettledWorktree = {
  /** What its parent should know. */
  readonly notes: readonly string[];
  /** The files it changed; undefined if that is unknown. */
  readonly files: readonly string[] | undefined;
};

/** Another process may run a whole test suite between its merges. */
const PATIENCE_MS = 30 * 60_000;

type Emit = (event: EventBody) => void;

export class ChildWorktrees {
  readonly #options: AgentOptions;
  readonly #emit: Emit;
  readonly #session: string;
  #worktrees: Promise<Worktrees> | undefined;
  /** By family. */
  readonly #snapshots = new Map<string, Promise<Snapshot>>();

  constructor(options: AgentOptions, { session, emit }: { readonly session: string; readonly emit: Emit }) {
    this.#options = options;
    this.#session = session;
    this.#emit = emit;
  }

  get #rules() {
    return this.#options.permissions.policy.worktrees;
  }

  /** Tried again after a failure, because there may be a repository by then. */
  open(): Promise<Worktrees> {
    const { cwd, state, clock, environment } = this.#options;
    const options = { cwd, state, now: clock.now, environment, patienceMs: PATIENCE_MS };
    this.#worktrees ??= Worktrees.open(options).catch((error: unknown) => {
      this.#worktrees = undefined;
      throw error;
    });
    return this.#worktrees;
  }

  /** Commits work that an earlier run of the session left in worktrees; it is reported with the task. */
  async repair(tasks: readonly Task[]): Promise<void> {
    if (!tasks.some(({ plan }) => parsePlan(plan)?.isolation !== undefined)) return;
    try {
      for (const { what, done } of await (await this.open()).repair())
        this.#emit({ type: "worktree_repaired", what, done });
    } catch (error) {
      this.#emit({ type: "journal_troubled", problem: error instanceof Error ? error.message : String(error) });
    }
  }

  /** Takes the present state of the checkout, from which all of these start. */
  async takeSnapshot(siblings: Siblings): Promise<void> {
    await this.#snapshotFor(siblings, await this.open());
  }

  /** Creates a worktree for this child. */
  async create({ task, label }: ForkPlan, { siblings, signal }: Among): Promise<ChildWorktree> {
    const { cwd } = this.#options;
    const { copyIgnored = [], setUp } = this.#rules;
    const worktrees = await this.open();
    const snapshot = await this.#snapshotFor(siblings, worktrees);
    const order = siblings.tasks.indexOf(task);
    const folder = this.#folder();
    const created = await worktrees.create({
      ...{ task, label, order, snapshot, copyIgnored, signal, session: this.#session },
      ...(folder === undefined ? {} : { folder }),
    });
    this.#emit({ type: "worktree_created", taskId: task, path: created.path, branch: created.branch });
    const leftOut = snapshot.leftOut.map((path) => Buffer.from(path, "latin1").toString());
    const tops = { from: worktrees.top, to: created.path };
    const { commonDir: repository } = worktrees;
    const placed: ChildWorktree = { task, folders: { from: cwd, to: created.cwd }, tops, repository, leftOut };
    if (setUp !== undefined) await this.#setUp(placed, setUp, signal);
    return placed;
  }

  /** The worktree that a child already has. */
  async reopen({ task }: ForkPlan): Promise<ChildWorktree> {
    const worktrees = await this.open();
    const { path, folder, leftOut } = await worktrees.enter(task);
    const tops = { from: worktrees.top, to: path };
    const { commonDir: repository } = worktrees;
    return { task, folders: { from: this.#options.cwd, to: join(path, folder) }, tops, repository, leftOut };
  }

  /** A child has ended: its work is committed, and merged if the settings say so. */
  async settle({ task, tops }: ChildWorktree, { end, answer, label }: Ending): Promise<SettledWorktree> {
    try {
      const worktrees = await this.open();
      const work = await worktrees.finish(task, { message: messageOf(answer, label), end });
      const { files, isRemoved, ignored } = work;
      this.#emit({ type: "worktree_finished", taskId: task, files: files.length, isRemoved });
      if (isRemoved) return { notes: ["it changed nothing; its worktree was removed"], files };
      const notes = [ignored.length > 0 ? ignoredText(tops.to, ignored) : keptText(task, work)];
      const merges = end === "reported" && this.#rules.merge === "when-done" && files.length > 0;
      return { notes: merges ? [...notes, ...(await this.#mergeDone(task))] : notes, files };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return {
        notes: [`its work could not be committed (${oneLine(reason)}); it stands in ${tops.to}`],
        files: undefined,
      };
    }
  }

  async #mergeDone(task: string): Promise<readonly string[]> {
    const worktrees = await this.open();
    const { check, onConflict = "stop" } = this.#rules;
    const merging = worktrees.merge([task], {
      onConflict: onConflict === "hand-back" ? "stop" : onConflict,
      ...(check === undefined ? {} : { check: worktrees.check(check, this.#options.signal) }),
    });
    const [outcome] = await merging.catch((error: unknown): readonly MergeOutcome[] => {
      const reason = error instanceof Error ? error.message : String(error);
      return [{ kind: "failed", task, label: "", files: [], conflicts: [], reason }];
    });
    if (!outcome) return [];
    const { unresolved } = outcome;
    this.#emit({
      ...{ type: "worktree_merged", taskId: task, outcome: outcome.kind, files: outcome.files.length },
      ...(unresolved ? { unresolved } : {}),
    });
    return [outcomeText(outcome)];
  }

  /** Before a child ends: does its work conflict with the checkout? If so, and if the settings hand conflicts back, they are in
   *  its worktree when this returns a message for it. */
  async handBackConflicts({ task }: ChildWorktree): Promise<string | undefined> {
    const { merge, onConflict } = this.#rules;
    if (merge !== "when-done" || onConflict !== "hand-back") return undefined;
    const worktrees = await this.open();
    const conflicts = await worktrees.handBack(task);
    return conflicts.length === 0 ? undefined : handBackText(conflicts.map(({ path }) => path));
  }

  #snapshotFor(siblings: Siblings, worktrees: Worktrees): Promise<Snapshot> {
    const { untrackedMegabytes, largeFiles } = this.#rules;
    const taken =
      this.#snapshots.get(siblings.family) ??
      worktrees.snapshot({
        ...(untrackedMegabytes === undefined ? {} : { bytes: untrackedMegabytes * 1024 * 1024 }),
        ...(largeFiles === undefined ? {} : { over: largeFiles }),
      });
    this.#snapshots.set(siblings.family, taken);
    return taken;
  }

  #folder(): string | undefined {
    const { folder } = this.#rules;
    if (folder === undefined) return undefined;
    const path = folder.replace(/^~(?=\/|$)/, this.#options.home);
    if (!isAbsolute(path)) throw new InputError(`worktrees.folder must be an absolute path, not ${folder}`);
    return path;
  }

  async #setUp({ task, folders }: ChildWorktree, command: string, signal: AbortSignal): Promise<void> {
    const { environment } = this.#options;
    const { ok, output } = await runCheck(command, { cwd: folders.to, environment, signal });
    const worktrees = await this.open();
    await worktrees.markReady(task);
    if (ok) return;
    await worktrees.finish(task, { message: "Before it began\n", end: "failed" });
    const last = oneLine(output.split("\n").slice(-3).join(" "), 300);
    throw new WorktreeError("not-ready", `worktrees.setUp (${oneLine(command)}) failed in the new worktree: ${last}`);
  }
}

/** Children with the same siblings start from one state of the checkout. */
type Among = { readonly siblings: Siblings; readonly signal: AbortSignal };

type Ending = { readonly end: string; readonly answer: string; readonly label: string };

/** The first line is its label, the rest its report. */
const messageOf = (answer: string, label: string): string => `${oneLine(label, 72)}\n\n${answer.trim()}\n`;

const keptText = (task: string, { files, leftOut }: Work): string => {
  const count = `${files.length} ${files.length === 1 ? "file" : "files"}`;
  const more = leftOut.length === 0 ? "" : `; not committed: ${listSome(leftOut)}`;
  return `its work is on branch prefork/${task}: ${count} changed${more}. Merge it with: prefork merge ${task}`;
};

const ignoredText = (path: string, ignored: readonly string[]): string =>
  `it changed nothing that git keeps; files that git ignores stand in ${path}: ${listSome(ignored)}`;

const outcomeText = (outcome: MergeOutcome): string => {
  const names = listSome(outcome.conflicts.map(({ path, kind }) => `${path} (${kind})`));
  switch (outcome.kind) {
    case "merged":
      return `merged into your checkout: ${listSome(outcome.files)}${names === "" ? "" : `; conflicts: ${names}`}`;
    case "nothing-new":
      return "merged: all of it stood in your checkout already";
    case "conflicts":
      return `not merged, it conflicts with your checkout: ${names}`;
    case "check-failed":
      return `${outcome.isKept ? "merged, but" : "not merged:"} the check failed: ${oneLine(outcome.output, 300)}`;
    case "failed":
      return `not merged: ${oneLine(outcome.reason, 300)}`;
    case "would-merge":
      return "";
  }
};

export const handBackText = (paths: readonly string[]): string =>
  [
    "The checkout that you were forked from has changed meanwhile, and your work conflicts with it. Both are put together in your worktree now; these files have conflict markers:",
    listSome(paths),
    "Resolve them so that both intentions hold, remove every marker, and report again in the same form.",
  ].join("\n");

/** What an agent in a worktree is told about it. This is the end of what it is given, so that siblings share everything
 *  before it. */

export type Folders = {
  /** The folder of the agent that started it. */
  readonly from: string;
  /** Its own folder. */
  readonly to: string;
};

export const worktreeNotice = (
  { from, to }: Folders,
  { isFork, leftOut }: { readonly isFork: boolean; readonly leftOut: readonly string[] },
): string =>
  [
    `You work in a git worktree of your own: ${to}`,
    `It is a copy of the checkout at ${from}, uncommitted files included, with the same layout below it.`,
    ...(isFork
      ? [
          `Paths in the conversation above mean the checkout; read them as paths below ${to}. Read a file there again before you edit it: it may have changed since it was shown.`,
        ]
      : []),
    `Leave the checkout alone. What you change in the worktree is on its branch when you end, whether you commit it yourself or not, and is merged later.`,
    ...(leftOut.length === 0 ? [] : [`Not copied: ${listSome(leftOut)}.`]),
  ].join("\n");

const MOST_NAMES = 20;

/** File names may contain anything, so each is put on one line, and the list is bounded. */
export const listSome = (names: readonly string[]): string => {
  const shown = names.slice(0, MOST_NAMES).map((name) => oneLine(shownName(name)));
  return [...shown, ...(names.length > MOST_NAMES ? [`and ${names.length - MOST_NAMES} more`] : [])].join(", ");
};

/** What a child adds, with the notice at the very end. */
export const appendNotice = (words: readonly Addition[], notice: string): readonly Addition[] => {
  const last = words.at(-1);
  if (!last) return words;
  const ended: Addition =
    last.kind === "blocks"
      ? { ...last, blocks: ending(last.blocks, notice) }
      : { ...last, message: { ...last.message, content: ending(last.message.content, notice) } };
  return [...words.slice(0, -1), ended];
};

/** Appends the notice to the last text, also inside a result. */
const ending = <B extends Block>(blocks: readonly B[], notice: string): readonly Block[] => {
  const last = blocks.at(-1);
  const own = { type: "text", text: notice } as const;
  if (last?.type === "text") return [...blocks.slice(0, -1), { ...last, text: `${last.text}\n\n${notice}` }];
  if (last?.type === "tool_result") return [...blocks.slice(0, -1), inside(last, notice)];
  return [...blocks, own];
};

const inside = (result: ToolResultBlock, notice: string): ToolResultBlock => {
  const last = result.content.at(-1);
  if (last?.type !== "text") return { ...result, content: [...result.content, { type: "text", text: notice }] };
  return { ...result, content: [...result.content.slice(0, -1), { ...last, text: `${last.text}\n\n${notice}` }] };
};
