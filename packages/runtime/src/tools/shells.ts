/** Commands that run on while the conversation does.
 *  Invariant: whoever owns this owns its shells: none outlives it, none is seen by another session or fork. Output that
 *  nobody has looked at yet is bounded in memory and whole in a file.
 *  Elsewhere: running a command (run-command.ts), looking and stopping (task-output.ts, task-stop.ts). */

import { StringDecoder } from "node:string_decoder";
import type { Refused } from "../paths/index.ts";
import type { Ids } from "../ports.ts";
import type { KeepStream, KeptFile } from "./keep.ts";
import { SHOWN_CHARACTERS, whereKept } from "./output-window.ts";

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

export type ShellsOptions = {
  readonly ids: Ids;
  readonly keepStream: KeepStream;
  /** Told of every shell that ends by itself. */
  readonly ended?: (shell: ShellFacts) => void;
  readonly most?: number; // running at once; default: 20
};

/** Something that prints and ends. */
export type ShellWork = {
  readonly ok: true;
  readonly ended: Promise<{ readonly exitCode: number }>;
  readonly stop: () => void;
};

export type ShellStart = {
  readonly command: string;
  readonly begin: (output: (chunk: Buffer) => Promise<void>) => Promise<ShellWork | Refused>;
};

export class Shells implements AsyncDisposable {
  readonly #options: ShellsOptions;
  readonly #shells = new Map<string, Shell>();
  #isClosed = false;

  constructor(options: ShellsOptions) {
    this.#options = options;
  }

  async start({ command, begin }: ShellStart): Promise<{ readonly ok: true; readonly shell: ShellFacts } | Refused> {
    const { ids, keepStream, ended, most = 20 } = this.#options;
    if (this.#isClosed) return { ok: false, reason: "the session is ending" };
    if (this.list().filter(({ state }) => state.kind === "running").length >= most)
      return { ok: false, reason: `${most} shells are running already; stop one with TaskStop` };
    const id = ids.next("shell");
    const shell = new Shell({ id, command, file: await keepStream(id) });
    const begun = await shell.begin(begin, ended);
    if (!begun.ok) return begun;
    this.#shells.set(id, shell);
    if (this.#isClosed) await shell.stop(); // the owner ended while it was started
    return { ok: true, shell: shell.facts };
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
    return (await this.#shells.get(id)?.stop()) ?? false;
  }

  async endAll(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#shells.values()].map((shell) => shell.stop()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endAll();
  }
}

class Shell {
  readonly #id: string;
  readonly #command: string;
  readonly #file: KeptFile;
  readonly #decoder = new StringDecoder("utf8");
  #unread = "";
  #leftOut = 0;
  #state: ShellState = { kind: "running" };
  #isStopped = false;
  #work: ShellWork | undefined;
  ended: Promise<void> = Promise.resolve();

  constructor({ id, command, file }: { readonly id: string; readonly command: string; readonly file: KeptFile }) {
    this.#id = id;
    this.#command = command;
    this.#file = file;
  }

  get facts(): ShellFacts {
    return { id: this.#id, command: this.#command, file: this.#file.path, state: this.#state };
  }

  async begin(begin: ShellStart["begin"], told: ShellsOptions["ended"]): Promise<{ readonly ok: true } | Refused> {
    const work = await begin((chunk) => this.#take(chunk));
    if (!work.ok) {
      await this.#file.close();
      return work;
    }
    this.#work = work;
    this.ended = this.#follow(work, told);
    return { ok: true };
  }

  look(): ShellLook {
    const found = { ...this.facts, output: this.#unread, leftOut: this.#leftOut, kept: whereKept(this.#file) };
    this.#unread = "";
    this.#leftOut = 0;
    return found;
  }

  async stop(): Promise<boolean> {
    if (this.#state.kind !== "running") return false;
    this.#isStopped = true;
    this.#work?.stop();
    await this.ended;
    return true;
  }

  async #follow(work: ShellWork, told: ShellsOptions["ended"]): Promise<void> {
    const { exitCode } = await work.ended;
    this.#add(this.#decoder.end());
    await this.#file.close();
    this.#state = this.#isStopped ? { kind: "stopped" } : { kind: "exited", exitCode };
    if (!this.#isStopped) told?.(this.facts);
  }

  async #take(chunk: Buffer): Promise<void> {
    this.#add(this.#decoder.write(chunk));
    await this.#file.write(chunk);
  }

  #add(text: string): void {
    this.#unread += text;
    const over = this.#unread.length - SHOWN_CHARACTERS;
    if (over <= 0) return;
    this.#leftOut += over;
    this.#unread = this.#unread.slice(over).replace(/^[\udc00-\udfff]/, "\ufffd");
  }
}
