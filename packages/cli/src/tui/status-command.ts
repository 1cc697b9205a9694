/** The user's own status line: a command that gets facts as JSON on its standard input and prints a line.
 *  Invariant: runs at most once a second, and one at a time; after two seconds it is ended with everything it started;
 *  provider keys are not in its environment; of its output only the first line is used, without control sequences.
 *  Elsewhere: when it runs (state: reduce.ts), where the line is shown (views: status.ts). */

import { spawn } from "node:child_process";
import { stripVTControlCharacters } from "node:util";
import { toolEnvironment } from "@prefork/runtime/internal";
import { type State, safeLine } from "./state/index.ts";

const MIN_INTERVAL_MS = 1_000;
const TIMEOUT_MS = 2_000;
const MAX_OUTPUT = 10_000;

/** What the command is told. */
export type StatusFacts = {
  readonly session: string | undefined;
  readonly model: string;
  readonly mode: string;
  readonly cwd: string;
  readonly context: { readonly used: number; readonly window: number | undefined };
  readonly cost: { readonly session: number; readonly today: number | undefined };
};

export const statusFacts = (state: State): StatusFacts => ({
  session: state.session,
  model: state.model,
  mode: state.mode,
  cwd: state.cwd,
  context: { used: state.cache?.prompt ?? 0, window: state.window },
  cost: { session: state.usd, today: state.todayUsd },
});

export type StatusCommandOptions = {
  /** A list runs without a shell; a text is run by sh. */
  readonly command: string | readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly facts: () => StatusFacts;
  readonly onLine: (line: string) => void;
  /** Called with the first failure only. */
  readonly onFailure: (reason: string) => void;
};

export class StatusCommand {
  readonly #options: StatusCommandOptions;
  #state: "idle" | "busy" | "again" = "idle";
  #hasFailed = false;
  #end: () => void = () => undefined;
  #isStopped = false;

  constructor(options: StatusCommandOptions) {
    this.#options = options;
  }

  /** Runs it now, or once more when the current run and its second are over. */
  request(): void {
    if (this.#isStopped || this.#state !== "idle") {
      this.#state = this.#state === "idle" ? "idle" : "again";
      return;
    }
    this.#state = "busy";
    const pause = new Promise<void>((resolve) => setTimeout(resolve, MIN_INTERVAL_MS).unref());
    void Promise.all([this.#run(), pause]).then(() => {
      const isWanted = this.#state === "again";
      this.#state = "idle";
      if (isWanted) this.request();
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#end();
  }

  async #run(): Promise<void> {
    const { command, onLine, onFailure } = this.#options;
    const result = await this.#output(typeof command === "string" ? ["/bin/sh", "-c", command] : command);
    if (this.#isStopped) return;
    if ("line" in result) return onLine(result.line);
    if (!this.#hasFailed) onFailure(result.failure);
    this.#hasFailed = true;
  }

  #output([program = "", ...args]: readonly string[]): Promise<
    { readonly line: string } | { readonly failure: string }
  > {
    const { env, facts } = this.#options;
    const told = facts();
    return new Promise((resolve) => {
      // A group of its own, so that everything it starts can be ended.
      const child = spawn(program, args, {
        ...{ cwd: told.cwd, env: toolEnvironment(env), detached: true },
        stdio: ["pipe", "pipe", "ignore"],
      });
      const late = { is: false };
      this.#end = () => {
        if (child.pid === undefined) return;
        try {
          process.kill(-child.pid, "SIGKILL");
        } catch {
          // it has ended already
        }
      };
      const timer = setTimeout(() => {
        late.is = true;
        this.#end();
      }, TIMEOUT_MS);
      const output = { text: "" };
      child.stdout.on("data", (chunk: Buffer) => {
        if (output.text.length < MAX_OUTPUT) output.text += chunk.toString("utf8");
      });
      child.stdin.on("error", () => undefined); // it need not read what it is told
      child.stdin.end(`${JSON.stringify(told)}\n`);
      child.on("error", (error) => resolve({ failure: `does not start: ${error.message}` }));
      child.on("exit", () => this.#end()); // a program that it left behind would hold its output open
      child.on("close", (code) => {
        clearTimeout(timer);
        this.#end = () => undefined;
        if (late.is) resolve({ failure: "took longer than 2 s" });
        else if (code !== 0) resolve({ failure: `ended with ${code ?? "a signal"}` });
        else resolve({ line: firstLine(output.text) });
      });
    });
  }
}

const firstLine = (text: string): string => safeLine(stripVTControlCharacters(text).split("\n")[0] ?? "");
