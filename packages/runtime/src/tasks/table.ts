/** The tasks of a session, and what their parent still has to hear of them.
 *  Invariant: every change is in the journal before anybody is told; an end and its notice are one write; a notice is
 *  delivered once, and not at all where the parent has already looked at the result.
 *  Elsewhere: states (task.ts), texts (notification.ts), delivery (inbox.ts), what runs (../fork). */

import type { Json } from "@prefork/wire";
import type { Journal, PlainEntry } from "../journal/index.ts";
import type { Inbox } from "./inbox.ts";
import { notificationOf, notificationText } from "./notification.ts";
import { isEnded, type Task, type TaskStep, taskAfter, taskOf } from "./task.ts";

const SLOT = "task:";

export type TaskTableOptions = {
  readonly journal: Pick<Journal, "appendAll">;
  readonly inbox: Inbox;
  readonly newNoticeId: () => string;
  readonly state: ReadonlyMap<string, Json>;
};

/** `isTold`: the parent's model hears of an end. Default: yes. */
export type StepOptions = { readonly isTold?: boolean };

export class TaskTable {
  readonly #options: TaskTableOptions;
  readonly #tasks = new Map<string, Task>();

  constructor(options: TaskTableOptions) {
    this.#options = options;
    for (const task of tasksIn(options.state)) this.#tasks.set(task.id, task);
  }

  get all(): readonly Task[] {
    return [...this.#tasks.values()];
  }
  get running(): readonly Task[] {
    return this.all.filter((task) => !isEnded(task));
  }

  find(id: string): Task | undefined {
    return this.#tasks.get(id);
  }

  /** All that were started with it. */
  family(name: string): readonly Task[] {
    return this.all.filter(({ family }) => family === name);
  }

  add(task: Task): void {
    this.#options.journal.appendAll([{ entry: kept(task) }]);
    this.#tasks.set(task.id, task);
  }

  /** False where this step cannot follow: then nothing has happened. */
  step(id: string, step: TaskStep, { isTold = true }: StepOptions = {}): boolean {
    const before = this.#tasks.get(id);
    const task = before && taskAfter(before, step);
    if (!task) return false;
    const { journal, inbox, newNoticeId } = this.#options;
    const notification = step.type === "ended" && isTold ? notificationOf(newNoticeId(), task) : undefined;
    if (notification) inbox.add({ id: notification.id, task: id, text: notificationText(notification) }, [kept(task)]);
    else if (step.type === "woken")
      inbox.seen(id, [kept(task)]); // what was not told of its former end is true no longer
    else journal.appendAll([{ entry: kept(task) }]);
    this.#tasks.set(id, task);
    return true;
  }
}

const kept = (task: Task): PlainEntry => ({ kind: "state", slot: SLOT + task.id, value: task as unknown as Json });

/** The tasks that a journal's state holds, in the order they were started. */
export const tasksIn = (state: ReadonlyMap<string, Json>): readonly Task[] =>
  [...state].flatMap(([slot, value]) => {
    const task = slot.startsWith(SLOT) ? taskOf(value) : undefined;
    return task ? [task] : [];
  });
