/** Words with their quotes resolved.
 *  Invariant: a word is literal text, file name patterns, and a leading `~`; anything the shell would compute (variables,
 *  substitutions, arithmetic) is refused. The parser's reading of a word and our own must agree.
 *  Elsewhere: statements and redirections (syntax.ts). */

import type { Word, WordPart } from "unbash";
import type { PlanWord } from "./plan.ts";
import { Refusal } from "./refusal.ts";

/** A piece of a word: literal text, or an unquoted pattern character. */
type Piece = { readonly text: string; readonly pattern: boolean; readonly status?: true };

const MAX_BRACE_WORDS = 32;

/** The word, or the words that its braces expand to. */
export const readWord = (word: Word): readonly PlanWord[] => {
  // Most words consist only of these characters.
  if (!word.parts && word.value === word.text && /^[\w./:=,@%+-]+$/.test(word.text)) return [{ text: word.text }];
  const parts: readonly WordPart[] = word.parts ?? [
    { type: "Literal", pos: word.pos, end: word.end, value: word.value, text: word.text },
  ];
  const ofHome = HOME.test(word.text);
  let alternatives: Piece[][] = [[]];
  for (const [index, part] of parts.entries()) {
    alternatives = combine(alternatives, readPart(ofHome && index === 0 ? withTilde(part) : part));
  }
  if (/^~[^/]/.test(word.text))
    throw new Refusal("names another user's home, or quotes part of a word after ~; write the path out");
  if (/^!(?!=?$)/.test(word.text))
    throw new Refusal("starts with an unquoted `!`, which may recall an earlier command; quote it");
  return alternatives.map((pieces) => finish(pieces, ofHome || /^~/.test(word.text)));
};

/** `$HOME` at the start of a word, in double quotes or not, means `~`. It is the only variable that is supported. */
const HOME = /^"?\$(HOME\b|\{HOME\})/;

const withTilde = (part: WordPart): WordPart => {
  const tilde = { type: "Literal", pos: part.pos, end: part.end, value: "~", text: "~" } as const;
  if (part.type !== "DoubleQuoted") return isHome(part.text) ? tilde : part;
  const [first, ...more] = part.parts;
  return first && isHome(first.text) ? { ...part, parts: [tilde, ...more] } : part;
};

const isHome = (text: string): boolean => /^\$(HOME|\{HOME\})$/.test(text);

const combine = (words: Piece[][], choices: readonly (readonly Piece[])[]): Piece[][] => {
  const [only, ...more] = choices;
  // Appended in place; otherwise a word of many parts would be copied for each part.
  if (only && more.length === 0) {
    for (const word of words) word.push(...only);
    return words;
  }
  if (words.length * choices.length > MAX_BRACE_WORDS)
    throw new Refusal("braces expand to too many words; write fewer");
  return words.flatMap((word) => choices.map((choice) => [...word, ...choice]));
};

const finish = (pieces: readonly Piece[], tilde: boolean): PlanWord => {
  const isPattern = pieces.some(({ pattern }) => pattern);
  const plain = pieces.map(({ text }) => text).join("");
  if (tilde && !/^~(\/|$)/.test(plain)) throw new Refusal("names another user's home; write the path out");
  const home = tilde ? ({ home: true } as const) : {};
  if (pieces.some(({ status }) => status)) {
    if (isPattern || tilde || pieces.some(({ text, status }) => !status && text.includes("$?")))
      throw new Refusal('mixes $? with other expansions; write echo "exit $?"');
    return { text: plain, status: true };
  }
  if (!isPattern) return { text: plain, ...home };
  // bash keeps the text if no file matches, and a file cannot be named so that it passes as an option.
  if (/^--[a-z-]+=/.test(plain)) return { text: plain };
  if (plain.startsWith("-"))
    throw new Refusal("a pattern that starts with a dash could expand to an option; put ./ before it");
  const text = pieces
    .map(({ text, pattern }) => (pattern ? text : text.replace(/[\\*?[\]{}()!|+@]/g, "\\$&")))
    .join("");
  return { text, pattern: true, ...home };
};

const onePiece = (text: string, pattern = false): readonly (readonly Piece[])[] => [[{ text, pattern }]];

const readPart = (part: WordPart): readonly (readonly Piece[])[] => {
  switch (part.type) {
    case "Literal":
      return onePiece(requireAgreement(part.value, withoutEscapes(part.text)));
    case "SingleQuoted":
      return onePiece(requireAgreement(part.value, part.text.slice(1, -1)));
    case "DoubleQuoted":
      return [part.parts.map(readQuoted)];
    case "AnsiCQuoted":
      return onePiece(requireAgreement(part.value, unescapeAnsi(part.text)));
    case "Glob":
      return onePiece(readGlob(part.text), true);
    case "BraceExpansion":
      return readBraces(part.text);
    case "SimpleExpansion":
    case "ParameterExpansion":
      if (part.text === "$?") return [[STATUS]];
      throw new Refusal(`uses ${part.text}; write the value out`);
    case "CommandExpansion":
    case "ProcessSubstitution":
      throw new Refusal("runs a command inside another; run it first, then use its output");
    case "ArithmeticExpansion":
      throw new Refusal("computes a number; write the number out");
    case "ExtendedGlob":
      throw new Refusal("uses an extended pattern; use * or find -name");
    case "LocaleString":
      throw new Refusal('uses $"…"; use plain quotes');
  }
};

/** The exit code of the previous step: a number, so it can be printed as it is. */
const STATUS: Piece = { text: "$?", pattern: false, status: true };

const readQuoted = (part: Extract<WordPart, { readonly type: "DoubleQuoted" }>["parts"][number]): Piece => {
  if (part.type === "Literal") {
    const text = part.text.replace(/\\\n/g, "").replace(/\\([$`"\\])/g, "$1");
    return { text: requireAgreement(part.value, text), pattern: false };
  }
  if (part.text === "$?") return STATUS;
  if (part.type === "CommandExpansion")
    throw new Refusal("runs a command inside another; run it first, then use its output");
  throw new Refusal(`uses ${part.text}; write the value out, or use single quotes for literal text`);
};

/** Compares two readings of the same text. If they differ, some shell gives the text a meaning that we do not see. */
const requireAgreement = (theirs: string, ours: string): string => {
  if (theirs !== ours) throw new Refusal("a word is quoted in an unusual way; use single quotes");
  return theirs;
};

/** Braces without a comma or a range are literal (`stash@{0}`, `{}`). The parser says so, and their form must agree. */
const withoutEscapes = (text: string): string => {
  if (!/[\\{}[]/.test(text)) return text;
  const unquoted = text.replace(/\\./gs, "");
  if (unquoted.includes("$[")) throw new Refusal("computes a number; write the number out");
  if (/[{}]/.test(unquoted.replace(/\{[^{},]*\}/g, (group) => (group.includes("..") ? group : "")))) {
    throw new Refusal("contains unquoted braces; quote them");
  }
  return text.replace(/\\\n/g, "").replace(/\\(.)/gs, "$1");
};

const ANSI: Readonly<Record<string, string>> = { t: "\t", n: "\n", "\\": "\\", "'": "'", '"': '"' };

const unescapeAnsi = (text: string): string =>
  text.slice(2, -1).replace(/\\(.)/gs, (_, letter: string) => {
    const character = ANSI[letter];
    if (character === undefined) throw new Refusal(`uses \\${letter} in $'…'; write the character itself`);
    return character;
  });

const readGlob = (text: string): string => {
  if (/^(\*+|\?+|\[[\w.^!-]+\])$/.test(text)) return text;
  throw new Refusal("uses an unusual pattern; quote it or use find -name");
};

const readBraces = (text: string): readonly (readonly Piece[])[] => {
  const [, from, to] = /^\{(0|[1-9]\d{0,3})\.\.(0|[1-9]\d{0,3})\}$/.exec(text) ?? [];
  if (from !== undefined && to !== undefined) return numbers(Number(from), Number(to));
  const list = /^\{([\w./-]*(?:,[\w./-]*)+)\}$/.exec(text)?.[1];
  if (list === undefined) throw new Refusal("braces expand to something unusual; write the words out");
  return list.split(",").map((choice) => [{ text: choice, pattern: false }]);
};

const numbers = (from: number, to: number): readonly (readonly Piece[])[] => {
  const count = Math.abs(to - from) + 1;
  if (count > MAX_BRACE_WORDS) throw new Refusal("braces expand to too many words; write fewer");
  const step = Math.sign(to - from);
  return Array.from({ length: count }, (_, index) => [{ text: String(from + index * step), pattern: false }]);
};
