/** `prefork`: the terminal, from its first frame to its last.
 *  Invariant: the input line is drawn before the agent is loaded, and what is typed meanwhile is kept; whatever ends the
 *  program, the terminal is restored first; an unexpected error names the file that describes it.
 *  Elsewhere: the state (state), the screen (screen.ts), the session of this process (local-session.ts) or of another
 *  one (attached-session.ts). */

import type { Io } from "../io.ts";
import type { AttachRequest } from "./attached-session.ts";
import { chooseView } from "./choose-view.ts";
import type { CapturedRun, SwitchTarget, TerminalContext } from "./context.ts";
import { logCrash } from "./crash-log.ts";
import { runEffect } from "./effects.ts";
import type { OpenedHere } from "./first-run.ts";
import type { OpenRequest } from "./local-session.ts";
import { PersonalSettings } from "./personal-settings.ts";
import { PromptHistory } from "./prompt-history.ts";
import {
  type Action,
  initialState,
  isMergeable,
  reduce,
  type State,
  safeLine,
  safeText,
  type TrustChoice,
  type TrustQuestion,
} from "./state/index.ts";
import { StopSignals } from "./stop-signals.ts";
import type { Attachment, OpenedSession, TerminalSession } from "./terminal-session.ts";
import type { TerminalView, ViewFactory } from "./terminal-view.ts";

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
/** How long the session may take to close after a crash. */
const CRASH_MS = 3_000;
/** How long a cancelled command may take to end by itself. */
const CANCEL_MS = 1_000;

export const openTerminal = async (request: TerminalRequest, io: Io): Promise<number> => {
  const terminal = new TerminalProgram(request, io, await chooseView(request.flags, io));
  return terminal.run();
};

class TerminalProgram {
  readonly #request: TerminalRequest;
  readonly #io: Io;
  readonly #screen: TerminalView;
  readonly #stops: StopSignals;
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
  #hasCrashed = false;
  #answerTrust: (choice: TrustChoice) => void = () => undefined;
  #chooseFirst: (id: string | undefined) => void = () => undefined;

  constructor(request: TerminalRequest, io: Io, view: ViewFactory) {
    this.#request = request;
    this.#io = io;
    const { columns = 80, rows = 24 } = process.stdout;
    this.#state = initialState({ cwd: process.cwd(), columns, rows, now: Date.now() });
    this.#session = this.#expectSession();
    this.#history = new PromptHistory(io.env, process.cwd());
    this.#screen = view({
      io,
      state: (width, height) => this.#sized(width, height),
      onKey: (key, input) => this.dispatch({ type: "key", key, input, at: Date.now() }) ?? false,
      onSubmit: (text) => this.dispatch({ type: "submitted", text, at: Date.now() }),
      onScrollLimit: (limit) => this.dispatch({ type: "scrollLimited", limit }),
      onHint: (text) => void this.dispatch({ type: "hinted", text }),
      onEnd: () => this.#quit(0),
    });
    this.#stops = new StopSignals({
      release: () => this.#screen.stop(),
      take: () => {
        if (this.#isEnding) return;
        this.#screen.start();
        this.#screen.redraw();
      },
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
    process.on("uncaughtException", crashed);
    process.on("unhandledRejection", crashed);
    this.#stops.listen();
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
      this.#stops.ignore();
      this.#screen.finish();
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

  #sized(columns = this.#state.columns, rows = this.#state.rows): State {
    if (this.#state.columns !== columns || this.#state.rows !== rows)
      this.#state = reduce(this.#state, { type: "resized", columns, rows }).state;
    return this.#state;
  }

  /** Seconds are shown only while something runs or expires. */
  #tick(): void {
    const { runningSince, cache, children, isOpening, hint, work, now } = this.#state;
    const isCounting =
      isOpening ||
      hint !== undefined ||
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
      if (!attach && !(await this.#askTrust())) return this.#quit(0);
      const chosen = attach || flags.resume !== true ? flags : await this.#askFirst(flags);
      if (this.#isEnding) return;
      const session = attach ? await openAttached(attach) : await this.#openWith(chosen);
      this.#begin(session, session.earlier);
      if (session.welcome) void this.#welcome(session.welcome);
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

  /** Returns false if the person leaves. Prompts that are typed meanwhile wait for the session. */
  async #askTrust(): Promise<boolean> {
    const { askTrust } = await import("./ask-trust.ts");
    const ask = (question: TrustQuestion): Promise<TrustChoice> => {
      const { promise, resolve } = Promise.withResolvers<TrustChoice>();
      this.#answerTrust = resolve;
      this.dispatch({ type: "trustAsked", question });
      return promise;
    };
    return askTrust({ cwd: this.#request.flags.cwd, ask, warn: (text) => this.#print("warn", text) }, this.#io);
  }

  /** `--resume` without an id: the person chooses. */
  async #askFirst(flags: OpenRequest["flags"]): Promise<OpenRequest["flags"]> {
    const { listFirstSessions } = await import("./first-session.ts");
    const page = await listFirstSessions(this.#io, process.cwd());
    if (!page) return flags; // opening the session says that there is none
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.#chooseFirst = resolve;
    this.dispatch({ type: "pageOpened", page });
    const id = await promise;
    const { resume: _resume, ...rest } = flags;
    return id === undefined ? rest : { ...rest, resume: id };
  }

  /** For somebody who has not used prefork in this folder. */
  async #welcome(welcome: OpenedHere): Promise<void> {
    const { readFirstRun, localEngineLines } = await import("./first-run.ts");
    try {
      const first = await readFirstRun(welcome, this.#io.env);
      if (!first || this.#state.runningSince !== undefined) return;
      this.#print("info", first.text);
      if (this.#state.queue.length === 0) this.dispatch({ type: "suggested", prompts: first.suggestions });
      for (const line of await localEngineLines(this.#io.env)) this.#print("info", line);
    } catch {
      // a greeting is worth no error
    }
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
      writeSequence: (sequence) => this.#screen.writeSequence(sequence),
      answerTrust: (choice) => this.#answerTrust(choice),
      chooseFirst: (id) => this.#chooseFirst(id),
      suspend: () => this.#stops.suspend(),
      notify: (text) => this.#personal.notify(text),
      refresh: (isMoneyToo) => this.#personal.refresh(isMoneyToo),
      setTheme: (name) => this.#screen.setTheme(name),
      explain: {
        conversation: async (session) => (await import("./explain-figures.ts")).conversationOf(session, this.#io),
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
    // What heeds the signal ends by itself; nobody waits for what does not.
    const cancelled = new Promise<never>((_resolve, reject) => {
      const give = (): void => void setTimeout(() => reject(new Error("Cancelled.")), CANCEL_MS).unref();
      working.signal.addEventListener("abort", give, { once: true });
    });
    try {
      return await Promise.race([run(AbortSignal.any([working.signal, this.#io.signal])), cancelled]);
    } catch (error) {
      throw working.signal.aborted ? new Error("Cancelled.", { cause: error }) : error;
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

  // --- the end -----------------------------------------------------------------------------------------------------------

  #quit(code: number): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    // Nobody answers any more what is asked before the session opens.
    this.#answerTrust("leave");
    this.#chooseFirst(undefined);
    this.#ended.resolve(code);
  }

  async #close(): Promise<void> {
    const { session } = this.#state;
    await this.#opening; // a session that is still being opened would be left behind
    await this.#opened?.close();
    if (session !== undefined && this.#state.attached)
      return this.#io.out(`${this.#farewell ?? `Detached. Session ${session} continues: prefork attach ${session}`}\n`);
    const unmerged = [...this.#state.children.values()].filter(isMergeable).length;
    if (unmerged > 0)
      this.#io.out(`The work of ${unmerged} ${unmerged === 1 ? "fork" : "forks"} is not merged yet: prefork merge\n`);
    if (session !== undefined && this.#state.main.dropped + this.#state.main.done.length > 0)
      this.#io.out(`To continue this session: prefork --resume ${safeLine(session)}\n`);
  }

  /** An error that nobody expected. The second one, while the first is written down, adds nothing. */
  async #crash(error: unknown): Promise<void> {
    this.#stops.ignore();
    this.#screen.stop();
    if (this.#hasCrashed) return;
    this.#hasCrashed = true;
    this.#io.err(`${await logCrash(error, this.#io)}\n`);
    setTimeout(() => process.exit(1), CRASH_MS).unref(); // what crashed may also hang
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
