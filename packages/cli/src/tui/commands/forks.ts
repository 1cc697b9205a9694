/** /fork and /tasks: starting forks, and looking at all children of the session.
 *  Invariant: the conversation does not wait for a fork that the person started; it is told when the fork has reported.
 *  Elsewhere: the fork strip (../views: strip.ts), their worktrees (worktrees.ts). */

import type { Task } from "@prefork/runtime";
import { formatMoney, formatTokens } from "../../numbers.ts";
import { type Child, type ListItem, safeLine } from "../state/index.ts";
import { counted, notice, openList, ownSession, type SlashCommand, showCli } from "./command.ts";

export type ForkRequest = { readonly directives: readonly string[]; readonly isIsolated: boolean };

const MAX_FORKS = 50;

/** `look at a.ts`, `3 look for bugs`, or one task per line; `--worktree` before it. Throws if it cannot be meant. */
export const parseForkRequest = (args: string): ForkRequest => {
  const [, isolated, asked, rest = ""] = /^(--worktree(?:s)?(?:\s+|$))?(?:(\d{1,4})(?:\s+|$))?([\s\S]*)$/.exec(
    args.trim(),
  ) ?? [undefined, undefined, undefined, args];
  const lines = rest
    .split("\n")
    .map((line) => line.replace(/^\s*(?:[-*]|\d+[.)])\s+/, "").trim())
    .filter((line) => line !== "");
  const isIsolated = isolated !== undefined;
  const [first] = lines;
  if (first === undefined)
    throw new Error("Say what the fork should do: /fork find every caller of parse(). Shift-Enter adds another task.");
  const count = asked === undefined ? lines.length : Number(asked);
  if (count < 1 || count > MAX_FORKS) throw new Error(`Between 1 and ${MAX_FORKS} forks can be started at once.`);
  if (lines.length > 1 && lines.length !== count)
    throw new Error(`${counted(count, "fork")} and ${counted(lines.length, "task")}: leave the number out.`);
  return { directives: lines.length > 1 ? lines : Array.from({ length: count }, () => first), isIsolated };
};

const fork: SlashCommand = {
  name: "fork",
  args: "[--worktree] [number] <what to do, or one task per line>",
  summary: "start forks that know this conversation and work beside it",
  group: "Forks",
  complete: (_context, typed) =>
    "--worktree".startsWith(typed) && typed !== ""
      ? [{ value: "--worktree", about: "each fork works in a worktree of its own" }]
      : [],
  run: async (args, context) => {
    const { directives, isIsolated } = parseForkRequest(args);
    const own = await ownSession(context);
    if (own.snapshot === undefined)
      throw new Error("There is nothing to share yet: a fork starts from the conversation. Send a prompt first.");
    const isSame = directives.length > 1 && new Set(directives).size === 1;
    const handles = own.forkAll(
      directives.map((prompt, index) => ({
        prompt,
        label: `${safeLine(prompt, 56)}${isSame ? ` #${index + 1}` : ""}`,
        ...(isIsolated ? { isolation: "worktree" as const } : {}),
      })),
    );
    for (const handle of handles) {
      handle.background();
      handle.result().catch(() => undefined); // its end is an event
    }
    own.continueWithTasks();
    const isOne = handles.length === 1;
    const where = isIsolated ? `, ${isOne ? "in" : "each in"} a worktree of its own` : "";
    const until = isOne ? "it has reported" : "they have reported";
    notice(context, `Started ${counted(handles.length, "fork")}${where}. The agent is told when ${until}.`);
  },
};

// --- /tasks --------------------------------------------------------------------------------------------------------------

const childItem = (child: Child): ListItem => {
  const { id, label, state, end, reason, turns, tokens, usd, worktree } = child;
  const figures = `${counted(turns, "turn")} · ${formatTokens(tokens)} tokens · ${formatMoney(usd)}`;
  const now = state === "ended" ? (end ?? "ended") : state === "asking" ? "waits for an answer" : "running";
  const merged = worktree ? `\nworktree ${worktree.branch}: ${worktree.state}` : "";
  return {
    id,
    label,
    detail: `${now} · ${formatMoney(usd)}`,
    preview: `${id} · ${now}${reason === undefined ? "" : `: ${reason}`}\n${figures}${state === "ended" ? "" : `\n${child.activity}`}${merged}`,
  };
};

/** A task of an earlier run of the session, or one that is no agent. */
const taskItem = ({ id, label, state, spent, result, agentType }: Task): ListItem => {
  const now = state.kind === "ended" ? state.end : state.kind;
  const usd = spent?.usd ?? result?.usd ?? 0;
  const report = result === undefined ? "" : `\n${safeLine(result.text, 300)}`;
  return {
    id,
    label: safeLine(label, 80),
    detail: `${now} · ${formatMoney(usd)}`,
    preview: `${safeLine(id)} · ${safeLine(agentType)} · ${now}${report}`,
  };
};

const tasks: SlashCommand = {
  name: "tasks",
  summary: "all forks and other tasks of this session, running and done",
  group: "Forks",
  run: async (_args, context) => {
    const { children } = context.state();
    const { own } = await context.session();
    const others = (own?.tasks ?? []).filter(({ id }) => !children.has(id));
    const items = [...[...children.values()].map(childItem), ...others.map(taskItem)].toReversed();
    if (items.length === 0) return notice(context, "No task was started yet. /fork starts one.");
    openList(context, { title: "Tasks", command: "tasks", hint: "opens it", items });
  },
  chosen: async (id, context) => {
    if (context.state().children.has(id))
      return context.dispatch({
        type: "pageOpened",
        page: { kind: "conversation", agent: id, scroll: 0, isExpanded: false },
      });
    await showCli(context, "Task", ["tasks", "show", id]);
  },
};

export const forkCommands: readonly SlashCommand[] = [fork, tasks];
