/** What is a task, and which states can it be in? A task is anything that runs in the background. Pure.
 *  Invariant: an ended task never changes again unless it is resumed. A waiting task has not ended, and nothing shows
 *  it as done.
 *  Elsewhere: who owns tasks (table.ts), how the parent is notified (notification.ts). */

import { addUsage, type Json, noUsage, type Usage } from "@prefork/wire";
import type { Mail, TaskEnd, TaskResult } from "../ports.ts";

/** `call`: a tool call that took too long to wait for. */
export type TaskKind = "fork" | "agent" | "shell" | "call" | "sidecar";

export const TASK_ENDS: readonly TaskEnd[] = [
  ...(["reported", "failed", "aborted", "timed-out", "out-of-turns", "over-budget", "interrupted"] as const),
];

export type TaskState =
  | { readonly kind: "queued" }
  | { readonly kind: "running" }
  /** Its turn ended. It continues when something arrives: the answer to a question, or the end of another task. */
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
  /** The session whose journal holds its entries; absent if none is kept. */
  readonly session?: string;
  /** The tasks that were started in one turn of one parent. */
  readonly family: string;
  readonly state: TaskState;
  /** What it was started with: enough to start it again. */
  readonly plan?: Json;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly result?: TaskResult;
  /** Messages for it that its own journal may not hold yet. */
  readonly mail?: readonly Mail[];
  /** In all its runs: a resumed task has had several. */
  readonly spent?: { readonly usage: Usage; readonly usd: number };
};

export type TaskStep =
  /** `session`: where its own entries are kept. */
  | { readonly type: "started"; readonly session?: string }
  | { readonly type: "waits"; readonly reason: "permission" | "join" }
  | { readonly type: "resumed" }
  | { readonly type: "mailed"; readonly mail: Mail }
  | { readonly type: "woken"; readonly mail?: Mail }
  | { readonly type: "ended"; readonly end: TaskEnd; readonly result: TaskResult; readonly at: number };

/** The task after a step, or undefined if the step is not possible. */
export const applyStep = (task: Task, step: TaskStep): Task | undefined => {
  const { kind } = task.state;
  switch (step.type) {
    case "started": {
      if (kind !== "queued") return undefined;
      const { mail: _mail, ...begun } = task; // it is in its journal by now
      return { ...begun, ...(step.session === undefined ? {} : { session: step.session }), state: { kind: "running" } };
    }
    case "waits":
      return kind === "running" ? { ...task, state: { kind: "waiting", reason: step.reason } } : undefined;
    case "resumed":
      return kind === "waiting" ? { ...task, state: { kind: "running" } } : undefined;
    case "mailed":
      return kind === "ended" ? undefined : withMail(task, step.mail);
    case "woken": {
      if (kind !== "ended") return undefined;
      const { endedAt: _endedAt, result: _result, ...again } = task;
      return withMail({ ...again, state: { kind: "queued" } }, step.mail);
    }
    case "ended":
      if (kind === "ended") return undefined;
      return {
        ...task,
        state: { kind: "ended", end: step.end },
        endedAt: step.at,
        result: step.result,
        spent: {
          usage: addUsage(task.spent?.usage ?? noUsage, step.result.usage),
          usd: (task.spent?.usd ?? 0) + step.result.usd,
        },
      };
  }
};

const withMail = (task: Task, mail: Mail | undefined): Task =>
  mail ? { ...task, mail: [...(task.mail ?? []), mail] } : task;

export const isEnded = ({ state }: Task): boolean => state.kind === "ended";

const KINDS: readonly string[] = ["fork", "agent", "shell", "call", "sidecar"];

/** Undefined if the value from a journal is not a task. */
export const parseTask = (value: Json | undefined): Task | undefined => (isTask(value) ? value : undefined);

const isTask = (value: unknown): value is Task => {
  if (typeof value !== "object" || value === null) return false;
  const { id, kind, label, family, startedAt, state } = value as Readonly<Record<string, unknown>>;
  const texts = [id, label, family].every((text) => typeof text === "string");
  return texts && KINDS.includes(String(kind)) && typeof startedAt === "number" && isState(state);
};

const isState = (value: unknown): value is TaskState => {
  if (typeof value !== "object" || value === null) return false;
  const { kind, reason, end } = value as Readonly<Record<string, unknown>>;
  if (kind === "ended") return TASK_ENDS.some((known) => known === end);
  return kind === "waiting" ? reason === "permission" || reason === "join" : kind === "queued" || kind === "running";
};

/** One or two words, for tables. */
export const describeState = ({ state }: Task): string => {
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
