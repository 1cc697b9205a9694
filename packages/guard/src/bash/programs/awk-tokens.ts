/** An awk program as tokens.
 *  Invariant: every character is understood, or the program is refused. It is also refused where awks disagree on what a slash
 *  starts, or on whether a line ends. A newline is a token only where it ends a statement.
 *  Elsewhere: what the tokens may say (awk.ts, awk-loops.ts, awk-growth.ts). */

import { Refusal } from "../refusal.ts";

const HELP = "a program that prints columns or sums runs without approval: awk '{print $1}' FILE";

export const refuseAwk = (what: string): never => {
  throw new Refusal(`awk: ${what}; ${HELP}`);
};

const describeUnknown = (source: string, at: number): string =>
  source[at] === "#"
    ? "a comment may not end in a backslash"
    : `\`${/.{0,10}/.exec(source.slice(at))?.[0]}\` is not understood`;

export const FUNCTIONS: readonly string[] = [
  ...["length", "substr", "index", "split", "sub", "gsub", "match", "sprintf", "tolower", "toupper"],
  ...["int", "sqrt", "log", "exp", "sin", "cos", "atan2", "rand", "srand", "gensub", "strftime", "systime", "asort"],
];

export const KEYWORDS: readonly string[] = [
  ...[
    "BEGIN",
    "END",
    "if",
    "else",
    "for",
    "while",
    "do",
    "in",
    "next",
    "exit",
    "break",
    "continue",
    "delete",
    "print",
    "printf",
  ],
];

export type AwkToken = {
  readonly kind: "word" | "number" | "text" | "regex" | "sign" | "newline";
  readonly text: string;
};

const PATTERNS: readonly (readonly [AwkToken["kind"] | "space", RegExp])[] = [
  // No comment may end in a backslash: some awks would continue it on the next line.
  ["space", /[ \t]+|\\\n|#[^\n]*(?<!\\[ \t\r]*)(?=\n|$)/y],
  ["newline", /\n/y],
  ["text", /"(?:[^"\\\n]|\\[^\n])*"/y],
  ["number", /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+/y],
  ["word", /[A-Za-z_]\w*/y],
  ["sign", /\|\||&&|==|!=|<=|>=|!~|\+\+|--|\+=|-=|\*=|\/=|%=|\^=|[-+*%^!<>=~?:,;(){}[\]$]/y],
];

/** A slash starts a pattern where a value may start, and divides elsewhere. A set in brackets may contain neither slash nor
 *  bracket, because awks disagree on where such a pattern ends. */
const REGEX = /\/(?:[^/\\\n[]|\\[^\n]|\[\^?(?:\[:[a-z]+:\]|[^\][\\/\n]|\\[^\][/\n])+\])+\//y;

/** Tokens after which some awks divide and others start a pattern. */
const AMBIGUOUS: readonly string[] = ["++", "--", ...FUNCTIONS];

/** After the parentheses of `if`, `while` and `for`, some awks start a pattern; after other parentheses, all divide. */
const closesHeader = (tokens: readonly AwkToken[]): boolean => {
  let depth = 0;
  for (let at = tokens.length - 1; at >= 0; at -= 1) {
    if (tokens[at]?.text === ")") depth += 1;
    if (tokens[at]?.text === "(") depth -= 1;
    if (depth === 0) return /^(if|while|for)$/.test(tokens[at - 1]?.text ?? "");
  }
  return true;
};

const isAmbiguous = (tokens: readonly AwkToken[]): boolean => {
  const before = tokens.at(-1);
  if (!before) return false;
  return AMBIGUOUS.includes(before.text) || before.kind === "regex" || (before.text === ")" && closesHeader(tokens));
};

/** Tokens after which a statement continues on the next line, in every awk that accepts it at all. */
const CONTINUES_LINE = /^(?:,|&&|\|\||\?|:)$/;

/** Tokens that can end a line. After any other operator, busybox skips the newline, and other awks report an error. */
const ENDS_LINE = /^(?:[;{})\]]|\+\+|--)$/;

type LineEnd = "ends" | "continues" | "ambiguous";

const lineEndAfter = (before: AwkToken | undefined, isInside: boolean): LineEnd => {
  if (before === undefined || before.kind === "newline") return "ends";
  if (before.kind === "sign" && CONTINUES_LINE.test(before.text)) return "continues";
  if (isInside || before.text === "in") return "ambiguous";
  return before.kind !== "sign" || ENDS_LINE.test(before.text) ? "ends" : "ambiguous";
};

export const awkTokens = (source: string): readonly AwkToken[] => {
  const tokens: AwkToken[] = [];
  let at = 0;
  let depth = 0;
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(source)?.[0];
  };
  while (at < source.length) {
    const before = tokens.at(-1);
    const value =
      before &&
      (before.kind === "number" ||
        before.kind === "text" ||
        before.kind === "regex" ||
        before.text === ")" ||
        before.text === "]" ||
        (before.kind === "word" && !KEYWORDS.includes(before.text)));
    if (source[at] === "/" && isAmbiguous(tokens)) return refuseAwk(`\`${before?.text} /\` can be read in two ways`);
    const regex = source[at] === "/" && !value ? take(REGEX) : undefined;
    if (regex !== undefined) {
      tokens.push({ kind: "regex", text: regex });
      at += regex.length;
      continue;
    }
    if (source[at] === "/" && value) {
      tokens.push({ kind: "sign", text: "/" });
      at += 1;
      continue;
    }
    const found = PATTERNS.map(([kind, pattern]) => ({ kind, text: take(pattern) })).find(
      ({ text }) => text !== undefined,
    );
    if (found?.text === undefined) return refuseAwk(describeUnknown(source, at));
    at += found.text.length;
    if (found.kind === "space") continue;
    if (/^[([]$/.test(found.text)) depth += 1;
    if (/^[)\]]$/.test(found.text)) depth -= 1;
    const end = found.kind === "newline" ? lineEndAfter(before, depth > 0) : undefined;
    if (end === "ambiguous")
      return refuseAwk("a line break inside an expression is ambiguous; write the expression on one line");
    if (end !== "continues") tokens.push({ kind: found.kind, text: found.text });
  }
  return tokens;
};

/** A range of token indexes, both ends included. */
export type Span = { readonly from: number; readonly to: number };

export const isIn = (at: number, { from, to }: Span): boolean => at >= from && at <= to;

export const textAt = (tokens: readonly AwkToken[], at: number): string => tokens[at]?.text ?? "";

/** The index of the bracket that closes the one at `from`. */
export const closingBracket = (tokens: readonly AwkToken[], from: number): number => {
  let depth = 0;
  for (let at = from; at < tokens.length; at += 1) {
    if (tokens[at]?.kind !== "sign") continue;
    if (/^[([{]$/.test(textAt(tokens, at))) depth += 1;
    if (/^[)\]}]$/.test(textAt(tokens, at))) depth -= 1;
    if (depth === 0) return at;
  }
  return tokens.length;
};

/** The tokens that are not inside brackets. */
export const topLevel = (part: readonly AwkToken[]): readonly string[] => {
  const found: string[] = [];
  for (let at = 0; at < part.length; at += 1) {
    if (/^[([]$/.test(textAt(part, at)) && part[at]?.kind === "sign") at = closingBracket(part, at);
    else found.push(textAt(part, at));
  }
  return found;
};

/** Operators that give a variable another value. */
export const ASSIGNMENT = /^([-+*/%^]?=|\+\+|--)$/;
