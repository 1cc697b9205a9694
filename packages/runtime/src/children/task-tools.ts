/** What the main agent's model can do with the tasks it has started: look, wait, stop, send a message.
 *  A result that the model has seen is not announced again. A message for a task is stored before the call is
 *  answered.
 *  Elsewhere: starting and resuming (launcher.ts), what runs (runs.ts), states (../tasks). */

import type { JsonObject } from "@prefork/wire";
import type { Delegated, DelegatedCall, Ids } from "../ports.ts";
import { describeState, type Inbox, isEnded, type Task, type TaskTable } from "../tasks/index.ts";
import { type ChildLauncher, refusal } from "./launcher.ts";
import type { Runs } from "./runs.ts";

export type TaskToolsOptions = {
  readonly table: TaskTable;
  readonly inbox: Inbox;
  readonly runs: Runs;
  readonly ids: Ids;
  readonly host: Pick<ChildLauncher, "resume" | "stop">;
};

const USUAL_WAIT_MS = 60_000;

export class TaskTools {
  readonly #options: TaskToolsOptions;

  constructor(options: TaskToolsOptions) {
    this.#options = options;
  }

  readonly taskOutput: DelegatedCall = async (args, { signal }) => {
    const { table, inbox } = this.#options;
    const ids = Array.isArray(args.task_ids) ? args.task_ids.filter((id) => typeof id === "string") : [];
    const unknown = ids.filter((id) => !table.find(id));
    if (unknown.length > 0) return refusal(`There is no task ${unknown.join(", ")}.`);
    await this.#join(ids, args, signal);
    const tasks = ids.flatMap((id) => table.find(id) ?? []);
    for (const task of tasks) if (isEnded(task)) inbox.dismiss(task.id);
    return { text: tasks.map(taskText).join("\n\n") };
  };

  readonly taskStop: DelegatedCall = async ({ task_id: id }) => {
    const { table, host } = this.#options;
    const task = typeof id === "string" ? table.find(id) : undefined;
    if (!task) return refusal(`There is no task ${String(id)}.`);
    if (isEnded(task)) return { text: `${task.id} had ended before: ${describeState(task)}.` };
    await host.stop(task.id);
    return { text: `${task.id} was ended.` };
  };

  /** A message for a task: it reads the message at its next boundary, or is resumed by it. */
  readonly sendMessage: DelegatedCall = async ({ to, message }) =>
    typeof to === "string" && typeof message === "string"
      ? this.send(to, message)
      : refusal(`There is no task ${String(to)}.`);

  /** `by`: who wrote it, if not the main agent. */
  async send(to: string, message: string, by?: "user"): Promise<Delegated> {
    const { table, runs, ids, host } = this.#options;
    const addressed = table.find(to);
    if (!addressed) return refusal(`There is no task ${to}.`);
    const running = runs.find(addressed.id);
    const mail = { id: ids.next("notice"), message, ...(by ? { by } : {}) };
    const steered = running?.steer(mail) ?? "too late";
    if (steered === "not begun") table.step(addressed.id, { type: "mailed", mail });
    if (steered !== "too late") return { text: `${addressed.id} reads it when its present turn ends.` };
    await running?.ended.promise; // its report is being checked, and then it can be woken
    const task = table.find(addressed.id) ?? addressed;
    if (!isEnded(task)) return refusal(`${task.id} cannot be reached: ${describeState(task)}.`);
    const woken = await host.resume(task.id, { message, ...(by ? { by } : {}) });
    return woken === undefined
      ? { text: `${task.id} had ended (${describeState(task)}) and goes on with your message; it reports again.` }
      : refusal(`${task.id} could not be woken: ${woken}`);
  }

  async #join(ids: readonly string[], { wait, timeout_ms: ms }: JsonObject, signal: AbortSignal): Promise<void> {
    if (wait !== "any" && wait !== "all") return;
    const over = AbortSignal.any([signal, AbortSignal.timeout(typeof ms === "number" ? ms : USUAL_WAIT_MS)]);
    const timed = new Promise<void>((resolve) => over.addEventListener("abort", () => resolve(), { once: true }));
    if (over.aborted) return;
    await Promise.race([this.#options.runs.whenEnded(ids, wait), timed]);
  }
}

const taskText = (task: Task): string => {
  const head = `${task.id} (${task.label}): ${describeState(task)}`;
  return task.result ? `${head}\n${task.result.text}` : head;
};
