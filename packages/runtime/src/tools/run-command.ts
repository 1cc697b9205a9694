/** How does the text of an approved command run in a real bash?
 *  Invariant: it has its own process group and no standard input. The whole group ends when the command ends, when it
 *  is stopped, and when this process dies, even by SIGKILL. Both output streams are read as one, in the order of
 *  printing.
 *  What holds after our death: in the sandbox everything ends with us. Outside it, a watcher in the group's session
 *  kills the group as soon as our end of its pipe closes. A process that created its own session (setsid) has left the
 *  group: it is ended when the command is stopped and when its owner ends, but it survives our death by SIGKILL.
 *  Elsewhere: ending a group (process-group.ts), showing the output (long-output.ts), read-only commands (runPlan of
 *  @prefork/guard). */

import { type ChildProcess, spawn } from "node:child_process";
import { statSync } from "node:fs";
import type { Readable } from "node:stream";
import { setTimeout as after } from "node:timers/promises";
import type { Sandbox } from "@prefork/guard";
import { type Entered, endStragglers, MARK, newMark, type Refused } from "@prefork/guard/internal";
import { isForkName, shellName } from "./fork-ancestry.ts";
import { type LeaderExit, PATIENCE_MS, ProcessGroup } from "./process-group.ts";

export type CommandRun = {
  readonly command: string;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly sandbox?: Sandbox;
  /** The next chunk is read when this has resolved. */
  readonly output: (chunk: Buffer) => Promise<void>;
};

export type CommandEnd = LeaderExit & {
  /** It left processes running, and these were ended with it. */
  readonly leftBehind: boolean;
};

export type RunningCommand = {
  readonly ok: true;
  readonly pid: number;
  readonly ended: Promise<CommandEnd>;
  /** Asks the whole group to end, and kills it soon after. */
  readonly stop: () => void;
};

const BASH = ["/bin/bash", "--noprofile", "--norc", "-c"] as const;

/** The command replaces this shell. Before that, the shell starts a watcher in a group of its own. A line on
 *  descriptor 3 releases the watcher; end of file means that we are gone. */
const WATCHED =
  'set -m; { read -r -u 3 || kill -KILL -- "-$$"; } </dev/null >/dev/null 2>&1 & set +m; ' +
  'exec /bin/bash --noprofile --norc -c "$1" bash 2>&1 3>&-';

/** The same for a fork, whose name must stay above everything it starts: this shell waits for the command, and
 *  ending the shell ends the command. Signals to the whole group are left to the command. */
const HELD =
  'set -m; { read -r -u 3 || kill -KILL -- "-$$"; } </dev/null >/dev/null 2>&1 & set +m; exec 2>/dev/null; trap : TERM; ' +
  '/bin/bash --noprofile --norc -c "$1" bash 2>&1 3>&-; exit "$?" 3>&-';

/** In the sandbox everything dies with its starter, but only once the sandbox is set up. Stopping it earlier would
 *  leave a half-made sandbox behind that nobody can find. So the finished sandbox asks us for permission before the
 *  command begins. If no answer comes, it ends by itself. */
const GATED = 'echo >&3; read -r -u 3 || exit 143; exec /bin/bash --noprofile --norc -c "$1" bash 2>&1 3>&-';

/** Variables that make bash run or define something before the command. */
const RUN_BY_BASH = /^(?:BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|BASH_FUNC_.*)$/;

const refuse = (reason: string): Refused => ({ ok: false, reason });

export const startCommand = async (run: CommandRun): Promise<RunningCommand | Refused> => {
  if (!isFolder(run.cwd)) return refuse(`the working directory ${run.cwd} is not there`);
  const name = shellName(run.environment);
  const isHeld = run.sandbox === undefined && isForkName(name);
  const argv = [...BASH, run.sandbox ? GATED : isHeld ? HELD : WATCHED, name, run.command];
  const entered = await run.sandbox?.enter(argv, { cwd: run.cwd });
  if (entered?.ok === false) return entered;
  const mark = newMark(run.environment);
  const child = await spawnCommand(entered?.argv ?? argv, {
    ...run,
    environment: { ...run.environment, [MARK]: mark },
  });
  if (child instanceof Error) {
    await entered?.[Symbol.asyncDispose]();
    const tooLong = (child as NodeJS.ErrnoException).code === "E2BIG";
    return refuse(
      tooLong ? "the command is too long; put it into a file" : `bash could not be started: ${child.message}`,
    );
  }
  const group = new ProcessGroup(child, { isGated: run.sandbox !== undefined, isHeld });
  const ended = waitForEnd(child, group, { output: run.output, entered, mark });
  return { ok: true, pid: group.pid, ended, stop: () => group.stop() };
};

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

const spawnCommand = ([program = "", ...args]: readonly string[], run: CommandRun): Promise<ChildProcess | Error> =>
  new Promise((done) => {
    const env = Object.fromEntries(Object.entries(run.environment).filter(([name]) => !RUN_BY_BASH.test(name)));
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

const waitForEnd = async (child: ChildProcess, group: ProcessGroup, run: EndOptions): Promise<CommandEnd> => {
  const reading = new OutputReader([child.stdout, child.stderr], run.output);
  try {
    const exit = await group.exited;
    const wasStopped = group.isStopping || group.hasLostShell;
    const leftBehind = (await group.end()) && !wasStopped;
    if (wasStopped && !run.entered) await endStragglers(run.mark); // in the sandbox nothing is left
    await reading.rest();
    return { ...exit, leftBehind };
  } finally {
    group.release();
    await run.entered?.[Symbol.asyncDispose]();
  }
};

type EndOptions = Pick<CommandRun, "output"> & { readonly entered: Entered | undefined; readonly mark: string };

const MAX_WAITS = 10;

/** Reads what the command prints, to the end. */
class OutputReader {
  readonly #streams: readonly Readable[];
  readonly #done: Promise<"done">;
  #chunks = 0;
  /** One chunk at a time, whichever stream it comes from. */
  #turn: Promise<void> = Promise.resolve();

  constructor(streams: readonly (Readable | null)[], output: CommandRun["output"]) {
    this.#streams = streams.filter((stream) => stream !== null);
    this.#done = Promise.all(this.#streams.map((stream) => this.#read(stream, output))).then(() => "done" as const);
    this.#done.catch(() => {}); // `drain` reports it, after the command has ended
  }

  /** A process outside the group may keep the pipe open. If it prints nothing for a while, it is not waited for. */
  async rest(): Promise<void> {
    for (let waits = 0, seen = -1; waits < MAX_WAITS && seen !== this.#chunks; waits++) {
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
