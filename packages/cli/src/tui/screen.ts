/** The screen: draws frames with pi-tui and passes keys on. The only file, with input.ts and views/, that knows pi-tui.
 *  Invariant: a finished block is printed once and then belongs to the terminal's scrollback, so a frame costs the same after
 *  five messages and after five thousand; the user's own scrollback is never cleared; the terminal is restored by `stop`,
 *  which can be called at any moment and more than once.
 *  Elsewhere: what a frame shows (views: frame.ts), what keys mean (state: keys.ts). */

import {
  type AutocompleteProvider,
  type Component,
  detectCapabilities,
  isKeyRelease,
  ProcessTerminal,
  parseKey,
  type RgbColor,
  setCapabilities,
  type Terminal,
  TuiMainScreen,
  type TuiStopOptions,
} from "@earendil-works/pi-tui";
import { type ImagePasting, InputLine } from "./input.ts";
import { lazyCodeTools } from "./lazy-code-tools.ts";
import type { Block, InputFacts, State } from "./state/index.ts";
import type { Theme, ThemeName, ThemeOptions } from "./views/index.ts";
import {
  cut,
  drawPage,
  inputLabel,
  renderAbove,
  renderBelow,
  renderBlock,
  renderOpen,
  renderTrust,
  themeOf,
} from "./views/index.ts";

export type ScreenOptions = {
  readonly theme: ThemeName;
  readonly terminal?: Terminal; // default: the process's own
  readonly completions?: AutocompleteProvider;
  /** The state for this size of the terminal. */
  readonly state: (columns: number, rows: number) => State;
  /** True: the key was used. */
  readonly onKey: (key: string, input: InputFacts) => boolean;
  readonly onSubmit: (text: string) => void;
  /** A page was scrolled further than it is long. */
  readonly onScrollLimit?: (limit: number) => void;
  readonly images?: ImagePasting;
};

const WRAPPING_OFF = "\u001b[?7l";
const WRAPPING_ON = "\u001b[?7h";
/** pi-tui sends this when it redraws everything, but the scrollback holds what the user did before us. */
const ERASE_SCROLLBACK = "\u001b[3J";

class OwnTerminal extends ProcessTerminal {
  override write(data: string): void {
    super.write(data.replaceAll(ERASE_SCROLLBACK, ""));
  }
}

/** The renderer, without the lines that have scrolled away: the terminal keeps those. */
class ScrollingScreen extends TuiMainScreen {
  /** Called after each frame with the number of lines above the screen; returns how many of them can be forgotten. */
  onScrolled: (lines: number) => number = () => 0;

  /** A terminal may take a character for wider than we do. Then the end of its line is wrong, but no line moves. */
  protected override beforeTerminalStart(): void {
    super.beforeTerminalStart();
    this.terminal.write(WRAPPING_OFF);
  }

  protected override afterTerminalStop(options: TuiStopOptions): void {
    this.terminal.write(WRAPPING_ON);
    super.afterTerminalStop(options);
  }

  protected override doRender(): void {
    super.doRender();
    if (this.stopped) return;
    const before = this.captureRenderState();
    const count = this.onScrolled(before.previousViewportTop);
    if (count === 0) return;
    this.restoreRenderState({
      ...before,
      previousLines: before.previousLines.slice(count),
      cursorRow: before.cursorRow - count,
      hardwareCursorRow: before.hardwareCursorRow - count,
      maxLinesRendered: before.maxLinesRendered - count,
      previousViewportTop: before.previousViewportTop - count,
    });
  }
}

/** What tmux, the Linux console and PuTTY send. pi-tui's editor knows them, but its names of keys do not. */
const OTHER_KEYS: Readonly<Record<string, string>> = { "\u001b[1~": "home", "\u001b[4~": "end" };

const PASTE_START = "\u001b[200~";
const FOCUS_IN = "\u001b[I";
const FOCUS_OUT = "\u001b[O";
const FOCUS_REPORTS_ON = "\u001b[?1004h";
const FOCUS_REPORTS_OFF = "\u001b[?1004l";
const MOUSE_ON = "\u001b[?1000h\u001b[?1006h";
const MOUSE_OFF = "\u001b[?1006l\u001b[?1000l";
const MOUSE_REPORT = "\u001b[<";
const WHEEL_LINES = 3;
/** Slower terminals keep the theme that fits an unknown background. */
const BACKGROUND_TIMEOUT_MS = 100;

export class Screen {
  readonly input: InputLine;
  readonly #tui: ScrollingScreen;
  readonly #options: ScreenOptions;
  #theme: Theme;
  #themeOptions: ThemeOptions;
  /** Printed lines that are still on the screen. */
  #printed: string[] = [];
  /** How many finished blocks were printed, dropped ones included. */
  #printedBlocks = 0;
  #size = "";
  #isStarted = false;
  #isFinished = false;
  #reportsFocus = false;
  #isFocused: boolean | undefined;
  #usesMouse = false;
  #isMouseOn = false;

  constructor(options: ScreenOptions) {
    this.#options = options;
    // Detected without asking tmux, which would delay the first frame: it drops links that it cannot pass on.
    const { hyperlinks, ...capabilities } = detectCapabilities(() => true);
    // Links are ours to make: pi-tui links any scheme, and hides where a link leads.
    setCapabilities({ ...capabilities, hyperlinks: false });
    this.#themeOptions = { links: hyperlinks, code: lazyCodeTools((code) => this.#setThemeOptions({ code })) };
    this.#theme = themeOf(options.theme, this.#themeOptions);
    const terminal = options.terminal ?? new OwnTerminal();
    this.#tui = new ScrollingScreen(terminal);
    this.input = new InputLine(this.#tui, { ...options, theme: this.#theme });
    const root: Component = { render: (width) => this.#render(width, terminal.rows), invalidate: () => undefined };
    this.#tui.addChild(root);
    this.#tui.setFocus(this.input);
    this.#tui.onScrolled = (lines) => this.#printed.splice(0, lines).length;
    this.#tui.addInputListener((data) => this.#listen(data));
  }

  start(): void {
    this.#isStarted = true;
    this.#tui.start();
    if (this.#reportsFocus) this.#tui.terminal.write(FOCUS_REPORTS_ON);
    this.#tui.renderNow();
  }

  /** Restores the terminal. What was printed stays. */
  stop(): void {
    if (!this.#isStarted) return;
    this.#isStarted = false;
    if (this.#reportsFocus) this.#tui.terminal.write(FOCUS_REPORTS_OFF);
    this.#setMouse(false);
    try {
      this.#tui.stop();
    } catch {
      // The window was closed: nothing is left to restore, and the session must still be closed.
    }
  }

  /** Removes the input line and everything around it, so that the conversation is followed by what comes next. */
  finish(): void {
    if (!this.#isStarted) return;
    this.#isFinished = true;
    this.#tui.renderNow();
    this.stop();
  }

  /** Draws soon; many calls make one frame. */
  draw(): void {
    this.#tui.requestRender();
  }

  /** Draws at once. */
  drawNow(): void {
    this.#tui.renderNow();
  }

  /** Draws the whole screen again, for instance after another program has written on it. */
  redraw(): void {
    this.#size = "";
    this.#tui.requestRender(true);
  }

  setTheme(name: ThemeName): void {
    this.#theme = themeOf(name, this.#themeOptions);
    this.input.setTheme(this.#theme);
    this.#repaint();
  }

  /** Asks the terminal to say when it gets and loses the focus. */
  reportFocus(): void {
    if (this.#reportsFocus) return;
    this.#reportsFocus = true;
    if (this.#isStarted) this.#tui.terminal.write(FOCUS_REPORTS_ON);
  }

  /** Undefined until the terminal has said it. */
  get isFocused(): boolean | undefined {
    return this.#isFocused;
  }

  /** The wheel scrolls pages. Elsewhere the mouse stays with the terminal, which selects text and scrolls by itself. */
  useMouse(isUsed: boolean): void {
    this.#usesMouse = isUsed;
    this.draw();
  }

  #setMouse(isOn: boolean): void {
    if (this.#isMouseOn === isOn) return;
    this.#isMouseOn = isOn;
    this.#tui.terminal.write(isOn ? MOUSE_ON : MOUSE_OFF);
  }

  /** The terminal's background, if it answers in time. */
  background(): Promise<RgbColor | undefined> {
    return this.#tui.queryTerminalBackgroundColor({ timeoutMs: BACKGROUND_TIMEOUT_MS });
  }

  #setThemeOptions(options: ThemeOptions): void {
    this.#themeOptions = { ...this.#themeOptions, ...options };
    this.setTheme(this.#theme.name);
  }

  #listen(data: string): { consume: true } | undefined {
    if (isKeyRelease(data)) return undefined;
    if (data === FOCUS_IN || data === FOCUS_OUT) {
      this.#isFocused = data === FOCUS_IN;
      return { consume: true };
    }
    if (data.startsWith(MOUSE_REPORT)) return this.#wheel(Number.parseInt(data.slice(MOUSE_REPORT.length), 10));
    const isPaste = data.startsWith(PASTE_START);
    const key = isPaste ? "paste" : (parseKey(data) ?? OTHER_KEYS[data] ?? (/^\P{C}+$/u.test(data) ? data : ""));
    const isUsed = this.#options.onKey(key, this.input.facts);
    this.#tui.requestRender();
    return isUsed ? { consume: true } : undefined;
  }

  /** Buttons 64 and 65 are the wheel. */
  #wheel(button: number): { consume: true } {
    if (button === 64 || button === 65)
      for (let line = 0; line < WHEEL_LINES; line++)
        this.#options.onKey(button === 64 ? "up" : "down", this.input.facts);
    this.#tui.requestRender();
    return { consume: true };
  }

  #render(width: number, rows: number): string[] {
    const state = this.#options.state(width, rows);
    this.input.label = inputLabel(state);
    this.input.hasCursor = state.focus === "input";
    if (this.#size !== `${width}x${rows}`) {
      this.#size = `${width}x${rows}`;
      this.#reprint(state);
    }
    if (this.#isFinished) {
      this.#print(state);
      // pi-tui ends with a space where the cursor is, which must not be on a line of the conversation.
      return [...this.#printed, ...renderOpen(state, this.#theme, rows), ""];
    }
    if (state.trust) return [...renderTrust(state, state.trust, this.#theme)];
    this.#setMouse(this.#usesMouse && state.page !== undefined);
    if (state.page) {
      const { lines, scrollLimit } = drawPage(state, state.page, this.#theme);
      if (scrollLimit !== undefined && "scroll" in state.page && state.page.scroll > scrollLimit)
        this.#options.onScrollLimit?.(scrollLimit);
      return [...lines];
    }
    this.#print(state);
    const input = this.input.render(width);
    const below = renderBelow(state, this.#theme);
    const above = renderAbove(state, this.#theme, Math.max(1, rows - input.length - below.length));
    return [...this.#printed, ...above, ...input, ...below].map((line) => cut(line, width));
  }

  /** Adds the blocks that have finished since the last frame. */
  #print(state: State): void {
    const { dropped, done } = state.main;
    for (const block of done.slice(Math.max(0, this.#printedBlocks - dropped)))
      this.#printed.push(...this.#linesOf(block, state));
    this.#printedBlocks = dropped + done.length;
  }

  /** New colours for the lines that are still on the screen. Colours change no line's length, so nothing moves. */
  #repaint(): void {
    const { columns, rows } = this.#tui.terminal;
    const count = this.#printed.length;
    const state = this.#options.state(columns, rows);
    if (this.#size === `${columns}x${rows}`) this.#reprint({ ...state, rows: count });
    this.#tui.requestRender();
  }

  /** After a change of size or theme: one screen of the last blocks, in their new form. */
  #reprint(state: State): void {
    const { dropped, done } = state.main;
    const parts: (readonly string[])[] = [];
    let count = 0;
    const printed = done.slice(0, Math.max(0, this.#printedBlocks - dropped));
    for (let index = printed.length - 1; index >= 0 && count < state.rows; index--) {
      const block = printed[index];
      const lines = block ? this.#linesOf(block, state) : [];
      parts.push(lines);
      count += lines.length;
    }
    this.#printed = parts.toReversed().flat().slice(-state.rows);
  }

  #linesOf(block: Block, { columns, cwd, now }: State): readonly string[] {
    return renderBlock(block, { width: columns, theme: this.#theme, cwd, isOpen: false, now });
  }
}
