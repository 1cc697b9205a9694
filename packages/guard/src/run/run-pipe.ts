/** Runs one pipe of a plan.
 *  Invariant: one process group, ended as a whole; no standard input except for names that were checked first. What
 *  xargs would read is read here, so that no name reaches a program unchecked.
 *  Elsewhere: words and names (render-pipe.ts), order of pipes (run-plan.ts), the read-only sandbox
 *  (read-only-sandbox.ts). */

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { constants } from "node:os";
import { resolve } from "node:path";
import type { PathJudge } from "../files/index.ts";
import { existingPath, isFolder, realPath, resolveName } from "../files/index.ts";
import { GitViews } from "../git/index.ts";
import { cleanEnvironment, searchPath } from "../process/index.ts";
import {
  innerProgramIndex,
  LISTS_NAMES,
  type PlanCommand,
  type PlanStep,
  PRINTS_WORDS,
  repetitionProblem,
  walkOf,
} from "../rules/index.ts";
import { filterInTurns, firstProblem, nextTurn } from "./in-turns.ts";
import { coveredIn, type ReadOnlySandbox } from "./read-only-sandbox.ts";
import { namesProblem, type Problem, processCount, type Rendered, reachedProblem, renderPipe } from "./render-pipe.ts";
import { readXargsNames, type XargsNames } from "./xargs-names.ts";

export type PipeContext = {
  readonly home: string;
  readonly signal: AbortSignal;
  readonly output: PlanOutput;
  readonly timeZone?: string;
  readonly readOnlySandbox?: ReadOnlySandbox;
  /** What git must not show (CommandPlan.hiddenFiles). */
  readonly withheld?: readonly string[];
  readonly judge: PathJudge;
  readonly running: RunningPipes;
  readonly maxKibibytes?: number;
  /** The files to cover in the read-only sandbox, shared by the pipes of one plan. */
  readonly covered: Map<string, readonly string[]>;
};

/** About 200 processes, or 33 commands, or 8 of git. */
const MAX_LOAD = 200;

/** What a pipe takes of it: its processes, and what this process keeps for it. For git that is a view of the
 *  repository, with a copy of its index. */
const loadOf = (commands: readonly PlanCommand[]): number =>
  processCount(commands) + (commands.some(({ program }) => program === "git") ? 24 : 5);

/** Bounds the pipes that run at the same time, because they share the machine's memory and its process table. */
export class RunningPipes {
  readonly #maxLoad: number;
  #count = 0;
  #load = 0;
  readonly #waiting = new Set<() => void>();

  constructor(maxLoad = MAX_LOAD) {
    this.#maxLoad = maxLoad;
  }

  /** Waits for room, or until the abort. `others`: how many pipes were already running. */
  async enter(load: number, signal: AbortSignal): Promise<Disposable & { readonly others: number }> {
    while (!signal.aborted && this.#load > 0 && this.#load + load > this.#maxLoad) await this.#untilOneLeaves(signal);
    const others = this.#count;
    this.#count += 1;
    this.#load += load;
    return {
      others,
      [Symbol.dispose]: () => {
        this.#count -= 1;
        this.#load -= load;
        for (const wake of this.#waiting) wake();
      },
    };
  }

  #untilOneLeaves(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}

export type PipeRun = PipeContext & {
  /** The folder that the programs start in. Canonical. */
  readonly cwd: string;
  /** Its name, as `cd` led to it: rules may name it, and a later `cd ..` goes up from it. */
  readonly cwdName: string;
  readonly exitCode: number;
  /** The names that the xargs at the start of the pipe will read. */
  readonly xargsNames?: readonly string[];
};

export type PipeEnd = { readonly exitCode: number; readonly refused?: string };

/** Runs the pipe up to each xargs first, checks the names that it printed, and continues with them. */
export const runPipe = async (commands: readonly PlanCommand[], run: PipeRun, input?: string): Promise<PipeEnd> => {
  const at = commands.findIndex(({ program }, index) => program === "xargs" && index > 0);
  if (at < 0) return runRendered(commands, run, input);
  const output = new PlanOutput(MOST_NAMES_BYTES);
  const listed = await runRendered(commands.slice(0, at), { ...run, output }, input);
  const { stdout, stderr, truncated } = output.texts();
  if (stderr !== "") run.output.error(stderr);
  const early =
    listed.refused ?? (truncated ? `xargs: more than ${MOST_NAMES_BYTES} bytes of names; list fewer` : undefined);
  if (early !== undefined) return refuse(early, run);
  const [xargs, ...after] = commands.slice(at) as [PlanCommand, ...PlanCommand[]];
  // A program that only prints its words may get any, and xargs may read them itself.
  if (PRINTS_WORDS.includes(innerOf(xargs))) return runPipe([xargs, ...after], { ...run, xargsNames: [] }, stdout);
  const given = readXargsNames(xargs.args, stdout);
  if ("problem" in given) return refuse(given.problem, run);
  if (given.names.length > MAX_XARGS_NAMES) return refuse(`xargs: more than ${MAX_XARGS_NAMES} names; list fewer`, run);
  const allowed = await withoutRuled(given, run);
  const { files, problem } = await checkNames(allowed, run);
  if (run.signal.aborted) return { exitCode: 124 };
  if (problem !== undefined) return refuse(problem, run);
  // The names exactly as they were checked, each followed by a zero, so that no program can split them differently.
  const args = [...allowed.options, ...allowed.inner];
  const checked = allowed.names.map((name) => `${name}\0`).join("");
  const end = await runPipe([{ ...xargs, args }, ...after], { ...run, xargsNames: files }, checked);
  if (allowed.complaint === undefined) return end;
  run.output.error(`${allowed.complaint}\n`);
  return after.length === 0 && end.exitCode === 0 ? { ...end, exitCode: 1 } : end;
};

/** Drops files that rules name, as a search does. */
const withoutRuled = async (names: XargsNames, { cwd, cwdName, judge, signal }: PipeRun): Promise<XargsNames> => {
  const [program, ...words] = names.inner;
  const { rules } = judge;
  if (rules.isEmpty || LISTS_NAMES.includes(program?.text ?? "echo")) return names;
  const places =
    names.place === undefined
      ? undefined
      : words.filter(({ text, searchText: sought }) => !sought && text.includes(names.place ?? ""));
  const isRuled = (name: string): boolean =>
    (places?.map(({ text }) => text.replaceAll(names.place ?? "", () => name)) ?? [name]).some((file) => {
      const paths = [realPath(resolveName(cwd, file)), resolve(cwdName, file)];
      return paths.some((path) => rules.problem(path) !== undefined);
    });
  return { ...names, names: await filterInTurns(names.names, (name) => name === "" || !isRuled(name), signal) };
};

const MOST_NAMES_BYTES = 4_000_000;
const MAX_XARGS_NAMES = 100_000;

const refuse = (problem: string, { output }: PipeRun): PipeEnd => {
  output.error(`${problem}\n`);
  return { exitCode: 127, refused: problem };
};

const innerOf = ({ args }: PlanCommand): string => args[innerProgramIndex(args)]?.text ?? "echo";

const MAX_REPLACEMENTS = 100_000;

/** Words that some programs do not treat as file names. */
const NOT_FILE_NAMES: Readonly<Record<string, RegExp>> = {
  ...Object.fromEntries(["awk", "gawk", "mawk"].map((name) => [name, /^[A-Za-z_]\w*=|^\/inet/])),
  tail: /^\+\d*[bcl]?f?$/,
};

type CheckedNames = {
  /** The file and folder names, as the inner program gets them. */
  readonly files: readonly string[];
  readonly problem?: string;
};

const checkNames = async (
  { names, inner: [program, ...words], place }: XargsNames,
  run: PipeRun,
): Promise<CheckedNames> => {
  const inner = program?.text ?? "echo";
  const each = [...new Set(names)].filter((name) => name !== "");
  // A name may become part of another word (`-I{} cat dir/{}`) or a search text (`-I{} grep {} src`).
  const places = place === undefined ? [] : words.filter(({ text }) => text.includes(place));
  if (each.length * places.length > MAX_REPLACEMENTS)
    return { files: [], problem: "xargs: too many names for so many places; list fewer" };
  const put = (isSought: boolean): readonly string[] =>
    places
      .filter(({ searchText: sought }) => (sought === true) === isSought)
      .flatMap(({ text }) => each.map((name) => text.replaceAll(place ?? "", () => name)));
  const [files, looked] = [place === undefined ? each : put(false), put(true)];
  // The inner program would take a name that begins with a dash as an option.
  const odd = [...files, ...looked].find((word) => word.startsWith("-") || NOT_FILE_NAMES[inner]?.test(word));
  if (odd !== undefined)
    return { files, problem: `${inner} would mistake ${odd} for an option; list names with ./ before them` };
  const huge = looked.map((word) => repetitionProblem(inner, word)).find((problem) => problem !== undefined);
  const problem =
    huge ??
    (LISTS_NAMES.includes(inner)
      ? undefined
      : ((await firstProblem(files, (name) => namesProblem([name]), run.signal)) ??
        (await reachedProblem(files, inner, run))));
  return problem === undefined ? { files } : { files, problem };
};

const runRendered = async (commands: readonly PlanCommand[], run: PipeRun, input?: string): Promise<PipeEnd> => {
  using views = new GitViews({ withheld: run.withheld ?? [], below: run.judge.rules.below }, run.signal);
  using running = await run.running.enter(loadOf(commands), run.signal);
  await nextTurn(); // reading a repository or walking a folder blocks the event loop
  if (run.signal.aborted) return { exitCode: 124 };
  const rendered = await renderPipe(commands, { ...run, views, otherPipes: running.others });
  await nextTurn(); // so does searching for the files to cover in the read-only sandbox
  if (run.signal.aborted) return { exitCode: 124 };
  if ("problem" in rendered) return refuse(rendered.problem, run);
  const isSandboxed = !tellsOfTheSystem(commands, run.cwd);
  const isGit = commands.some(({ program }) => program === "git");
  const attributes = views.attributes();
  if ("problem" in attributes) return refuse(attributes.problem, run);
  const child = start(rendered, run, { isSandboxed, piped: input !== undefined, isGit, attributes: attributes.path });
  if ("problem" in child) return refuse(child.problem, run);
  child.stdin?.on("error", () => {}); // a reader may stop before the last name
  child.stdin?.end(input);
  return { exitCode: await ended(child, run) };
};

/** They report processes, mounts and owners, which would be wrong inside a sandbox with its own. None of them prints
 *  the contents of a file. */
const ABOUT_THE_SYSTEM: readonly string[] = [
  ...["ps", "pgrep", "pidof", "pstree", "free", "uptime", "w", "who", "last", "vmstat", "df", "lsblk", "mount"],
  ...["findmnt", "ls", "dir", "stat", "id", "groups", "hostname", "lsof", "ss", "top", "namei", "getfacl"],
];

/** Programs that filter their standard input if no file is named. */
const FILTERS: readonly string[] = [
  ...["head", "tail", "sort", "uniq", "wc", "cut", "tr", "awk", "sed", "grep", "egrep", "column", "nl", "tac"],
];

/** Whether a part of this plan could run outside the read-only sandbox, whatever files exist. */
export const mayRunOutsideSandbox = (steps: readonly PlanStep[]): boolean =>
  steps.some(({ run }) => {
    if (run.kind === "group") return mayRunOutsideSandbox(run.steps);
    return run.kind === "pipe" && run.commands.slice(0, 1).some(({ program }) => ABOUT_THE_SYSTEM.includes(program));
  });

/** A pipe runs outside the read-only sandbox only if nothing in it reads a file. */
const tellsOfTheSystem = (commands: readonly PlanCommand[], cwd: string): boolean =>
  commands.every(({ program, args, redirects }, at) => {
    if (redirects.some(({ kind }) => kind === "input")) return false;
    if (ABOUT_THE_SYSTEM.includes(program)) return true;
    if (at === 0 || !FILTERS.includes(program) || walkOf(program, args)) return false;
    return args.every(
      ({ text, searchText: sought, pattern, home }) =>
        sought || (!pattern && !home && existingPath(resolveName(cwd, text)) === undefined),
    );
  });

type StartOptions = {
  readonly isSandboxed: boolean;
  readonly piped: boolean;
  readonly isGit: boolean;
  /** For git outside of a repository: the files that it must not show. */
  readonly attributes: string | undefined;
};

/** The first descriptor after the three that every program has. */
const FIRST_EXTRA_DESCRIPTOR = 3;

const start = (
  { script, words }: Rendered,
  run: PipeRun,
  { isSandboxed, piped, isGit, attributes }: StartOptions,
): ChildProcess | Problem => {
  const shell = ["/bin/bash", "--noprofile", "--norc", "-c", script, "bash", ...words];
  const sandbox = isSandboxed ? run.readOnlySandbox : undefined;
  const opened: number[] = [];
  try {
    // git compares the files in its index with those on disk, so none of them may be covered.
    const folders = isGit ? [] : [run.cwd, ...foldersIn(words, run.cwd)];
    const argv = sandbox
      ? sandbox.enter(shell, run.cwd, { folders, empty: FIRST_EXTRA_DESCRIPTOR, known: run.covered })
      : shell;
    if (sandbox) opened.push(openSync("/dev/null", "r"));
    const [program = "", ...args] = argv;
    const [nothing = 0] = opened;
    const others = sandbox ? coveredIn(argv).map(() => nothing) : [];
    const scratch = sandbox ? { TMPDIR: sandbox.scratch } : {};
    return spawn(program, args, {
      cwd: run.cwd,
      env: { ...cleanEnvironment(run.timeZone, attributes), PATH: searchPath(words), PWD: run.cwdName, ...scratch },
      stdio: [piped ? "pipe" : "ignore", "pipe", "pipe", ...others],
      detached: true,
    });
  } catch (error) {
    // The command line is too long, or there is no room for a temporary file.
    return { problem: `could not be started: ${error instanceof Error ? error.message : String(error)}` };
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
};

const MOST_FOLDERS = 20;
/** The system mounts nothing over a longer path. */
const MAX_PATH_CHARACTERS = 4_096;

const foldersIn = (words: readonly string[], cwd: string): readonly string[] =>
  words
    .map((word) => resolveName(cwd, word))
    .filter((path) => path.length < MAX_PATH_CHARACTERS && isFolder(path))
    .slice(0, MOST_FOLDERS);

/** How long the last output may take to arrive. */
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
    // A process that still has the pipe open after the shell has ended must not keep the plan running, whatever its
    // process group.
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

/** What a plan has printed, up to a limit per stream.
 *  Invariant: never more than the limit is kept, and truncation is reported.
 *  Elsewhere: who prints (run-pipe.ts). */

export type Printed = { readonly stdout: string; readonly stderr: string; readonly truncated: boolean };

export class PlanOutput {
  readonly #out: Buffer[] = [];
  readonly #err: Buffer[] = [];
  #room: { readonly out: number; readonly err: number };
  #truncated = false;

  constructor(limit: number) {
    this.#room = { out: limit, err: limit };
  }

  /** False if there is no room for more. */
  out(chunk: Buffer): boolean {
    return this.#keep(chunk, "out");
  }

  err(chunk: Buffer): boolean {
    return this.#keep(chunk, "err");
  }

  error(text: string): void {
    this.err(Buffer.from(text));
  }

  texts(): Printed {
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
