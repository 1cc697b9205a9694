/** `prefork` in a real terminal device, with an emulator that shows what a person would see.
 *  Invariant: a wait ends when the screen shows what is awaited; if it never does, the error shows the last screen.
 *  Elsewhere: home folder, workspace and provider (../print: ground.ts). */

import { fileURLToPath } from "node:url";
import { type IPty, spawn } from "@lydell/node-pty";
import headless from "@xterm/headless";
import { compiled } from "../compiled.ts";

export const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** Long enough for a busy machine; a test that passes never waits for it. */
export const PATIENCE_MS = 30_000;

export type PtyOptions = {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly columns?: number; // default: 80
  readonly rows?: number; // default: 24
  /** As a job of a shell: if it stops, the shell says so, and continues it after an empty line. Default: without a shell. */
  readonly isJob?: boolean;
};

const JOB = 'set -m; "$@"; code=$?; if [ $code -lt 128 ]; then exit $code; fi; echo "stopped: $code"; read line; fg';

const KEYS: Readonly<Record<string, string>> = {
  ...{ enter: "\r", escape: "\u001b", tab: "\t", backspace: "\u007f", space: " " },
  ...{ up: "\u001b[A", down: "\u001b[B", right: "\u001b[C", left: "\u001b[D", home: "\u001b[H", end: "\u001b[F" },
  ...{ pageUp: "\u001b[5~", pageDown: "\u001b[6~", "shift+tab": "\u001b[Z", newline: "\n" },
};

const FRAME_START = "\u001b[?2026h";
const FRAME_END = "\u001b[?2026l";

export type Wanted = string | RegExp | ((screen: string) => boolean);

export const isShown = (screen: string, wanted: Wanted): boolean => {
  if (typeof wanted === "string") return screen.includes(wanted);
  return typeof wanted === "function" ? wanted(screen) : wanted.test(screen);
};

/** What a person at a terminal can do. */
export type TerminalUser = {
  /** Resolves when the screen shows it. */
  readonly shows: (wanted: Wanted) => Promise<string>;
  /** Resolves when it was printed, even if it has scrolled away since. */
  readonly prints: (wanted: Wanted) => Promise<string>;
  /** Presses keys by name. */
  readonly press: (...keys: readonly string[]) => void;
  readonly type: (text: string) => void;
};

export class TerminalScreen implements TerminalUser, AsyncDisposable {
  readonly #pty: IPty;
  readonly emulator: headless.Terminal;
  readonly #ended = Promise.withResolvers<number>();
  #exitCode: number | undefined;
  /** Everything that the program has written. */
  output = "";
  /** How much of it the emulator shows. */
  #shown = 0;
  #wake: () => void = () => undefined;

  constructor(argv: readonly string[], { cwd, env, columns = 80, rows = 24, isJob = false }: PtyOptions) {
    this.emulator = new headless.Terminal({ cols: columns, rows, allowProposedApi: true, scrollback: 5_000 });
    const command = [process.execPath, ...process.execArgv, MAIN, ...argv];
    const [program = "", ...args] = isJob ? ["bash", "-c", JOB, "bash", ...command] : command;
    this.#pty = spawn(program, args, {
      ...{ cols: columns, rows, cwd, name: env.TERM ?? "xterm-256color" },
      env: { ...compiled, TERM: "xterm-256color", LANG: "C.UTF-8", ...env },
    });
    // The emulator answers questions about the terminal, as a real one does.
    this.emulator.onData((answer) => this.#pty.write(answer));
    this.#pty.onData((data) => {
      this.output += data;
      const { length } = this.output;
      this.emulator.write(data, () => {
        this.#shown = length;
        this.#wake();
      });
    });
    this.#pty.onExit(({ exitCode, signal }) => {
      const code = signal ? 128 + signal : exitCode;
      // What was written last is shown before anybody looks.
      this.emulator.write("", () => {
        this.#exitCode = code;
        this.#ended.resolve(code);
        this.#wake();
      });
    });
  }

  get pid(): number {
    return this.#pty.pid;
  }

  /** The part of the output that the emulator shows. */
  get shownOutput(): string {
    return this.output.slice(0, this.#shown);
  }

  get ended(): Promise<number> {
    return this.#ended.promise;
  }

  /** The visible lines, without trailing white space. */
  lines(): readonly string[] {
    const { active } = this.emulator.buffer;
    return this.#linesFrom(active.baseY, this.emulator.rows);
  }

  /** What has scrolled away, and the visible lines. */
  all(): string {
    const { active } = this.emulator.buffer;
    return this.#linesFrom(0, active.baseY + this.emulator.rows).join("\n");
  }

  text(): string {
    return this.lines().join("\n");
  }

  #linesFrom(first: number, count: number): readonly string[] {
    const { active } = this.emulator.buffer;
    return Array.from({ length: count }, (_, index) => active.getLine(first + index)?.translateToString(true) ?? "");
  }

  /** Resolves when the screen shows it. */
  shows(wanted: Wanted): Promise<string> {
    return this.#awaits(wanted, () => this.text());
  }

  /** Resolves when it was printed, even if it has scrolled away since. */
  prints(wanted: Wanted): Promise<string> {
    return this.#awaits(wanted, () => this.all());
  }

  /** Resolves when the program has sent it to the terminal, visible or not. */
  writes(sequence: string): Promise<string> {
    return this.#awaits(sequence, () => this.output);
  }

  async #awaits(wanted: Wanted, look: () => string): Promise<string> {
    const until = performance.now() + PATIENCE_MS;
    while (!this.#isWholeFrame() || !isShown(look(), wanted)) {
      if (this.#exitCode !== undefined || performance.now() > until)
        throw new Error(
          `${this.#exitCode === undefined ? "waited in vain" : `ended with ${this.#exitCode}`} for ${String(wanted)}; the screen:\n${this.text()}`,
        );
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 500);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return look();
  }

  /** A frame may arrive in pieces. */
  #isWholeFrame(): boolean {
    const [start, end] = [FRAME_START, FRAME_END].map((mark) => this.output.lastIndexOf(mark, this.#shown));
    return (start ?? 0) <= (end ?? 0);
  }

  /** Resolves when nothing runs any more. */
  idle(): Promise<string> {
    return this.shows((text) => !/Esc stops it|Opening the session/.test(text));
  }

  /** Presses keys by name, or types a text. */
  press(...keys: readonly string[]): void {
    for (const key of keys) this.#pty.write(bytesOf(key));
  }

  type(text: string): void {
    this.#pty.write(text.replaceAll("\n", "\n"));
  }

  /** As a terminal sends what was pasted. */
  paste(text: string): void {
    this.#pty.write(`\u001b[200~${text}\u001b[201~`);
  }

  resize(columns: number, rows: number): void {
    this.emulator.resize(columns, rows);
    this.#pty.resize(columns, rows);
  }

  kill(signal: NodeJS.Signals): void {
    process.kill(this.#pty.pid, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#exitCode === undefined) this.kill("SIGKILL");
    await this.ended;
    this.emulator.dispose();
  }
}

const bytesOf = (key: string): string => {
  const named = KEYS[key];
  if (named !== undefined) return named;
  const control = /^ctrl\+([a-z])$/.exec(key)?.[1];
  return control === undefined ? key : String.fromCharCode(control.charCodeAt(0) - 96);
};
