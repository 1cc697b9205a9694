/** `prefork` in tmux, which is where many people use it: keys are sent by name, screens are captured as text.
 *  Invariant: its server is private and ends with the test; a wait ends when the screen shows what is awaited.
 *  Elsewhere: the same without tmux (pty.ts). */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { compiled } from "../compiled.ts";
import { isShown, MAIN, PATIENCE_MS, type PtyOptions, type TerminalUser, type Wanted } from "./pty.ts";

const LOOK_MS = 50;

const NAMES: Readonly<Record<string, string>> = {
  ...{ enter: "Enter", escape: "Escape", tab: "Tab", up: "Up", down: "Down", end: "End", home: "Home" },
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

export class TmuxScreen implements TerminalUser, AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "t-"));
  readonly #env: NodeJS.ProcessEnv;

  constructor(argv: readonly string[], { cwd, env, columns = 80, rows = 24 }: PtyOptions) {
    this.#env = { ...compiled, LANG: "C.UTF-8", ...env };
    const command = [process.execPath, ...process.execArgv, MAIN, ...argv].map((word) => `'${word}'`).join(" ");
    const size = ["-x", String(columns), "-y", String(rows)];
    this.#tmux("-f", "/dev/null", "new-session", "-d", ...size, "-c", cwd, command);
  }

  #tmux(...args: readonly string[]): string {
    return execFileSync("tmux", ["-S", join(this.#folder, "s"), ...args], { env: this.#env, encoding: "utf8" });
  }

  shows(wanted: Wanted): Promise<string> {
    return this.#awaits(wanted, []);
  }

  prints(wanted: Wanted): Promise<string> {
    return this.#awaits(wanted, ["-S", "-"]);
  }

  async #awaits(wanted: Wanted, from: readonly string[]): Promise<string> {
    const until = performance.now() + PATIENCE_MS;
    for (;;) {
      const text = this.#tmux("capture-pane", "-p", ...from);
      if (isShown(text, wanted)) return text;
      if (performance.now() > until) throw new Error(`waited in vain for ${String(wanted)}; the screen:\n${text}`);
      await sleep(LOOK_MS);
    }
  }

  press(...keys: readonly string[]): void {
    for (const key of keys) this.#tmux("send-keys", NAMES[key] ?? key.replace(/^ctrl\+/, "C-"));
  }

  type(text: string): void {
    for (const part of text.split(/([\r\n])/).filter((piece) => piece !== ""))
      if (part === "\r") this.#tmux("send-keys", "Enter");
      else if (part === "\n") this.#tmux("send-keys", "C-j");
      else this.#tmux("send-keys", "-l", "--", part);
  }

  /** As if the window was closed. Waits for the program to end. */
  async [Symbol.asyncDispose](): Promise<void> {
    const pid = Number(this.#tmux("display-message", "-p", "#{pane_pid}"));
    this.#tmux("kill-server");
    const until = performance.now() + PATIENCE_MS;
    while (isAlive(pid)) {
      if (performance.now() > until) throw new Error(`prefork did not end when its window was closed: process ${pid}`);
      await sleep(LOOK_MS);
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
