/** A terminal in this process: what a Screen writes goes to an emulator, and a test types into it.
 *  Invariant: nothing depends on time: keys arrive at once, and a frame is drawn when the test asks for it.
 *  Elsewhere: the whole program in a real terminal device (pty.ts). */

import type { Terminal } from "@earendil-works/pi-tui";
import headless from "@xterm/headless";

export class EmulatedTerminal implements Terminal {
  readonly emulator: headless.Terminal;
  readonly kittyProtocolActive = false;
  /** Types what a terminal would send. */
  input: (data: string) => void = () => undefined;
  #onResize: () => void = () => undefined;
  /** Everything that was written. */
  written = "";
  /** Called with what was written; may answer as a terminal does, by `input`. */
  onWrite: (data: string) => void = () => undefined;
  #settling: Promise<void> = Promise.resolve();

  constructor(cols = 80, rows = 24) {
    this.emulator = new headless.Terminal({ cols, rows, allowProposedApi: true, scrollback: 10_000 });
  }

  get columns(): number {
    return this.emulator.cols;
  }

  get rows(): number {
    return this.emulator.rows;
  }

  start(onInput: (data: string) => void, onResize: () => void): void {
    this.input = onInput;
    this.#onResize = onResize;
  }

  write(data: string): void {
    const kept = data.replaceAll("\u001b[3J", "");
    this.written += kept;
    this.#settling = new Promise((resolve) => this.emulator.write(kept, resolve));
    this.onWrite(data);
  }

  resize(cols: number, rows: number): void {
    this.emulator.resize(cols, rows);
    this.#onResize();
  }

  /** Resolves when everything that was written is on the screen. */
  settled(): Promise<void> {
    return this.#settling;
  }

  /** The visible lines, without trailing white space. */
  lines(): readonly string[] {
    const { active } = this.emulator.buffer;
    return Array.from({ length: this.rows }, (_, index) =>
      (active.getLine(active.baseY + index)?.translateToString(true) ?? "").trimEnd(),
    );
  }

  stop(): void {}
  async drainInput(): Promise<void> {}
  moveBy(): void {}
  hideCursor(): void {}
  showCursor(): void {}
  clearLine(): void {}
  clearFromCursor(): void {}
  clearScreen(): void {}
  setTitle(): void {}
  setProgress(): void {}
}
