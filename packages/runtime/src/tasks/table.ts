/** The tasks of a session, and what their parent still has to hear of them.
 *  Invariant: every change is in the journal before anybody is told; an end and its notice are one write; a notice is
 *  delivered once, and not at all where the parent has already looked at the result.
 *  Elsewhere: states (task.ts), texts (notification.ts), delivery (inbox.ts), what runs (../fork). */

import type { Json } from "@prefork/wire";
import type { Tail } from "../agent/index.ts";
import type { Journal, NoticeEntry, PlainEntry, Replayed } from "../journal/index.ts";
import { type Notification, notificationOf, notificationsIn, notificationText } from "./notification.ts";
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
  /** How many of each family have not ended. */
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

  /** Have all that were started with it ended? Asked at every end of one of them. */
  isOver(family: string): boolean {
    return (this.#open.get(family) ?? 0) === 0;
  }

  add(task: Task): void {
    this.#options.journal.appendAll([{ entry: kept(task) }]);
    this.#set(task);
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

/** Has a parent been told of the end of this task, though its row does not say that it has ended? The line with its end is
 *  lost; gives what was told. */
export const toldEnd = (task: Task, told: ToldNotices | undefined): Notification | undefined => {
  const notice = told?.lastNotices.get(task.id);
  if (!notice || isEnded(task) || notice.seq < (told?.stateSeqs.get(SLOT + task.id) ?? 0)) return undefined;
  return notificationsIn(notice.text).find((one) => one.task === task.id);
};

type ToldNotices = Pick<Replayed, "lastNotices" | "stateSeqs">;

const kept = (task: Task): PlainEntry => ({ kind: "state", slot: SLOT + task.id, value: task as unknown as Json });

/** The tasks that a journal's state holds, in the order they were started. */
export const tasksIn = (state: ReadonlyMap<string, Json>): readonly Task[] =>
  [...state].flatMap(([slot, value]) => {
    const task = slot.startsWith(SLOT) ? taskOf(value) : undefined;
    return task ? [task] : [];
  });

/** What an agent still has to be told, from its journal to its context.
 *  Invariant: a notice is written before anybody relies on it, delivered once, and known to be delivered from the very
 *  write that puts it into the context.
 *  Elsewhere: what tasks have to tell (table.ts), where it enters (../agent). */

export type PendingNotice = { readonly id: string; readonly task: string; readonly text: string };

export type LeftNotices = { readonly notices: readonly NoticeEntry[]; readonly noticed: ReadonlySet<string> };

export class Inbox {
  readonly #journal: Pick<Journal, "appendAll">;
  readonly #notices: PendingNotice[];
  readonly #known: Set<string>;

  /** `left`: what an earlier life of the session left undelivered, and the ids of all that it ever had. */
  constructor(journal: Pick<Journal, "appendAll">, left?: LeftNotices) {
    this.#journal = journal;
    this.#notices = (left?.notices ?? []).map(({ id, text, source = "" }) => ({ id, task: source, text }));
    this.#known = new Set(left?.noticed);
  }

  /** Not delivered yet, oldest first. */
  get notices(): readonly PendingNotice[] {
    return this.#notices;
  }

  /** `also`: what is true from the same moment on. What it has had, in this life or an earlier one, is not taken again. */
  add({ id, task, text }: PendingNotice, also: readonly PlainEntry[] = []): void {
    if (this.#known.has(id)) return;
    const entry: PlainEntry = { kind: "notice", id, text, source: task };
    this.#journal.appendAll([...also, entry].map((each) => ({ entry: each })));
    this.#known.add(id);
    this.#notices.push({ id, task, text });
  }

  /** Everything that waits, as it enters the context. `entered` is told what did. */
  tail(entered?: (notice: PendingNotice) => void): Tail {
    const notices = [...this.#notices];
    return {
      blocks: notices.map(({ text }) => ({ type: "text", text })),
      also: delivering(notices),
      entered: () => {
        this.#remove(notices);
        for (const notice of notices) entered?.(notice);
      },
    };
  }

  /** What this task had to tell was seen in another way, or is true no longer, so nobody announces it again. `also`: what
   *  is true from the same moment on. */
  seen(task: string, also: readonly PlainEntry[] = []): void {
    const notices = this.#notices.filter((notice) => notice.task === task);
    this.#journal.appendAll([...also, ...delivering(notices)].map((entry) => ({ entry })));
    this.#remove(notices);
  }

  #remove(notices: readonly PendingNotice[]): void {
    for (const notice of notices) {
      const at = this.#notices.indexOf(notice);
      if (at >= 0) this.#notices.splice(at, 1);
    }
  }
}

const delivering = (notices: readonly PendingNotice[]): readonly PlainEntry[] =>
  notices.map(({ id }) => ({ kind: "notice_delivered", id }));
