/** `prefork`: the terminal, from its first frame to its last.
 *  Invariant: the input line is drawn before the agent is loaded, and what is typed meanwhile is kept; whatever ends the
 *  program, the terminal is restored first; an unexpected error names the file that describes it.
 *  Elsewhere: the state (state), the screen (screen.ts), the session of this process (local-session.ts) or of another
 *  one (attached-session.ts). */

import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Io } from "../io.ts";
import type { AttachRequest } from "./attached-session.ts";
import { Completions } from "./completion.ts";
import type { CapturedRun, SwitchTarget, TerminalContext } from "./context.ts";
import { runEffect } from "./effects.ts";
import type { OpenRequest } from "./local-session.ts";
import { PersonalSettings } from "./personal-settings.ts";
import { PromptHistory } from "./prompt-history.ts";
import { Screen } from "./screen.ts";
import { type Action, initialState, reduce, type State, safeLine, safeText } from "./state/index.ts";
import type { Attachment, OpenedSession, TerminalSession } from "./terminal-session.ts";
import { chooseTheme } from "./views/index.ts";

export type TerminalRequest = {
  readonly flags: OpenRequest["flags"];
  /** A session of another process. Default: one is opened in this process, by the flags. */
  readonly attach?: AttachRequest;
  /** Sent as soon as the session is open. */
  readonly prompt?: string;
  /** Runs a prefork command. */
  readonly run: (argv: readonly string[], io: Omit<Io, "exitWith">) => Promise<number>;
};

const TICK_MS = 1_000;

export const openTerminal = async (request: TerminalRequest, io: Io): Promise<number> => {
  const terminal = new TerminalProgram(request, io);
  return terminal.run();
};

class TerminalProgram {
  readonly #request: TerminalRequest;
  readonly #io: Io;
  readonly #screen: Screen;
  readonly #history: PromptHistory;
  #state: State;
  #session: Promise<TerminalSession>;
  #setSession: (session: TerminalSession) => void = () => undefined;
  #failSession: (error: unknown) => void = () => undefined;
  readonly #startedAt = Date.now();
  readonly #ended = Promise.withResolvers<number>();
  #opening: Promise<void> = Promise.resolve();
  #opened: OpenedSession | undefined;
  /** Why an attached session is over. */
  #farewell: string | undefined;
  #isEnding = false;
  #working: AbortController | undefined;
  readonly #personal: PersonalSettings;

  constructor(request: TerminalRequest, io: Io) {
    this.#request = request;
    this.#io = io;
    const { columns = 80, rows = 24 } = process.stdout;
    this.#state = initialState({ cwd: process.cwd(), columns, rows, now: Date.now() });
    this.#session = this.#expectSession();
    this.#history = new PromptHistory(io.env.HOME || homedir(), process.cwd());
    this.#screen = new Screen({
      theme: chooseTheme("system", { hasColour: io.colour, env: io.env }),
      completions: new Completions({ io, state: () => this.#state }),
      state: (width, height) => this.#sized(width, height),
      onKey: (key, input) => this.dispatch({ type: "key", key, input, at: Date.now() }) ?? false,
      onSubmit: (text) => this.dispatch({ type: "submitted", text, at: Date.now() }),
    });
    this.#personal = new PersonalSettings({
      ...{ io, screen: this.#screen, state: () => this.#state },
      dispatch: (action) => this.dispatch(action),
    });
  }

  async run(): Promise<number> {
    const restore = (): void => this.#screen.stop();
    const crashed = (error: unknown): void => void this.#crash(error);
    const leave = (): void => this.#quit(this.#io.interruptedCode?.() ?? 130);
    process.once("exit", restore);
    process.once("uncaughtException", crashed);
    process.once("unhandledRejection", crashed);
    this.#io.signal.addEventListener("abort", leave, { once: true });
    this.#screen.start();
    const ticker = setInterval(() => this.#tick(), TICK_MS);
    if (this.#request.prompt !== undefined)
      this.dispatch({ type: "submitted", text: this.#request.prompt, at: Date.now() });
    this.#opening = this.#open();
    void this.#personal.apply();
    void this.#history.load().then((prompts) => {
      for (const prompt of prompts) this.#screen.input.addToHistory(prompt);
    });
    try {
      return await this.#ended.promise;
    } finally {
      clearInterval(ticker);
      this.#personal.stop();
      this.#screen.stop();
      await this.#close();
      process.off("exit", restore);
      process.off("uncaughtException", crashed);
      process.off("unhandledRejection", crashed);
      this.#io.signal.removeEventListener("abort", leave);
    }
  }

  /** Returns whether a key was used. */
  dispatch(action: Action): boolean | undefined {
    const step = reduce(this.#state, action);
    this.#state = step.state;
    const isPast = action.type === "event" && action.event.at < this.#startedAt;
    for (const effect of step.effects) if (!isPast || effect.kind !== "notify") void runEffect(effect, this.#context);
    this.#screen.draw();
    return step.isHandled;
  }

  #sized(columns: number, rows: number): State {
    if (this.#state.columns !== columns || this.#state.rows !== rows)
      this.#state = reduce(this.#state, { type: "resized", columns, rows }).state;
    return this.#state;
  }

  /** Seconds are shown only while something runs or expires. */
  #tick(): void {
    const { runningSince, cache, children, isOpening, work, now } = this.#state;
    const isCounting =
      isOpening ||
      work !== undefined ||
      runningSince !== undefined ||
      (cache?.warmUntil ?? 0) + TICK_MS > now ||
      [...children.values()].some(({ state }) => state !== "ended");
    if (isCounting) this.dispatch({ type: "ticked", at: Date.now() });
  }

  // --- the session -------------------------------------------------------------------------------------------------------

  #expectSession(): Promise<TerminalSession> {
    const { promise, resolve, reject } = Promise.withResolvers<TerminalSession>();
    promise.catch(() => undefined); // shown when it fails; those who wait for it get it too
    this.#setSession = resolve;
    this.#failSession = reject;
    return promise;
  }

  /** The first session. Without it there is nothing to talk to, so a failure ends the program. */
  async #open(): Promise<void> {
    try {
      const { attach, flags } = this.#request;
      const session = attach ? await openAttached(attach) : await this.#openWith(flags);
      this.#begin(session, session.earlier);
    } catch (error) {
      this.#failSession(error);
      this.#ended.reject(error);
    }
  }

  async #openWith(flags: OpenRequest["flags"]): Promise<OpenedSession> {
    const { openLocalSession } = await import("./local-session.ts");
    return openLocalSession({ flags }, this.#io);
  }

  /** `earlier`: what to show of a resumed conversation. */
  #begin(session: OpenedSession, earlier?: OpenedSession["earlier"]): void {
    for (const text of session.notices) this.#print("info", text);
    if (earlier) this.dispatch({ type: "restored", ...earlier });
    if (session.window !== undefined) this.dispatch({ type: "learned", facts: { window: session.window } });
    if (session.attachment) this.#showAttachment(session.attachment);
    this.#opened = session;
    this.#setSession(session);
    void this.#follow(session);
  }

  async #follow({ control, attachment }: OpenedSession): Promise<void> {
    if (attachment) {
      for await (const event of attachment.events) this.dispatch({ type: "event", event });
      return;
    }
    using events = control.subscribe(0);
    for await (const event of events) this.dispatch({ type: "event", event });
  }

  #showAttachment({ session, cwd, model, pid, isReadOnly, task, over }: Attachment): void {
    const named = { session, cwd: safeLine(cwd), model: safeLine(model) };
    this.dispatch({ type: "learned", facts: { ...named, isOpening: false, attached: { pid, isReadOnly } } });
    this.dispatch({ type: "ticked", at: Date.now() });
    if (task !== undefined)
      this.dispatch({ type: "pageOpened", page: { kind: "conversation", agent: task, scroll: 0, isExpanded: false } });
    void over.then(({ code, text }) => {
      this.#farewell = text;
      this.#quit(code);
    });
  }

  /** If the other session cannot be opened, this one is opened again. */
  async #switch(to: SwitchTarget): Promise<void> {
    if (this.#state.attached)
      throw new Error("This terminal is attached to a session of another process. For another session: prefork attach");
    await this.#opening;
    const here = this.#opened?.control.session;
    await this.#opened?.close();
    this.#opened = undefined;
    this.#session = this.#expectSession();
    const opening = this.#openInstead(to, here);
    this.#opening = opening.catch(() => undefined);
    await opening;
  }

  async #openInstead(to: SwitchTarget, here: string | undefined): Promise<void> {
    const isOther = to.id === undefined || to.id !== here;
    try {
      const session = await this.#openWith(switchedFlags(this.#request.flags, to));
      if (isOther) this.dispatch({ type: "cleared" });
      this.#begin(session, isOther ? session.earlier : undefined);
    } catch (error) {
      await this.#reopen(here);
      throw error;
    }
  }

  async #reopen(id: string | undefined): Promise<void> {
    try {
      this.#begin(await this.#openWith(switchedFlags(this.#request.flags, id === undefined ? {} : { id })));
    } catch (error) {
      this.#failSession(error);
      this.#print("error", "No session is open any more. Ctrl-C twice leaves; prefork --continue opens it again.");
    }
  }

  #print(level: "info" | "warn" | "error", text: string): void {
    this.dispatch({ type: "printed", block: { kind: "notice", level, text: safeText(text) } });
  }

  // --- what effects may use ----------------------------------------------------------------------------------------------

  get #context(): TerminalContext {
    return {
      io: this.#io,
      settings: this.#personal.settings,
      state: () => this.#state,
      dispatch: (action) => this.dispatch(action),
      screen: this.#screen,
      session: () => this.#session,
      switchSession: (to = {}) => this.#switch(to),
      remember: (prompt) => {
        this.#screen.input.addToHistory(prompt);
        void this.#history.add(prompt);
      },
      runCli: (argv) => this.#runCli(argv),
      lend: (work) => this.#lend(work),
      work: (label, run) => this.#work(label, run),
      cancel: () => this.#working?.abort(),
      writeSequence: (sequence) => void process.stdout.write(sequence),
      suspend: () => this.#suspend(),
      notify: () => undefined,
      refresh: (isMoneyToo) => this.#personal.refresh(isMoneyToo),
      setTheme: (name) => this.#screen.setTheme(chooseTheme(name, { hasColour: this.#io.colour, env: this.#io.env })),
      explain: {
        family: async (family) => (await import("./explain-figures.ts")).familyFigures(family, this.#state, this.#io),
        lastMiss: async (agent) => (await import("./explain-figures.ts")).lastMiss(agent, this.#state, this.#io),
      },
      quit: () => this.#quit(0),
    };
  }

  async #runCli(argv: readonly string[]): Promise<CapturedRun> {
    const parts: string[] = [];
    const write = (text: string): void => void parts.push(text);
    const code = await this.#request.run(argv, {
      ...this.#io,
      out: write,
      err: write,
      colour: false,
      isTerminal: false,
      inputIsTerminal: false,
      input: async function* () {},
    });
    return { code, text: parts.join("") };
  }

  async #work<T>(label: string, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#working) throw new Error("Another command is still working. Esc stops it.");
    const working = new AbortController();
    this.#working = working;
    this.dispatch({ type: "workChanged", label: safeLine(label), at: Date.now() });
    const cancelled = new Promise<never>((_resolve, reject) => {
      working.signal.addEventListener("abort", () => reject(new Error("Cancelled.")), { once: true });
    });
    try {
      return await Promise.race([run(AbortSignal.any([working.signal, this.#io.signal])), cancelled]);
    } finally {
      this.#working = undefined;
      this.dispatch({ type: "workChanged", at: Date.now() });
    }
  }

  async #lend<T>(work: () => Promise<T>): Promise<T> {
    this.#screen.stop();
    try {
      return await work();
    } finally {
      this.#screen.start();
      this.#screen.redraw();
    }
  }

  #suspend(): void {
    this.#screen.stop();
    process.once("SIGCONT", () => {
      this.#screen.start();
      this.#screen.redraw();
    });
    process.kill(process.pid, "SIGTSTP");
  }

  // --- the end -----------------------------------------------------------------------------------------------------------

  #quit(code: number): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#ended.resolve(code);
  }

  async #close(): Promise<void> {
    const { session } = this.#state;
    await this.#opening; // a session that is still being opened would be left behind
    await this.#opened?.close();
    if (session !== undefined && this.#state.attached)
      return this.#io.out(`${this.#farewell ?? `Detached. Session ${session} continues: prefork attach ${session}`}\n`);
    if (session !== undefined && this.#state.main.dropped + this.#state.main.done.length > 0)
      this.#io.out(`To continue this session: prefork --resume ${safeLine(session)}\n`);
  }

  async #crash(error: unknown): Promise<void> {
    this.#screen.stop();
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const folder = join(this.#io.env.HOME || homedir(), ".local", "state", "prefork", "crashes");
    const file = join(folder, `${new Date().toISOString().replaceAll(":", "-")}.txt`);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await writeFile(file, text, { mode: 0o600 });
      this.#io.err(`prefork: an unexpected error ended the terminal; it is described in ${file}\n`);
    } catch {
      this.#io.err(`prefork: an unexpected error ended the terminal: ${safeLine(text)}\n`);
    }
    this.#quit(1);
  }
}

const openAttached = async (request: AttachRequest): Promise<OpenedSession> =>
  (await import("./attached-session.ts")).openAttachedSession(request);

/** The flags of the first session, without those that chose which session it was. A resumed session keeps its own model. */
const switchedFlags = (
  { continue: _continue, resume: _resume, model: first, ...flags }: OpenRequest["flags"],
  { id, model = id === undefined ? first : undefined }: SwitchTarget,
): OpenRequest["flags"] => ({
  ...flags,
  ...(id === undefined ? {} : { resume: id }),
  ...(model === undefined ? {} : { model }),
});
