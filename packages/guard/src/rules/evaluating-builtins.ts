/** Builtins that evaluate their arguments: as an expression, as the name of a variable with an index, or as a text to expand.
 *  Invariant: a word that could be an option counts as one.
 *  Elsewhere: evaluation outside builtins (evaluated-texts.ts), what words could contain (variable-values.ts), programs that run
 *  others (programs-with-programs.ts). */

import type { Assignment, Word } from "unbash";
import { literalOf, NUMBER, type Piece, PLAIN, piecesOf, UNSEEN, type Value, valueFrom } from "./variable-values.ts";

/** What is reported about the words of a builtin. */
export type Evaluations = {
  readonly want: (value: Value, most: typeof NUMBER | typeof PLAIN) => void;
  readonly wantExpression: (pieces: readonly Piece[]) => void;
  readonly wantName: (pieces: readonly Piece[], value?: Value) => void;
  /** A text that becomes the elements of this variable, if it is an array. */
  readonly wantElements: (name: string, value: Value) => void;
  readonly set: (name: string, value: Value) => void;
  readonly setAny: () => void;
};

type Pieces = readonly Piece[];

const READ: Value = { level: UNSEEN, names: [] };
const COUNTED: Value = { level: NUMBER, names: [] };

/** Which of the builtins' options take a value. */
const VALUED: Readonly<Record<string, string>> = {
  read: "adinNptu",
  mapfile: "dnOsuCc",
  readarray: "dnOsuCc",
  printf: "v",
  wait: "p",
};

/** The words of a command whose name may be a builtin's. */
export const takeBuiltin = (words: readonly (Word | Assignment)[], into: Evaluations): void => {
  const all = words.map((word) => (word.type === "Word" ? piecesOf(word) : []));
  // `command` and `builtin`, with their options, do not change what follows.
  const at = all.findIndex((pieces) => !/^(?:command|builtin|-.*)$/s.test(literalOf(pieces) ?? ""));
  const program = literalOf(all[at] ?? []);
  const args = all.slice(at + 1);
  const rest = words.slice(at + 1);
  args.forEach((pieces, index) => {
    // After `-c` comes a text with assignments of its own.
    if (program !== "let" && !/^-\w*c$/.test(literalOf(args[index - 1] ?? []) ?? "")) takeSetting(pieces, into);
  });
  switch (program) {
    case "let":
      for (const pieces of args) into.wantExpression(pieces);
      return;
    case "test":
    case "[":
      takeTest(args, into);
      break;
    case "unset":
      for (const pieces of args) into.wantName(pieces);
      return;
    case "declare":
    case "typeset":
    case "local":
    case "readonly":
    case "export":
      takeDeclaration(program, rest, into);
      break;
    case "source":
    case ".":
      if (args.some((pieces) => /^\/(?:dev|proc)\/|^\0/.test(literalOf(pieces) ?? "\0"))) into.setAny();
      return;
    case "eval":
    case "trap":
      if (args.some((pieces) => SETS.test(literalOf(pieces) ?? "="))) into.setAny();
      return;
    case "compgen":
    case "complete":
      for (const pieces of args) into.want(valueFrom(pieces), PLAIN);
      return;
    case "read":
    case "mapfile":
    case "readarray":
    case "getopts":
    case "printf":
    case "wait":
      takeNames(program, args, into);
      break;
  }
};

/** A text that could set variables. */
const SETS = /=|\b(?:declare|export|for|getopts|local|mapfile|printf|read|readarray|readonly|select|typeset)\b/;

/** `env n=5 …`, `export n=5`: a word that looks like an assignment may be one. */
const takeSetting = (pieces: Pieces, into: Evaluations): void => {
  const { name, value } = splitSetting(pieces);
  const text = literalOf(name);
  if (value && text !== undefined && /^\w+\+?$/.test(text)) into.set(text.replace(/\+$/, ""), valueFrom(value));
};

const splitSetting = (pieces: Pieces): { readonly name: Pieces; readonly value: Pieces | undefined } => {
  const at = pieces.findIndex((piece) => piece.kind === "text" && piece.text.includes("="));
  const split = pieces[at];
  if (split?.kind !== "text") return { name: pieces, value: undefined };
  const equals = split.text.indexOf("=");
  return {
    name: [...pieces.slice(0, at), { kind: "text", text: split.text.slice(0, equals) }],
    value: [{ kind: "text", text: split.text.slice(equals + 1) }, ...pieces.slice(at + 1)],
  };
};

const BINARY = /^(?:==?|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef|a|o)|\]|\))$/;

/** `-v` evaluates a variable with its index. A computed word could be `-v`, unless its position rules that out. */
const takeTest = (args: readonly Pieces[], into: Evaluations): void => {
  args.forEach((pieces, at) => {
    const next = args[at + 1];
    const text = literalOf(pieces);
    if (next && (text === "-v" || text === "-R")) into.wantName(next);
    if (text !== undefined) return;
    if (pieces.some((piece) => piece.kind === "computed" && piece.spreads)) into.want(valueFrom(pieces), PLAIN);
    const starts = pieces[0]?.kind === "computed" || /^-?$/.test(textOf(pieces[0]));
    const before = literalOf(args[at - 1] ?? []);
    const isOperand = BINARY.test(literalOf(next ?? []) ?? "") || (before !== undefined && /^-./.test(before));
    if (starts && !isOperand && next) into.want(valueFrom(next), PLAIN);
  });
};

const textOf = (piece: Piece | undefined): string => (piece?.kind === "text" ? piece.text : "");

/** Options with their values, and what follows them. */
type Arguments = {
  readonly options: readonly { readonly letter: string; readonly value: Pieces }[];
  readonly operands: readonly Pieces[];
  /** Words that could be options with an attached name. */
  readonly doubtful: readonly Pieces[];
};

const readArguments = (args: readonly Pieces[], valued: string): Arguments => {
  const options: { readonly letter: string; readonly value: Pieces }[] = [];
  const doubtful: Pieces[] = [];
  for (let at = 0; at < args.length; at++) {
    const pieces = args[at] ?? [];
    const cluster = textOf(pieces[0]);
    const isComputed = pieces.some(({ kind }) => kind === "computed");
    if (cluster === "--" && !isComputed) return { options, operands: args.slice(at + 1), doubtful };
    if (!/^-./.test(cluster)) {
      if (isComputed && /^-?$/.test(cluster)) doubtful.push(pieces);
      return { options, operands: args.slice(at), doubtful };
    }
    const letters = [...cluster].slice(1);
    const taking = letters.findIndex((letter) => valued.includes(letter));
    for (const letter of taking === -1 ? letters : letters.slice(0, taking)) options.push({ letter, value: [] });
    if (taking === -1 && isComputed) doubtful.push(pieces);
    if (taking === -1) continue;
    const glued: Pieces = [{ kind: "text", text: letters.slice(taking + 1).join("") }, ...pieces.slice(1)];
    const isGlued = pieces.length > 1 || taking < letters.length - 1;
    options.push({ letter: letters[taking] ?? "", value: isGlued ? glued : (args[++at] ?? []) });
  }
  return { options, operands: [], doubtful };
};

const takeNames = (program: string, args: readonly Pieces[], into: Evaluations): void => {
  const { options, operands, doubtful } = readArguments(args, VALUED[program] ?? "");
  for (const { letter, value } of options) {
    if ((program === "read" && letter === "a") || (program === "printf" && letter === "v")) into.wantName(value, READ);
    if (program === "wait" && letter === "p") into.wantName(value, COUNTED);
    if (letter === "C" || letter === "O") into.want(valueFrom(value), PLAIN);
  }
  for (const pieces of doubtful) into.want(valueFrom(pieces), PLAIN);
  if (program === "printf" || program === "wait") return;
  const names = program === "getopts" ? operands.slice(1, 2) : operands;
  for (const name of names) into.wantName(name, READ);
};

const takeDeclaration = (program: string, rest: readonly (Word | Assignment)[], into: Evaluations): void => {
  const words = rest.filter((word) => word.type === "Word").map(piecesOf);
  const letters = words.flatMap((pieces) => (/^[-+]\w/.test(textOf(pieces[0])) ? [textOf(pieces[0])] : [])).join("");
  const operands = words.filter((pieces) => !/^[-+]\w/.test(textOf(pieces[0])));
  const assignments = rest.filter((word) => word.type === "Assignment");
  const settings = [
    ...operands.map(splitSetting),
    ...assignments.map(({ name, value }) => ({
      name: piecesOf({ parts: undefined, value: name }),
      value: value.type === "Word" ? piecesOf(value) : undefined,
    })),
  ];
  // Anything may be set through a reference.
  if (letters.includes("n")) into.setAny();
  for (const { name, value } of settings) {
    const text = literalOf(name)?.replace(/\+$/, "");
    // These two set nothing but plain names.
    if (program !== "export" && program !== "readonly") into.wantName(name);
    else if (text === undefined) into.setAny();
    if (text !== undefined && letters.includes("i")) into.want({ level: NUMBER, names: [text] }, NUMBER);
    if (text !== undefined && letters.includes("n")) into.want({ level: NUMBER, names: [text] }, PLAIN);
    if (!value) continue;
    // A text in parentheses is read as the elements of an array.
    if (/[aA]/.test(letters) || /^\s*\(/.test(textOf(value[0]))) into.want(valueFrom(value), PLAIN);
    else if (text !== undefined) into.wantElements(text, valueFrom(value));
  }
};
