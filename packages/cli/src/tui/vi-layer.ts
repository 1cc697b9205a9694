/** vi keys on the editor: carries out what a key means, by the editor's own keys.
 *  Invariant: the editor keeps its text, its chips of pasted text and its undo history, because nothing but its own keys
 *  changes them; in normal mode the cursor is on a character, not behind the last one.
 *  Elsewhere: what keys mean (vi-keys.ts), the editor (input.ts). */

import { initialVi, type Position, type ViState, type ViStep, viKey } from "./vi-keys.ts";

/** What the layer uses of the editor. */
export type EditorPort = {
  /** A key as a terminal sends it. */
  readonly press: (data: string) => void;
  readonly insert: (text: string) => void;
  readonly lines: () => readonly string[];
  readonly cursor: () => Position;
};

const KEYS = {
  ...{ left: "\u001b[D", right: "\u001b[C", up: "\u001b[A", down: "\u001b[B", home: "\u0001", end: "\u0005" },
  ...{ delete: "\u001b[3~", deleteToEnd: "\u000b", backspace: "\u007f", undo: "\u001f" },
} as const;

const MAX_UNDO = 200;

export class ViLayer {
  readonly #editor: EditorPort;
  #state: ViState = initialVi;
  /** The texts before each change, oldest first. */
  #undo: string[] = [""];

  constructor(editor: EditorPort) {
    this.#editor = editor;
  }

  get mode(): ViState["mode"] {
    return this.#state.mode;
  }

  /** Esc has a meaning here: it ends insert mode, or drops a command that is half typed. */
  get takesEscape(): boolean {
    const { mode, count, pending } = this.#state;
    return mode === "insert" || count !== "" || pending !== undefined;
  }

  /** A new prompt begins. */
  reset(): void {
    this.#state = { ...initialVi, register: this.#state.register };
    this.#undo = [""];
  }

  /** Esc on the input line. */
  escape(): void {
    if (this.#state.mode === "insert") {
      if (this.#undo.at(-1) === this.#text) this.#undo.pop();
      if (this.#editor.cursor().col > 0) this.#press("left");
    }
    const { pending: _pending, ...state } = this.#state;
    this.#state = { ...state, mode: "normal", count: "" };
    this.#stayOnCharacter();
  }

  /** A character in normal mode. */
  type(char: string): void {
    const before = this.#text;
    const { state, steps } = viKey(this.#state, char, { lines: this.#editor.lines(), cursor: this.#editor.cursor() });
    this.#state = state;
    for (const step of steps) this.#carryOut(step);
    const isUndo = steps.some(({ kind }) => kind === "undo");
    if (!isUndo && (state.mode === "insert" || this.#text !== before))
      this.#undo = [...this.#undo, before].slice(-MAX_UNDO);
    if (state.mode === "normal") this.#stayOnCharacter();
  }

  get #text(): string {
    return this.#editor.lines().join("\n");
  }

  #press(key: keyof typeof KEYS): void {
    this.#editor.press(KEYS[key]);
  }

  #carryOut(step: ViStep): void {
    switch (step.kind) {
      case "move":
        this.#move(step.to);
        break;
      case "delete":
        this.#delete(step.to);
        break;
      case "deleteLines":
        for (let line = 0; line < step.count; line++) this.#deleteLine();
        break;
      case "insert":
        this.#editor.insert(step.text);
        break;
      case "undo":
        this.#undoChange();
        break;
      case "press":
        this.#press(step.key);
        break;
    }
  }

  #move({ line, col }: Position): void {
    for (let at = this.#editor.cursor().line; at < line; at++) {
      this.#press("end");
      this.#press("right");
    }
    for (let at = this.#editor.cursor().line; at > line; at--) {
      this.#press("home");
      this.#press("left");
    }
    const length = (this.#editor.lines()[line] ?? "").length;
    if (col <= 0) this.#press("home");
    else if (col >= length) this.#press("end");
    else this.#moveInLine({ line, col }, length);
  }

  #moveInLine({ line, col }: Position, length: number): void {
    // A chip of pasted text is one character for the editor, so the exact column may not exist.
    const step = this.#editor.cursor().col < col ? "right" : "left";
    for (let left = length; left > 0; left--) {
      const at = this.#editor.cursor();
      if (at.line !== line || (step === "right" ? at.col >= col : at.col <= col)) return;
      this.#press(step);
    }
  }

  #delete(to: number): void {
    const { line, col } = this.#editor.cursor();
    const length = (this.#editor.lines()[line] ?? "").length;
    if (to >= length) {
      if (col < length) this.#press("deleteToEnd");
      return;
    }
    const wanted = length - (to - col);
    for (let left = to - col; left > 0; left--) {
      if ((this.#editor.lines()[line] ?? "").length <= wanted) return;
      this.#press("delete");
    }
  }

  #deleteLine(): void {
    const { line } = this.#editor.cursor();
    const lines = this.#editor.lines();
    this.#press("home");
    if ((lines[line] ?? "") !== "") this.#press("deleteToEnd");
    if (line < lines.length - 1)
      this.#press("delete"); // the line break after it
    else if (line > 0) {
      this.#press("backspace"); // the line break before it
      this.#press("home");
    }
  }

  /** The editor remembers more, smaller changes. */
  #undoChange(): void {
    const wanted = this.#undo.pop();
    if (wanted === undefined) return;
    for (let unchanged = 0; this.#text !== wanted && unchanged < 2; ) {
      const before = this.#text;
      this.#press("undo");
      unchanged = this.#text === before ? unchanged + 1 : 0;
    }
  }

  #stayOnCharacter(): void {
    const { line, col } = this.#editor.cursor();
    const length = (this.#editor.lines()[line] ?? "").length;
    if (col >= length && length > 0) this.#press("left");
  }
}
