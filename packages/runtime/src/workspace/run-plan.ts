/** Runs a read-only plan: what was parsed, never the text.
 *  Invariant: every word reaches a program as it stands in the plan; programs come from system folders, in a clean
 *  environment, without standard input; the whole process group ends with the plan, and so does what it may print.
 *  Elsewhere: making plans (guard/bash), commands that needed approval (a real bash, with the tools). */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { realpathSync, statSync } from "node:fs";
import { constants, homedir } from "node:os";
import { isAbsolute, resolve } from "node:path";
import type { Readable } from "node:stream";
import {
  noFileProblem,
  type Plan,
  type PlanCommand,
  type PlanRedirect,
  type PlanStep,
  type PlanWord,
  pathProblem,
} from "../guard/index.ts";
import { cleanEnvironment, findProgram } from "./environment.ts";
import { gitHazard } from "./git-probe.ts";
import { expandPattern } from "./patterns.ts";

export type PlanLimits = {
  readonly timeoutMs?: number; // default: 60,000
  readonly maxOutputBytes?: number; // default: 1,000,000, of each stream
};

export type PlanRun = PlanLimits & {
  readonly cwd: string;
  readonly home?: string; // what `~` stands for; default: the user's
  readonly timeZone?: string;
  readonly signal?: AbortSignal;
};

export type PlanResult = {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
  readonly ended: "finished" | "timed-out" | "aborted";
  readonly truncated: boolean;
};

/** What keeps a plan from being run in this folder: a repository whose configuration could start programs. */
export const planHazard = (
  plan: Plan,
  { cwd, home = homedir() }: Pick<PlanRun, "cwd" | "home">,
): string | undefined => {
  for (const { cd, within } of plan.gitFolders) {
    const folder = cd.reduce((at, way) => resolve(at, atHome(way, home)), cwd);
    if (!isFolder(folder)) continue;
    const ways = within.map((way) => atHome(way, home));
    const hazard = gitHazard(folder, ways);
    if (hazard) return `the repository configures ${hazard.key}, which git could act on`;
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

const atHome = ({ text, home: tilde }: PlanWord, home: string): string => (tilde ? home + text.slice(1) : text);

export const runPlan = async (plan: Plan, run: PlanRun): Promise<PlanResult> => {
  const { home = homedir(), timeoutMs = 60_000 } = run;
  const limit = AbortSignal.timeout(timeoutMs);
  const signal = run.signal ? AbortSignal.any([limit, run.signal]) : limit;
  const output = new Output(run.maxOutputBytes ?? 1_000_000);
  const start = { cwd: run.cwd, exitCode: 0 };
  const { exitCode } = await runSteps(plan.steps, start, { home, signal, output, timeZone: run.timeZone });
  const ended = run.signal?.aborted ? "aborted" : limit.aborted ? "timed-out" : "finished";
  return { ...output.texts(), exitCode: ended === "finished" ? exitCode : 124, ended };
};

/** What one step leaves to the next. */
type Left = { readonly cwd: string; readonly exitCode: number };

type Around = {
  readonly home: string;
  readonly signal: AbortSignal;
  readonly output: Output;
  readonly timeZone: string | undefined;
};

const runSteps = async (steps: readonly PlanStep[], before: Left, around: Around): Promise<Left> => {
  let left = before;
  for (const { after, negated, run } of steps) {
    if (around.signal.aborted) break;
    if (after === "success" && left.exitCode !== 0) continue;
    if (after === "failure" && left.exitCode === 0) continue;
    if (run.kind === "cd") left = changeFolder(run, left, around);
    else if (run.kind === "group") {
      const inside = await runSteps(run.steps, left, around);
      left = run.scoped ? { ...left, exitCode: inside.exitCode } : inside;
    } else {
      const code = await runPipe(run.commands, { ...around, ...left });
      left = { ...left, exitCode: negated ? Number(code === 0) : code };
    }
  }
  return left;
};

type ChangeOfFolder = Extract<PlanStep["run"], { readonly kind: "cd" }>;

const changeFolder = ({ folder, quiet }: ChangeOfFolder, { cwd }: Left, { home, output }: Around): Left => {
  const wanted = resolve(cwd, atHome(folder, home));
  if (isFolder(wanted)) return { cwd: wanted, exitCode: 0 };
  if (!quiet) output.error(`cd: ${folder.text}: no such folder\n`);
  return { cwd, exitCode: 1 };
};

// --- one pipe --------------------------------------------------------------------------------------------------------

type PipeRun = Around & Left;

type Commands = Extract<PlanStep["run"], { readonly kind: "pipe" }>["commands"];

const runPipe = (commands: Commands, run: PipeRun): Promise<number> => {
  const rendered = render(commands, run);
  const child = "problem" in rendered ? rendered : start(rendered, run);
  if ("problem" in child) {
    run.output.error(`${child.problem}\n`);
    return Promise.resolve(127);
  }
  return new Promise((done) => {
    const end = (): void => endGroup(child.pid);
    run.signal.addEventListener("abort", end, { once: true });
    child.stdout.on("data", (chunk: Buffer) => run.output.out(chunk) || end());
    child.stderr.on("data", (chunk: Buffer) => run.output.err(chunk) || end());
    child.once("error", (error) => {
      run.output.error(`${error.message}\n`);
      done(127);
    });
    // Whoever still holds the pipe after the shell has gone must not keep the plan open, whatever group it is in.
    let patience: NodeJS.Timeout | undefined;
    child.once("exit", () => {
      end();
      patience = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, PATIENCE_MS);
    });
    child.once("close", (code, signal) => {
      clearTimeout(patience);
      run.signal.removeEventListener("abort", end);
      done(code ?? 128 + (constants.signals[signal ?? "SIGTERM"] ?? 0));
    });
    if (run.signal.aborted) end();
  });
};

const start = ({ script, words }: Rendered, run: PipeRun): ChildProcessByStdio<null, Readable, Readable> | Problem => {
  try {
    return spawn("/bin/bash", ["--noprofile", "--norc", "-c", script, "bash", ...words], {
      cwd: run.cwd,
      env: { ...cleanEnvironment(run.timeZone), PWD: run.cwd },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
  } catch (error) {
    // More words than the system passes on.
    return { problem: `could not be started: ${(error as Error).message}` };
  }
};

/** How long what was printed last may take to arrive. */
const PATIENCE_MS = 500;

const endGroup = (pid: number | undefined): void => {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group is gone already.
  }
};

type Problem = { readonly problem: string };

/** Canonical bash and what it is given: the script holds only pipes and fixed redirections, the words stand beside it. */
type Rendered = { readonly script: string; readonly words: readonly string[] };

const render = (commands: Commands, run: PipeRun): Rendered | Problem => {
  const parts: string[] = [];
  const all: string[] = [];
  for (const command of commands) {
    const program = findProgram(command.program);
    if (program === undefined) return { problem: `${command.program}: not found in system folders` };
    const words = expandAll(command, run);
    if ("problem" in words) return words;
    const inputs = command.redirects.flatMap((to) => (to.kind === "input" ? [atHome(to.file, run.home)] : []));
    const problem = reachedProblem(inputs, command.program, run.cwd);
    if (problem !== undefined) return { problem };
    const zone = command.zone === undefined ? "" : `TZ=${quoted(command.zone)} `;
    const redirects = command.redirects.map((to) => renderRedirect(to, run)).join("");
    // Programs call themselves by the name they are given; it must be the one that the reader of their output knows.
    parts.push(`${zone}exec -a ${quoted(command.program)} "\${@:${all.length + 1}:${words.length + 1}}"${redirects}`);
    all.push(program, ...words);
  }
  const [only = "", ...more] = parts;
  return { script: more.length === 0 ? only : parts.map((part) => `(${part})`).join(" | "), words: all };
};

/** They print names and figures, never what is in a file. */
const LISTS_NAMES: readonly string[] = ["ls", "dir", "du", "stat", "echo", "printf", "basename", "dirname", "realpath"];

const expandAll = ({ program, args }: PlanCommand, run: PipeRun): readonly string[] | Problem => {
  const words: string[] = [];
  const names: string[] = [];
  for (const word of args) {
    if (!word.pattern) {
      words.push(word.status ? word.text.replaceAll("$?", String(run.exitCode)) : atHome(word, run.home));
      if (!word.sought) names.push(atHome(word, run.home));
      continue;
    }
    try {
      const found = expandPattern(atHome(word, run.home), run.cwd);
      const problem = LISTS_NAMES.includes(program)
        ? undefined
        : found.map(pathProblem).find((one) => one !== undefined);
      if (problem !== undefined) return { problem };
      words.push(...found);
      names.push(...found);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return { problem: `${program}: ${error.message}; use find` };
    }
  }
  const problem = LISTS_NAMES.includes(program) ? undefined : reachedProblem(names, program, run.cwd);
  return problem === undefined ? words : { problem };
};

/** Programs that read all that is below a folder. */
const READS_BELOW: readonly string[] = ["grep", "egrep", "fgrep", "rg"];

/** The question that was asked of each name as it stood, asked again now that it is known where it leads. */
const reachedProblem = (words: readonly string[], program: string, cwd: string): string | undefined => {
  const reached = words.filter((word) => !word.startsWith("-")).map((word) => resolve(cwd, word));
  if (READS_BELOW.includes(program) && [cwd, ...reached].includes("/"))
    return "below / not all are plain files; name a folder";
  return reached.map((path) => noFileProblem(path) ?? linkProblem(path)).find((problem) => problem !== undefined);
};

/** Where a link leads counts, not its name; and a pipe or a socket would keep its reader waiting. */
const linkProblem = (path: string): string | undefined => {
  try {
    const real = realpathSync.native(path);
    const stats = statSync(real);
    if (stats.isFIFO() || stats.isSocket()) return `${path} is no plain file`;
    return real === path
      ? undefined
      : pathProblem(real) && `${path} leads to what may not be read: ${pathProblem(real)}`;
  } catch {
    return undefined; // no such file: the program says so itself
  }
};

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

const renderRedirect = (redirect: PlanRedirect, { home }: PipeRun): string => {
  switch (redirect.kind) {
    case "discard":
      return redirect.descriptor === "both" ? " >/dev/null 2>&1" : ` ${redirect.descriptor}>/dev/null`;
    case "join":
      return ` ${redirect.from}>&${redirect.to}`;
    case "input": {
      const path = atHome(redirect.file, home);
      // Never joined to the folder: bash would open a connection for a name that becomes /dev/tcp/….
      return ` <${quoted(isAbsolute(path) ? path : `./${path}`)}`;
    }
  }
};

/** What a plan has printed, up to a limit a stream. */
class Output {
  readonly #out: Buffer[] = [];
  readonly #err: Buffer[] = [];
  #room: { readonly out: number; readonly err: number };
  #truncated = false;

  constructor(limit: number) {
    this.#room = { out: limit, err: limit };
  }

  /** False when there is no room for more. */
  out(chunk: Buffer): boolean {
    return this.#keep(chunk, "out");
  }

  err(chunk: Buffer): boolean {
    return this.#keep(chunk, "err");
  }

  error(text: string): void {
    this.err(Buffer.from(text));
  }

  texts(): Pick<PlanResult, "stdout" | "stderr" | "truncated"> {
    return {
      stdout: Buffer.concat(this.#out).toString("utf8"),
      stderr: Buffer.concat(this.#err).toString("utf8"),
      truncated: this.#truncated,
    };
  }

  #keep(chunk: Buffer, stream: "out" | "err"): boolean {
    const room = this.#room[stream];
    (stream === "out" ? this.#out : this.#err).push(chunk.subarray(0, room));
    this.#room = { ...this.#room, [stream]: Math.max(0, room - chunk.length) };
    if (chunk.length <= room) return true;
    this.#truncated = true;
    return false;
  }
}
