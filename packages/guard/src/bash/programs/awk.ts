/** awk: a small grammar of programs that only print.
 *  Invariant: no pipe, no output file, no getline, no system, and only known functions. A `>` counts as an output file wherever
 *  it could be one.
 *  Elsewhere: whether its loops end (awk-loops.ts), and whether the text it builds stays small (awk-growth.ts). */

import { readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { checkAwkGrowth } from "./awk-growth.ts";
import { checkAwkLoops } from "./awk-loops.ts";
import { type AwkToken, awkTokens, FUNCTIONS, KEYWORDS, refuseAwk } from "./awk-tokens.ts";
import { checkWidth, type ProgramTable, program } from "./program.ts";

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

/** Tokens after which an awk may continue past the end of a line: words that take what follows, and prefix operators. */
const isOpen = ({ kind, text }: AwkToken): boolean =>
  text === "++" || text === "--" || (kind === "word" && [...FUNCTIONS, ...KEYWORDS].includes(text));

/** Whether the name is assigned, which a function cannot be: `s = s (s ? "," : "") $1`. */
const isVariable = (tokens: readonly AwkToken[], name: string): boolean =>
  tokens.some(({ kind, text }, at) => kind === "word" && text === name && tokens[at + 1]?.text === "=");

export const checkAwkProgram = (source: string): void => {
  if (source.length > 2_000) refuseAwk("the program is longer than 2,000 characters");
  let printing = false;
  let depth = 0;
  const tokens = awkTokens(source);
  tokens.forEach(({ kind, text }, index) => {
    if (kind === "word") {
      if (FORBIDDEN.includes(text)) refuseAwk(`${text} is not read-only`);
      if (tokens[index + 1]?.text === "(" && ![...FUNCTIONS, ...KEYWORDS].includes(text) && !isVariable(tokens, text))
        refuseAwk(`${text}() is not a known function`);
      if (text === "print" || text === "printf") {
        printing = true;
        depth = 0;
      }
      return;
    }
    if (text === ";" || text === "}" || text === "{") printing = false;
    if (kind === "newline") {
      const last = tokens.slice(0, index).findLast((token) => token.kind !== "newline");
      if (!last || !isOpen(last)) printing = false;
      return;
    }
    if (text === "(") depth += 1;
    if (text === ")") depth -= 1;
    // Outside parentheses, a `>` after print names an output file.
    if (text === ">" && ((printing && depth <= 0) || tokens[index - 1]?.kind === "newline"))
      refuseAwk("print may not write to a file");
  });
  checkAwkGrowth(tokens, checkAwkLoops(tokens));
};

// No long options with a value: an awk that does not know them would take the value as its program.
const rule = program({ valued: "Fv", long: "version" }).rule;

const readAwk = (words: readonly PlanWord[]): readonly PlanWord[] => {
  const { options, operands } = readOptions("awk", words, { ...rule, optionsFirst: true });
  if (words.length === 1 && options.some(({ name }) => name === "version")) return words;
  const [source, ...files] = operands;
  if (!source || source.pattern || source.home) throw new Refusal("quote the program: awk '{print $1}' FILE");
  if (files.some(({ text, pattern }) => !pattern && (text.startsWith("-") || text.startsWith("/inet"))))
    refuseAwk("options come first");
  checkAwkProgram(source.text);
  // Variables set on the command line can be formats, too.
  for (const { value = "" } of options) checkWidth("awk", value);
  for (const { text } of files) if (text.includes("=")) checkWidth("awk", text);
  return words;
};

export const awkPrograms: ProgramTable = {
  awk: program({ read: readAwk }),
  gawk: program({ read: readAwk }),
  mawk: program({ read: readAwk }),
};
