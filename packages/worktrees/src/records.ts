/** The append-only records of what was started with worktrees and how it ended, and the table that they add up to.
 *  Pure.
 *  Invariant: a record is written before its effect, so that the records alone show what a crash interrupted; an
 *  unknown record is kept and skipped.
 *  Elsewhere: the file (store.ts), comparing it with reality (repair.ts). */

import type { LockHolder } from "@prefork/guard/internal";
import type { TreePath } from "./git.ts";

/** How the task ended. */
export type WorkEnd = string;

export type WorktreeRecord = { readonly at: number } & (
  | {
      readonly kind: "creating";
      readonly task: string;
      readonly by: LockHolder;
      /** Distinguishes it from another worktree of the same name. */
      readonly nonce: string;
      readonly label: string;
      /** Its position among the tasks that started together. */
      readonly order?: number;
      /** The snapshot that they share. Absent in records of earlier versions. */
      readonly family?: string;
      readonly session?: string;
      /** The checkout that it starts from, and the relative folder in it where the agent worked. */
      readonly top: string;
      readonly folder: string;
      readonly path: string;
      readonly branch: string;
      readonly base: string;
    }
  /** `ignored`: ignored files that its agent did not create. */
  | {
      readonly kind: "created";
      readonly task: string;
      readonly ignored: readonly TreePath[];
      readonly leftOut: readonly string[];
    }
  /** Its setup for the agent is done. */
  | { readonly kind: "ready"; readonly task: string; readonly ignored: readonly TreePath[] }
  | { readonly kind: "not-created"; readonly task: string; readonly reason: string }
  /** Its agent works in it again. */
  | { readonly kind: "entered"; readonly task: string; readonly by: LockHolder }
  /** `files`: how many differ from the base. */
  | {
      readonly kind: "finished";
      readonly task: string;
      readonly tip: string;
      readonly files: number;
      readonly end: WorkEnd;
    }
  /** It now builds on this state of the checkout, with which its work conflicted in these files. */
  | {
      readonly kind: "based";
      readonly task: string;
      readonly base: string;
      readonly tip: string;
      readonly conflicted: readonly TreePath[];
    }
  | {
      readonly kind: "merging";
      readonly point: number;
      readonly by: LockHolder;
      readonly task: string;
      /** Merges of one command share a group. */
      readonly group: number;
      readonly top: string;
      readonly tip: string;
      readonly files: number;
      /** The commit with everything that the merge replaces. */
      readonly saved: string;
    }
  | { readonly kind: "merged"; readonly point: number; readonly conflicts: readonly string[] }
  | { readonly kind: "not-merged"; readonly point: number; readonly reason: string }
  /** The user's check of a merge starts, and its result: yes, no, or nothing if it was interrupted. */
  | { readonly kind: "checking"; readonly point: number; readonly by: LockHolder }
  | { readonly kind: "checked"; readonly point: number; readonly said: CheckAnswer }
  | { readonly kind: "undoing"; readonly point: number; readonly by: LockHolder }
  | { readonly kind: "undone"; readonly point: number }
  | { readonly kind: "not-undone"; readonly point: number; readonly reason: string }
  | { readonly kind: "dropped"; readonly point: number }
  | { readonly kind: "removing"; readonly task: string; readonly by: LockHolder; readonly forced: boolean }
  | { readonly kind: "removed"; readonly task: string }
  | { readonly kind: "not-removed"; readonly task: string; readonly reason: string }
);

export type Creating = Extract<WorktreeRecord, { kind: "creating" }>;

export type WorktreeState =
  | { readonly kind: "creating"; readonly by: LockHolder }
  | { readonly kind: "working"; readonly by: LockHolder }
  | { readonly kind: "finished"; readonly end: WorkEnd }
  | { readonly kind: "removing"; readonly by: LockHolder }
  | { readonly kind: "gone" };

export type Worktree = Omit<Creating, "kind" | "by" | "at"> & {
  readonly createdAt: number;
  /** The base it was created with; tasks that started together share it. */
  readonly origin: string;
  readonly state: WorktreeState;
  /** Its last commit. Undefined until it ends for the first time. */
  readonly tip?: string;
  readonly files: number;
  /** The tip that was merged into the checkout, if one was. */
  readonly mergedTip?: string;
  readonly leftOut: readonly string[];
  /** Ignored files that existed before its agent started. */
  readonly ignored: readonly TreePath[];
  /** Files whose conflicts were handed back to its agent. */
  readonly conflicted: readonly TreePath[];
};

export type CheckAnswer = "yes" | "no" | "nothing";

export type PointState = "merging" | "merged" | "not-merged" | "undoing" | "undone" | "dropped";

/** One merge, which can be undone. */
export type MergePoint = Omit<Extract<WorktreeRecord, { kind: "merging" }>, "kind"> & {
  readonly state: PointState;
  readonly conflicts: readonly string[];
  /** The result of the user's check, if there was one. */
  readonly check?: CheckAnswer | "running";
};

export type WorktreeTable = {
  readonly worktrees: ReadonlyMap<string, Worktree>;
  readonly points: readonly MergePoint[];
};

type Drafts = { readonly worktrees: Map<string, Worktree>; readonly points: Map<number, MergePoint> };

export const tableOf = (records: Iterable<WorktreeRecord>): WorktreeTable => {
  const table: Drafts = { worktrees: new Map(), points: new Map() };
  for (const record of records) applyRecord(table, record);
  return { worktrees: table.worktrees, points: [...table.points.values()] };
};

const applyRecord = (table: Drafts, record: WorktreeRecord): void => {
  switch (record.kind) {
    case "creating": {
      const { kind: _kind, by, at, ...facts } = record;
      const existing = table.worktrees.get(record.task);
      if (existing && existing.state.kind !== "gone") return; // another one was first
      const state = { kind: "creating", by } as const;
      table.worktrees.set(record.task, {
        ...facts,
        createdAt: at,
        origin: record.base,
        state,
        files: 0,
        leftOut: [],
        ignored: [],
        conflicted: [],
      });
      return;
    }
    case "merging": {
      const { kind: _kind, ...facts } = record;
      table.points.set(record.point, { ...facts, state: "merging", conflicts: [] });
      return;
    }
    case "checking":
    case "checked": {
      const point = table.points.get(record.point);
      const check = record.kind === "checking" ? "running" : record.said;
      if (point) table.points.set(record.point, { ...point, ...("by" in record ? { by: record.by } : {}), check });
      return;
    }
    case "merged":
    case "not-merged":
    case "undoing":
    case "undone":
    case "not-undone":
    case "dropped":
      stepPoint(table, record);
      return;
    default: {
      const worktree = table.worktrees.get(record.task);
      if (worktree) table.worktrees.set(record.task, stepWorktree(worktree, record));
    }
  }
};

type PointRecord = Extract<
  WorktreeRecord,
  { kind: "merged" | "not-merged" | "undoing" | "undone" | "not-undone" | "dropped" }
>;

const stepPoint = ({ points, worktrees }: Drafts, record: PointRecord): void => {
  const point = points.get(record.point);
  if (!point) return;
  const state = record.kind === "not-undone" ? "merged" : record.kind;
  points.set(record.point, { ...point, state, ...(record.kind === "merged" ? { conflicts: record.conflicts } : {}) });
  const worktree = worktrees.get(point.task);
  if (!worktree) return;
  const { mergedTip: _before, ...rest } = worktree;
  if (record.kind === "merged") worktrees.set(point.task, { ...rest, mergedTip: point.tip });
  if (record.kind === "undone") worktrees.set(point.task, { ...rest, state: afterUndo(rest, point) });
};

/** A worktree that was removed after its merge has unmerged work again, on its branch only. */
const afterUndo = ({ state }: Pick<Worktree, "state">, { saved }: MergePoint): WorktreeState =>
  state.kind === "gone" && saved !== "" ? { kind: "finished", end: "merge undone" } : state;

type TaskRecord = Exclude<WorktreeRecord, PointRecord | { kind: "creating" | "merging" | "checking" | "checked" }>;

const stepWorktree = (worktree: Worktree, record: TaskRecord): Worktree => {
  switch (record.kind) {
    case "created": {
      const { state } = worktree;
      const by = "by" in state ? state.by : undefined;
      return {
        ...worktree,
        leftOut: record.leftOut,
        ignored: record.ignored,
        state: by ? { kind: "working", by } : state,
      };
    }
    case "ready":
      return { ...worktree, ignored: record.ignored };
    case "entered":
      return { ...worktree, state: { kind: "working", by: record.by } };
    case "finished":
      return { ...worktree, tip: record.tip, files: record.files, state: { kind: "finished", end: record.end } };
    case "based":
      return { ...worktree, base: record.base, tip: record.tip, conflicted: record.conflicted };
    case "removing":
      return { ...worktree, state: { kind: "removing", by: record.by } };
    case "not-removed":
      return { ...worktree, state: { kind: "finished", end: record.reason } };
    case "not-created":
    case "removed":
      return { ...worktree, state: { kind: "gone" } };
  }
};

/** Does it contain work that is nowhere else? */
export const isUnmerged = ({ tip, mergedTip, files, state }: Worktree): boolean =>
  state.kind !== "gone" && (state.kind !== "finished" || (files > 0 && tip !== mergedTip));
