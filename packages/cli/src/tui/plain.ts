/** The terminal as plain lines, for screen readers and for terminals that cannot move the cursor.
 *  Invariant: only complete lines are written, in the order in which things happen; the terminal keeps its own line editing,
 *  so nothing has to be restored; a line answers a question only if it is one of its numbers, under the same rules as a key
 *  on the screen.
 *  Elsewhere: what is written (plain-text.ts), what an answer means (state), the screen (screen.ts). */

import { type News, newsIn, nothingTold } from "./plain-text.ts";
import type { InputFacts, Page } from "./state/index.ts";
import { trustOptions } from "./state/index.ts";
import type { TerminalView, ViewOptions } from "./terminal-view.ts";

export class PlainLines implements TerminalView {
  readonly #options: ViewOptions;
  #told: News["told"] = nothingTold;
  #isReading = false;
  /** Typed, but without its end yet. */
  #partial = "";
  #interrupts: Disposable | undefined;
  /** On the input line, as far as there is one: Enter alone takes it. */
  #prepared = "";
  /** The lines before, which ended with a backslash. */
  #begun = "";

  readonly input: TerminalView["input"];

  constructor(options: ViewOptions) {
    this.#options = options;
    const facts = (): InputFacts => this.#facts;
    this.input = {
      get facts() {
        return facts();
      },
      setText: (text) => this.#prepare(text),
      getExpandedText: () => this.#prepared,
      addToHistory: () => undefined,
    };
  }

  get #facts(): InputFacts {
    return { isEmpty: this.#prepared === "" && this.#begun === "", isOnLastLine: true, isCompleting: false };
  }

  readonly start = (): void => {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#interrupts = this.#options.io.takeInterrupts?.(() => {
      this.#begun = "";
      this.#options.onKey("ctrl+c", this.#facts);
    });
    if (!this.#told.isOpen) this.#write(["Opening the session."]);
    process.stdin.setEncoding("utf8").on("data", this.#read).once("end", this.#options.onEnd).resume();
  };

  /** What is typed from now on goes to whoever has the terminal. */
  readonly stop = (): void => {
    if (!this.#isReading) return;
    this.#isReading = false;
    process.stdin.off("data", this.#read).off("end", this.#options.onEnd).pause();
    this.#interrupts?.[Symbol.dispose]();
    this.#interrupts = undefined;
  };

  readonly finish = (): void => this.stop();

  readonly draw = (): void => {
    const state = this.#options.state();
    const { lines, told } = newsIn(state, this.#told);
    this.#told = told;
    this.#write(lines);
    // A text is on the terminal now, so its page is done with. Keys must not be pressed while one is being handled.
    if (state.page && state.page.kind !== "list") queueMicrotask(() => this.#close(state.page));
  };

  readonly redraw = (): void => this.draw();

  readonly writeSequence = (): void => {
    throw new Error("A plain terminal cannot do that. Without --screen-reader, and in another terminal, it works.");
  };

  readonly promptOf = (text: string): string => text;

  /** Lines are read as they come, so nobody has to be called. */
  readonly isFocused = (): boolean => true;
  readonly applySettings = async (): Promise<void> => undefined;

  readonly setTheme = (): void => this.#write(["There are no colours in plain lines."]);

  #write(lines: readonly string[]): void {
    if (lines.length > 0) this.#options.io.out(`${lines.join("\n")}\n`);
  }

  #close(page: Page | undefined): void {
    if (this.#options.state().page === page) this.#options.onKey("escape", this.#facts);
  }

  #prepare(text: string): void {
    this.#prepared = text;
    if (text !== "")
      this.#write([`On the input line: ${text}`, "Press Enter to take it, type something else, or type: cancel"]);
  }

  readonly #read = (chunk: string | Buffer): void => {
    const [first = "", ...others] = String(chunk).split("\n");
    const lines = [this.#partial + first, ...others];
    this.#partial = lines.pop() ?? "";
    for (const line of lines) this.#take(line.replace(/\r$/, ""));
  };

  #take(line: string): void {
    if (line.endsWith("\\")) {
      this.#begun += `${line.slice(0, -1)}\n`;
      return;
    }
    const text = this.#begun + line;
    this.#begun = "";
    if (this.#prepared === "") this.#answer(text);
    else this.#decide(text);
  }

  /** There is a text on the input line. */
  #decide(text: string): void {
    const prepared = this.#prepared;
    this.#prepared = "";
    const { onKey, onSubmit, state } = this.#options;
    if (text.trim() !== "cancel") onSubmit(text.trim() === "" ? prepared : text);
    else if (state().composing.kind !== "prompt") onKey("escape", this.#facts);
  }

  /** A number answers what is open; everything else is a prompt. */
  #answer(text: string): void {
    const { onKey, onSubmit, state } = this.#options;
    const { trust, page, questions, composing, suggestions } = state();
    const number = /^\s*(\d{1,3})\s*$/.exec(text)?.[1];
    const isOpen = trust ?? (composing.kind === "prompt" && (questions[0] ?? suggestions[0]));
    if (page?.kind === "list" && !trust) this.#choose(page, text);
    else if (number === undefined || !isOpen) onSubmit(text);
    else {
      const key = trust ? trustOptions(trust)[Number(number) - 1]?.key : number;
      if (key === undefined || !onKey(key, this.#facts))
        this.#write(["That answers nothing: it is not one of the numbers, or the question had just appeared."]);
    }
  }

  #choose(page: Extract<Page, { readonly kind: "list" }>, text: string): void {
    const press = (key: string): boolean => this.#options.onKey(key, this.#facts);
    const index = /^\s*\d{1,3}\s*$/.test(text) ? Number(text) - 1 : -1;
    if (page.items[index] === undefined) {
      while (this.#options.state().page) press("escape");
      if (text.trim() !== "") this.#options.onSubmit(text);
      return;
    }
    press("home");
    for (let step = 0; step < index; step++) press("down");
    press("enter");
  }
}
