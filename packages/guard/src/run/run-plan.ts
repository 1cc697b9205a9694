/** Runs a read-only plan: what was parsed, never the text.
 *  Invariant: every word reaches a program as it is in the plan. Programs come from system folders, with a clean environment and without
 *  standard input. The whole process group ends with the plan, and its output is limited.
 *  Elsewhere: making plans (../bash), one pipe of a plan (run-pipe.ts), commands that needed approval (a real bash, with the tools). */

import { statSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { pathJudge, realPath, resolveName } from "../files/index.ts";
import { ReadBudget, viewProblem } from "../git/index.ts";
import type { CommandPlan, PlanStep } from "../rules/index.ts";
import type { PlanCell } from "./plan-cell.ts";
import { atHome } from "./render-pipe.ts";
import { type PipeAround, PlanOutput, RunningPipes, runPipe } from "./run-pipe.ts";
import { waitingFile } from "./waiting-files.ts";

export type PlanLimits = {
  readonly timeoutMs?: number; // default: 60,000
  readonly maxOutputBytes?: number; // default: 1,000,000, of each stream
};

export type PlanRun = PlanLimits & {
  readonly cwd: string;
  readonly home?: string; // what `~` stands for; default: the user's
  readonly timeZone?: string;
  readonly signal?: AbortSignal;
  /** Default: none, and only the first layer holds. */
  readonly cell?: PlanCell;
};

export type PlanResult = {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
  readonly ended: "finished" | "timed-out" | "aborted";
  readonly truncated: boolean;
  /** What was not started, and why: a name that leads where nothing may be read. It stands in `stderr` too. */
  readonly refused?: string;
};

const MOST_REPOSITORIES = 8;

/** What keeps a plan from being run in this folder: a repository that is not understood, or that names programs. */
export const planHazard = (
  plan: CommandPlan,
  { cwd, home = homedir() }: Pick<PlanRun, "cwd" | "home">,
): string | undefined => {
  const looked = new Set<string>();
  const budget = new ReadBudget();
  for (const { cd, within } of plan.gitFolders) {
    const folder = cd.reduce((at, way) => resolve(at, atHome(way, home)), cwd);
    if (!isFolder(folder)) continue;
    const ways = within.map((way) => atHome(way, home));
    const place = realPath(ways.reduce(resolveName, folder));
    if (looked.has(place)) continue;
    looked.add(place);
    // Nothing else happens in this process while git is asked.
    if (looked.size > MOST_REPOSITORIES) return `git would run in more than ${MOST_REPOSITORIES} folders`;
    if (!isFolder(place)) continue; // git says so itself
    const waiting = waitingFile(place);
    if (waiting !== undefined) return `${waiting} is not a regular file, and git would wait for it`;
    const problem = viewProblem(place, budget);
    if (problem !== undefined) return problem;
  }
  return undefined;
};

const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
};

/** Of this process, whoever runs them: their memory is that of one machine. */
const RUNNING = new RunningPipes();

export const runPlan = async (plan: CommandPlan, run: PlanRun): Promise<PlanResult> => {
  const { home = homedir(), timeoutMs = 60_000 } = run;
  const limit = AbortSignal.timeout(timeoutMs);
  const signal = run.signal ? AbortSignal.any([limit, run.signal]) : limit;
  const output = new PlanOutput(run.maxOutputBytes ?? 1_000_000);
  const { timeZone, cell } = run;
  const left = await runSteps(
    plan.steps,
    { cwd: run.cwd, exitCode: 0 },
    {
      ...{ home, signal, output, running: RUNNING, covered: new Map() },
      judge: pathJudge({ cwd: run.cwd, home, ...(plan.rules === undefined ? {} : { rules: plan.rules }) }),
      ...(timeZone === undefined ? {} : { timeZone }),
      ...(cell === undefined ? {} : { cell }),
      ...(plan.hiddenFiles === undefined ? {} : { withheld: plan.hiddenFiles }),
    },
  );
  const ended = run.signal?.aborted ? "aborted" : limit.aborted ? "timed-out" : "finished";
  const refused = left.refused === undefined ? {} : { refused: left.refused };
  return { ...output.texts(), exitCode: ended === "finished" ? left.exitCode : 124, ended, ...refused };
};

/** What one step leaves to the next. */
type Left = { readonly cwd: string; readonly exitCode: number; readonly refused?: string };

const runSteps = async (steps: readonly PlanStep[], before: Left, around: PipeAround): Promise<Left> => {
  let left = before;
  for (const { after, negated, run } of steps) {
    if (around.signal.aborted) break;
    if (after === "success" && left.exitCode !== 0) continue;
    if (after === "failure" && left.exitCode === 0) continue;
    if (run.kind === "cd") left = { ...left, ...changeFolder(run, left, around) };
    else if (run.kind === "group") {
      const inside = await runSteps(run.steps, left, around);
      left = run.scoped ? { ...inside, cwd: left.cwd } : inside;
    } else {
      const { exitCode, refused = left.refused } = await runPipe(run.commands, { ...around, ...left });
      const code = negated ? Number(exitCode === 0) : exitCode;
      left = { cwd: left.cwd, exitCode: code, ...(refused === undefined ? {} : { refused }) };
    }
  }
  return left;
};

type ChangeOfFolder = Extract<PlanStep["run"], { readonly kind: "cd" }>;

const changeFolder = ({ folder, quiet }: ChangeOfFolder, { cwd }: Left, { home, output }: PipeAround): Left => {
  const wanted = resolve(cwd, atHome(folder, home));
  if (isFolder(wanted)) return { cwd: wanted, exitCode: 0 };
  if (!quiet) output.error(`cd: ${folder.text}: no such folder\n`);
  return { cwd, exitCode: 1 };
};
