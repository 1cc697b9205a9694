/** Every simple command that a shell text could run, as words: for rules, notes and suggestions.
 *  Invariant: commands inside substitutions, loops, functions and here-documents are all listed. What the shell would compute is
 *  marked in the word and never guessed. A text that cannot be parsed completely says so and gives no commands.
 *  Elsewhere: which texts are read-only and may run as a plan (bash/), what the words mean to a rule (bash-rules.ts). */

import {
  type Command,
  forEachChild,
  type ParsedScript,
  parse,
  type Redirection,
  type SyntaxNode,
  type Word,
  type WordPart,
} from "unbash";
import { EvaluatedTexts } from "./evaluated-texts.ts";
import { type Levels, NO_LEVELS } from "./variable-values.ts";
import { reachOfWord, VariableReach, type WordReach } from "./word-reach.ts";

/** Marks where the shell computes a part of a word: it could be any text. */
export const COMPUTED = "\0";

export type ShellWord = {
  /** Quotes resolved, with COMPUTED in place of variables, substitutions and patterns. */
  readonly text: string;
  /** Could become several words, or none. */
  readonly spreads: boolean;
  /** Starts with an unquoted `~`. */
  readonly home: boolean;
  /** How far the computed part could lead, as a path. Absent: nothing in it is computed, or only a message is. */
  readonly reach?: WordReach;
};

export type ShellRedirect = { readonly operator: string; readonly target: ShellWord | undefined };

export type ShellCommand = {
  readonly words: readonly ShellWord[];
  /** Variables set in front of it, or in place of it. */
  readonly assignments: readonly string[];
  /** Their values, if each is one word. */
  readonly assigned: readonly { readonly name: string; readonly value: ShellWord }[];
  readonly redirects: readonly ShellRedirect[];
  /** Texts it gets on standard input: here-documents and here-strings. */
  readonly input: readonly ShellWord[];
  /** Standard input comes from another command. */
  readonly piped: boolean;
};

export type ShellReading =
  | {
      readonly kind: "read";
      readonly commands: readonly ShellCommand[];
      readonly definesFunction: boolean;
      /** Bash would evaluate a text in it, and that text could run any command. */
      readonly evaluatesUnseen: boolean;
      /** What its variables contain, for texts in its words. */
      readonly levels: Levels;
      /** Where its variables could lead, as paths. */
      readonly reaches: Levels;
    }
  | { readonly kind: "unread"; readonly reason: string };

const LONGEST_TEXT = 10_000;
const MOST_COMMANDS = 200;
/** The parser tries each of these against the rest of the text. */
const MOST_OPENED: readonly (readonly [sign: string, name: string, most: number])[] = [
  ["{", "braces", 400],
  ["[", "brackets", 400],
  ["<<", "here-documents", 200],
];

const unread = (reason: string): ShellReading => ({ kind: "unread", reason });

/** Parses a text. `outer`: it was a word of another text with these variables, so it may contain COMPUTED. */
export const readShell = (text: string, outer?: Levels, reaches: Levels = NO_LEVELS): ShellReading => {
  if (text.length > LONGEST_TEXT) return unread(`it is longer than ${LONGEST_TEXT} characters`);
  for (const [sign, name, most] of MOST_OPENED)
    if (text.split(sign).length > most) return unread(`it contains more than ${most} ${name}`);
  if (!outer && text.includes(COMPUTED)) return unread("it contains a NUL character");
  if (/[^\P{Cc}\t\n\0]/u.test(text)) return unread("it contains a control character");
  try {
    return readScript(parse(text), outer ?? NO_LEVELS, reaches);
  } catch {
    return unread("it does not parse");
  }
};

type Visit = {
  readonly node: SyntaxNode;
  readonly piped: boolean;
  /** From the enclosing groups and loops: each command in them gets these. */
  readonly enclosing: readonly Redirection[];
};

const readScript = (script: ParsedScript, outer: Levels, outerReaches: Levels): ShellReading => {
  const commands: ShellCommand[] = [];
  const evaluated = new EvaluatedTexts();
  const variables = new VariableReach();
  let definesFunction = false;
  // A list instead of recursion: the author of the text chooses the depth, and our stack is limited.
  const waiting: Visit[] = [{ node: script, piped: false, enclosing: [] }];
  for (let visit = waiting.pop(); visit !== undefined; visit = waiting.pop()) {
    const { node, piped, enclosing: around } = visit;
    if ("errors" in node && node.errors?.length) return unread("it does not parse");
    if (node.type === "Function") definesFunction = true;
    evaluated.take(node);
    variables.take(node);
    if (node.type === "Command") commands.push(readCommand(node, piped, around));
    if (commands.length > MOST_COMMANDS) return unread(`it contains more than ${MOST_COMMANDS} commands`);
    const children: Visit[] = [];
    const inside = node.type === "Redirected" ? [...around, ...node.redirects] : around;
    forEachChild(node, (child) => {
      const readsPipe = node.type === "Pipeline" && node.commands.indexOf(child as (typeof node.commands)[number]) > 0;
      children.push({ node: child, piped: piped || readsPipe, enclosing: inside });
    });
    waiting.push(...children.reverse());
  }
  const { evaluatesUnseen, levels } = evaluated.settle(outer);
  const reaches = variables.settle({ ...outerReaches, isAnySet: outerReaches.isAnySet || levels.isAnySet });
  return { kind: "read", commands, definesFunction, evaluatesUnseen, levels, reaches };
};

const readCommand = (
  { name, prefix, suffix }: Command,
  piped: boolean,
  enclosing: readonly Redirection[],
): ShellCommand => {
  const words = name ? [readWord(name)] : [];
  const assignments: string[] = [];
  const assigned: { readonly name: string; readonly value: ShellWord }[] = [];
  const redirects: ShellRedirect[] = [];
  const input: ShellWord[] = [];
  for (const part of [...prefix, ...suffix]) {
    if (part.type === "Word") words.push(readWord(part));
    else if (part.type !== "Assignment") takeRedirection(part, { redirects, input });
    else if (name && part.pos > name.pos) words.push(assignedWord(part));
    else {
      assignments.push(part.name);
      if (part.value?.type === "Word") assigned.push({ name: part.name, value: readWord(part.value) });
    }
  }
  for (const part of enclosing) takeRedirection(part, { redirects, input });
  return { words, assignments, assigned, redirects, input, piped };
};

const takeRedirection = (part: Redirection, into: { redirects: ShellRedirect[]; input: ShellWord[] }): void => {
  if (part.type === "HereDoc") {
    const pieces = part.body.parts?.map(readPart);
    into.input.push({ text: pieces?.map(({ text }) => text).join("") ?? part.body.text, spreads: false, home: false });
  } else if (part.type === "HereString") {
    if (part.target) into.input.push(readWord(part.target));
  } else {
    into.redirects.push({ operator: part.operator, target: part.target && readWord(part.target) });
  }
};

type AssignmentNode = Extract<Command["suffix"][number], { readonly type: "Assignment" }>;

/** `export a=b` passes `a=b` as an argument. */
const assignedWord = ({ name, value }: AssignmentNode): ShellWord => {
  const { text, reach } = value.type === "Word" ? readWord(value) : { text: COMPUTED };
  return { text: `${name}=${text}`, spreads: false, home: false, ...(reach ? { reach } : {}) };
};

type Piece = { readonly text: string; readonly spreads: boolean };

const readWord = (word: Word): ShellWord => {
  const pieces = word.parts?.map(readPart) ?? [plain(word.value)];
  const text = pieces.map((piece) => piece.text).join("");
  const reach = text.includes(COMPUTED) ? reachOfWord(word) : undefined;
  return {
    text,
    spreads: pieces.some(({ spreads }) => spreads),
    home: word.text.startsWith("~"),
    ...(reach ? { reach } : {}),
  };
};

/** Unquoted text of an inner text may contain what the outer shell computed. */
const plain = (text: string): Piece => ({ text, spreads: text.includes(COMPUTED) });

const readPart = (part: WordPart): Piece => {
  switch (part.type) {
    case "Literal":
      return plain(part.value);
    case "SingleQuoted":
    case "AnsiCQuoted":
      return { text: part.value, spreads: false };
    case "DoubleQuoted":
    case "LocaleString":
      return {
        text: part.parts.map((inner) => (inner.type === "Literal" ? inner.value : COMPUTED)).join(""),
        // "$@" and "${list[@]}" become one word for each item.
        spreads: part.parts.some((inner) => inner.type !== "Literal" && inner.text.includes("@")),
      };
    default:
      return { text: COMPUTED, spreads: true };
  }
};

/** Whether the word could be this text. A computed part may be anything. */
export const couldBe = (word: string, text: string): boolean => {
  if (!word.includes(COMPUTED)) return word === text;
  const [first = "", ...rest] = word.split(COMPUTED);
  const last = rest.pop() ?? "";
  if (text.length < first.length + last.length) return false;
  if (text.slice(0, first.length) !== first || text.slice(text.length - last.length) !== last) return false;
  let at = first.length;
  for (const piece of rest) {
    const found = text.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return at <= text.length - last.length;
};

export const isLiteral = ({ text }: ShellWord): boolean => !text.includes(COMPUTED);
