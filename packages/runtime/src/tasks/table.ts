/** Which tasks does a session have, and what has an agent not been told yet?
 *  Invariant: every change is in the journal before anybody is notified. The end of a task and its notice are one
 *  write. A notice is written before anybody relies on it and delivered once; the write that puts it into the context
 *  also records its delivery. It is not delivered if the parent has already seen the result.
 *  Elsewhere: states (task.ts), texts (notification.ts), where a notice enters the context (../agent), what runs
 *  (../children). */

import type { Json } from "@prefork/wire";
import type { TailNotes } from "../agent/index.ts";
import type { Journal, NoticeEntry, PlainEntry, Replayed } from "../journal/index.ts";
import { type Notification, notificationOf, notificationText, parseNotifications } from "./notification.ts";
import { applyStep, isEnded, parseTask, type Task, type TaskStep } from "./task.ts";

const SLOT = "task:";

export type TaskTableOptions = {
  readonly journal: Pick<Journal, "appendAll">;
  readonly inbox: Inbox;
  readonly newNoticeId: () => string;
  readonly state: ReadonlyMap<string, Json>;
};

/** `notify`: tell the parent's model about the end. Default: true. */
export type StepOptions = { readonly notify?: boolean };

export class TaskTable {
  readonly #options: TaskTableOptions;
  readonly #tasks = new Map<string, Task>();
  /** How many tasks of each family have not ended. */
  readonly #open = new Map<string, number>();

  constructor(options: TaskTableOptions) {
    this.#options = options;
    for (const task of tasksIn(options.state)) this.#set(task);
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

  /** Have all tasks of the family ended? Checked at the end of each. */
  hasFamilyEnded(family: string): boolean {
    return (this.#open.get(family) ?? 0) === 0;
  }

  add(task: Task): void {
    this.#options.journal.appendAll([{ entry: taskEntry(task) }]);
    this.#set(task);
  }

  /** False if this step is not possible; then nothing happens. */
  step(id: string, step: TaskStep, { notify: notifies = true }: StepOptions = {}): boolean {
    const before = this.#tasks.get(id);
    const task = before && applyStep(before, step);
    if (!task) return false;
    const { journal, inbox, newNoticeId } = this.#options;
    const notification = step.type === "ended" && notifies ? notificationOf(newNoticeId(), task) : undefined;
    if (notification)
      inbox.add({ id: notification.id, task: id, text: notificationText(notification) }, [taskEntry(task)]);
    else if (step.type === "woken")
      inbox.dismiss(id, [taskEntry(task)]); // an undelivered notice of its former end is no longer true
    else journal.appendAll([{ entry: taskEntry(task) }]);
    this.#set(task);
    return true;
  }

  #set(task: Task): void {
    const before = this.#tasks.get(task.id);
    const change = (isEnded(task) ? 0 : 1) - (before && !isEnded(before) ? 1 : 0);
    this.#open.set(task.family, (this.#open.get(task.family) ?? 0) + change);
    this.#tasks.set(task.id, task);
  }
}

/** The notification of a task's end, if the parent was told of it but the task's row does not say so. That happens
 *  if the line with the end is lost. */
export const findReportedEnd = (task: Task, notices: JournalledNotices | undefined): Notification | undefined => {
  const notice = notices?.lastNotices.get(task.id);
  if (!notice || isEnded(task) || notice.seq < (notices?.stateSeqs.get(SLOT + task.id) ?? 0)) return undefined;
  return parseNotifications(notice.text).find((one) => one.task === task.id);
};

type JournalledNotices = Pick<Replayed, "lastNotices" | "stateSeqs">;

const taskEntry = (task: Task): PlainEntry => ({ kind: "state", slot: SLOT + task.id, value: task as unknown as Json });

/** The tasks in a journal's state, in the order they were started. */
export const tasksIn = (state: ReadonlyMap<string, Json>): readonly Task[] =>
  [...state].flatMap(([slot, value]) => {
    const task = slot.startsWith(SLOT) ? parseTask(value) : undefined;
    return task ? [task] : [];
  });

/** What an agent has not been told yet. */

export type PendingNotice = { readonly id: string; readonly task: string; readonly text: string };

export type EarlierNotices = { readonly notices: readonly NoticeEntry[]; readonly noticeIds: ReadonlySet<string> };

export class Inbox {
  readonly #journal: Pick<Journal, "appendAll">;
  #notices: PendingNotice[];
  readonly #known: Set<string>;

  /** `earlier`: the notices that an earlier run of the session left undelivered, and the ids of all it ever had. */
  constructor(journal: Pick<Journal, "appendAll">, earlier?: EarlierNotices) {
    this.#journal = journal;
    this.#notices = pendingNotices(earlier?.notices ?? []);
    this.#known = new Set(earlier?.noticeIds);
  }

  /** The conversation went back: these are the notices that it has not been told, as its journal says. */
  goBack(notices: readonly NoticeEntry[]): void {
    this.#notices = pendingNotices(notices);
  }

  /** Not delivered yet, oldest first. */
  get notices(): readonly PendingNotice[] {
    return this.#notices;
  }

  /** `also`: entries that become true at the same moment. A notice that was added before, in this run or an earlier
   *  one, is ignored. */
  add({ id, task, text }: PendingNotice, also: readonly PlainEntry[] = []): void {
    if (this.#known.has(id)) return;
    const entry: PlainEntry = { kind: "notice", id, text, source: task };
    this.#journal.appendAll([...also, entry].map((each) => ({ entry: each })));
    this.#known.add(id);
    this.#notices.push({ id, task, text });
  }

  /** Everything undelivered, ready to enter the context. `entered` is called with each notice that did. */
  tail(entered?: (notice: PendingNotice) => void): TailNotes {
    const notices = [...this.#notices];
    return {
      blocks: notices.map(({ text }) => ({ type: "text", text })),
      also: deliveryEntries(notices),
      entered: () => {
        this.#remove(notices);
        for (const notice of notices) entered?.(notice);
      },
    };
  }

  /** The notices of this task need no delivery: they were seen another way, or are no longer true. `also`: entries
   *  that become true at the same moment. */
  dismiss(task: string, also: readonly PlainEntry[] = []): void {
    const notices = this.#notices.filter((notice) => notice.task === task);
    this.#journal.appendAll([...also, ...deliveryEntries(notices)].map((entry) => ({ entry })));
    this.#remove(notices);
  }

  #remove(notices: readonly PendingNotice[]): void {
    for (const notice of notices) {
      const at = this.#notices.indexOf(notice);
      if (at >= 0) this.#notices.splice(at, 1);
    }
  }
}

const pendingNotices = (notices: readonly NoticeEntry[]): PendingNotice[] =>
  notices.map(({ id, text, source = "" }) => ({ id, task: source, text }));

const deliveryEntries = (notices: readonly PendingNotice[]): readonly PlainEntry[] =>
  notices.map(({ id }) => ({ kind: "notice_delivered", id }));
