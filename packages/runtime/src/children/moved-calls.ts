/** Calls of a turn that starts agents, and that take too long: they go on as tasks of their own.
 *  Invariant: such a call is answered by the constant that all siblings share, and its result is told as a task's is.
 *  Elsewhere: when a call is moved (../agent), tasks that are agents (host.ts). */

import { FORK_PLACEHOLDER_RESULT, text } from "@prefork/wire";
import type { Moved } from "../agent/index.ts";
import { oneLine } from "../context/index.ts";
import type { EventBody } from "../events.ts";
import type { Clock, Ids } from "../ports.ts";
import type { TaskTable } from "../tasks/index.ts";
import { notRun, type Runs, reasonOf } from "./runs.ts";

export type MovedCallsOptions = {
  readonly table: TaskTable;
  readonly runs: Runs;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly emit: (event: EventBody, agent?: string) => void;
};

type Over = { readonly words: string; readonly end: "reported" | "failed" | "aborted"; readonly ms: number };

export class MovedCalls {
  readonly #options: MovedCallsOptions;
  readonly #stops = new Map<string, () => void>();
  readonly #stopped = new Set<string>();

  constructor(options: MovedCallsOptions) {
    this.#options = options;
  }

  /** Interrupts one; nothing happens where there is none of this name. */
  stop(id: string): void {
    this.#stops.get(id)?.();
  }

  move({ callId, tool, result, stop }: Moved): readonly [ReturnType<typeof text>] {
    const { table, ids, clock, runs, emit } = this.#options;
    const id = ids.next("task");
    const startedAt = clock.now();
    const label = oneLine(`${tool} (${callId})`);
    const row = { id, kind: "call", label, agentType: tool, querySource: "main", family: id } as const;
    table.add({ ...row, state: { kind: "running" }, startedAt });
    const ended = result.then(
      ({ content, fault }) => {
        const words = content.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n");
        this.#ended(id, { words, end: fault === undefined ? "reported" : "failed", ms: clock.now() - startedAt });
      },
      (error: unknown) => this.#ended(id, { words: reasonOf(error), end: "failed", ms: clock.now() - startedAt }),
    );
    this.#stops.set(id, () => {
      this.#stopped.add(id);
      stop();
    });
    runs.accompany(id, ended);
    emit({ type: "task_backgrounded", taskId: id });
    return [text(FORK_PLACEHOLDER_RESULT)];
  }

  #ended(id: string, { words, ms, ...over }: Over): void {
    const { table, clock, emit } = this.#options;
    const end = this.#stopped.delete(id) ? "aborted" : over.end;
    this.#stops.delete(id);
    const spent = notRun(end, "").result;
    const result = { ...spent, summary: oneLine(words, 80), text: words, toolUses: 1, ms };
    try {
      table.step(id, { type: "ended", end, at: clock.now(), result });
    } catch (error) {
      emit({ type: "journal_troubled", problem: reasonOf(error) });
    }
    emit({ type: "task_ended", taskId: id, end, turns: 0, usage: result.usage, usd: 0 }, id);
  }
}
