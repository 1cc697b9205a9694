/** The processes of one command, as one thing: are some alive, and how do they end?
 *  Invariant: signals go to the group and to nothing else; a process that is dead and only not yet collected counts as
 *  dead; the leader's number stays taken while any member is there, so no stranger is ever meant.
 *  Elsewhere: starting it and reading what it prints (run-command.ts). */

import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import { setTimeout as after } from "node:timers/promises";

/** Between asking a group to end and making it. */
const GRACE_MS = 1_000;
/** How long what the command started last may take to end by itself. */
export const PATIENCE_MS = 300;

/** `exitCode` as a shell would tell it; `signal` where it was one that ended it. */
export type LeaderExit = { readonly exitCode: number; readonly signal?: NodeJS.Signals };

type GroupKind = { readonly isGated: boolean; readonly isHeld?: boolean };

export class ProcessGroup {
  readonly pid: number;
  /** Resolves when the leader has ended. */
  readonly exited: Promise<LeaderExit>;
  /** Descriptor 3 of the command. */
  readonly #lifeline: Socket | undefined;
  readonly #isGated: boolean;
  readonly #isHeld: boolean;
  #hasLostHolder = false;
  #grace: NodeJS.Timeout | undefined;

  /** `isGated`: on the lifeline the command asks for a word before it begins; else it is a watcher's.
   *  `isHeld`: the leader is a shell that waits for the command and tells its exit code; default: it is the command. */
  constructor(child: ChildProcess, { isGated, isHeld = false }: GroupKind) {
    this.pid = child.pid ?? 0;
    this.#isGated = isGated;
    this.#isHeld = isHeld;
    const lifeline = child.stdio[3];
    this.#lifeline = lifeline instanceof Socket ? lifeline : undefined;
    this.#lifeline?.on("error", () => {}); // the other side may be gone before us
    if (isGated) this.#lifeline?.once("data", () => void (this.isStopping || this.#lifeline?.write("go\n")));
    this.exited = new Promise((done) => {
      child.once("exit", (code, by) => {
        const signal = by ?? this.#toldSignal(code);
        if (code === null) this.#endWithHolder();
        const exitCode = code ?? 128 + (constants.signals[signal ?? "SIGKILL"] ?? 0);
        done(signal === undefined ? { exitCode } : { exitCode, signal });
      });
    });
  }

  /** Was the shell that holds the command ended, and not by us? */
  get hasLostHolder(): boolean {
    return this.#hasLostHolder;
  }

  get isStopping(): boolean {
    return this.#grace !== undefined;
  }

  /** Asks, and after a while does not ask any more. */
  stop(): void {
    if (this.#grace !== undefined) return;
    if (this.#isGated) this.#lifeline?.destroy(); // what has not begun never will
    this.#signal("SIGTERM");
    this.#grace = setTimeout(() => this.#signal("SIGKILL"), GRACE_MS);
  }

  /** After the leader's exit: gives the others a moment, then ends them. True where some had to be ended. */
  async end(): Promise<boolean> {
    const hasEnded = await this.#isGoneWithin(this.isStopping ? GRACE_MS : PATIENCE_MS);
    if (hasEnded) return false;
    this.#signal("SIGKILL");
    await this.#isGoneWithin(GRACE_MS);
    return true;
  }

  /** Nothing is left to watch: lets the timer and the watcher go. */
  release(): void {
    clearTimeout(this.#grace);
    if (this.#isGated) this.#lifeline?.destroy();
    else this.#lifeline?.end("done\n");
  }

  /** A shell that holds a command tells the signal that ended it as a code. */
  #toldSignal(code: number | null): NodeJS.Signals | undefined {
    if (code === null) return "SIGKILL";
    if (!this.#isHeld || !this.isStopping) return undefined;
    return (["SIGTERM", "SIGKILL"] as const).find((signal) => code === 128 + constants.signals[signal]);
  }

  #endWithHolder(): void {
    if (!this.#isHeld || this.isStopping) return;
    this.#hasLostHolder = true;
    this.#signal("SIGKILL");
  }

  async #isGoneWithin(patienceMs: number): Promise<boolean> {
    for (let waited = 0, step = 5; waited < patienceMs; waited += step, step = Math.min(2 * step, 80)) {
      if (!this.#isAlive()) return true;
      await after(step);
    }
    return !this.#isAlive();
  }

  #isAlive(): boolean {
    return this.#signal(0) && (process.platform !== "linux" || hasLiving(this.pid));
  }

  #signal(signal: NodeJS.Signals | 0): boolean {
    try {
      return process.kill(-this.pid, signal);
    } catch {
      return false; // the group is gone
    }
  }
}

/** The kernel answers for the dead as well until their parent has collected them. */
const hasLiving = (group: number): boolean =>
  readdirSync("/proc").some((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const [state = "", , member] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return Number(member) === group && state !== "Z" && state !== "X";
    } catch {
      return false; // it ended meanwhile
    }
  });
