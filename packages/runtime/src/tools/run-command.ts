/** Runs the text of an approved command in a real bash.
 *  Invariant: a process group of its own without standard input, ended as a whole: when the command ends, when it is
 *  stopped, and when this process dies, even by SIGKILL. Both streams come as one, in the order of printing.
 *  What holds after our death: in the sandbox everything ends with us; outside it a watcher in the group's session ends
 *  the group as soon as our end of its line closes. A process that made a session of its own (setsid) is no longer in the
 *  group: it is ended when the command is stopped and when its owner ends, but outlives our death by SIGKILL.
 *  Elsewhere: ending a group (process-group.ts), what is shown of the output (output-window.ts), read-only commands
 *  (runPlan of @prefork/guard). */

import { type ChildProcess, spawn } from "node:child_process";
import { statSync } from "node:fs";
import type { Readable } from "node:stream";
import { setTimeout as after } from "node:timers/promises";
import type { Sandbox } from "@prefork/guard";
import { type Entered, endStragglers, MARK, newMark, type Refused } from "@prefork/guard/internal";
import { commandName, isForkName } from "./fork-ancestry.ts";
import { type LeaderExit, PATIENCE_MS, ProcessGroup } from "./process-group.ts";

export type CommandRun = {
  readonly command: string;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly sandbox?: Sandbox;
  /** Reading waits until it has settled. */
  readonly output: (chunk: Buffer) => Promise<void>;
};

export type CommandEnd = LeaderExit & {
  /** Processes that it had left behind, and that were ended with it. */
  readonly leftBehind: boolean;
};

export type RunningCommand = {
  readonly ok: true;
  readonly pid: number;
  readonly ended: Promise<CommandEnd>;
  /** Asks the whole group to end, and makes it end soon after. */
  readonly stop: () => void;
};

const BASH = ["/bin/bash", "--noprofile", "--norc", "-c"] as const;

/** The command replaces this shell. Before that a watcher is left in a group of its own: a line on descriptor 3 lets it
 *  go, the end of that line means that nobody is there any more. */
const WATCHED =
  'set -m; { read -r -u 3 || kill -KILL -- "-$$"; } </dev/null >/dev/null 2>&1 & set +m; ' +
  'exec /bin/bash --noprofile --norc -c "$1" bash 2>&1 3>&-';

/** The same for a fork, whose name must stay above everything it starts: this shell waits for the command, and whoever ends
 *  it ends the command. What is asked of the whole group is the command's to answer. */
const HELD =
  'set -m; { read -r -u 3 || kill -KILL -- "-$$"; } </dev/null >/dev/null 2>&1 & set +m; exec 2>/dev/null; trap : TERM; ' +
  '/bin/bash --noprofile --norc -c "$1" bash 2>&1 3>&-; exit "$?" 3>&-';

/** In the sandbox everything dies with its starter, but only once the sandbox stands: whoever is stopped while it is being
 *  set up leaves a half-made one behind that nobody finds again. So the command begins after a word from us, which the
 *  finished sandbox asks for; where none comes any more, it ends by itself. */
const GATED = 'echo >&3; read -r -u 3 || exit 143; exec /bin/bash --noprofile --norc -c "$1" bash 2>&1 3>&-';

/** Variables that would make bash run or define something before the command. */
const RUNS_FIRST = /^(?:BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|BASH_FUNC_.*)$/;

const refuse = (reason: string): Refused => ({ ok: false, reason });

export const startCommand = async (run: CommandRun): Promise<RunningCommand | Refused> => {
  if (!isFolder(run.cwd)) return refuse(`the working directory ${run.cwd} is not there`);
  const name = commandName(run.environment);
  const isHeld = run.sandbox === undefined && isForkName(name);
  const plain = [...BASH, run.sandbox ? GATED : isHeld ? HELD : WATCHED, name, run.command];
  const entered = await run.sandbox?.enter(plain, { cwd: run.cwd });
  if (entered?.ok === false) return entered;
  const mark = newMark(run.environment);
  const child = await started(entered?.argv ?? plain, { ...run, environment: { ...run.environment, [MARK]: mark } });
  if (child instanceof Error) {
    await entered?.[Symbol.asyncDispose]();
    const tooLong = (child as NodeJS.ErrnoException).code === "E2BIG";
    return refuse(
      tooLong ? "the command is too long; put it into a file" : `bash could not be started: ${child.message}`,
    );
  }
  const group = new ProcessGroup(child, { isGated: run.sandbox !== undefined, isHeld });
  const ended = follow(child, group, { output: run.output, entered, mark });
  return { ok: true, pid: group.pid, ended, stop: () => group.stop() };
};

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

const started = ([program = "", ...args]: readonly string[], run: CommandRun): Promise<ChildProcess | Error> =>
  new Promise((done) => {
    const env = Object.fromEntries(Object.entries(run.environment).filter(([name]) => !RUNS_FIRST.test(name)));
    try {
      const child = spawn(program, args, {
        cwd: run.cwd,
        env,
        stdio: ["ignore", "pipe", "pipe", "pipe"],
        detached: true,
      });
      child.once("spawn", () => done(child));
      child.once("error", done);
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)));
    }
  });

const follow = async (child: ChildProcess, group: ProcessGroup, run: Following): Promise<CommandEnd> => {
  const reading = new Reading([child.stdout, child.stderr], run.output);
  try {
    const exit = await group.exited;
    const wasStopped = group.isStopping || group.hasLostHolder;
    const leftBehind = (await group.end()) && !wasStopped;
    if (wasStopped && !run.entered) await endStragglers(run.mark); // in the sandbox nothing is left
    await reading.rest();
    return { ...exit, leftBehind };
  } finally {
    group.release();
    await run.entered?.[Symbol.asyncDispose]();
  }
};

type Following = Pick<CommandRun, "output"> & { readonly entered: Entered | undefined; readonly mark: string };

const MOST_WAITS = 10;

/** What the command prints, read to the end. */
class Reading {
  readonly #streams: readonly Readable[];
  readonly #done: Promise<"done">;
  #chunks = 0;
  /** One chunk after the other, whichever stream it comes from. */
  #turn: Promise<void> = Promise.resolve();

  constructor(streams: readonly (Readable | null)[], output: CommandRun["output"]) {
    this.#streams = streams.filter((stream) => stream !== null);
    this.#done = Promise.all(this.#streams.map((stream) => this.#read(stream, output))).then(() => "done" as const);
    this.#done.catch(() => {}); // told by `rest`, after the command has ended
  }

  /** A process outside the group may hold the pipe: whoever prints nothing for a while is not waited for. */
  async rest(): Promise<void> {
    for (let waits = 0, seen = -1; waits < MOST_WAITS && seen !== this.#chunks; waits++) {
      seen = this.#chunks;
      if ((await Promise.race([this.#done, after(PATIENCE_MS)])) === "done") return;
    }
    for (const stream of this.#streams) stream.destroy();
    await this.#done;
  }

  async #read(stream: Readable, output: CommandRun["output"]): Promise<void> {
    try {
      for await (const chunk of stream) {
        this.#chunks++;
        this.#turn = this.#turn.then(() => output(chunk as Buffer));
        await this.#turn;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
    }
  }
}
