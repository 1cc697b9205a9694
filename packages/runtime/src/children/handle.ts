/** A fork as a program sees it: what it does, its result, and the ways to end it or stop waiting for it. The result is
 *  taken once. Disposing of the handle ends the fork only if nobody has taken its result. Ending the fork never ends
 *  its caller.
 *  Elsewhere: what runs (runs.ts), asking for a fork (launcher.ts). */

import { InputError } from "@prefork/wire";
import type { RuntimeEvent } from "../events.ts";
import type { Report, TaskEnd, TaskResult } from "../ports.ts";
import type { Ended, Running } from "./running.ts";

export type ForkOutcome =
  | (TaskResult & {
      readonly status: "ended";
      readonly taskId: string;
      readonly end: TaskEnd;
      /** The report by its headings, if it has the requested form. */
      readonly report?: Report;
    })
  /** It was moved to the background while somebody waited for it. The conversation is notified of its end. */
  | { readonly status: "async_launched"; readonly taskId: string };

export type HandleParts = {
  readonly id: string;
  readonly label: string;
  /** Resolves when it has begun or failed to begin. */
  readonly running: Promise<Running>;
  readonly events: () => AsyncIterable<RuntimeEvent>;
  readonly abort: () => void;
  readonly background: () => void;
};

export class ForkHandle implements AsyncDisposable {
  readonly id: string;
  readonly label: string;
  readonly #parts: HandleParts;
  #isTaken = false;

  /** Use `session.fork`. */
  constructor(parts: HandleParts) {
    this.id = parts.id;
    this.label = parts.label;
    this.#parts = parts;
  }

  /** The events of this fork from now on, until it ends or is moved to the background. */
  get events(): AsyncIterable<RuntimeEvent> {
    return this.#parts.events();
  }

  /** Can be called once; a second call rejects. */
  async result(): Promise<ForkOutcome> {
    if (this.#isTaken) throw new InputError(`the result of ${this.id} has already been taken`);
    this.#isTaken = true;
    const { id } = this;
    const running = await this.#parts.running;
    const detached = running.detached.promise.then((): ForkOutcome => ({ status: "async_launched", taskId: id }));
    return Promise.race([running.ended.promise.then((ended) => outcomeOf(id, ended)), detached]);
  }

  abort(): void {
    this.#parts.abort();
  }

  /** Whoever waits continues, and so does the fork. The conversation is notified of its end. */
  background(): void {
    this.#parts.background();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isTaken) return;
    this.abort();
    await (await this.#parts.running).ended.promise;
  }
}

const outcomeOf = (taskId: string, { end, result, report }: Ended): ForkOutcome => ({
  status: "ended",
  taskId,
  end,
  ...result,
  ...(report ? { report } : {}),
});

/** The events of a fork that has ended. */
export async function* noEvents(): AsyncGenerator<RuntimeEvent, void> {}

/** The events of one fork among those of its session, until it ends or is moved to the background. */
export async function* taskEvents(
  reader: AsyncIterableIterator<RuntimeEvent>,
  { task, agent }: { readonly task: string; readonly agent: string },
): AsyncGenerator<RuntimeEvent, void> {
  for await (const event of reader) {
    if (event.agent === agent || ("taskId" in event && event.taskId === task)) yield event;
    if (
      "taskId" in event &&
      event.taskId === task &&
      (event.type === "task_ended" || event.type === "task_backgrounded")
    )
      return;
  }
}
