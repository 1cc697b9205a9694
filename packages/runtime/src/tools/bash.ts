/** Bash: runs a command, in the foreground or as a background shell.
 *  Invariant: a command that was classified as read-only runs as its plan and never as text. An approved command runs
 *  as text, in the sandbox if there is one. The result always contains the exit code; a code other than 0 is a result,
 *  not a fault.
 *  Elsewhere: permissions and plans (@prefork/guard), processes (run-command.ts), long output (long-output.ts). */

import { type PlanResult, type PlanRun, runPlan } from "@prefork/guard";
import type { Refused } from "@prefork/guard/internal";
import * as z from "zod";
import { MAX_KEPT_BYTES, OutputWindow } from "./long-output.ts";
import { type CommandEnd, type CommandRun, type RunningCommand, startCommand } from "./run-command.ts";
import type { ShellProcess } from "./shells.ts";
import { defineTool, failed, type ToolContext, type ToolOutput } from "./tool.ts";

const DEFAULT_TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 600_000;
/** A plan in the background is only limited by the life of its owner, but the runner requires a timeout. */
const BACKGROUND_PLAN_MS = 2 ** 31 - 1;

const input = z.strictObject({
  command: z.string().min(1),
  description: z.string().optional().describe("Five to ten words: what it does"),
  timeout: z
    .int()
    .min(1)
    .max(MAX_TIMEOUT_MS)
    .optional()
    .describe(`Milliseconds; default ${DEFAULT_TIMEOUT_MS}, maximum ${MAX_TIMEOUT_MS}`),
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
    if (call.run_in_background === true) return runInBackground(call.command, context);
    const timeoutMs = call.timeout ?? DEFAULT_TIMEOUT_MS;
    return context.plan === undefined ? runText(call.command, timeoutMs, context) : runPlanned(timeoutMs, context);
  },
});

// --- approved text -----------------------------------------------------------------------------------------------------

const commandOptions = (command: string, context: ToolContext, output: CommandRun["output"]): CommandRun => {
  const { cwd, environment, sandbox } = context;
  return { command, cwd, environment, output, ...(sandbox === undefined ? {} : { sandbox }) };
};

type StopCause = "timed-out" | "aborted" | "flooded";

const runText = async (command: string, timeoutMs: number, context: ToolContext): Promise<ToolOutput> => {
  const { signal, callId, keepStream, progress } = context;
  if (signal.aborted) return failed("Interrupted before it began.", "aborted");
  const window = new OutputWindow({ keep: () => keepStream(`bash-${callId}`), progress });
  let running: RunningCommand | Refused | undefined;
  let stopped: StopCause | undefined;
  const stop = (why: StopCause): void => {
    stopped ??= why;
    if (running?.ok) running.stop();
  };
  context.onCommandStart?.();
  running = await startCommand(
    commandOptions(command, context, async (chunk) => {
      if (window.bytes > MAX_KEPT_BYTES) return stop("flooded");
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
    return describeEnd(window.text(), { ...end, stopped, timeoutMs });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
};

type CommandOutcome = CommandEnd & { readonly stopped: StopCause | undefined; readonly timeoutMs: number };

const describeEnd = (text: string, { exitCode, leftBehind, stopped, timeoutMs }: CommandOutcome): ToolOutput => {
  const withLine = (line: string): string => `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${line}`;
  switch (stopped) {
    case "timed-out":
      return failed(
        withLine(`[ended after ${timeoutMs} ms: the time was up; above is what it had printed]`),
        "timed-out",
      );
    case "aborted":
      return failed(withLine("[interrupted; above is what it had printed]"), "aborted");
    case "flooded":
      return failed(withLine(`[ended: it printed more than ${MAX_KEPT_BYTES} bytes]`));
    case undefined: {
      const left = leftBehind ? "; processes it left running were ended, use run_in_background to keep them" : "";
      return { content: withLine(`[exit code ${exitCode}${left}]`) };
    }
  }
};

// --- plans -------------------------------------------------------------------------------------------------------------

const planOptions = ({ cwd, readOnlySandbox, signal }: ToolContext, timeoutMs: number): PlanRun => ({
  cwd,
  timeoutMs,
  signal,
  ...(readOnlySandbox === undefined ? {} : { readOnlySandbox }),
});

const runPlanned = async (timeoutMs: number, context: ToolContext): Promise<ToolOutput> => {
  const { plan, callId, keepStream } = context;
  if (plan === undefined) throw new TypeError("there is no plan to run");
  const result = await runPlan(plan, planOptions(context, timeoutMs));
  const window = new OutputWindow({ keep: () => keepStream(`bash-${callId}`) });
  await window.take(Buffer.from(combineOutput(result)));
  await window.end();
  const { exitCode, ended, truncated } = result;
  const stopped = ended === "finished" ? undefined : ended;
  const text = `${window.text()}${truncated ? "\n[the output was longer; what came after this is lost]" : ""}`;
  return describeEnd(text, { exitCode, leftBehind: false, stopped, timeoutMs });
};

const combineOutput = ({ stdout, stderr }: PlanResult): string => {
  if (stderr === "") return stdout;
  return stdout === "" ? stderr : `${stdout}${stdout.endsWith("\n") ? "" : "\n"}[stderr]\n${stderr}`;
};

// --- in the background -------------------------------------------------------------------------------------------------

const runInBackground = async (command: string, context: ToolContext): Promise<ToolOutput> => {
  context.onCommandStart?.();
  const started = await context.shells.start({
    command,
    launch: async (output) =>
      context.plan === undefined ? startCommand(commandOptions(command, context, output)) : startPlan(context, output),
  });
  if (!started.ok) return failed(`Not run: ${started.reason}.`);
  const { id, file } = started.shell;
  const where = file === "" ? "" : ` All output goes to ${file}.`;
  return { content: `Running in the background as ${id}. Look with TaskOutput, end with TaskStop.${where}` };
};

/** Not bound to the call's signal: the call ends at once, the shell does not. */
const startPlan = async (context: ToolContext, output: (chunk: Buffer) => Promise<void>): Promise<ShellProcess> => {
  const { plan } = context;
  if (plan === undefined) throw new TypeError("there is no plan to run");
  const ending = new AbortController();
  const ended = async (): Promise<{ readonly exitCode: number }> => {
    const result = await runPlan(plan, {
      ...planOptions({ ...context, signal: ending.signal }, BACKGROUND_PLAN_MS),
      isBackground: true,
    });
    await output(Buffer.from(combineOutput(result)));
    return { exitCode: result.exitCode };
  };
  return { ok: true, ended: ended(), stop: () => ending.abort() };
};
