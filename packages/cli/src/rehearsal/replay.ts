/** Given the calls since the prompt, what comes next: more calls, or are all tasks done?
 *  Invariant: no state is kept between requests. Each request replays the tasks from the start, with the results that it
 *  contains; the first turn without results is the next one to make. So every request takes the same path.
 *  Elsewhere: the tasks (tasks.ts), how a task is done (work.ts), the final answer (report.ts). */

import { posix } from "node:path";
import type { Json } from "@prefork/wire";
import { type Exchange, listOf, type MadeCall, objectOf, taggedIn, textOf } from "./conversation.ts";
import { callKey, type DeclaredTools, fitCall } from "./declared.ts";
import type { Call } from "./moves.ts";
import type { Task } from "./tasks.ts";
import { type Answered, type Outcome, workOn } from "./work.ts";

export type Done = { readonly task: Task; readonly outcomes: readonly Outcome[] };

export type Next =
  | { readonly kind: "call"; readonly calls: readonly Call[]; readonly done: readonly Done[] }
  | { readonly kind: "finished"; readonly done: readonly Done[] };

export type Rehearsal = {
  readonly tasks: readonly Task[];
  /** How many of them were done before the conversation was summarized. */
  readonly skip: number;
  readonly exchange: Exchange;
  readonly declared: DeclaredTools;
  /** Writing tools need absolute paths; without a folder, paths stay as in the prompt. */
  readonly folder: string | undefined;
  /** Open to-dos of earlier exchanges. */
  readonly carried: readonly string[];
  /** A fork keeps no list of its own tasks. */
  readonly keepsList: boolean;
};

/** Results of equal calls, in the order in which they arrived. */
class Recorded {
  readonly #byKey = new Map<string, MadeCall[]>();

  constructor(calls: readonly MadeCall[]) {
    for (const call of calls) {
      const key = callKey(call);
      this.#byKey.set(key, [...(this.#byKey.get(key) ?? []), call]);
    }
  }

  take(call: Call): MadeCall["result"] {
    return this.#byKey.get(callKey(call))?.shift()?.result;
  }
}

export const nextOf = (rehearsal: Rehearsal): Next => {
  const { tasks, exchange, declared } = rehearsal;
  const recorded = new Recorded(exchange.calls);
  const done: Done[] = [];
  for (const [index, task] of tasks.entries()) {
    if (index < rehearsal.skip) continue;
    const todoCall = todosAt(index, done, rehearsal);
    const work = workOn(task, todoCall);
    let step = work.next();
    while (!step.done) {
      const turn = step.value.map((call) =>
        answerFor(withAbsolutePath(call, rehearsal.folder), { recorded, declared }),
      );
      const open = turn.flatMap((answer) => ("open" in answer ? [answer.open] : []));
      if (open.length > 0) return { kind: "call", calls: withList(open, todoCall, rehearsal), done };
      step = work.next(turn.flatMap((answer) => ("open" in answer ? [] : [answer])));
    }
    done.push({ task, outcomes: step.value });
  }
  const last = withList([], todosAt(tasks.length, done, rehearsal), rehearsal);
  return last.length > 0 && rehearsal.exchange.calls.some(({ name }) => name === "TodoWrite")
    ? { kind: "call", calls: last, done }
    : { kind: "finished", done };
};

const withAbsolutePath = (call: Call, folder: string | undefined): Call => {
  const { file_path: path } = call.input;
  if (folder === undefined || typeof path !== "string" || posix.isAbsolute(path) || path.startsWith("~")) return call;
  return { ...call, input: { ...call.input, file_path: posix.join(folder, path) } };
};

type Sources = { readonly recorded: Recorded; readonly declared: DeclaredTools };

const answerFor = (call: Call, { recorded, declared }: Sources): Answered | { readonly open: Call } => {
  const fitted = fitCall(call, declared);
  if (!fitted.ok) return { notMade: fitted.reason };
  const result = recorded.take(fitted.call);
  return result === undefined ? { open: fitted.call } : { result };
};

const titleOf = ({ title }: Task): string => (title.length > 80 ? `${title.slice(0, 79).toWellFormed()}…` : title);

/** The task at `index` is in progress, later ones are pending, earlier ones are completed unless something failed; then
 *  come items that should only be remembered. */
const todosAt = (index: number, done: readonly Done[], { tasks, skip, carried, keepsList }: Rehearsal): Call => {
  const listed = keepsList && tasks.length > 1;
  const failed = new Set(done.flatMap(({ outcomes }, at) => (outcomes.every(({ ok }) => ok) ? [] : [skip + at])));
  const statusAt = (at: number): string => {
    if (at === index) return "in_progress";
    return at < index && !failed.has(at) ? "completed" : "pending";
  };
  const own = tasks.map((task, at) => todo(titleOf(task), statusAt(at)));
  const remembered = tasks
    .slice(0, index + 1)
    .flatMap(({ moves }) => moves.flatMap((move) => (move.kind === "remember" ? move.items : [])));
  const titles = new Set(listed ? tasks.map(titleOf) : []);
  const kept = [...new Set([...carried.filter((item) => !titles.has(item)), ...remembered])].map((item) =>
    todo(item, "pending"),
  );
  return { name: "TodoWrite", input: { todos: [...(listed ? own : []), ...kept] } };
};

const todo = (content: string, status: string): Json => ({ content, status, activeForm: content });

/** The list is sent with the calls of the turn in which it changes; it gets its own turn only at the end. */
const withList = (calls: readonly Call[], todoCall: Call, rehearsal: Rehearsal): readonly Call[] => {
  const { tasks, exchange, declared, keepsList } = rehearsal;
  if (!keepsList || tasks.length < 2 || calls.some(({ name }) => name === "TodoWrite")) return calls;
  const fitted = fitCall(todoCall, declared);
  if (!fitted.ok || exchange.calls.some((made) => callKey(made) === callKey(fitted.call))) return calls;
  return [fitted.call, ...calls];
};

/** Open items from before this exchange: from the last TodoWrite call, or from the list in a summary. */
export const openTodos = (exchanges: readonly Exchange[], userTexts: readonly string[]): readonly string[] => {
  const last = exchanges.flatMap(({ calls }) => calls).findLast(({ name }) => name === "TodoWrite");
  if (last !== undefined)
    return listOf(last.input.todos)
      .map(objectOf)
      .filter(({ status }) => status !== "completed")
      .map(({ content }) => textOf(content));
  const listed = userTexts.flatMap((text) => taggedIn(text, "todo-list")).at(-1) ?? "";
  return [...listed.matchAll(/^- \[(?:pending|in_progress)\] (.*)$/gm)].map(([, content]) => content ?? "");
};
