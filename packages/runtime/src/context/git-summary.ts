/** What does git say about the working folder, in a few lines?
 *  Invariant: git is run as a read-only plan (no hooks, no helpers, no index write), and not at all where the repository
 *  configures what could start a program; then the reason stands in place of the summary.
 *  Elsewhere: running plans (@prefork/guard), how the summary is worded (environment.ts). */

import { classify, findProgram, type Plan, type PlanCell, type PlanResult, planHazard, runPlan } from "@prefork/guard";
import { oneLine } from "./tags.ts";

export type GitSummary =
  | {
      readonly kind: "repository";
      /** Absent where a commit and no branch is checked out. */
      readonly branch?: string;
      readonly staged: number;
      readonly unstaged: number;
      readonly untracked: number;
      readonly conflicted: number;
      /** The newest first: short id and subject. */
      readonly commits: readonly string[];
    }
  | { readonly kind: "none" }
  | { readonly kind: "left-out"; readonly reason: string };

export type GitQuestion = {
  readonly cwd: string;
  readonly home?: string; // default: the user's
  readonly cell?: PlanCell;
  readonly signal?: AbortSignal;
};

const STATUS = "git status --porcelain=v2 --branch";
const LAST_COMMITS = "git log -3 --no-decorate '--format=%h %s'";

/** A summary is not worth a longer wait. */
const TIMEOUT_MS = 5_000;

const planOf = (command: string): Plan => {
  const verdict = classify(command);
  if (verdict.verdict !== "read-only") throw new TypeError(`${command}: ${verdict.reason}`);
  return verdict.plan;
};

export const readGit = async (question: GitQuestion): Promise<GitSummary> => {
  if (findProgram("git") === undefined) return leftOut("git is not installed");
  const status = planOf(STATUS);
  const hazard = planHazard(status, question);
  if (hazard !== undefined) return leftOut(hazard);
  const run = { ...question, timeoutMs: TIMEOUT_MS };
  const told = await runPlan(status, run);
  if (told.exitCode === 128 && /^fatal: not a git repository/m.test(told.stderr)) return { kind: "none" };
  if (isBroken(told)) return leftOut(reasonOf(told));
  const commits = await runPlan(planOf(LAST_COMMITS), run);
  return { ...countsIn(told.stdout), commits: isBroken(commits) ? [] : linesOf(commits.stdout) }; // none yet is no fault
};

const leftOut = (reason: string): GitSummary => ({ kind: "left-out", reason });

const isBroken = ({ ended, exitCode }: PlanResult): boolean => ended !== "finished" || exitCode !== 0;

const reasonOf = ({ ended, truncated, stderr, exitCode }: PlanResult): string => {
  if (ended === "timed-out") return "git took too long";
  if (ended === "aborted") return "it was interrupted";
  if (truncated) return "there are too many changed files to count";
  return oneLine(/^fatal: (.*)$/m.exec(stderr)?.[1] ?? `git ended with ${exitCode}`);
};

const linesOf = (output: string): readonly string[] =>
  output.split("\n").flatMap((line) => (line.trim() === "" ? [] : oneLine(line, 120)));

type Counts = Omit<Extract<GitSummary, { readonly kind: "repository" }>, "commits">;

/** Names with line ends are quoted by git, so a line is one file. Kinds: 1 changed, 2 renamed, u conflicted, ? untracked. */
const countsIn = (output: string): Counts => {
  const lines = output.split("\n");
  const changed = lines.flatMap((line) => /^[12] (.)(.) /.exec(line)?.slice(1, 3).join("") ?? []);
  const branch = /^# branch\.head (.*)$/m.exec(output)?.[1];
  return {
    kind: "repository",
    ...(branch === undefined || branch === "(detached)" ? {} : { branch: oneLine(branch) }),
    staged: changed.filter(([index]) => index !== ".").length,
    unstaged: changed.filter(([, tree]) => tree !== ".").length,
    untracked: lines.filter((line) => line.startsWith("? ")).length,
    conflicted: lines.filter((line) => line.startsWith("u ")).length,
  };
};
