/** Which commands run in the background while the conversation continues?
 *  Invariant: shells belong to their owner: none outlives it, and none is visible to another session or fork. Unread
 *  output is bounded in memory and complete in a file. The owner is notified once of each start and once of each end,
 *  and once more when an end that nobody was waiting for is first shown.
 *  Elsewhere: running a command (run-command.ts), reading and stopping (tasks.ts), task rows and notifications for
 *  shells (../session). */

import { StringDecoder } from "node:string_decoder";
import type { Refused } from "@prefork/guard/internal";
import type { Clock, Ids } from "../ports.ts";
import { describeKeptFile, type KeepStream, type KeptFile, SHOWN_CHARACTERS } from "./long-output.ts";
import type { LeaderExit } from "./process-group.ts";

export type ShellState =
  | { readonly kind: "running" }
  | { readonly kind: "exited"; readonly exitCode: number }
  /** By TaskStop, or because its owner was closed. */
  | { readonly kind: "stopped" };

export type ShellFacts = {
  readonly id: string;
  readonly command: string;
  readonly file: string;
  readonly state: ShellState;
};

/** What was printed since the last call. */
export type ShellSnapshot = ShellFacts & {
  readonly output: string;
  /** Characters before `output` that are left out of it. */
  readonly leftOut: number;
  /** Says where those are. */
  readonly kept: string;
};

export type ShellStarted = { readonly id: string; readonly command: string };

export type ShellEnded = ShellStarted & {
  /** Its exit code, or the signal that ended it. */
  readonly exit: number | NodeJS.Signals;
  /** Who ended it: the command itself, a stop call, or its owner being closed. */
  readonly by: "itself" | "stop" | "owner";
  /** The last 2,000 characters that it printed, whether or not they were read before. */
  readonly output: string;
  /** Somebody waits for this end and will be told, so no notification is needed. */
  readonly seen: boolean;
  readonly ms: number;
};

export type ShellsOptions = {
  readonly ids: Ids;
  readonly keepStream: KeepStream;
  /** Called for every shell that runs, before it is visible. If this throws, the shell is stopped and does not count
   *  as started. */
  readonly onStart?: (shell: ShellStarted) => void;
  /** Called once for each shell that started, however it ended. Must not throw. */
  readonly onEnd?: (shell: ShellEnded) => void;
  /** Called when an end that was not `seen` is first shown, by reading or stopping. Must not throw. */
  readonly onEndShown?: (id: string) => void;
  readonly clock?: Clock; // default: none; every shell then takes 0 ms
  readonly maxRunning?: number; // default: 20
};

/** Something that prints and ends. */
export type ShellProcess = {
  readonly ok: true;
  readonly ended: Promise<LeaderExit>;
  readonly stop: () => void;
};

export type ShellLaunch = {
  readonly command: string;
  readonly launch: (output: (chunk: Buffer) => Promise<void>) => Promise<ShellProcess | Refused>;
};

export type ShellStartResult = { readonly ok: true; readonly shell: ShellFacts } | Refused;

const ENDING: Refused = { ok: false, reason: "the session is ending" };

export class Shells implements AsyncDisposable {
  readonly #options: ShellsOptions;
  readonly #shells = new Map<string, Shell>();
  readonly #starting = new Set<Promise<ShellStartResult>>();
  #isClosed = false;

  constructor(options: ShellsOptions) {
    this.#options = options;
  }

  async start(start: ShellLaunch): Promise<ShellStartResult> {
    const { maxRunning: most = 20 } = this.#options;
    if (this.#isClosed) return ENDING;
    const running = this.list().filter(({ state }) => state.kind === "running").length;
    if (running + this.#starting.size >= most)
      return { ok: false, reason: `${most} shells are running already; stop one with TaskStop` };
    const starting = this.#start(start);
    this.#starting.add(starting);
    try {
      return await starting;
    } finally {
      this.#starting.delete(starting);
    }
  }

  has(id: string): boolean {
    return this.#shells.has(id);
  }

  list(): readonly ShellFacts[] {
    return [...this.#shells.values()].map((shell) => shell.facts);
  }

  /** Returns what is new. The next call continues after it. */
  takeOutput(id: string): ShellSnapshot | undefined {
    return this.#shells.get(id)?.takeOutput();
  }

  /** Resolves when the shell has ended; at once if there is no such shell. */
  async ended(id: string): Promise<void> {
    await this.#shells.get(id)?.ended;
  }

  /** False if there is no such shell, or it has already ended. */
  async stop(id: string): Promise<boolean> {
    return (await this.#shells.get(id)?.stop("stop")) ?? false;
  }

  /** Afterwards nothing runs, and no callback is called. */
  async stopAll(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#starting);
    await Promise.all([...this.#shells.values()].map((shell) => shell.stop("owner")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopAll();
  }

  async #start({ command, launch }: ShellLaunch): Promise<ShellStartResult> {
    const { ids, keepStream } = this.#options;
    const id = ids.next("shell");
    const file = await keepStream(id);
    const shell = new Shell({ id, command, file }, this.#options);
    // The owner may have been closed in the meantime. Then the command never starts.
    const process = this.#isClosed ? ENDING : await launch((chunk) => shell.append(chunk));
    if (!process.ok) {
      await file.close();
      return process;
    }
    try {
      shell.follow(process);
    } catch (error) {
      process.stop();
      await Promise.allSettled([process.ended]);
      await file.close();
      throw error;
    }
    this.#shells.set(id, shell);
    return { ok: true, shell: shell.facts };
  }
}

const TAIL_CHARACTERS = 2_000;

type ShellIdentity = ShellStarted & { readonly file: KeptFile };

class Shell {
  readonly #name: ShellIdentity;
  readonly #options: ShellsOptions;
  readonly #decoder = new StringDecoder("utf8");
  #unread = "";
  #leftOut = 0;
  #tail = "";
  #state: ShellState = { kind: "running" };
  #stoppedBy: "stop" | "owner" | undefined;
  #isSeen = false;
  #work: ShellProcess | undefined;
  ended: Promise<void> = Promise.resolve();

  constructor(name: ShellIdentity, options: ShellsOptions) {
    this.#name = name;
    this.#options = options;
  }

  get facts(): ShellFacts {
    const { id, command, file } = this.#name;
    return { id, command, file: file.path, state: this.#state };
  }

  /** From here on it counts as running. */
  follow(work: ShellProcess): void {
    const { id, command } = this.#name;
    this.#work = work;
    this.#options.onStart?.({ id, command });
    this.ended = this.#untilEnded(work);
  }

  async append(chunk: Buffer): Promise<void> {
    this.#add(this.#decoder.write(chunk));
    await this.#name.file.write(chunk);
  }

  takeOutput(): ShellSnapshot {
    const snapshot = {
      ...this.facts,
      output: this.#unread,
      leftOut: this.#leftOut,
      kept: describeKeptFile(this.#name.file),
    };
    this.#unread = "";
    this.#leftOut = 0;
    this.#show();
    return snapshot;
  }

  /** `by`: a stop call, whose caller is told; or the owner, who notifies nobody. */
  async stop(by: "stop" | "owner"): Promise<boolean> {
    const isRunning = this.#state.kind === "running";
    if (isRunning) {
      this.#isSeen ||= by === "stop";
      this.#stoppedBy ??= by;
      this.#work?.stop();
      await this.ended;
    } else if (by === "stop") this.#show();
    return isRunning;
  }

  async #untilEnded(work: ShellProcess): Promise<void> {
    const { clock, onEnd: ended } = this.#options;
    const { id, command, file } = this.#name;
    const startedAt = clock?.now() ?? 0;
    const { exitCode, signal } = await this.#exitOf(work);
    this.#add(this.#decoder.end());
    await Promise.allSettled([file.close()]); // the file keeps what it has
    this.#state = this.#stoppedBy ? { kind: "stopped" } : { kind: "exited", exitCode };
    ended?.({
      ...{ id, command, exit: signal ?? exitCode, by: this.#stoppedBy ?? "itself", seen: this.#isSeen },
      output: this.#tail,
      ms: (clock?.now() ?? 0) - startedAt,
    });
  }

  /** If the end of a command cannot be observed, the command counts as failed, and its output says so. */
  async #exitOf(work: ShellProcess): Promise<LeaderExit> {
    try {
      return await work.ended;
    } catch (error) {
      this.#add(`[it could not be followed to its end: ${error instanceof Error ? error.message : error}]\n`);
      return { exitCode: 1 };
    }
  }

  /** Somebody sees the current state. */
  #show(): void {
    if (this.#isSeen || this.#state.kind === "running") return;
    this.#isSeen = true;
    this.#options.onEndShown?.(this.#name.id);
  }

  #add(text: string): void {
    this.#tail = lastCharacters(this.#tail + text, TAIL_CHARACTERS);
    const unread = this.#unread + text;
    this.#unread = lastCharacters(unread, SHOWN_CHARACTERS);
    this.#leftOut += unread.length - this.#unread.length;
  }
}

/** Half of a split surrogate pair becomes U+FFFD, so that the length stays as announced. */
const lastCharacters = (text: string, most: number): string =>
  text.length <= most ? text : text.slice(text.length - most).replace(/^[\udc00-\udfff]/, "\ufffd");
