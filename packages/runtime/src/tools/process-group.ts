/** Are any processes of a command alive, and how are they ended together?
 *  Invariant: signals only go to the group. A zombie (dead, but not yet reaped) counts as dead. The leader's process id
 *  stays taken while any member lives, so no other process is ever signalled.
 *  Elsewhere: starting a command and reading its output (run-command.ts). */

import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import { setTimeout as after } from "node:timers/promises";

/** The time between SIGTERM and SIGKILL. */
const GRACE_MS = 1_000;
/** How long processes that the command started last may take to end by themselves. */
export const PATIENCE_MS = 300;

/** `exitCode` as a shell reports it; `signal` if one ended the process. */
export type LeaderExit = { readonly exitCode: number; readonly signal?: NodeJS.Signals };

type GroupKind = { readonly isGated: boolean; readonly isHeld?: boolean };

export class ProcessGroup {
  readonly pid: number;
  /** Resolves when the leader has ended. */
  readonly exited: Promise<LeaderExit>;
  /** File descriptor 3 of the command. */
  readonly #lifeline: Socket | undefined;
  readonly #isGated: boolean;
  readonly #isHeld: boolean;
  #hasLostShell = false;
  #grace: NodeJS.Timeout | undefined;

  /** `isGated`: the command waits on the lifeline for permission to begin; otherwise a watcher holds the lifeline.
   *  `isHeld`: the leader is a shell that waits for the command and returns its exit code. Default: the leader is
   *  the command. */
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
        const signal = by ?? this.#signalFromCode(code);
        if (code === null) this.#endWithShell();
        const exitCode = code ?? 128 + (constants.signals[signal ?? "SIGKILL"] ?? 0);
        done(signal === undefined ? { exitCode } : { exitCode, signal });
      });
    });
  }

  /** Was the shell that waits for the command ended by somebody else? */
  get hasLostShell(): boolean {
    return this.#hasLostShell;
  }

  get isStopping(): boolean {
    return this.#grace !== undefined;
  }

  /** Asks the group to end, then forces it after the grace period. */
  stop(): void {
    if (this.#grace !== undefined) return;
    if (this.#isGated) this.#lifeline?.destroy(); // a command that has not begun never will
    this.#signal("SIGTERM");
    this.#grace = setTimeout(() => this.#signal("SIGKILL"), GRACE_MS);
  }

  /** After the leader's exit: gives the others a moment, then kills them. True if any had to be killed. */
  async end(): Promise<boolean> {
    const hasEnded = await this.#isGoneWithin(this.isStopping ? GRACE_MS : PATIENCE_MS);
    if (hasEnded) return false;
    this.#signal("SIGKILL");
    await this.#isGoneWithin(GRACE_MS);
    return true;
  }

  /** Nothing is left to watch: releases the timer and the watcher. */
  release(): void {
    clearTimeout(this.#grace);
    if (this.#isGated) this.#lifeline?.destroy();
    else this.#lifeline?.end("done\n");
  }

  /** A shell that waits for a command reports the signal that ended it as an exit code. */
  #signalFromCode(code: number | null): NodeJS.Signals | undefined {
    if (code === null) return "SIGKILL";
    if (!this.#isHeld || !this.isStopping) return undefined;
    return (["SIGTERM", "SIGKILL"] as const).find((signal) => code === 128 + constants.signals[signal]);
  }

  #endWithShell(): void {
    if (!this.#isHeld || this.isStopping) return;
    this.#hasLostShell = true;
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
    return this.#signal(0) && (process.platform !== "linux" || hasLiveMember(this.pid));
  }

  #signal(signal: NodeJS.Signals | 0): boolean {
    try {
      return process.kill(-this.pid, signal);
    } catch {
      return false; // the group is gone
    }
  }
}

/** The kernel also counts zombies, until their parent has reaped them. */
const hasLiveMember = (group: number): boolean =>
  readdirSync("/proc").some((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const [state = "", , member] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return Number(member) === group && state !== "Z" && state !== "X";
    } catch {
      return false; // it ended in the meantime
    }
  });
