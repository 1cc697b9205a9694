/** The input line: pi-tui's editor, with our border, and vi keys if the user wants them.
 *  Invariant: it owns the typed text and nothing else; what is typed is never lost by a change around it. The editor draws its
 *  text as it is, so nothing that could control the terminal gets into it, whether typed, pasted, recalled or put there.
 *  Elsewhere: which keys it gets (state: keys.ts), vi keys (vi-keys.ts, vi-layer.ts). */

import {
  type AutocompleteProvider,
  CURSOR_MARKER,
  decodeKittyPrintable,
  Editor,
  matchesKey,
  type TUI,
  visibleWidth,
} from "@earendil-works/pi-tui";
import type { InputFacts } from "./state/index.ts";
import { ViLayer } from "./vi-layer.ts";
import type { Theme } from "./views/index.ts";
import { cut } from "./views/index.ts";

export type InputOptions = {
  readonly theme: Theme;
  readonly completions?: AutocompleteProvider;
  readonly onSubmit: (text: string) => void;
  readonly images?: ImagePasting;
};

/** Each returns the text to insert; undefined if there is no image. */
export type ImagePasting = {
  readonly fromPath: (pasted: string) => Promise<string | undefined>;
  readonly fromClipboard: () => Promise<string | undefined>;
};

const PASTE_START = "\u001b[200~";
const PASTE_END = "\u001b[201~";
const ESCAPE = "\u001b";
/** The character that pi-tui draws in reverse, after a mark for the terminal's own cursor. */
const CURSOR = new RegExp(`(?:${CURSOR_MARKER})?${ESCAPE}\\[7m(.*?)${ESCAPE}\\[0m`);

export class InputLine extends Editor {
  /** Shown on the border above it. */
  label = "";
  /** False: the keys are for something else, so no cursor is drawn. */
  hasCursor = true;
  readonly #look: { theme: Theme };
  readonly #images: ImagePasting | undefined;
  #vi: ViLayer | undefined;

  constructor(tui: TUI, { theme, completions, onSubmit, images }: InputOptions) {
    const look = { theme };
    super(tui, editorTheme(look), { paddingX: 1, autocompleteMaxVisible: 8 });
    this.#look = look;
    this.#images = images;
    if (completions) this.setAutocompleteProvider(completions);
    this.onSubmit = (text) => {
      this.#vi?.reset();
      onSubmit(text);
    };
  }

  get facts(): InputFacts {
    return {
      isEmpty: this.getText() === "",
      isOnLastLine: this.getCursor().line === this.getLines().length - 1,
      isCompleting: this.isShowingAutocomplete(),
      takesEscape: this.#vi?.takesEscape ?? false,
    };
  }

  setTheme(theme: Theme): void {
    this.#look.theme = theme;
    this.borderColor = theme.border;
  }

  setKeys(keys: "default" | "vi"): void {
    this.#vi =
      keys === "default"
        ? undefined
        : new ViLayer({
            press: (data) => super.handleInput(data),
            insert: (text) => this.insertTextAtCursor(text),
            lines: () => this.getLines(),
            cursor: () => this.getCursor(),
          });
  }

  override handleInput(data: string): void {
    if (this.#images && matchesKey(data, "ctrl+v")) void this.#insertImage(this.#images.fromClipboard());
    else if (this.#images && isImagePath(data))
      void this.#insertImage(this.#images.fromPath(data.slice(PASTE_START.length, -PASTE_END.length)), data);
    else this.#handleKey(data);
  }

  /** What was pasted is typed as it is if it is no image. */
  async #insertImage(name: Promise<string | undefined>, pasted = ""): Promise<void> {
    const text = await name.catch(() => undefined);
    if (text !== undefined) this.insertTextAtCursor(`${text} `);
    else if (pasted !== "") this.#handleKey(pasted);
    this.tui.requestRender();
  }

  override setText(text: string): void {
    super.setText(withoutControls(text));
  }

  override insertTextAtCursor(text: string): void {
    super.insertTextAtCursor(withoutControls(text));
  }

  override addToHistory(text: string): void {
    super.addToHistory(withoutControls(text));
  }

  #handleKey(given: string): void {
    const vi = this.#vi;
    // The editor removes the other control characters of a paste itself, and needs them to know an encoded line feed.
    const data = given.startsWith(PASTE_START) ? given.replace(LATE_CONTROLS, "") : given;
    if (vi && !(this.isShowingAutocomplete() && vi.mode === "insert")) {
      if (matchesKey(data, "escape")) {
        vi.escape();
        return;
      }
      if (vi.mode === "normal") {
        if (this.isShowingAutocomplete()) super.handleInput(ESCAPE); // completions are for insert mode
        const typed = matchesKey(data, "backspace") ? "h" : data;
        const char = decodeKittyPrintable(typed) ?? (/^\P{C}$/u.test(typed) ? typed : undefined);
        if (char !== undefined) {
          vi.type(char);
          return;
        }
      }
    }
    super.handleInput(data);
  }

  override render(width: number): string[] {
    const lines = super.render(width);
    return this.hasCursor ? lines : lines.map((line) => line.replace(CURSOR, "$1"));
  }

  protected override renderTopBorder(width: number, hiddenLineCount: number): string {
    const plain = super.renderTopBorder(width, hiddenLineCount);
    const label = [this.#vi ? this.#vi.mode : "", this.label].filter(Boolean).join(" · ");
    if (label === "") return plain;
    const { accent, border } = this.#look.theme;
    const shown = cut(`── ${label} `, width);
    return `${accent(shown)}${border("─".repeat(Math.max(0, width - visibleWidth(shown))))}`;
  }
}

/** Control characters above ASCII, and signs that reverse the direction of text. */
const LATE_CONTROLS = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

const withoutControls = (text: string): string =>
  text
    .replaceAll("\r\n", "\n")
    .replace(/(?![\n\t])\p{Cc}/gu, "")
    .replace(LATE_CONTROLS, "");

/** A paste of one line that ends like the name of an image. */
const isImagePath = (data: string): boolean =>
  data.startsWith(PASTE_START) &&
  data.endsWith(PASTE_END) &&
  data.length < 1_100 &&
  /^[^\n\r]*\.(?:png|jpe?g|gif|webp)['"]?\s*$/i.test(data.slice(PASTE_START.length, -PASTE_END.length));

const editorTheme = (look: { readonly theme: Theme }): ConstructorParameters<typeof Editor>[1] => ({
  borderColor: look.theme.border,
  selectList: {
    selectedPrefix: (text) => look.theme.accent(text),
    selectedText: (text) => look.theme.accent(text),
    description: (text) => look.theme.faint(text),
    scrollInfo: (text) => look.theme.faint(text),
    noMatch: (text) => look.theme.faint(text),
  },
});
