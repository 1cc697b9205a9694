/** The tasks of a session, and what their parent still has to hear of them.
 *  Invariant: every change is in the journal before anybody is told; an end and its notice are one write; a notice is
 *  delivered once, and not at all where the parent has already looked at the result.
 *  Elsewhere: states (task.ts), texts (notification.ts), what runs (../fork). */

import type { Json } from "@prefork/wire";
import type { JournalWriter, NoticeEntry, PlainEntry } from "../journal/index.ts";
import { notificationOf, notificationText } from "./notification.ts";
import { isEnded, type Task, type TaskStep, taskAfter, taskOf } from "./task.ts";

const SLOT = "task:";

export type TaskTableOptions = {
  readonly journal: Pick<JournalWriter, "appendAll">;
  readonly newNoticeId: () => string;
  readonly state: ReadonlyMap<string, Json>;
  readonly notices: readonly NoticeEntry[];
};

export type PendingNotice = { readonly id: string; readonly task: string; readonly text: string };

export class TaskTable {
  readonly #options: TaskTableOptions;
  readonly #tasks = new Map<string, Task>();
  readonly #notices: PendingNotice[];

  constructor(options: TaskTableOptions) {
    this.#options = options;
    for (const [slot, value] of options.state) {
      const task = slot.startsWith(SLOT) ? taskOf(value) : undefined;
      if (task) this.#tasks.set(task.id, task);
    }
    this.#notices = options.notices.map(({ id, text, source = "" }) => ({ id, task: source, text }));
  }

  get all(): readonly Task[] {
    return [...this.#tasks.values()];
  }
  get running(): readonly Task[] {
    return this.all.filter((task) => !isEnded(task));
  }
  /** Not delivered yet, oldest first. */
  get notices(): readonly PendingNotice[] {
    return this.#notices;
  }

  find(id: string): Task | undefined {
    return this.#tasks.get(id);
  }

  add(task: Task): void {
    this.#write(task, []);
  }

  /** False where this step cannot follow: then nothing has happened. */
  step(id: string, step: TaskStep): boolean {
    const before = this.#tasks.get(id);
    const task = before && taskAfter(before, step);
    if (!task) return false;
    const notification = step.type === "ended" ? notificationOf(this.#options.newNoticeId(), task) : undefined;
    if (!notification) {
      this.#write(task, []);
      return true;
    }
    const notice = { id: notification.id, task: id, text: notificationText(notification) };
    this.#write(task, [{ kind: "notice", id: notice.id, text: notice.text, source: id }]);
    this.#notices.push(notice);
    return true;
  }

  /** What is true once these notices stand in the context. */
  delivering(notices: readonly PendingNotice[]): readonly PlainEntry[] {
    return notices.map(({ id }) => ({ kind: "notice_delivered", id }));
  }

  /** They stand in the context now. */
  delivered(notices: readonly PendingNotice[]): void {
    for (const notice of notices) {
      const at = this.#notices.indexOf(notice);
      if (at >= 0) this.#notices.splice(at, 1);
    }
  }

  /** The parent has seen this task's result in another way, so nobody announces it again. */
  seen(id: string): void {
    const notices = this.#notices.filter(({ task }) => task === id);
    if (notices.length === 0) return;
    this.#options.journal.appendAll(this.delivering(notices).map((entry) => ({ entry })));
    this.delivered(notices);
  }

  #write(task: Task, also: readonly PlainEntry[]): void {
    const kept: PlainEntry = { kind: "state", slot: SLOT + task.id, value: task as unknown as Json };
    this.#options.journal.appendAll([kept, ...also].map((entry) => ({ entry })));
    this.#tasks.set(task.id, task);
  }
}
