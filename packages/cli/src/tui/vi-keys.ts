/** What a key means in vi's normal mode, as data.
 *  Invariant: pure; every key leaves a defined mode, and a key that means nothing here changes nothing. Columns are where the
 *  editor counts them, and the editor rounds them to whole characters.
 *  Elsewhere: carrying it out on the editor (vi-layer.ts). */

export type Position = { readonly line: number; readonly col: number };

export type EditedText = { readonly lines: readonly string[]; readonly cursor: Position };

export type ViState = {
  readonly mode: "insert" | "normal";
  /** Digits typed so far. */
  readonly count: string;
  /** An operator that waits for its motion, or `r`, which waits for a character. */
  readonly pending?: "d" | "c" | "r";
  readonly register: { readonly text: string; readonly isWholeLines: boolean };
};

export type ViStep =
  | { readonly kind: "move"; readonly to: Position }
  /** From the cursor to a column of the same line. */
  | { readonly kind: "delete"; readonly to: number }
  /** Whole lines, from the cursor's line on. */
  | { readonly kind: "deleteLines"; readonly count: number }
  | { readonly kind: "insert"; readonly text: string }
  | { readonly kind: "undo" }
  /** Up and down also browse earlier prompts. */
  | { readonly kind: "press"; readonly key: "up" | "down" };

export type ViResult = { readonly state: ViState; readonly steps: readonly ViStep[] };

export const initialVi: ViState = { mode: "insert", count: "", register: { text: "", isWholeLines: false } };

const MAX_COUNT = 1_000;

/** `char` is what was typed, one printable character. */
export const viKey = (state: ViState, char: string, text: EditedText): ViResult => {
  const { pending: _pending, ...rest } = state;
  const ready: ViState = { ...rest, count: "" };
  if (state.pending === "r") return { state: ready, steps: replaceChars(text, countOf(state), char) };
  if (/[1-9]/.test(char) || (char === "0" && state.count !== ""))
    return { state: { ...state, count: (state.count + char).slice(0, 4) }, steps: [] };
  if (state.pending) return operate({ ...state, pending: state.pending }, char, text);
  if (char === "d" || char === "c" || char === "r") return { state: { ...state, pending: char }, steps: [] };
  const motion = moveTo(char, text, countOf(state));
  if (motion) return { state: ready, steps: [{ kind: "move", to: motion }] };
  return command(ready, char, { ...text, count: countOf(state) });
};

const countOf = ({ count }: ViState): number => Math.min(MAX_COUNT, Math.max(1, Number(count) || 1));

const insertMode = (state: ViState): ViState => ({ ...state, mode: "insert" });

type Counted = EditedText & { readonly count: number };

const command = (state: ViState, char: string, text: Counted): ViResult => {
  const { lines, cursor, count } = text;
  const line = lines[cursor.line] ?? "";
  const at = (col: number): ViStep => ({ kind: "move", to: { line: cursor.line, col } });
  const inserting = (...steps: readonly ViStep[]): ViResult => ({ state: insertMode(state), steps });
  switch (char) {
    case "i":
      return inserting();
    case "a":
      return inserting(at(nextChar(line, cursor.col)));
    case "I":
      return inserting(at(firstWord(line)));
    case "A":
      return inserting(at(line.length));
    case "o":
      return inserting(at(line.length), { kind: "insert", text: "\n" });
    case "O":
      return inserting(at(0), { kind: "insert", text: "\n" }, at(0));
    case "x":
      return remove(state, { ...text, to: charsAfter(line, cursor.col, count) });
    case "D":
      return remove(state, { ...text, to: line.length });
    case "C":
      return remove(insertMode(state), { ...text, to: line.length });
    case "p":
    case "P":
      return { state, steps: put(state, text, char) };
    case "u":
      return { state, steps: Array.from({ length: count }, () => ({ kind: "undo" })) };
    case "j":
    case "k":
      return {
        state,
        steps: Array.from({ length: count }, () => ({ kind: "press", key: char === "j" ? "down" : "up" })),
      };
    default:
      return { state, steps: [] };
  }
};

/** `dw`, `d$`, `dd`, `cw`. An operator reaches to the end of its line at most. */
const operate = (
  { pending, ...state }: ViState & { readonly pending: "d" | "c" | "r" },
  char: string,
  text: EditedText,
): ViResult => {
  const { lines, cursor } = text;
  const line = lines[cursor.line] ?? "";
  const count = countOf(state);
  const ready: ViState = { ...state, count: "" };
  const after = pending === "c" ? insertMode(ready) : ready;
  if (char === pending) {
    const taken = lines.slice(cursor.line, cursor.line + count);
    const register = { text: taken.join("\n"), isWholeLines: true };
    if (pending === "d")
      return { state: { ...after, register }, steps: [{ kind: "deleteLines", count: taken.length }] };
    const first: Position = { line: cursor.line, col: 0 };
    return {
      state: { ...after, register },
      // The line stays, without its text.
      steps: [
        ...(taken.length > 1 ? [{ kind: "deleteLines", count: taken.length - 1 } as const] : []),
        { kind: "move", to: first },
        { kind: "delete", to: (taken.at(-1) ?? "").length },
      ],
    };
  }
  // As in vi, cw on a word changes the word and not the space after it.
  const isWord = pending === "c" && char === "w" && /\S/.test(line.slice(cursor.col, cursor.col + 1));
  const target =
    char === "w" && !isWord
      ? repeat(cursor, count, (from) => nextWord(lines, from, true))
      : moveTo(isWord ? "e" : char, text, count);
  if (!target) return { state: ready, steps: [] };
  const isForward = target.line > cursor.line || (target.line === cursor.line && target.col >= cursor.col);
  if (!isForward) {
    const from = target.line < cursor.line ? 0 : target.col;
    const start: ViStep = { kind: "move", to: { line: cursor.line, col: from } };
    const removed = remove(after, { ...text, cursor: { line: cursor.line, col: from }, to: cursor.col });
    return { ...removed, steps: [start, ...removed.steps] };
  }
  const isInclusive = isWord || char === "e" || char === "$";
  const end = target.line > cursor.line ? line.length : isInclusive ? nextChar(line, target.col) : target.col;
  return remove(after, { ...text, to: end });
};

const remove = (state: ViState, { lines, cursor, to }: EditedText & { readonly to: number }): ViResult => {
  const text = (lines[cursor.line] ?? "").slice(cursor.col, to);
  return text === ""
    ? { state, steps: [] }
    : { state: { ...state, register: { text, isWholeLines: false } }, steps: [{ kind: "delete", to }] };
};

const put = ({ register }: ViState, { lines, cursor, count }: Counted, where: "p" | "P"): readonly ViStep[] => {
  const line = lines[cursor.line] ?? "";
  const text = Array.from({ length: Math.min(count, 100) }, () => register.text);
  const at = (row: number, col: number): ViStep => ({ kind: "move", to: { line: row, col } });
  if (register.isWholeLines)
    return where === "p"
      ? [at(cursor.line, line.length), { kind: "insert", text: `\n${text.join("\n")}` }, at(cursor.line + 1, 0)]
      : [at(cursor.line, 0), { kind: "insert", text: `${text.join("\n")}\n` }, at(cursor.line, 0)];
  if (register.text === "") return [];
  const from = where === "p" ? nextChar(line, cursor.col) : cursor.col;
  const whole = text.join("");
  return [at(cursor.line, from), { kind: "insert", text: whole }, at(cursor.line, from + whole.length - 1)];
};

const replaceChars = ({ lines, cursor }: EditedText, count: number, char: string): readonly ViStep[] => {
  const line = lines[cursor.line] ?? "";
  const to = charsAfter(line, cursor.col, count);
  if (to <= cursor.col || charsBetween(line, cursor.col, to) < count) return [];
  const last = cursor.col + char.length * (count - 1);
  return [
    { kind: "delete", to },
    // What was deleted at the end of a line leaves the cursor behind it.
    { kind: "move", to: cursor },
    { kind: "insert", text: char.repeat(count) },
    { kind: "move", to: { line: cursor.line, col: last } },
  ];
};

// --- motions -------------------------------------------------------------------------------------------------------------

/** Undefined: the character is no motion. */
const moveTo = (char: string, { lines, cursor }: EditedText, count: number): Position | undefined => {
  const line = lines[cursor.line] ?? "";
  const inLine = (col: number): Position => ({ line: cursor.line, col });
  switch (char) {
    case "h":
      return inLine(charsBefore(line, cursor.col, count));
    case "l":
    case " ":
      return inLine(charsAfter(line, cursor.col, count));
    case "0":
      return inLine(0);
    case "^":
      return inLine(firstWord(line));
    case "$":
      return inLine(Math.max(0, charsBefore(line, line.length, 1)));
    case "w":
    case "b":
    case "e":
      return repeat(cursor, count, (from) => WORD_MOTIONS[char](lines, from));
    default:
      return undefined;
  }
};

const repeat = (from: Position, count: number, move: (from: Position) => Position): Position => {
  let at = from;
  for (let done = 0; done < count; done++) at = move(at);
  return at;
};

type CharKind = "space" | "word" | "sign";

const kindAt = (line: string, col: number): CharKind => {
  const char = String.fromCodePoint(line.codePointAt(col) ?? 32);
  return /\s/u.test(char) ? "space" : /[\p{L}\p{N}\p{M}_]/u.test(char) ? "word" : "sign";
};

/** After the last word: its last character, or the end of the line for an operator, which takes that character too. */
const nextWord = (lines: readonly string[], from: Position, isOperator = false): Position => {
  const text = lines[from.line] ?? "";
  let { col } = from;
  const kind = col < text.length ? kindAt(text, col) : "space";
  while (col < text.length && kind !== "space" && kindAt(text, col) === kind) col = nextChar(text, col);
  while (col < text.length && kindAt(text, col) === "space") col = nextChar(text, col);
  if (col < text.length) return { line: from.line, col };
  const line = from.line + 1;
  if (line < lines.length) return { line, col: firstWord(lines[line] ?? "") };
  return { line: from.line, col: isOperator ? text.length : Math.max(from.col, charsBefore(text, text.length, 1)) };
};

const WORD_MOTIONS = {
  w: (lines: readonly string[], from: Position): Position => nextWord(lines, from),
  b: (lines: readonly string[], from: Position): Position => {
    let { line, col } = from;
    let text = lines[line] ?? "";
    const before = (): number => charsBefore(text, col, 1);
    while (col > 0 && kindAt(text, before()) === "space") col = before();
    if (col === 0) {
      if (line === 0) return { line, col };
      line--;
      text = lines[line] ?? "";
      col = text.length;
      while (col > 0 && kindAt(text, before()) === "space") col = before();
    }
    const kind = col > 0 ? kindAt(text, before()) : "space";
    while (col > 0 && kindAt(text, before()) === kind) col = before();
    return { line, col };
  },
  e: (lines: readonly string[], from: Position): Position => {
    let { line } = from;
    let text = lines[line] ?? "";
    let col = nextChar(text, from.col);
    const skip = (): void => {
      while (col < text.length && kindAt(text, col) === "space") col = nextChar(text, col);
    };
    skip();
    while (col >= text.length && line + 1 < lines.length) {
      line++;
      [text, col] = [lines[line] ?? "", 0];
      skip();
    }
    if (col >= text.length) return { line, col: charsBefore(text, text.length, 1) };
    const kind = kindAt(text, col);
    while (nextChar(text, col) < text.length && kindAt(text, nextChar(text, col)) === kind) col = nextChar(text, col);
    return { line, col };
  },
} as const;

// --- characters ----------------------------------------------------------------------------------------------------------

const segmenter = new Intl.Segmenter();

const firstWord = (line: string): number => Math.max(0, line.search(/\S|$/));

const nextChar = (line: string, col: number): number => charsAfter(line, col, 1);

const charsAfter = (line: string, col: number, count: number): number => {
  let at = Math.min(col, line.length);
  for (let done = 0; done < count && at < line.length; done++) at += charLength(line.slice(at, at + MAX_CHAR));
  return Math.min(at, line.length);
};

const charsBetween = (line: string, from: number, to: number): number =>
  [...segmenter.segment(line.slice(from, to))].length;

/** A longer character is cut into parts; none that is typed is. */
const MAX_CHAR = 64;

const charLength = (text: string): number => segmenter.segment(text).containing(0)?.segment.length ?? 1;

const charsBefore = (line: string, col: number, count: number): number => {
  let at = Math.min(col, line.length);
  for (let done = 0; done < count && at > 0; done++) {
    const start = Math.max(0, at - MAX_CHAR);
    const last = segmenter.segment(line.slice(start, at)).containing(at - start - 1);
    at -= last?.segment.length ?? 1;
  }
  return Math.max(0, at);
};
