/** Bash: a command, run to its end or beside the conversation.
 *  Invariant: a command that was judged read-only runs as its plan and never as text; an approved one runs as text, in
 *  the sandbox where there is one. The exit code is always told, and other codes than 0 are results, not faults.
 *  Elsewhere: may it run (@prefork/guard), plans (@prefork/guard), processes (run-command.ts), output (output-window.ts). */

import { type PlanResult, type PlanRun, runPlan } from "@prefork/guard";
import type { Refused } from "@prefork/guard/internal";
import * as z from "zod";
import { MOST_KEPT_BYTES, OutputWindow } from "./long-output.ts";
import { type CommandEnd, type CommandRun, type RunningCommand, startCommand } from "./run-command.ts";
import type { ShellWork } from "./shells.ts";
import { defineTool, failed, type ToolContext, type ToolOutput } from "./tool.ts";

const DEFAULT_TIMEOUT_MS = 120_000;
const MOST_TIMEOUT_MS = 600_000;
/** A plan in the background has no other limit than its owner's life; the runner asks for one. */
const BACKGROUND_PLAN_MS = 2 ** 31 - 1;

const input = z.strictObject({
  command: z.string().min(1),
  description: z.string().optional().describe("Five to ten words: what it does"),
  timeout: z
    .int()
    .min(1)
    .max(MOST_TIMEOUT_MS)
    .optional()
    .describe(`Milliseconds; default ${DEFAULT_TIMEOUT_MS}, maximum ${MOST_TIMEOUT_MS}`),
  run_in_background: z.boolean().optional().describe("Return at once with a task id for TaskOutput and TaskStop"),
});

export const bashTool = defineTool({
  name: "Bash",
  description:
    "Runs a bash command in the working directory, without standard input; cd and variables do not carry over to the " +
    "next call. Gives output and exit code; of long output beginning and end, and the file that holds all of it. What a " +
    "command leaves running is ended with it: use run_in_background for servers and watchers. To read, search and edit " +
    "files prefer Read, Grep, Glob and Edit.",
  input,
  readOnly: false,
  touches: ({ command }) => ({ runs: [command] }),
  run: (call, context) => {
    if (call.run_in_background === true) return inBackground(call.command, context);
    const timeoutMs = call.timeout ?? DEFAULT_TIMEOUT_MS;
    return context.plan === undefined ? runText(call.command, timeoutMs, context) : runPlanned(timeoutMs, context);
  },
});

// --- approved text -----------------------------------------------------------------------------------------------------

const commandRun = (command: string, context: ToolContext, output: CommandRun["output"]): CommandRun => {
  const { cwd, environment, sandbox } = context;
  return { command, cwd, environment, output, ...(sandbox === undefined ? {} : { sandbox }) };
};

type Stop = "timed-out" | "aborted" | "flooded";

const runText = async (command: string, timeoutMs: number, context: ToolContext): Promise<ToolOutput> => {
  const { signal, callId, keepStream, progress } = context;
  if (signal.aborted) return failed("Interrupted before it began.", "aborted");
  const window = new OutputWindow({ keep: () => keepStream(`bash-${callId}`), progress });
  let running: RunningCommand | Refused | undefined;
  let stopped: Stop | undefined;
  const stop = (why: Stop): void => {
    stopped ??= why;
    if (running?.ok) running.stop();
  };
  context.commandStarted?.();
  running = await startCommand(
    commandRun(command, context, async (chunk) => {
      if (window.bytes > MOST_KEPT_BYTES) return stop("flooded");
      await window.take(chunk);
    }),
  );
  if (!running.ok) return failed(`Not run: ${running.reason}.`);
  const timer = setTimeout(() => stop("timed-out"), timeoutMs);
  const abort = (): void => stop("aborted");
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  try {
    const end = await running.ended;
    await window.end();
    return told(window.text(), { ...end, stopped, timeoutMs });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
};

type End = CommandEnd & { readonly stopped: Stop | undefined; readonly timeoutMs: number };

const told = (text: string, { exitCode, leftBehind, stopped, timeoutMs }: End): ToolOutput => {
  const with_ = (line: string): string => `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${line}`;
  switch (stopped) {
    case "timed-out":
      return failed(with_(`[ended after ${timeoutMs} ms: the time was up; above is what it had printed]`), "timed-out");
    case "aborted":
      return failed(with_("[interrupted; above is what it had printed]"), "aborted");
    case "flooded":
      return failed(with_(`[ended: it printed more than ${MOST_KEPT_BYTES} bytes]`));
    case undefined: {
      const left = leftBehind ? "; processes it left running were ended, use run_in_background to keep them" : "";
      return { content: with_(`[exit code ${exitCode}${left}]`) };
    }
  }
};

// --- plans -------------------------------------------------------------------------------------------------------------

const planRun = ({ cwd, cell, signal }: ToolContext, timeoutMs: number): PlanRun => ({
  cwd,
  timeoutMs,
  signal,
  ...(cell === undefined ? {} : { cell }),
});

const runPlanned = async (timeoutMs: number, context: ToolContext): Promise<ToolOutput> => {
  const { plan, callId, keepStream } = context;
  if (plan === undefined) throw new TypeError("there is no plan to run");
  const result = await runPlan(plan, planRun(context, timeoutMs));
  const window = new OutputWindow({ keep: () => keepStream(`bash-${callId}`) });
  await window.take(Buffer.from(printed(result)));
  await window.end();
  const { exitCode, ended, truncated } = result;
  const stopped = ended === "finished" ? undefined : ended;
  const text = `${window.text()}${truncated ? "\n[the output was longer; what came after this is lost]" : ""}`;
  return told(text, { exitCode, leftBehind: false, stopped, timeoutMs });
};

const printed = ({ stdout, stderr }: PlanResult): string => {
  if (stderr === "") return stdout;
  return stdout === "" ? stderr : `${stdout}${stdout.endsWith("\n") ? "" : "\n"}[stderr]\n${stderr}`;
};

// --- in the background -------------------------------------------------------------------------------------------------

const inBackground = async (command: string, context: ToolContext): Promise<ToolOutput> => {
  context.commandStarted?.();
  const started = await context.shells.start({
    command,
    begin: async (output) =>
      context.plan === undefined ? startCommand(commandRun(command, context, output)) : beginPlan(context, output),
  });
  if (!started.ok) return failed(`Not run: ${started.reason}.`);
  const { id, file } = started.shell;
  const where = file === "" ? "" : ` All output goes to ${file}.`;
  return { content: `Running in the background as ${id}. Look with TaskOutput, end with TaskStop.${where}` };
};

/** Not bound to the call's signal: the call ends at once, the shell does not. */
const beginPlan = async (context: ToolContext, output: (chunk: Buffer) => Promise<void>): Promise<ShellWork> => {
  const { plan } = context;
  if (plan === undefined) throw new TypeError("there is no plan to run");
  const ending = new AbortController();
  const ended = async (): Promise<{ readonly exitCode: number }> => {
    const result = await runPlan(plan, planRun({ ...context, signal: ending.signal }, BACKGROUND_PLAN_MS));
    await output(Buffer.from(printed(result)));
    return { exitCode: result.exitCode };
  };
  return { ok: true, ended: ended(), stop: () => ending.abort() };
};
