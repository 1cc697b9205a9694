/** awk: a small grammar of programs that only print.
 *  Invariant: no pipe, no output file, no getline, no system, no function but known ones; a `>` counts as an output file
 *  wherever it could be one. */

import { readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { type ProgramTable, program } from "./program.ts";

const HELP = "awk may print columns and sums: awk '{print $1}' FILE";

const refuse = (what: string): never => {
  throw new Refusal(`awk: ${what}; ${HELP}`);
};

const FUNCTIONS: readonly string[] = [
  ...["length", "substr", "index", "split", "sub", "gsub", "match", "sprintf", "tolower", "toupper"],
  ...["int", "sqrt", "log", "exp", "sin", "cos", "atan2", "rand", "srand", "gensub", "strftime", "systime", "asort"],
];

const KEYWORDS: readonly string[] = [
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

const FORBIDDEN: readonly string[] = [
  ...[
    "system",
    "getline",
    "close",
    "fflush",
    "function",
    "func",
    "return",
    "nextfile",
    "ENVIRON",
    "PROCINFO",
    "SYMTAB",
    "FUNCTAB",
  ],
  ...["include", "load", "namespace", "BEGINFILE", "ENDFILE", "ARGV", "ARGC", "switch", "case", "default"],
];

type Token = { readonly kind: "word" | "number" | "text" | "regex" | "sign" | "newline"; readonly text: string };

const PATTERNS: readonly (readonly [Token["kind"] | "space", RegExp])[] = [
  ["space", /[ \t]+|\\\n|#[^\n]*/y],
  ["newline", /\n/y],
  ["text", /"(?:[^"\\\n]|\\[^\n])*"/y],
  ["number", /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+/y],
  ["word", /[A-Za-z_]\w*/y],
  ["sign", /\|\||&&|==|!=|<=|>=|!~|\+\+|--|\+=|-=|\*=|\/=|%=|\^=|[-+*%^!<>=~?:,;(){}[\]$]/y],
];

/** A slash starts a pattern where a value may start, and divides elsewhere. In brackets there is neither slash nor
 *  bracket: not every awk agrees on where such a pattern ends. */
const REGEX = /\/(?:[^/\\\n[]|\\[^\n]|\[\^?(?:\[:[a-z]+:\]|[^\][\\/\n]|\\[^\][/\n])+\])+\//y;

/** Words and signs after which some awks divide and others start a pattern. */
const UNSURE: readonly string[] = ["++", "--", ...FUNCTIONS];

/** After the brackets of `if`, `while` and `for` some awks start a pattern, after others all divide. */
const closesHeader = (tokens: readonly Token[]): boolean => {
  let depth = 0;
  for (let at = tokens.length - 1; at >= 0; at -= 1) {
    if (tokens[at]?.text === ")") depth += 1;
    if (tokens[at]?.text === "(") depth -= 1;
    if (depth === 0) return /^(if|while|for)$/.test(tokens[at - 1]?.text ?? "");
  }
  return true;
};

const isUnsure = (tokens: readonly Token[]): boolean => {
  const before = tokens.at(-1);
  if (!before) return false;
  return UNSURE.includes(before.text) || before.kind === "regex" || (before.text === ")" && closesHeader(tokens));
};

const tokensOf = (source: string): readonly Token[] => {
  const tokens: Token[] = [];
  let at = 0;
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
    if (source[at] === "/" && isUnsure(tokens)) return refuse(`\`${before?.text} /\` can be read in two ways`);
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
    if (found?.text === undefined) return refuse(`\`${source.slice(at, at + 10)}\` is not read`);
    if (found.kind !== "space") tokens.push({ kind: found.kind, text: found.text });
    at += found.text.length;
  }
  return tokens;
};

/** A loop on a constant. */
const neverEnds = (tokens: readonly Token[], at: number): boolean =>
  /^(number|text)$/.test(tokens[at + 2]?.kind ?? "") && tokens[at + 3]?.text === ")";

/** What a line may end in and go on. */
const GOES_ON: readonly string[] = [",", "&&", "||", "?", ":", "\n"];

export const checkAwkProgram = (source: string): void => {
  if (source.length > 2_000) refuse("the program is too long");
  let printing = false;
  let depth = 0;
  const tokens = tokensOf(source);
  tokens.forEach(({ kind, text }, index) => {
    if (kind === "word") {
      if (FORBIDDEN.includes(text)) refuse(`${text} is not read-only`);
      if (tokens[index + 1]?.text === "(" && !FUNCTIONS.includes(text) && !KEYWORDS.includes(text))
        refuse(`${text}() is not known`);
      if (text === "while" && neverEnds(tokens, index)) refuse("the loop may never end");
      if (text === "print" || text === "printf") {
        printing = true;
        depth = 0;
      }
      return;
    }
    if (text === ";" && tokens[index + 1]?.text === ";") refuse("the loop may never end");
    if (text === ";" || text === "}" || text === "{") printing = false;
    if (kind === "newline" && !GOES_ON.includes(tokens[index - 1]?.text ?? "")) printing = false;
    if (text === "(") depth += 1;
    if (text === ")") depth -= 1;
    // Without brackets of its own, a `>` after print names a file.
    if (text === ">" && printing && depth <= 0) refuse("print may not write to a file");
  });
};

// No long options with a value: an awk that does not know them would take the value for its program.
const rule = program({ valued: "Fv", long: "version" }).rule;

const readAwk = (words: readonly PlanWord[]): readonly PlanWord[] => {
  const { options, operands } = readOptions("awk", words, { ...rule, strict: true });
  if (words.length === 1 && options.some(({ name }) => name === "version")) return words;
  const [source, ...files] = operands;
  if (!source || source.pattern || source.home) throw new Refusal(`quote the program; ${HELP}`);
  if (files.some(({ text, pattern }) => !pattern && (text.startsWith("-") || text.startsWith("/inet"))))
    refuse("options come first");
  checkAwkProgram(source.text);
  return words;
};

export const awkPrograms: ProgramTable = {
  awk: program({ read: readAwk }),
  gawk: program({ read: readAwk }),
  mawk: program({ read: readAwk }),
};
