/** Anything that runs beside the main line, and the states it can be in. Pure.
 *  Invariant: an ended task never changes again; a task that waits is not ended, and nothing shows it as done.
 *  Elsewhere: who owns tasks (table.ts), how the parent hears of them (notification.ts). */

import type { Json, Usage } from "@prefork/wire";

export type TaskKind = "fork" | "agent" | "shell" | "sidecar";

/** How a task came to its end. Each leaves what it had done so far. */
export type TaskEnd = "reported" | "failed" | "aborted" | "timed-out" | "out-of-turns" | "over-budget" | "interrupted";
export const TASK_ENDS: readonly TaskEnd[] = [
  ...(["reported", "failed", "aborted", "timed-out", "out-of-turns", "over-budget", "interrupted"] as const),
];

export type TaskState =
  | { readonly kind: "queued" }
  | { readonly kind: "running" }
  /** Its turn ended and it goes on when something comes: the answer to a question, another task's end. */
  | { readonly kind: "waiting"; readonly reason: "permission" | "join" }
  | { readonly kind: "ended"; readonly end: TaskEnd };

export type Task = {
  readonly id: string;
  readonly kind: TaskKind;
  /** What it is for, in a few words. */
  readonly label: string;
  /** `fork`, or the name of an agent. */
  readonly agentType: string;
  readonly querySource: string;
  /** The session whose journal holds its own entries; absent where none is kept. */
  readonly session?: string;
  /** Tasks that were started in one turn of one parent. */
  readonly family: string;
  readonly state: TaskState;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly result?: TaskResult;
};

export type TaskResult = {
  /** One line. */
  readonly summary: string;
  readonly text: string;
  readonly usage: Usage;
  readonly usd: number;
  readonly turns: number;
  readonly toolUses: number;
  readonly ms: number;
};

export type TaskStep =
  | { readonly type: "started" }
  | { readonly type: "waits"; readonly reason: "permission" | "join" }
  | { readonly type: "resumed" }
  | { readonly type: "woken" }
  | { readonly type: "ended"; readonly end: TaskEnd; readonly result: TaskResult; readonly at: number };

/** The task after a step, or undefined where that step cannot follow. */
export const taskAfter = (task: Task, step: TaskStep): Task | undefined => {
  const { kind } = task.state;
  switch (step.type) {
    case "started":
      return kind === "queued" ? { ...task, state: { kind: "running" } } : undefined;
    case "waits":
      return kind === "running" ? { ...task, state: { kind: "waiting", reason: step.reason } } : undefined;
    case "resumed":
      return kind === "waiting" ? { ...task, state: { kind: "running" } } : undefined;
    case "woken": {
      if (kind !== "ended") return undefined;
      const { endedAt: _endedAt, result: _result, ...again } = task;
      return { ...again, state: { kind: "queued" } };
    }
    case "ended":
      if (kind === "ended") return undefined;
      return { ...task, state: { kind: "ended", end: step.end }, endedAt: step.at, result: step.result };
  }
};

export const isEnded = ({ state }: Task): boolean => state.kind === "ended";

/** As it is kept in a journal; undefined where a value is no task. */
export const taskOf = (value: Json | undefined): Task | undefined =>
  typeof value === "object" && value !== null && "id" in value && "state" in value && "family" in value
    ? (value as unknown as Task)
    : undefined;

/** In one word or two, for tables. */
export const stateWords = ({ state }: Task): string => {
  switch (state.kind) {
    case "queued":
    case "running":
      return state.kind;
    case "waiting":
      return state.reason === "permission" ? "waiting for permission" : "waiting for others";
    case "ended":
      return state.end;
  }
};
