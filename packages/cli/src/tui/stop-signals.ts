/** Ctrl-Z and `fg`: the program stops and continues like any other one of a shell.
 *  Invariant: the terminal is released before the process stops, and taken again when it continues; where no shell can
 *  continue it, the process does not stop.
 *  Elsewhere: signals that end the program (../main.ts). */

export type TerminalHold = {
  /** Restores the terminal for others. */
  readonly release: () => void;
  readonly take: () => void;
};

/** The kernel stops the process at once, so this time counts from when it continues. */
const CONTINUE_MS = 50;

export class StopSignals {
  readonly #hold: TerminalHold;
  #timer: NodeJS.Timeout | undefined;

  constructor(hold: TerminalHold) {
    this.#hold = hold;
  }

  listen(): void {
    process.on("SIGTSTP", this.#stopSelf);
    process.on("SIGCONT", this.#continued);
  }

  ignore(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    process.off("SIGTSTP", this.#stopSelf);
    process.off("SIGCONT", this.#continued);
  }

  /** Stops the whole job, as Ctrl-Z does: programs that started us wait for us. */
  suspend(): void {
    this.#stop(0);
  }

  readonly #stopSelf = (): void => this.#stop(process.pid);

  /** Somebody stopped us without asking (SIGSTOP): the screen may show anything. */
  readonly #continued = (): void => {
    if (this.#timer) return;
    this.#hold.release();
    this.#hold.take();
  };

  #stop(pid: number): void {
    if (this.#timer) return;
    this.#hold.release();
    process.off("SIGTSTP", this.#stopSelf); // so that the signal stops the process
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      process.on("SIGTSTP", this.#stopSelf);
      this.#hold.take();
    }, CONTINUE_MS);
    process.kill(pid, "SIGTSTP");
  }
}
