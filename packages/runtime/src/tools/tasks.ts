/** TaskOutput and TaskStop: what have tasks printed or reported, and how does one end?
 *  Invariant: shells of this session are handled here, all other tasks by the delegation. Waiting ends with the call,
 *  and TaskStop answers when the task has really ended.
 *  Elsewhere: shells (shells.ts), agents and other tasks (../ports.ts: Delegation). */

import * as z from "zod";
import { toToolOutput } from "./delegated.ts";
import type { ShellSnapshot } from "./shells.ts";
import { defineTool, failed, type ToolContext, type ToolOutput } from "./tool.ts";

const DEFAULT_TIMEOUT_MS = 60_000;
const MAX_TIMEOUT_MS = 600_000;

const taskOutputInput = z.strictObject({
  task_ids: z.array(z.string().min(1)).min(1),
  wait: z.enum(["none", "any", "all"]).describe("none: look at once; any, all: until that many have ended"),
  timeout_ms: z.int().min(0).max(MAX_TIMEOUT_MS).optional().describe(`How long to wait; default ${DEFAULT_TIMEOUT_MS}`),
});

type TaskOutputInput = z.output<typeof taskOutputInput>;

export const taskOutputTool = defineTool({
  name: "TaskOutput",
  description:
    "Gives the state of background shells and agents, and what they have said since you last looked. A task whose time " +
    "of waiting is up keeps running.",
  input: taskOutputInput,
  readOnly: true,
  touches: () => ({}),
  startsPrograms: false,
  run: async (request, context) => {
    const ids = [...new Set(request.task_ids)];
    const shells = ids.filter((id) => context.shells.has(id));
    const others = ids.filter((id) => !context.shells.has(id));
    const delegated = await waitAndAsk({ ...request, shells, others }, context);
    const outputs = shells.map((id) => context.shells.takeOutput(id)).filter((look) => look !== undefined);
    const text = [...outputs.map(describeShell), ...(delegated === undefined ? [] : [textOf(delegated)])].join("\n\n");
    return outputs.length === 0 && delegated?.fault !== undefined ? failed(text, delegated.fault) : { content: text };
  },
});

type TaskOutputQuery = TaskOutputInput & { readonly shells: readonly string[]; readonly others: readonly string[] };

/** Waits as requested. Returns what the delegation says about the tasks that are not shells. */
const waitAndAsk = async (
  { shells, others, wait, timeout_ms }: TaskOutputQuery,
  context: ToolContext,
): Promise<ToolOutput | undefined> => {
  const timeoutMs = timeout_ms ?? DEFAULT_TIMEOUT_MS;
  const limit = AbortSignal.any([context.signal, AbortSignal.timeout(timeoutMs)]);
  const ask = (how: TaskOutputInput["wait"], signal: AbortSignal): Promise<ToolOutput> =>
    askDelegation({ task_ids: others, wait: how, timeout_ms: timeoutMs }, { ...context, signal });
  const ends = shells.map((id) => context.shells.ended(id));
  if (wait === "none" || timeoutMs === 0) return others.length === 0 ? undefined : ask("none", context.signal);
  if (wait === "all") {
    const [answer] = await Promise.all([
      others.length === 0 ? undefined : ask("all", context.signal),
      settledOrAborted(Promise.all(ends), limit),
    ]);
    return answer;
  }
  if (others.length === 0) {
    await settledOrAborted(Promise.race(ends), limit);
    return undefined;
  }
  if (ends.length === 0) return ask("any", context.signal);
  // Whichever side finishes first decides. The other side is then asked for its state without waiting.
  const abandon = new AbortController();
  const delegatedFirst = ask("any", AbortSignal.any([context.signal, abandon.signal])).catch(() => undefined);
  const first = await Promise.race([
    delegatedFirst,
    settledOrAborted(Promise.race(ends), limit).then(() => "shells" as const),
  ]);
  if (first !== "shells") return first;
  abandon.abort();
  return ask("none", context.signal);
};

const settledOrAborted = (work: Promise<unknown>, limit: AbortSignal): Promise<void> =>
  new Promise((done) => {
    const end = (): void => {
      limit.removeEventListener("abort", end);
      done();
    };
    limit.addEventListener("abort", end);
    if (limit.aborted) end();
    work.then(end, end);
  });

type DelegatedQuery = {
  readonly task_ids: readonly string[];
  readonly wait: TaskOutputInput["wait"];
  readonly timeout_ms: number;
};

const askDelegation = async (
  args: DelegatedQuery,
  { delegation, callId, agent, signal, shells }: ToolContext,
): Promise<ToolOutput> => {
  if (delegation.taskOutput === undefined) {
    const known = shells.list().map(({ id }) => id);
    const hint = known.length === 0 ? "There are none." : `There is ${known.join(", ")}.`;
    return failed(`There is no task ${args.task_ids.join(", ")}. ${hint}`);
  }
  return toToolOutput(await delegation.taskOutput(args, { callId, agent, signal }));
};

const textOf = ({ content }: ToolOutput): string =>
  typeof content === "string" ? content : content.map((block) => (block.type === "text" ? block.text : "")).join("\n");

const describeShell = ({ id, command, state, output, leftOut, kept }: ShellSnapshot): string => {
  const stateText = state.kind === "exited" ? `exit code ${state.exitCode}` : state.kind;
  const title = command.length > 80 ? `${command.slice(0, 80).toWellFormed()}…` : command;
  const cut = leftOut === 0 ? "" : `[… ${leftOut} characters left out; ${kept} …]\n`;
  const body = output === "" ? "(nothing new)" : `${cut}${output.replace(/\n$/, "")}`;
  return `${id}: ${stateText} (${title.replace(/\s+/g, " ")})\n${body}`;
};

const taskStopInput = z.strictObject({ task_id: z.string().min(1) });

export const taskStopTool = defineTool({
  name: "TaskStop",
  description: "Ends a background shell or an agent. What it has printed or done until then stays.",
  input: taskStopInput,
  readOnly: false,
  touches: () => ({}),
  startsPrograms: false,
  run: async ({ task_id }, { shells, delegation, callId, agent, signal }) => {
    if (shells.has(task_id)) {
      const stopped = await shells.stop(task_id);
      return { content: stopped ? `${task_id} was ended.` : `${task_id} had ended before.` };
    }
    if (delegation.taskStop === undefined) return failed(`There is no task ${task_id}.`);
    return toToolOutput(await delegation.taskStop({ task_id }, { callId, agent, signal }));
  },
});
