/** `!command`: the user's own command, run by their shell in the working folder, outside the conversation.
 *  Invariant: it is the user who runs it, so no rule applies; its output is bounded and made safe; provider keys are not in
 *  its environment; Esc or two minutes end it with everything it started.
 *  Elsewhere: commands of the agent (@prefork/guard). */

import { type ChildProcess, spawn } from "node:child_process";
import { toolEnvironment } from "@prefork/runtime/internal";
import type { TerminalContext } from "./context.ts";
import { safeLine, safeText } from "./state/index.ts";

const MAX_OUTPUT = 100_000;
const MAX_MS = 120_000;

export const runShellLine = (command: string, context: TerminalContext): Promise<void> =>
  context.work(`! ${safeLine(command, 60)}`, (signal) => runUntil(signal, command, context));

const runUntil = async (
  signal: AbortSignal,
  command: string,
  { io, state, dispatch }: TerminalContext,
): Promise<void> => {
  const shell = io.env.SHELL || "/bin/sh";
  const child: ChildProcess = spawn(shell, ["-c", command], {
    cwd: state().cwd,
    env: toolEnvironment(io.env),
    detached: true, // a group of its own, so that everything it starts can be ended
    stdio: ["ignore", "pipe", "pipe"],
  });
  const end = (): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // it has ended already
    }
  };
  const timer = setTimeout(end, MAX_MS);
  signal.addEventListener("abort", end, { once: true });
  const output = { text: "" };
  const keep = (chunk: Buffer): void => {
    if (output.text.length < MAX_OUTPUT) output.text += chunk.toString("utf8");
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  const code = await new Promise<number | string>((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("close", (ended, signal) => resolve(ended ?? signal ?? 1));
  });
  clearTimeout(timer);
  signal.removeEventListener("abort", end);
  const failed = code === 0 ? "" : ` (ended with ${code})`;
  dispatch({
    type: "printed",
    block: { kind: "output", title: `! ${safeLine(command)}${failed}`, text: safeText(output.text) },
  });
};
