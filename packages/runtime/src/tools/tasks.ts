/** TaskOutput: what tasks have printed or reported, now or when they have ended.
 *  Invariant: shells of this session are looked up here, all other tasks on the far side; waiting ends with the call.
 *  Elsewhere: shells (shells.ts), agents and other tasks (../ports.ts: Delegation). */

import * as z from "zod";
import { outputOf } from "./delegated.ts";
import type { ShellLook } from "./shells.ts";
import { defineTool, failed, type ToolContext, type ToolOutput } from "./tool.ts";

const DEFAULT_TIMEOUT_MS = 60_000;
const MOST_TIMEOUT_MS = 600_000;

const taskOutputInput = z.strictObject({
  task_ids: z.array(z.string().min(1)).min(1),
  wait: z.enum(["none", "any", "all"]).describe("none: look at once; any, all: until that many have ended"),
  timeout_ms: z
    .int()
    .min(0)
    .max(MOST_TIMEOUT_MS)
    .optional()
    .describe(`How long to wait; default ${DEFAULT_TIMEOUT_MS}`),
});

type Asked = z.output<typeof taskOutputInput>;

export const taskOutputTool = defineTool({
  name: "TaskOutput",
  description:
    "Gives the state of background shells and agents, and what they have said since you last looked. A task whose time " +
    "of waiting is up keeps running.",
  input: taskOutputInput,
  readOnly: true,
  touches: () => ({}),
  startsPrograms: false,
  run: async (asked, context) => {
    const ids = [...new Set(asked.task_ids)];
    const shells = ids.filter((id) => context.shells.has(id));
    const others = ids.filter((id) => !context.shells.has(id));
    const far = await gather({ ...asked, shells, others }, context);
    const near = shells.map((id) => context.shells.look(id)).filter((look) => look !== undefined);
    const text = [...near.map(describe), ...(far === undefined ? [] : [textOf(far)])].join("\n\n");
    return near.length === 0 && far?.fault !== undefined ? failed(text, far.fault) : { content: text };
  },
});

type Gathering = Asked & { readonly shells: readonly string[]; readonly others: readonly string[] };

/** Waits as asked; gives what the far side said of the tasks that are not shells. */
const gather = async (
  { shells, others, wait, timeout_ms }: Gathering,
  context: ToolContext,
): Promise<ToolOutput | undefined> => {
  const timeoutMs = timeout_ms ?? DEFAULT_TIMEOUT_MS;
  const over = AbortSignal.any([context.signal, AbortSignal.timeout(timeoutMs)]);
  const far = (how: Asked["wait"], signal: AbortSignal): Promise<ToolOutput> =>
    askFar({ task_ids: others, wait: how, timeout_ms: timeoutMs }, { ...context, signal });
  const near = shells.map((id) => context.shells.ended(id));
  if (wait === "none" || timeoutMs === 0) return others.length === 0 ? undefined : far("none", context.signal);
  if (wait === "all") {
    const [said] = await Promise.all([
      others.length === 0 ? undefined : far("all", context.signal),
      untilOver(Promise.all(near), over),
    ]);
    return said;
  }
  if (others.length === 0) {
    await untilOver(Promise.race(near), over);
    return undefined;
  }
  if (near.length === 0) return far("any", context.signal);
  // The side that is first decides; the other is then only looked at.
  const leaving = new AbortController();
  const farFirst = far("any", AbortSignal.any([context.signal, leaving.signal])).catch(() => undefined);
  const first = await Promise.race([farFirst, untilOver(Promise.race(near), over).then(() => "near" as const)]);
  if (first !== "near") return first;
  leaving.abort();
  return far("none", context.signal);
};

const untilOver = (work: Promise<unknown>, over: AbortSignal): Promise<void> =>
  new Promise((done) => {
    const end = (): void => {
      over.removeEventListener("abort", end);
      done();
    };
    over.addEventListener("abort", end);
    if (over.aborted) end();
    work.then(end, end);
  });

type Far = { readonly task_ids: readonly string[]; readonly wait: Asked["wait"]; readonly timeout_ms: number };

const askFar = async (args: Far, { delegation, callId, agent, signal, shells }: ToolContext): Promise<ToolOutput> => {
  if (delegation.taskOutput === undefined) {
    const known = shells.list().map(({ id }) => id);
    const there = known.length === 0 ? "There are none." : `There is ${known.join(", ")}.`;
    return failed(`There is no task ${args.task_ids.join(", ")}. ${there}`);
  }
  return outputOf(await delegation.taskOutput(args, { callId, agent, signal }));
};

const textOf = ({ content }: ToolOutput): string =>
  typeof content === "string" ? content : content.map((block) => (block.type === "text" ? block.text : "")).join("\n");

const describe = ({ id, command, state, output, leftOut, kept }: ShellLook): string => {
  const said = state.kind === "exited" ? `exit code ${state.exitCode}` : state.kind;
  const title = command.length > 80 ? `${command.slice(0, 80).toWellFormed()}…` : command;
  const cut = leftOut === 0 ? "" : `[… ${leftOut} characters left out; ${kept} …]\n`;
  const body = output === "" ? "(nothing new)" : `${cut}${output.replace(/\n$/, "")}`;
  return `${id}: ${said} (${title.replace(/\s+/g, " ")})\n${body}`;
};

/** TaskStop: ends a task that runs beside the conversation.
 *  Invariant: answers when the task has really ended.
 *  Elsewhere: shells (shells.ts), agents and other tasks (../ports.ts: Delegation). */

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
    return outputOf(await delegation.taskStop({ task_id }, { callId, agent, signal }));
  },
});
