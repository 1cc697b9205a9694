/** `prefork check-command`: is a command read-only, and what would be run? For scripts, CI and tests.
 *  Invariant: one JSON line for one command, in order; nothing runs without --run, and then only the plan.
 *  Elsewhere: the judgement (guard of @prefork/runtime), running (its workspace). */

import { resolve } from "node:path";
import { classify, type Plan, planHazard, runPlan } from "@prefork/runtime";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";

type Asked = { readonly cmd: string; readonly cwd: string };

const readLine = (line: string, number: number): Asked => {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new UsageError(`line ${number}: not valid JSON`, { cause });
  }
  const { cmd, cwd = "." } = (value ?? {}) as { readonly cmd?: unknown; readonly cwd?: unknown };
  if (typeof cmd !== "string") throw new UsageError(`line ${number}: "cmd" must be a string`);
  if (typeof cwd !== "string") throw new UsageError(`line ${number}: "cwd" must be a string`);
  return { cmd, cwd: resolve(cwd) };
};

type Judged = { readonly verdict: string; readonly reason: string; readonly plan?: Plan };

const judge = ({ cmd, cwd }: Asked): Judged => {
  const judged = classify(cmd);
  if (judged.verdict !== "read-only") return judged;
  const hazard = planHazard(judged.plan, { cwd });
  return hazard === undefined ? judged : { verdict: "unknown", reason: hazard };
};

const answer = async (asked: Asked, run: boolean, signal: AbortSignal): Promise<string> => {
  const { verdict, reason, plan } = judge(asked);
  const shown = { cmd: asked.cmd, readOnly: plan !== undefined, verdict, reason, ...(plan ? { plan } : {}) };
  if (!run || !plan) return JSON.stringify(shown);
  const { stdout, exitCode } = await runPlan(plan, { cwd: asked.cwd, signal });
  return JSON.stringify({ ...shown, stdout, exitCode });
};

export const checkCommandCommand = (io: Io): Command =>
  newCommand("check-command", io)
    .description("say whether bash commands are read-only, as the agent would judge them")
    .argument("[command]", 'one command; without it, JSON lines {"cmd", "cwd"?} are read from standard input')
    .option("--run", "run the plan of a read-only command, and add its output and exit code")
    .option("--cwd <dir>", "working directory of the one command", ".")
    .action(async (command: string | undefined, { run = false, cwd }: { run?: boolean; cwd: string }) => {
      if (command !== undefined) {
        io.out(`${await answer({ cmd: command, cwd: resolve(cwd) }, run, io.signal)}\n`);
        return;
      }
      let number = 0;
      for await (const line of io.input()) {
        number += 1;
        if (line.trim() !== "") io.out(`${await answer(readLine(line, number), run, io.signal)}\n`);
      }
    });
