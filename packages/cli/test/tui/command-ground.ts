/** A repository, a session with the rehearsal engine, and the terminal's state, without a screen: what commands need.
 *  Invariant: every page that a command opens fits 40 columns; nothing of the user's own home is read or written. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { visibleWidth } from "@earendil-works/pi-tui";
import { run } from "../../src/main.ts";
import type { SwitchTarget, TerminalContext } from "../../src/tui/context.ts";
import { runEffect } from "../../src/tui/effects.ts";
import { conversationOf } from "../../src/tui/explain-figures.ts";
import { openLocalSession } from "../../src/tui/local-session.ts";
import { type Action, initialState, type ListItem, type Page, reduce, type State } from "../../src/tui/state/index.ts";
import type { OpenedSession, TerminalSession } from "../../src/tui/terminal-session.ts";
import { DEFAULT_SETTINGS } from "../../src/tui/terminal-settings.ts";
import { renderPage, themeOf } from "../../src/tui/views/index.ts";
import { captured } from "../captured.ts";
import { hideBwrap } from "../optional.ts";

hideBwrap();

type ListPage = Extract<Page, { readonly kind: "list" }>;

export class CommandGround implements AsyncDisposable {
  readonly home: string;
  readonly work: string;
  readonly context: TerminalContext;
  /** What was put on the input line. */
  typed = "";
  /** Control sequences that were written to the terminal. */
  written = "";
  themes: string[] = [];
  #state: State;
  #session: Promise<TerminalSession> = Promise.reject(new Error("not open"));
  #opened: OpenedSession | undefined;
  #pending: Promise<void>[] = [];
  #working: AbortController | undefined;
  readonly #before = process.cwd();
  readonly #env: Readonly<Record<string, string>>;

  private constructor(files: Readonly<Record<string, string>>) {
    this.#session.catch(() => undefined);
    const path = realpathSync(mkdtempSync(join(tmpdir(), "prefork-commands-")));
    this.home = join(path, "home");
    this.work = join(path, "work");
    for (const folder of [this.home, this.work]) mkdirSync(folder);
    for (const [name, text] of Object.entries(files)) this.put(name, text);
    const git = (...words: readonly string[]): unknown =>
      execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...words], { cwd: this.work });
    git("init", "-q");
    git("add", "-A");
    git("commit", "-qm", "one");
    process.chdir(this.work);
    this.#env = { PATH: process.env.PATH ?? "", HOME: this.home, EDITOR: "true" };
    this.#state = initialState({ cwd: this.work, columns: 80, rows: 24, now: Date.now() });
    this.context = this.#makeContext();
  }

  static async open(files: Readonly<Record<string, string>>): Promise<CommandGround> {
    const ground = new CommandGround(files);
    await ground.#switch({});
    return ground;
  }

  get state(): State {
    return this.#state;
  }

  put(name: string, text: string): void {
    mkdirSync(dirname(join(this.work, name)), { recursive: true });
    writeFileSync(join(this.work, name), text);
  }

  read(name: string): string {
    return readFileSync(join(this.work, name), "utf8");
  }

  // --- what a person does ------------------------------------------------------------------------------------------------

  /** Types a line, and waits until everything that it asks for is done. */
  async type(text: string): Promise<void> {
    this.context.dispatch({ type: "submitted", text, at: Date.now() });
    while (this.#pending.length > 0) await this.#pending.shift();
  }

  async press(key: string): Promise<void> {
    const input = { isEmpty: true, isOnLastLine: true, isCompleting: false };
    this.context.dispatch({ type: "key", key, input, at: Date.now() });
    while (this.#pending.length > 0) await this.#pending.shift();
  }

  /** Chooses the item of the open list whose label has this text. */
  async choose(text: string): Promise<void> {
    const index = this.items.findIndex(({ label }) => label.includes(text));
    assert.notEqual(index, -1, `${text} is not in the list:\n${this.items.map(({ label }) => label).join("\n")}`);
    await this.press("home");
    for (let at = 0; at < index; at++) await this.press("down");
    await this.press("enter");
  }

  /** Waits for an event-driven change. */
  async until(isReached: (state: State) => boolean): Promise<void> {
    while (!isReached(this.#state)) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  get list(): ListPage {
    const { page } = this.#state;
    assert.equal(page?.kind, "list", `no list is open; notices:\n${this.notices.join("\n")}`);
    return page as ListPage;
  }

  get items(): readonly ListItem[] {
    return this.list.items;
  }

  get labels(): readonly string[] {
    return this.items.map(({ label }) => label);
  }

  /** The text of the open page. */
  get text(): string {
    const { page } = this.#state;
    assert.equal(page?.kind, "text", `no text is open; notices:\n${this.notices.join("\n")}`);
    return page?.kind === "text" ? page.text : "";
  }

  get notices(): readonly string[] {
    const { done, open } = this.#state.main;
    return [...done, ...open].flatMap((block) => (block.kind === "notice" ? [block.text] : []));
  }

  get prompts(): readonly string[] {
    const { done, open } = this.#state.main;
    return [...done, ...open].flatMap((block) => (block.kind === "prompt" ? [block.text] : []));
  }

  // --- the program around the state --------------------------------------------------------------------------------------

  #dispatch(action: Action): void {
    const step = reduce(this.#state, action);
    this.#state = step.state;
    if (action.type === "pageOpened") this.#checkPage(action.page);
    for (const effect of step.effects) this.#pending.push(runEffect(effect, this.context));
  }

  #checkPage(page: Page): void {
    for (const [columns, rows] of [
      [40, 20],
      [120, 40],
    ] as const) {
      const lines = renderPage({ ...this.#state, columns, rows }, page, themeOf("none"));
      assert.equal(lines.length, rows);
      for (const line of lines) assert.ok(visibleWidth(line) <= columns, line);
    }
  }

  #makeContext(): TerminalContext {
    const io = captured({ env: this.#env });
    return {
      io,
      settings: Promise.resolve(DEFAULT_SETTINGS),
      state: () => this.#state,
      dispatch: (action) => this.#dispatch(action),
      screen: {
        draw: () => undefined,
        redraw: () => undefined,
        promptOf: (text) => text,
        input: {
          setText: (text) => {
            this.typed = text;
          },
          getExpandedText: () => this.typed,
          addToHistory: () => undefined,
          facts: { isEmpty: true, isOnLastLine: true, isCompleting: false },
        },
      },
      session: () => this.#session,
      switchSession: (to = {}) => this.#switch(to),
      remember: () => undefined,
      runCli: async (argv) => {
        const out = captured({ env: this.#env });
        const code = await run(argv, out);
        return { code, text: out.text() + out.errors() };
      },
      lend: (work) => work(),
      work: async (label, work) => {
        this.#working = new AbortController();
        this.#dispatch({ type: "workChanged", label, at: Date.now() });
        try {
          return await work(this.#working.signal);
        } finally {
          this.#dispatch({ type: "workChanged", at: Date.now() });
        }
      },
      cancel: () => this.#working?.abort(),
      writeSequence: (sequence) => {
        this.written += sequence;
      },
      answerTrust: () => undefined,
      chooseFirst: () => undefined,
      suspend: () => undefined,
      notify: async () => undefined,
      refresh: async () => undefined,
      setTheme: (name) => void this.themes.push(name),
      explain: {
        conversation: (session) => conversationOf(session, io),
        family: async () => ({}),
        lastMiss: async () => undefined,
      },
      quit: () => undefined,
    };
  }

  async #switch({ id, model }: SwitchTarget): Promise<void> {
    const here = this.#opened?.control.session;
    await this.#opened?.close();
    const flags = {
      permissionMode: "accept-edits",
      ...(id === undefined ? {} : { resume: id }),
      ...(model === undefined ? {} : { model }),
    };
    const session = await openLocalSession({ flags }, this.context.io);
    if (id !== here) this.#dispatch({ type: "cleared" });
    if (id !== here && session.earlier) this.#dispatch({ type: "restored", ...session.earlier });
    this.#opened = session;
    this.#session = Promise.resolve(session);
    void this.#follow(session);
    await this.until(({ session: open, isOpening }) => !isOpening && open === session.control.session);
  }

  async #follow({ control }: TerminalSession): Promise<void> {
    using events = control.subscribe(0);
    for await (const event of events) this.#dispatch({ type: "event", event });
  }

  /** From now on the terminal is attached to a session of another process, as far as commands can tell. */
  attach(): void {
    if (!this.#opened) return;
    const { own: _own, setMode: _setMode, ...attached } = this.#opened;
    this.#session = Promise.resolve(attached);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened?.close();
    process.chdir(this.#before);
    rmSync(dirname(this.work), { recursive: true, force: true });
  }
}
