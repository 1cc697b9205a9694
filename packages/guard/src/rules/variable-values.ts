/** What could a word or a variable of a shell text contain: a number, a plain word, or a text that is not visible?
 *  Invariant: errs towards "unseen". A number is only digits and operators; a plain word has no `[`, so bash finds no index in it to
 *  evaluate. A variable that the text does not set comes from our own environment and is trusted.
 *  Elsewhere: where bash evaluates such values (evaluated-texts.ts). */

import type { Command, ParsedScript, Word, WordPart } from "unbash";

export const NUMBER = 0;
export const PLAIN = 1;
export const UNSEEN = 2;
export type Level = typeof NUMBER | typeof PLAIN | typeof UNSEEN;

/** At least of this level, and at least of the level of each of these variables. */
export type Value = { readonly level: Level; readonly names: readonly string[] };

/** A part of a word: literal text, or what the shell substitutes. */
export type Piece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "computed"; readonly value: Value; readonly spreads: boolean };

/** Levels of variables by name. */
export type Levels = {
  readonly of: ReadonlyMap<string, Level>;
  /** The text may set variables that are not known. */
  readonly isAnySet: boolean;
};

export const NO_LEVELS: Levels = { of: new Map(), isAnySet: false };

/** Stands for programs known to print numbers: a function may take their place. */
export const PRINTERS = "()";

const unseen: Value = { level: UNSEEN, names: [] };
const number: Value = { level: NUMBER, names: [] };

/** Set by bash from a text, a file or a caller. */
const FILLED_BY_BASH =
  /^(?:\d+|[@*_]|BASH_(?!SUBSHELL$|VERSINFO$)\w*|FUNCNAME|PWD|OLDPWD|DIRSTACK|REPLY|OPTARG|MAPFILE|COMP\w*|READLINE\w*|HIST\w*)$/;

const variable = (name: string): Value => {
  if (/^[?#$!-]$/.test(name)) return number;
  return FILLED_BY_BASH.test(name) ? unseen : { level: NUMBER, names: [name] };
};

export const joined = (values: readonly Value[]): Value => ({
  level: values.some(({ level }) => level === UNSEEN)
    ? UNSEEN
    : values.some(({ level }) => level === PLAIN)
      ? PLAIN
      : NUMBER,
  names: values.flatMap(({ names }) => names),
});

const ofText = (text: string): Value => {
  if (/^[\d\s+*/%().,<>=!&|^~?:-]*$/.test(text)) return number;
  return { level: /^[^[\]$`\\\0]*$/.test(text) ? PLAIN : UNSEEN, names: [] };
};

export const valueFrom = (pieces: readonly Piece[]): Value =>
  joined(pieces.map((piece) => (piece.kind === "text" ? ofText(piece.text) : piece.value)));

export const piecesOf = ({ parts, value }: Pick<Word, "parts" | "value">): readonly Piece[] =>
  parts?.flatMap((part) => piecesOfPart(part, false)) ?? [{ kind: "text", text: value }];

const computed = (value: Value, spreads: boolean): readonly Piece[] => [{ kind: "computed", value, spreads }];

const piecesOfPart = (part: WordPart, quoted: boolean): readonly Piece[] => {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return [{ kind: "text", text: part.value }];
    case "DoubleQuoted":
    case "LocaleString":
      return part.parts.flatMap((inner) => piecesOfPart(inner, true));
    case "SimpleExpansion":
      return computed(variable(part.text.slice(1)), !quoted || part.text === "$@");
    case "ParameterExpansion":
      return computed(ofExpansion(part), !quoted || part.text.includes("@"));
    case "ArithmeticExpansion":
      return computed(number, false);
    case "CommandExpansion":
      return computed(ofOutput(part.script), !quoted);
    case "BraceExpansion":
      return computed(/^\{[\d.,-]+\}$/.test(part.text) ? number : unseen, true);
    default:
      return computed(unseen, true);
  }
};

type Expansion = Extract<WordPart, { readonly type: "ParameterExpansion" }>;

const ofExpansion = ({ prefix, parameter, operation }: Expansion): Value => {
  if (prefix === "#") return number;
  if (prefix === "!") return unseen;
  const own = variable(parameter);
  switch (operation?.type) {
    case undefined:
    case "Slice":
    case "Remove":
    case "CaseModification":
      return own;
    case "Default": {
      const given = valueFrom(piecesOf(operation.operand));
      return operation.operator.endsWith("+") ? given : joined([own, given]);
    }
    case "Replace":
      return joined([own, valueFrom(piecesOf(operation.replacement))]);
    default:
      return unseen;
  }
};

/** What the last command of a substitution prints. */
export const ofOutput = (script: ParsedScript | undefined): Value => {
  const [statement, ...more] = script?.commands ?? [];
  const node = statement?.command;
  const last = node?.type === "Pipeline" ? node.commands.at(-1) : node;
  if (more.length > 0 || last?.type !== "Command" || !printsNumber(last)) return unseen;
  return { level: NUMBER, names: [PRINTERS] };
};

/** By program: whether these arguments make it print only numbers. */
const NUMBER_PRINTERS: Readonly<Record<string, (args: readonly string[]) => boolean>> = {
  wc: (args) => args.every((text) => /^-[clmwL]+$|^--(?:bytes|chars|lines|words)$/.test(text)),
  nproc: (args) => args.every((text) => text === "--all"),
  seq: (args) => args.every((text) => /^-?\d+$/.test(text)),
  id: ([option, ...more]) => /^-[ug]$/.test(option ?? "") && more.length === 0,
  tput: ([what, ...more]) => /^(?:cols|lines)$/.test(what ?? "") && more.length === 0,
  date: ([format = "", ...more]) => /^\+(?:%[sNYmdHMSjuwy])+$/.test(format) && more.length === 0,
  stat: ([option, format, file = "-", ...more]) =>
    option === "-c" && /^%[sYXZhug]$/.test(format ?? "") && !file.startsWith("-") && more.length === 0,
  grep: (args) => {
    const options = args.filter((text) => text.startsWith("-"));
    const operands = args.length - options.length;
    return options.some((text) => text.includes("c")) && options.every(isCounting) && operands > 0 && operands < 3;
  },
};

const isCounting = (option: string): boolean => /^-[cEFPivwxs]+$/.test(option);

const printsNumber = ({ name, suffix }: Command): boolean => {
  const words = suffix.flatMap((part) => (part.type === "Word" ? [literalOf(piecesOf(part))] : []));
  const program = name && literalOf(piecesOf(name));
  if (program === undefined || !Object.hasOwn(NUMBER_PRINTERS, program)) return false;
  const args = words.filter((text) => text !== undefined);
  return args.length === words.length && NUMBER_PRINTERS[program]?.(args) === true;
};

/** The text of a word in which nothing is computed. */
export const literalOf = (pieces: readonly Piece[]): string | undefined => {
  if (!pieces.every((piece) => piece.kind === "text" && !piece.text.includes("\0"))) return undefined;
  return pieces.map((piece) => (piece.kind === "text" ? piece.text : "")).join("");
};

/** The values of variables, from all their assignments. */
export type Settings = ReadonlyMap<string, { readonly level: Level; readonly names: ReadonlySet<string> }>;

/** Each variable's level, from its values and the variables in them; a level rises at most twice. */
export const levelsOf = (settings: Settings, outer: Levels): ReadonlyMap<string, Level> => {
  const levels = new Map(outer.of);
  const readers = new Map<string, string[]>();
  for (const [name, { names }] of settings) {
    for (const read of names) {
      const known = readers.get(read);
      if (known) known.push(name);
      else readers.set(read, [name]);
    }
  }
  const waiting: { readonly name: string; readonly level: Level }[] = [
    ...[...settings].map(([name, { level }]) => ({ name, level })),
    ...[...outer.of].flatMap(([read, level]) => (readers.get(read) ?? []).map((name) => ({ name, level }))),
  ];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { name, level } = next;
    if ((levels.get(name) ?? NUMBER) >= level) continue;
    levels.set(name, level);
    for (const reader of readers.get(name) ?? []) waiting.push({ name: reader, level });
  }
  return levels;
};
