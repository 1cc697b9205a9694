/** Runs a read-only plan: executes the parsed commands, never the original text.
 *  Invariant: every word reaches a program as it is in the plan. Programs come from system folders, with a clean
 *  environment and without standard input. The whole process group ends with the plan, and its output is limited.
 *  Elsewhere: making plans (../bash), one pipe of a plan (run-pipe.ts), commands that needed approval (a real bash,
 *  with the tools). */

import { homedir } from "node:os";
import { resolve } from "node:path";
import { isFolder, pathJudge, realPath, resolveName, UncheckedPathError } from "../files/index.ts";
import { ReadBudget, viewProblem } from "../git/index.ts";
import type { CommandPlan, PlanStep } from "../rules/index.ts";
import { findBlockingFile } from "./blocking-files.ts";
import type { ReadOnlySandbox } from "./read-only-sandbox.ts";
import { atHome } from "./render-pipe.ts";
import { type PipeContext, type PipeEnd, type PipeRun, PlanOutput, RunningPipes, runPipe } from "./run-pipe.ts";

export type PlanLimits = {
  readonly timeoutMs?: number; // default: 60,000
  readonly maxOutputBytes?: number; // default: 1,000,000, of each stream
  /** Memory of all programs together. */
  readonly maxKibibytes?: number; // default: 4,194,304
};

export type PlanRun = PlanLimits & {
  readonly cwd: string;
  readonly home?: string; // what `~` stands for; default: the user's
  readonly timeZone?: string;
  readonly signal?: AbortSignal;
  /** It may run for as long as the session. */
  readonly isBackground?: boolean; // default: false
  /** Default: no sandbox; only the plan's own checks apply. */
  readonly readOnlySandbox?: ReadOnlySandbox;
};

export type PlanResult = {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
  readonly ended: "finished" | "timed-out" | "aborted";
  readonly truncated: boolean;
  /** What was not started, and why: a path that resolves to somewhere unreadable. Also in `stderr`. */
  readonly refused?: string;
};

const MAX_REPOSITORIES = 8;

/** What keeps a plan from being run in this folder: a repository that we cannot parse, or whose config runs programs. */
export const planHazard = (plan: CommandPlan, run: Pick<PlanRun, "cwd" | "home">): string | undefined => {
  try {
    return repositoryHazard(plan, run);
  } catch (error) {
    if (error instanceof UncheckedPathError) return error.message;
    throw error;
  }
};

const repositoryHazard = (
  plan: CommandPlan,
  { cwd, home = homedir() }: Pick<PlanRun, "cwd" | "home">,
): string | undefined => {
  const checked = new Set<string>();
  const budget = new ReadBudget();
  for (const { cd, within } of plan.gitFolders) {
    const folder = cd.reduce((at, path) => resolve(at, atHome(path, home)), cwd);
    if (!isFolder(folder)) continue;
    const paths = within.map((path) => atHome(path, home));
    const place = realPath(paths.reduce(resolveName, folder));
    if (checked.has(place)) continue;
    checked.add(place);
    // These checks are synchronous and block the event loop, so their number is capped.
    if (checked.size > MAX_REPOSITORIES) return `git would run in more than ${MAX_REPOSITORIES} folders`;
    if (!isFolder(place)) continue; // git reports this itself
    const waiting = findBlockingFile(place);
    if (waiting !== undefined) return `${waiting} is not a regular file, and git would block on it`;
    const problem = viewProblem(place, budget);
    if (problem !== undefined) return problem;
  }
  return undefined;
};

/** One per process: all plans share the machine's memory. */
const RUNNING = new RunningPipes();
/** Apart from the others, because these may run for as long as the session, and nobody could wait for them. */
const IN_BACKGROUND = new RunningPipes();

export const runPlan = async (plan: CommandPlan, run: PlanRun): Promise<PlanResult> => {
  const { home = homedir(), timeoutMs = 60_000 } = run;
  const limit = AbortSignal.timeout(timeoutMs);
  const signal = run.signal ? AbortSignal.any([limit, run.signal]) : limit;
  const output = new PlanOutput(run.maxOutputBytes ?? 1_000_000);
  const { timeZone, readOnlySandbox, maxKibibytes } = run;
  const place = orRefused(
    () => ({
      cwd: realPath(run.cwd),
      judge: pathJudge({ cwd: run.cwd, home, ...(plan.rules === undefined ? {} : { rules: plan.rules }) }),
    }),
    output,
  );
  const last =
    "exitCode" in place
      ? place
      : await runSteps(
          plan.steps,
          { cwd: place.cwd, cwdName: run.cwd, exitCode: 0 },
          {
            ...{ home, signal, output, covered: new Map(), judge: place.judge },
            running: run.isBackground ? IN_BACKGROUND : RUNNING,
            ...(timeZone === undefined ? {} : { timeZone }),
            ...(maxKibibytes === undefined ? {} : { maxKibibytes }),
            ...(readOnlySandbox === undefined ? {} : { readOnlySandbox }),
            ...(plan.hiddenFiles === undefined ? {} : { withheld: plan.hiddenFiles }),
          },
        );
  const ended = run.signal?.aborted ? "aborted" : limit.aborted ? "timed-out" : "finished";
  const refused = last.refused === undefined ? {} : { refused: last.refused };
  return { ...output.texts(), exitCode: ended === "finished" ? last.exitCode : 124, ended, ...refused };
};

/** What one step passes on to the next. */
type StepState = Pick<PipeRun, "cwd" | "cwdName" | "exitCode"> & { readonly refused?: string };

const runSteps = async (steps: readonly PlanStep[], initial: StepState, context: PipeContext): Promise<StepState> => {
  let state = initial;
  for (const { after, negated, run } of steps) {
    if (context.signal.aborted) break;
    if (after === "success" && state.exitCode !== 0) continue;
    if (after === "failure" && state.exitCode === 0) continue;
    if (run.kind === "cd") state = { ...state, ...orRefused(() => changeFolder(run, state, context), context.output) };
    else if (run.kind === "group") {
      const inside = await runSteps(run.steps, state, context);
      state = run.scoped ? { ...inside, cwd: state.cwd, cwdName: state.cwdName } : inside;
    } else {
      const pipe = runPipe(run.commands, { ...context, ...state });
      const { exitCode, refused = state.refused } = await pipe.catch((error) => refuseUnchecked(error, context.output));
      const code = negated ? Number(exitCode === 0) : exitCode;
      const { cwd, cwdName } = state;
      state = { cwd, cwdName, exitCode: code, ...(refused === undefined ? {} : { refused }) };
    }
  }
  return state;
};

/** What could not be checked is not run. */
const refuseUnchecked = (error: unknown, output: PlanOutput): PipeEnd => {
  if (!(error instanceof UncheckedPathError)) throw error;
  output.error(`${error.message}\n`);
  return { exitCode: 127, refused: error.message };
};

const orRefused = <T>(run: () => T, output: PlanOutput): T | PipeEnd => {
  try {
    return run();
  } catch (error) {
    return refuseUnchecked(error, output);
  }
};

type ChangeOfFolder = Extract<PlanStep["run"], { readonly kind: "cd" }>;

/** Programs start in the canonical folder, so the names that they open are the ones that were checked, link by link. */
const changeFolder = (
  { folder, quiet }: ChangeOfFolder,
  { cwd, cwdName }: StepState,
  { home, output }: PipeContext,
): StepState => {
  const wanted = resolve(cwdName, atHome(folder, home));
  if (isFolder(wanted)) return { cwd: realPath(wanted), cwdName: wanted, exitCode: 0 };
  if (!quiet) output.error(`cd: ${folder.text}: no such folder\n`);
  return { cwd, cwdName, exitCode: 1 };
};
