/** Runs one pipe of a plan.
 *  Invariant: one process group, ended as a whole; no standard input but names that were looked at first; what xargs
 *  would read is read here, so that no name reaches a reader unseen.
 *  Elsewhere: words and names (render-pipe.ts), order of pipes (run-plan.ts), the cell (plan-cell.ts). */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { resolve } from "node:path";
import { fedProgram, LISTS_NAMES, type PlanCommand, PRINTS_WORDS, walkOf } from "../guard/index.ts";
import { cleanEnvironment } from "./environment.ts";
import type { PlanCell } from "./plan-cell.ts";
import { PlanOutput } from "./plan-output.ts";
import { searchPath } from "./programs.ts";
import { namesProblem, type Problem, type Rendered, reachedProblem, renderPipe } from "./render-pipe.ts";

export type PipeAround = {
  readonly home: string;
  readonly signal: AbortSignal;
  readonly output: PlanOutput;
  readonly timeZone?: string;
  readonly cell?: PlanCell;
};

export type PipeRun = PipeAround & { readonly cwd: string; readonly exitCode: number };

export type PipeEnd = { readonly exitCode: number; readonly refused?: string };

/** Runs up to each xargs first, looks at the names that came out, and goes on with them. */
export const runPipe = async (commands: readonly PlanCommand[], run: PipeRun, input?: string): Promise<PipeEnd> => {
  const at = commands.findIndex(({ program }, index) => program === "xargs" && index > 0);
  if (at < 0) return runRendered(commands, run, input);
  const names = new PlanOutput(MOST_NAMES_BYTES);
  const listed = await runRendered(commands.slice(0, at), { ...run, output: names }, input);
  const { stdout, stderr, truncated } = names.texts();
  if (stderr !== "") run.output.error(stderr);
  const feeding = commands[at];
  const problem =
    listed.refused ??
    (truncated ? `xargs: more than ${MOST_NAMES_BYTES} bytes of names; list fewer` : undefined) ??
    (feeding && fedProblem(feeding, stdout, run.cwd));
  if (problem === undefined) return runPipe(commands.slice(at), run, stdout);
  return refuse(problem, run);
};

const MOST_NAMES_BYTES = 4_000_000;

const refuse = (problem: string, { output }: PipeRun): PipeEnd => {
  output.error(`${problem}\n`);
  return { exitCode: 127, refused: problem };
};

/** The names as xargs may read them: whole lines, words without their quotes, and what lies between zeros. */
const namesIn = (text: string): readonly string[] => {
  const lines = text.split(/[\0\n]/).filter((line) => line !== "");
  return lines.flatMap((line) => [
    line,
    line.trimStart(),
    ...line.split(/[ \t]+/).map((word) => word.replace(/["'\\]/g, "")),
  ]);
};

const PLACES = /\{\}|%|@/g;

const fedProblem = ({ args }: PlanCommand, text: string, cwd: string): string | undefined => {
  const at = fedProgram(args);
  const inner = args[at]?.text ?? "echo";
  if (PRINTS_WORDS.includes(inner)) return undefined;
  const names = [...new Set(namesIn(text))].filter((name) => name !== "");
  // A name may be put inside another word (`-I{} cat dir/{}`).
  const around = args.slice(at + 1).filter(({ text: word }) => word.search(PLACES) >= 0);
  const all = [...names, ...around.flatMap(({ text: word }) => names.map((name) => word.replace(PLACES, () => name)))];
  // A name that begins with a dash would be an option to whoever gets it.
  const dashed = names.find((name) => name.startsWith("-"));
  if (dashed !== undefined) return `${inner} would take ${dashed} for an option; list names with ./ before them`;
  return LISTS_NAMES.includes(inner) ? undefined : (namesProblem(all) ?? reachedProblem(all, inner, cwd));
};

const runRendered = async (commands: readonly PlanCommand[], run: PipeRun, input?: string): Promise<PipeEnd> => {
  const rendered = renderPipe(commands, run);
  if ("problem" in rendered) return refuse(rendered.problem, run);
  const inCell = !tellsOfTheSystem(commands, run.cwd);
  const child = start(rendered, run, { inCell, piped: input !== undefined });
  if ("problem" in child) return refuse(child.problem, run);
  child.stdin?.on("error", () => {}); // a reader may stop before the last name
  child.stdin?.end(input);
  return { exitCode: await ended(child, run) };
};

/** They tell of processes, mounts and owners, which a cell with a life of its own would tell wrongly. None of them
 *  prints what a file holds. */
const ABOUT_THE_SYSTEM: readonly string[] = [
  ...["ps", "pgrep", "pidof", "pstree", "free", "uptime", "w", "who", "last", "vmstat", "df", "lsblk", "mount"],
  ...["findmnt", "ls", "dir", "stat", "id", "groups", "hostname", "lsof", "ss", "top", "namei", "getfacl"],
];

/** Programs that pass on what they are given on standard input, as long as no file is named. */
const FILTERS: readonly string[] = [
  ...["head", "tail", "sort", "uniq", "wc", "cut", "tr", "awk", "sed", "grep", "egrep", "column", "nl", "tac"],
];

/** Only then does a pipe run outside the cell: nothing in it reads a file. */
const tellsOfTheSystem = (commands: readonly PlanCommand[], cwd: string): boolean =>
  commands.every(({ program, args, redirects }, at) => {
    if (redirects.some(({ kind }) => kind === "input")) return false;
    if (ABOUT_THE_SYSTEM.includes(program)) return true;
    if (at === 0 || !FILTERS.includes(program) || walkOf(program, args)) return false;
    return args.every(({ text, sought, pattern }) => sought || (!pattern && !existsSync(resolve(cwd, text))));
  });

type Way = { readonly inCell: boolean; readonly piped: boolean };

const start = ({ script, words }: Rendered, run: PipeRun, { inCell, piped }: Way): ChildProcess | Problem => {
  const shell = ["/bin/bash", "--noprofile", "--norc", "-c", script, "bash", ...words];
  const cell = inCell ? run.cell : undefined;
  const [program = "", ...args] = cell ? cell.enter(shell, run.cwd) : shell;
  const scratch = cell ? { TMPDIR: cell.scratch } : {};
  try {
    return spawn(program, args, {
      cwd: run.cwd,
      env: { ...cleanEnvironment(run.timeZone), PATH: searchPath(words), PWD: run.cwd, ...scratch },
      stdio: [piped ? "pipe" : "ignore", "pipe", "pipe"],
      detached: true,
    });
  } catch (error) {
    // More words than the system passes on.
    return { problem: `could not be started: ${error instanceof Error ? error.message : String(error)}` };
  }
};

/** How long what was printed last may take to arrive. */
const PATIENCE_MS = 500;

const ended = (child: ChildProcess, { signal, output }: PipeRun): Promise<number> =>
  new Promise((done) => {
    const end = (): void => endGroup(child.pid);
    signal.addEventListener("abort", end, { once: true });
    child.stdout?.on("data", (chunk: Buffer) => output.out(chunk) || end());
    child.stderr?.on("data", (chunk: Buffer) => output.err(chunk) || end());
    child.once("error", (error) => {
      output.error(`${error.message}\n`);
      done(127);
    });
    // Whoever still holds the pipe after the shell has gone must not keep the plan open, whatever group it is in.
    let patience: NodeJS.Timeout | undefined;
    child.once("exit", () => {
      end();
      patience = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, PATIENCE_MS);
    });
    child.once("close", (code, by) => {
      clearTimeout(patience);
      signal.removeEventListener("abort", end);
      done(code ?? 128 + (constants.signals[by ?? "SIGTERM"] ?? 0));
    });
    if (signal.aborted) end();
  });

const endGroup = (pid: number | undefined): void => {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group is gone already.
  }
};
