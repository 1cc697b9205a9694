/** The input line: pi-tui's editor, with our border, and vi keys if the user wants them.
 *  Invariant: it owns the typed text and nothing else; what is typed is never lost by a change around it.
 *  Elsewhere: which keys it gets (state: keys.ts). */

import { type AutocompleteProvider, Editor, type TUI } from "@earendil-works/pi-tui";
import type { InputFacts } from "./state/index.ts";
import type { Theme } from "./views/index.ts";
import { cut } from "./views/index.ts";

export type InputOptions = {
  readonly theme: Theme;
  readonly completions?: AutocompleteProvider;
  readonly onSubmit: (text: string) => void;
};

export class InputLine extends Editor {
  /** Shown on the border above it. */
  label = "";
  #paint: Theme;

  constructor(tui: TUI, { theme, completions, onSubmit }: InputOptions) {
    super(tui, editorTheme(theme), { paddingX: 1, autocompleteMaxVisible: 8 });
    this.#paint = theme;
    if (completions) this.setAutocompleteProvider(completions);
    this.onSubmit = onSubmit;
  }

  get facts(): InputFacts {
    return {
      isEmpty: this.getText() === "",
      isOnLastLine: this.getCursor().line === this.getLines().length - 1,
      isCompleting: this.isShowingAutocomplete(),
    };
  }

  setTheme(theme: Theme): void {
    this.#paint = theme;
    this.borderColor = theme.border;
  }

  protected override renderTopBorder(width: number, hiddenLineCount: number): string {
    const plain = super.renderTopBorder(width, hiddenLineCount);
    if (this.label === "") return plain;
    return cut(`${this.#paint.accent(`── ${this.label} `)}${this.#paint.border("─".repeat(width))}`, width);
  }
}

const editorTheme = (theme: Theme): ConstructorParameters<typeof Editor>[1] => ({
  borderColor: theme.border,
  selectList: {
    selectedPrefix: theme.accent,
    selectedText: theme.accent,
    description: theme.faint,
    scrollInfo: theme.faint,
    noMatch: theme.faint,
  },
});
