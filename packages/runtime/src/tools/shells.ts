/** Commands that run on while the conversation does.
 *  Invariant: whoever owns this owns its shells: none outlives it, none is seen by another session or fork. Output that
 *  nobody has looked at yet is bounded in memory and whole in a file. The owner hears of each start once and of each end
 *  once, and once more when somebody is first shown an end that was not seen as it came.
 *  Elsewhere: running a command (run-command.ts), looking and stopping (task-output.ts, task-stop.ts), the rows of shells
 *  and what is announced (../session). */

import { StringDecoder } from "node:string_decoder";
import type { Refused } from "@prefork/guard/internal";
import type { Clock, Ids } from "../ports.ts";
import { type KeepStream, type KeptFile, SHOWN_CHARACTERS, whereKept } from "./long-output.ts";
import type { LeaderExit } from "./process-group.ts";

export type ShellState =
  | { readonly kind: "running" }
  | { readonly kind: "exited"; readonly exitCode: number }
  /** By TaskStop, or because its owner ended. */
  | { readonly kind: "stopped" };

export type ShellFacts = {
  readonly id: string;
  readonly command: string;
  readonly file: string;
  readonly state: ShellState;
};

/** What was printed since the last look. */
export type ShellLook = ShellFacts & {
  readonly output: string;
  /** Characters before it that are not in it. */
  readonly leftOut: number;
  /** Where those are, in words. */
  readonly kept: string;
};

export type ShellStarted = { readonly id: string; readonly command: string };

export type ShellEnded = ShellStarted & {
  /** Its exit code, or the signal that ended it. */
  readonly exit: number | NodeJS.Signals;
  /** Who ended it: the command itself, a call to stop it, or its owner who was closed. */
  readonly by: "itself" | "stop" | "owner";
  /** The last of what it printed, at most 2,000 characters, whether looked at before or not. */
  readonly output: string;
  /** Somebody waits for this end and is told of it, so it needs no announcement. */
  readonly seen: boolean;
  readonly ms: number;
};

export type ShellsOptions = {
  readonly ids: Ids;
  readonly keepStream: KeepStream;
  /** Told of every shell that runs, before anybody can see it. Where this throws, the shell is ended and not started. */
  readonly started?: (shell: ShellStarted) => void;
  /** Told of its end, once for each that started, whoever ended it. Must not throw. */
  readonly ended?: (shell: ShellEnded) => void;
  /** Told when an end that was not `seen` is first shown, by a look or a stop. Must not throw. */
  readonly shown?: (id: string) => void;
  readonly clock?: Clock; // default: none, and every shell takes 0 ms
  readonly most?: number; // running at once; default: 20
};

/** Something that prints and ends. */
export type ShellWork = {
  readonly ok: true;
  readonly ended: Promise<LeaderExit>;
  readonly stop: () => void;
};

export type ShellStart = {
  readonly command: string;
  readonly begin: (output: (chunk: Buffer) => Promise<void>) => Promise<ShellWork | Refused>;
};

export type StartedShell = { readonly ok: true; readonly shell: ShellFacts } | Refused;

const ENDING: Refused = { ok: false, reason: "the session is ending" };

export class Shells implements AsyncDisposable {
  readonly #options: ShellsOptions;
  readonly #shells = new Map<string, Shell>();
  readonly #starting = new Set<Promise<StartedShell>>();
  #isClosed = false;

  constructor(options: ShellsOptions) {
    this.#options = options;
  }

  async start(start: ShellStart): Promise<StartedShell> {
    const { most = 20 } = this.#options;
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

  /** Gives what is new; the next look begins after it. */
  look(id: string): ShellLook | undefined {
    return this.#shells.get(id)?.look();
  }

  /** Resolves when it has ended; at once for one that is not there. */
  async ended(id: string): Promise<void> {
    await this.#shells.get(id)?.ended;
  }

  /** False where there is none, or it has ended before. */
  async stop(id: string): Promise<boolean> {
    return (await this.#shells.get(id)?.stop("stop")) ?? false;
  }

  /** Afterwards nothing runs, and nothing more is told. */
  async endAll(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#starting);
    await Promise.all([...this.#shells.values()].map((shell) => shell.stop("owner")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endAll();
  }

  async #start({ command, begin }: ShellStart): Promise<StartedShell> {
    const { ids, keepStream } = this.#options;
    const id = ids.next("shell");
    const file = await keepStream(id);
    const shell = new Shell({ id, command, file }, this.#options);
    // The owner may have been closed meanwhile; what has not begun then never does.
    const begun = this.#isClosed ? ENDING : await begin((chunk) => shell.take(chunk));
    if (!begun.ok) {
      await file.close();
      return begun;
    }
    try {
      shell.follow(begun);
    } catch (error) {
      begun.stop();
      await Promise.allSettled([begun.ended]);
      await file.close();
      throw error;
    }
    this.#shells.set(id, shell);
    return { ok: true, shell: shell.facts };
  }
}

const TAIL_CHARACTERS = 2_000;

type ShellName = ShellStarted & { readonly file: KeptFile };

class Shell {
  readonly #name: ShellName;
  readonly #options: ShellsOptions;
  readonly #decoder = new StringDecoder("utf8");
  #unread = "";
  #leftOut = 0;
  #tail = "";
  #state: ShellState = { kind: "running" };
  #stoppedBy: "stop" | "owner" | undefined;
  #isSeen = false;
  #work: ShellWork | undefined;
  ended: Promise<void> = Promise.resolve();

  constructor(name: ShellName, options: ShellsOptions) {
    this.#name = name;
    this.#options = options;
  }

  get facts(): ShellFacts {
    const { id, command, file } = this.#name;
    return { id, command, file: file.path, state: this.#state };
  }

  /** It runs from here on. */
  follow(work: ShellWork): void {
    const { id, command } = this.#name;
    this.#work = work;
    this.#options.started?.({ id, command });
    this.ended = this.#untilEnded(work);
  }

  async take(chunk: Buffer): Promise<void> {
    this.#add(this.#decoder.write(chunk));
    await this.#name.file.write(chunk);
  }

  look(): ShellLook {
    const found = { ...this.facts, output: this.#unread, leftOut: this.#leftOut, kept: whereKept(this.#name.file) };
    this.#unread = "";
    this.#leftOut = 0;
    this.#show();
    return found;
  }

  /** `by` the call of somebody who is told, or by the owner, who tells nobody. */
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

  async #untilEnded(work: ShellWork): Promise<void> {
    const { clock, ended } = this.#options;
    const { id, command, file } = this.#name;
    const begunAt = clock?.now() ?? 0;
    const { exitCode, signal } = await this.#exitOf(work);
    this.#add(this.#decoder.end());
    await Promise.allSettled([file.close()]); // what it holds is all there is
    this.#state = this.#stoppedBy ? { kind: "stopped" } : { kind: "exited", exitCode };
    ended?.({
      ...{ id, command, exit: signal ?? exitCode, by: this.#stoppedBy ?? "itself", seen: this.#isSeen },
      output: this.#tail,
      ms: (clock?.now() ?? 0) - begunAt,
    });
  }

  /** A command whose end is not known has failed, and says so where its output is read. */
  async #exitOf(work: ShellWork): Promise<LeaderExit> {
    try {
      return await work.ended;
    } catch (error) {
      this.#add(`[it could not be followed to its end: ${error instanceof Error ? error.message : error}]\n`);
      return { exitCode: 1 };
    }
  }

  /** Somebody sees how it stands. */
  #show(): void {
    if (this.#isSeen || this.#state.kind === "running") return;
    this.#isSeen = true;
    this.#options.shown?.(this.#name.id);
  }

  #add(text: string): void {
    this.#tail = lastOf(this.#tail + text, TAIL_CHARACTERS);
    const unread = this.#unread + text;
    this.#unread = lastOf(unread, SHOWN_CHARACTERS);
    this.#leftOut += unread.length - this.#unread.length;
  }
}

/** A letter that is cut in two becomes a mark, so that the length stays what is said. */
const lastOf = (text: string, most: number): string =>
  text.length <= most ? text : text.slice(text.length - most).replace(/^[\udc00-\udfff]/, "\ufffd");
