/** Does bash evaluate a text in a command that could itself run a command? `[[ $x -eq 1 ]]` evaluates what x contains, and
 *  evaluating `a[$(git push)]` runs git. The same applies to every variable name that a builtin takes, to `${!x}`, `${x@P}` and
 *  to variables declared as numbers.
 *  Invariant: errs towards "could": only numbers, names, operators, and variables that contain such count as harmless.
 *  Elsewhere: what words and variables could contain (variable-values.ts), builtins (evaluating-builtins.ts). */

import type { Assignment, Command, SyntaxNode, Word, WordPart } from "unbash";
import { takeBuiltin } from "./evaluating-builtins.ts";
import {
  joined,
  type Level,
  type Levels,
  levelsOf,
  NUMBER,
  ofOutput,
  type Piece,
  PLAIN,
  PRINTERS,
  piecesOf,
  UNSEEN,
  type Value,
  valueFrom,
} from "./variable-values.ts";

/** What a text evaluates and sets, collected node by node. */
export class EvaluatedTexts {
  /** Some evaluated text is certainly not visible. */
  #isUnseen = false;
  /** The text may set variables whose names are unknown. */
  #isAnySet = false;
  readonly #settings = new Map<string, { level: Level; readonly names: Set<string> }>();
  readonly #arrays = new Set<string>();
  readonly #elements: { readonly name: string; readonly value: Value }[] = [];
  readonly #wanted: { readonly value: Value; readonly most: Level }[] = [];

  /** The contents are evaluated, and must be harmless. */
  want(value: Value, most: Level): void {
    if (value.level > most) this.#isUnseen = true;
    else if (value.names.length > 0) this.#wanted.push({ value, most });
  }

  set(name: string, value: Value): void {
    if (/^BASH_(?:CMDS|ALIASES)$/.test(name)) this.#isUnseen = true;
    const known = this.#settings.get(name) ?? { level: NUMBER, names: new Set<string>() };
    if (value.level > known.level) known.level = value.level;
    for (const read of value.names) known.names.add(read);
    this.#settings.set(name, known);
  }

  wantElements(name: string, value: Value): void {
    this.#elements.push({ name, value });
  }

  setAny(): void {
    this.#isAnySet = true;
  }

  /** An expression, or the index of an array: its names are looked up, and their values are evaluated in turn. */
  wantExpression(pieces: readonly Piece[]): void {
    this.want(joined(pieces.map((piece) => (piece.kind === "text" ? namesIn(piece.text) : piece.value))), NUMBER);
  }

  /** The name of a variable, perhaps with an index; it is set to `value` if there is one. */
  wantName(pieces: readonly Piece[], value?: Value): void {
    const text = pieces.map((piece) => (piece.kind === "text" ? piece.text : "")).join("");
    const isComputed = pieces.some(({ kind }) => kind === "computed");
    if (text.includes("[") || text.includes("\0")) this.wantExpression(withoutName(pieces));
    else if (isComputed) this.want(valueFrom(pieces), PLAIN);
    const name = /^\w+/.exec(text)?.[0];
    if (isComputed) this.setAny();
    else if (name !== undefined && value) this.set(name, value);
  }

  /** One node of the text; its children are visited separately. */
  take(node: SyntaxNode): void {
    switch (node.type) {
      case "Command":
        this.#takeCommand(node);
        break;
      case "Assignment":
        this.takeAssignment(node);
        break;
      case "Word":
        // A descriptor in a variable, or an assignment, that the parser read as a plain word.
        if (/^\{\w+\[.*\]\}$|^\w+\[.*\]\+?=/s.test(node.text) && /['"$`\\]/.test(node.text)) this.#isUnseen = true;
        return;
      case "ArithmeticWord":
        this.wantExpression(node.parts ? piecesOf(node) : expandedIn(node.value));
        break;
      case "ArithmeticCommandExpansion":
        this.want(ofOutput(node.script), NUMBER);
        break;
      case "ArithmeticExpansion":
      case "ArithmeticCommand": {
        const text = node.type === "ArithmeticCommand" ? node.body : node.text.replace(/^\$(?:\(\(|\[)|\)\)$|\]$/g, "");
        if (!node.expression && text.trim() !== "") this.#isUnseen = true;
        return;
      }
      case "TestUnary":
        if (/^-[vR]$/.test(node.operator)) this.wantName(piecesOf(node.operand));
        return;
      case "TestBinary":
        if (!/^-(?:eq|ne|lt|le|gt|ge)$/.test(node.operator)) return;
        this.wantExpression(piecesOf(node.left));
        this.wantExpression(piecesOf(node.right));
        break;
      case "ParameterExpansion":
        this.#takeExpansion(node);
        break;
      case "FileDescriptorVariable":
        this.wantName([{ kind: "text", text: node.name }]);
        break;
      case "For":
      case "Select":
        this.set(node.name.value, node.wordlist ? joined(node.wordlist.map(wordValue)) : GIVEN);
        break;
      case "Function":
        this.set(PRINTERS, GIVEN);
        break;
    }
  }

  takeAssignment({ name, index, value, append }: Assignment): void {
    if (index) this.wantExpression(piecesOf(index));
    if (index || value.type !== "Word") this.#arrays.add(name);
    if (value.type === "Word") {
      const given = wordValue(value);
      this.set(name, append ? joined([given, { level: NUMBER, names: [name] }]) : given);
      return;
    }
    for (const element of value.elements) {
      if (/^\[.*\]\+?=/s.test(element.text)) this.wantExpression(indexOf(element));
      this.set(name, wordValue(element));
    }
  }

  #takeCommand({ name, suffix }: Command): void {
    const words = suffix.filter((part) => part.type === "Word" || part.type === "Assignment");
    if (name) takeBuiltin([name, ...words], this);
  }

  #takeExpansion({ prefix, parameter, index, operation }: Extract<WordPart, { type: "ParameterExpansion" }>): void {
    const isWhole = index !== undefined && /^[@*]$/.test(index.text);
    if (index && !isWhole) this.wantExpression(piecesOf(index));
    switch (operation?.type) {
      case "Slice":
        this.wantExpression(piecesOf(operation.offset));
        if (operation.length) this.wantExpression(piecesOf(operation.length));
        break;
      case "Transform":
        if (!/^[UuLQEAaKk]$/.test(operation.operand.text)) this.#isUnseen = true;
        break;
      case "Default":
        if (operation.operator.endsWith("=")) this.set(parameter, valueFrom(piecesOf(operation.operand)));
        break;
      case "Unknown":
        this.#isUnseen = true;
    }
    // The value of x is looked up as a variable, including its index.
    if (prefix === "!" && !isWhole && operation?.type !== "Names") {
      this.want(valueFrom(piecesOf({ parts: [plainExpansion(parameter)], value: "" })), PLAIN);
    }
  }

  /** Whether something invisible could run, and what the variables contain for texts inside this one. */
  settle(outer: Levels): { readonly evaluatesUnseen: boolean; readonly levels: Levels } {
    for (const { name, value } of this.#elements) if (this.#arrays.has(name)) this.want(value, PLAIN);
    for (const name of NUMBERS_OF_BASH) {
      const given = this.#settings.get(name);
      if (given) this.want({ level: given.level, names: [...given.names] }, NUMBER);
    }
    const isAnySet = this.#isAnySet || outer.isAnySet;
    const of = levelsOf(this.#settings, outer);
    const levelOf = (name: string): Level => (isAnySet && name !== PRINTERS ? UNSEEN : (of.get(name) ?? NUMBER));
    const isExceeded = this.#wanted.some(({ value, most }) => value.names.some((name) => levelOf(name) > most));
    return { evaluatesUnseen: this.#isUnseen || isExceeded, levels: { of, isAnySet } };
  }
}

const GIVEN: Value = { level: UNSEEN, names: [] };

/** Variables that bash always treats as numbers, so that it evaluates what is assigned to them. */
const NUMBERS_OF_BASH =
  "RANDOM SRANDOM HISTCMD OPTIND SECONDS LINENO BASHPID EPOCHSECONDS BASH_SUBSHELL UID EUID PPID".split(" ");

const wordValue = (word: Word): Value => valueFrom(piecesOf(word));

const plainExpansion = (parameter: string): WordPart => ({
  type: "SimpleExpansion",
  pos: 0,
  end: 0,
  text: `$${parameter}`,
});

/** The variables that a text names when it is evaluated. */
const namesIn = (text: string): Value => {
  if (/[$`\\'"\0]/.test(text)) return GIVEN;
  return { level: NUMBER, names: text.match(/[A-Za-z_]\w*/g) ?? [] };
};

/** An index without the array's name, which is only looked up. */
const withoutName = ([first, ...rest]: readonly Piece[]): readonly Piece[] => {
  if (first?.kind !== "text") return first ? [first, ...rest] : [];
  return [{ kind: "text", text: first.text.replace(/^\w+(?=\[)/, "") }, ...rest];
};

/** In expressions, the parser leaves `$x` and `${x}` as they are. */
const expandedIn = (text: string): readonly Piece[] => {
  const pieces = text.split(/(\$\w+|\$\{\w+\}|\$[#?!$-])/);
  return pieces.flatMap((piece, at): readonly Piece[] =>
    at % 2 === 0
      ? [{ kind: "text", text: piece }]
      : piecesOf({ parts: [plainExpansion(piece.replace(/[${}]/g, "") || "$")], value: "" }),
  );
};

/** `[key]=value` among the elements of an array: the pieces of its key. */
const indexOf = (element: Word): readonly Piece[] => {
  const [, key] = /^\[('[^'$`\\]*'|"[^"$`\\]*"|[^\]'"`\\]*)\]\+?=/.exec(element.text) ?? [];
  return key === undefined ? [{ kind: "text", text: "\0" }] : expandedIn(key.replace(/^(['"])(.*)\1$/s, "$2"));
};
