/** What the program needs of whatever shows its state: a screen, or plain lines.
 *  Elsewhere: the screen (screen-view.ts, screen.ts), plain lines (plain.ts), which one is used (choose-view.ts). */

import type { TerminalSettings } from "@prefork/guard";
import type { Io } from "../io.ts";
import type { Prompt } from "./prompt-images.ts";
import type { InputFacts, State } from "./state/index.ts";
import type { ThemeName } from "./views/index.ts";

export type TerminalView = {
  readonly input: {
    readonly facts: InputFacts;
    readonly setText: (text: string) => void;
    readonly getExpandedText: () => string;
    readonly addToHistory: (prompt: string) => void;
  };
  readonly start: () => void;
  /** Restores the terminal. It can be called at any moment and more than once. */
  readonly stop: () => void;
  /** Leaves only the conversation on the terminal, and restores it. */
  readonly finish: () => void;
  /** Shows the state soon; many calls may show it once. */
  readonly draw: () => void;
  /** Shows everything again, for instance after another program has written on the terminal. */
  readonly redraw: () => void;
  /** Sends a control sequence to the terminal itself. */
  readonly writeSequence: (sequence: string) => void;
  /** What is sent for a text: the images that it names, and the text. */
  readonly promptOf: (text: string) => Prompt;
  /** Whether the person looks at the terminal; undefined if it cannot say. */
  readonly isFocused: () => boolean | undefined;
  readonly setTheme: (name: ThemeName | "auto") => void;
  readonly applySettings: (settings: Promise<TerminalSettings>) => Promise<void>;
};

export type ViewOptions = {
  readonly io: Io;
  /** The state for this size of the terminal; without a size, as it is. */
  readonly state: (columns?: number, rows?: number) => State;
  /** True: the key was used. */
  readonly onKey: (key: string, input: InputFacts) => boolean;
  readonly onSubmit: (text: string) => void;
  /** A page was scrolled further than it is long. */
  readonly onScrollLimit: (limit: number) => void;
  /** Shows a short message above the input. */
  readonly onHint: (text: string) => void;
  /** Nothing can be typed any more. */
  readonly onEnd: () => void;
};

export type ViewFactory = (options: ViewOptions) => TerminalView;
