/** How does a program run that only reads, with arguments that no shell interprets?
 *  Invariant: an argument list, a clean environment, no standard input, the read-only sandbox if there is one. The
 *  program ends with the call, after a timeout in any case, and when it takes too much memory.
 *  Elsewhere: the environment and the sandbox (@prefork/guard), the programs (list-files.ts, ripgrep.ts). */

import { type ChildProcess, spawn } from "node:child_process";
import { cleanEnvironment, withMemoryLimit } from "@prefork/guard/internal";
import { SEARCH_PROGRAMS } from "./slots.ts";
import type { ToolContext } from "./tool.ts";

export type ProgramRun = {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** False: enough, stop. */
  readonly output: (chunk: Buffer) => boolean;
};

export type ProgramEnd = {
  readonly exitCode: number;
  readonly errors: string;
  readonly ended: "finished" | "enough" | "timed-out" | "aborted";
};

const TIMEOUT_MS = 30_000;
const MAX_ERRORS = 4_000;

/** Ripgrep keeps a whole line in memory, and a line may be as long as the disk has room for. */
const MAX_KIBIBYTES = 524_288;

type ProgramContext = Pick<ToolContext, "readOnlySandbox" | "signal">;

export const runProgram = async (run: ProgramRun, context: ProgramContext): Promise<ProgramEnd> => {
  using _ = await SEARCH_PROGRAMS.enter(context.signal);
  return await runInSlot(run, context);
};

const runInSlot = (
  { argv, cwd, output }: ProgramRun,
  { readOnlySandbox, signal }: ProgramContext,
): Promise<ProgramEnd> =>
  new Promise((done, fail) => {
    const entered = readOnlySandbox === undefined ? argv : readOnlySandbox.enter(argv, cwd);
    const [program = "", ...args] = withMemoryLimit(entered, MAX_KIBIBYTES);
    const child: ChildProcess = spawn(program, args, {
      cwd,
      env: { ...cleanEnvironment(), PWD: cwd },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let ended: ProgramEnd["ended"] = "finished";
    let errors = "";
    const stop = (why: ProgramEnd["ended"]): void => {
      if (ended === "finished") ended = why;
      killGroup(child.pid);
    };
    const abort = (): void => stop("aborted");
    const timer = setTimeout(() => stop("timed-out"), TIMEOUT_MS);
    child.stdout?.on("data", (chunk: Buffer) => {
      if (ended === "finished" && !output(chunk)) stop("enough");
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      if (errors.length < MAX_ERRORS) errors += chunk.toString("utf8");
    });
    const release = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    };
    child.once("error", (error) => {
      release();
      fail(error);
    });
    child.once("close", (code) => {
      release();
      done({ exitCode: code ?? 128, errors: errors.slice(0, MAX_ERRORS).toWellFormed(), ended });
    });
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
  });

const killGroup = (pid: number | undefined): void => {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has already ended.
  }
};
