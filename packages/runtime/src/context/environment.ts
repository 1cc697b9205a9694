/** Where and when does the session run, and what does git say about the working folder?
 *  Invariant: one plain value, read at the start of an epoch and again for the notes. It knows the date but no time, so
 *  it does not change during a day. Git runs as a read-only plan (no hooks, no helpers, no index write), and not at all
 *  if the repository configures something that could start a program; then the reason replaces the summary.
 *  Elsewhere: how changes are announced (surroundings.ts), conventions (conventions.ts), running plans
 *  (@prefork/guard). */

import { platform as thisPlatform, release as thisRelease } from "node:os";
import {
  type CommandPlan,
  classify,
  findProgram,
  type Mode,
  type PlanResult,
  planHazard,
  type ReadOnlySandbox,
  runPlan,
} from "@prefork/guard";
import type { Clock } from "../ports.ts";
import { encloseParts, escapeTags, oneLine } from "./text.ts";

export type Environment = {
  readonly cwd: string;
  readonly platform: string;
  readonly release: string;
  readonly shell: "bash";
  /** YYYY-MM-DD in the user's time zone. */
  readonly date: string;
  readonly git: GitSummary;
};

export type EnvironmentOptions = GitOptions & {
  readonly clock: Clock;
  readonly timeZone?: string; // default: the machine's
  readonly platform?: string; // default: the machine's
  readonly release?: string; // default: the machine's
};

export const readEnvironment = async (question: EnvironmentOptions): Promise<Environment> => {
  const { clock, timeZone, platform = thisPlatform(), release = thisRelease(), ...git } = question;
  const date = localDate(clock.now(), timeZone);
  return { cwd: git.cwd, platform, release, shell: "bash", date, git: await readGit(git) };
};

/** Without a zone, the date is formatted by hand: the first use of Intl loads the calendars of all countries, 8 MB. */
export const localDate = (ms: number, timeZone?: string): string => {
  if (timeZone === undefined) {
    const day = new Date(ms);
    const two = (number: number): string => String(number).padStart(2, "0");
    return `${String(day.getFullYear()).padStart(4, "0")}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
  }
  const zone = { timeZone };
  const format = new Intl.DateTimeFormat("en-US", {
    ...{ calendar: "gregory", numberingSystem: "latn", ...zone },
    ...{ year: "numeric", month: "2-digit", day: "2-digit" },
  });
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  return `${parts.get("year")?.padStart(4, "0")}-${parts.get("month")}-${parts.get("day")}`;
};

/** What a mode means to the agent that works under it. */
export const MODE_DESCRIPTIONS: Readonly<Record<Mode, string>> = {
  default: "reading is free; anything that changes something is asked about first",
  "accept-edits": "files of the workspace may be changed; other changes are asked about first",
  plan: "only reading is possible; look into the matter and answer with a plan, and change nothing",
  bubble: "what has to be asked goes to the main agent's user, and may take a while",
  bypass: "nearly everything runs unasked, so take the more care",
};

export const environmentText = ({ cwd, platform, release, shell, date, git }: Environment, mode?: Mode): string =>
  encloseParts(
    "environment",
    [
      `Working folder: ${oneLine(cwd, 4_096)}`,
      `Platform: ${platform} ${release}`,
      `Shell: ${shell}`,
      `Date: ${date}`,
      ...(mode === undefined ? [] : [`Permission mode: ${mode} (${MODE_DESCRIPTIONS[mode]})`]),
      ...gitLines(git),
    ].map(escapeTags),
  );

const gitLines = (git: GitSummary): readonly string[] => {
  if (git.kind === "none") return ["Git: the working folder is in no repository"];
  if (git.kind === "left-out") return [`Git: no summary, because ${git.reason}`];
  const { commits } = git;
  const last = commits.length === 0 ? ["No commits yet"] : ["Last commits:", ...commits.map((line) => `  ${line}`)];
  return [`Git: ${describeHead(git.branch)}; ${describeCounts(git)}, at this point`, ...last];
};

export const describeHead = (branch: string | undefined): string =>
  branch === undefined ? "no branch, a commit is checked out" : `branch ${branch}`;

const describeCounts = (git: Extract<GitSummary, { readonly kind: "repository" }>): string => {
  const kinds = ["staged", "unstaged", "untracked", "conflicted"] as const;
  const counts = kinds.flatMap((kind) => (git[kind] > 0 ? `${git[kind]} ${kind}` : []));
  return counts.length === 0 ? "nothing changed" : counts.join(", ");
};

export type GitSummary =
  | {
      readonly kind: "repository";
      /** Absent if a commit and no branch is checked out. */
      readonly branch?: string;
      readonly staged: number;
      readonly unstaged: number;
      readonly untracked: number;
      readonly conflicted: number;
      /** Newest first: short id and subject. */
      readonly commits: readonly string[];
    }
  | { readonly kind: "none" }
  | { readonly kind: "left-out"; readonly reason: string };

export type GitOptions = {
  readonly cwd: string;
  readonly home?: string; // default: the user's
  readonly readOnlySandbox?: ReadOnlySandbox;
  readonly signal?: AbortSignal;
};

const STATUS = "git status --porcelain=v2 --branch";
const LAST_COMMITS = "git log -3 --no-decorate '--format=%h %s'";

/** A summary is not worth a longer wait. */
const TIMEOUT_MS = 5_000;
/** Nor more memory; a crafted object of a few kilobytes unpacks to gigabytes. */
const MAX_KIBIBYTES = 524_288;

const classifyReadOnly = (command: string): CommandPlan => {
  const verdict = classify(command);
  if (verdict.verdict !== "read-only") throw new TypeError(`${command}: ${verdict.reason}`);
  return verdict.plan;
};

export const readGit = async (question: GitOptions): Promise<GitSummary> => {
  if (findProgram("git") === undefined) return noSummary("git is not installed");
  const status = classifyReadOnly(STATUS);
  const hazard = planHazard(status, question);
  if (hazard !== undefined) return noSummary(hazard);
  const run = { ...question, timeoutMs: TIMEOUT_MS, maxKibibytes: MAX_KIBIBYTES };
  const result = await runPlan(status, run);
  if (result.exitCode === 128 && /^fatal: not a git repository/m.test(result.stderr)) return { kind: "none" };
  if (hasFailed(result)) return noSummary(describeFailure(result));
  const commits = await runPlan(classifyReadOnly(LAST_COMMITS), run);
  return { ...parseStatus(result.stdout), commits: hasFailed(commits) ? [] : linesOf(commits.stdout) }; // a repository without commits is fine
};

const noSummary = (reason: string): GitSummary => ({ kind: "left-out", reason });

const hasFailed = ({ ended, exitCode }: PlanResult): boolean => ended !== "finished" || exitCode !== 0;

const describeFailure = ({ ended, truncated, stderr, exitCode }: PlanResult): string => {
  if (ended === "timed-out") return "git took too long";
  if (ended === "aborted") return "it was interrupted";
  if (truncated) return "there are too many changed files to count";
  return oneLine(/^fatal: (.*)$/m.exec(stderr)?.[1] ?? `git ended with ${exitCode}`);
};

const linesOf = (output: string): readonly string[] =>
  output.split("\n").flatMap((line) => (line.trim() === "" ? [] : oneLine(line, 120)));

type Counts = Omit<Extract<GitSummary, { readonly kind: "repository" }>, "commits">;

/** Git quotes names that contain newlines, so each line is one file. Kinds: 1 changed, 2 renamed, u conflicted, ?
 *  untracked. */
const parseStatus = (output: string): Counts => {
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
