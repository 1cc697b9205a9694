/** What an agent still has to be told, from its journal to its context.
 *  Invariant: a notice is written before anybody relies on it, delivered once, and known to be delivered from the very
 *  write that puts it into the context.
 *  Elsewhere: what tasks have to tell (table.ts), where it enters (../agent). */

import type { Tail } from "../agent/index.ts";
import type { Journal, NoticeEntry, PlainEntry } from "../journal/index.ts";

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
