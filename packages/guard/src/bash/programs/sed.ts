/** sed: a small grammar of scripts that only print.
 *  Invariant: addresses, and the commands p, P, d, D, q, Q, n, N, h, H, g, G, x, =, l, y and s without w and e. Nothing reads or
 *  writes another file, runs anything, loops without reading a line, or doubles what it keeps. Where seds disagree on where a
 *  pattern ends, or on which word is the script, no reading of it names a file. */

import { type ParsedArguments, readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { checkRepetition, type ProgramTable, program } from "./program.ts";

const SCRIPT_HELP = "only simple sed scripts run without approval: sed -n '10,20p' FILE, or sed 's/a/b/' FILE";

const refuse = (): never => {
  throw new Refusal(SCRIPT_HELP);
};

/** The end of a part that is closed by a delimiter. The delimiter may be escaped; a newline is not allowed inside. */
const endOfPart = (script: string, from: number, delimiter: string): number => {
  for (let at = from; at < script.length; at += 1) {
    if (script[at] === "\\") at += 1;
    else if (script[at] === delimiter) return at;
    else if (script[at] === "\n") return refuse();
  }
  return refuse();
};

/** A bracketed set, in a form on whose end all seds agree. */
const SET = /\[\^?\]?(?:\[:[a-z]+:\]|[^\][\\\n]|\\[^\][\\\n])*\]/y;

/** The end of a pattern. The delimiter may also occur in a set. A sed that ends the pattern there stops with an error, but
 *  only after reading the flags, and by then it has truncated the file they name: see `checkFlags`. */
const endOfPattern = (script: string, from: number, delimiter: string): number => {
  for (let at = from; at < script.length; at += 1) {
    if (script[at] === "\\") at += 1;
    else if (script[at] === delimiter) return at;
    else if (script[at] === "\n") return refuse();
    else if (script[at] === "[") {
      SET.lastIndex = at;
      at += (SET.exec(script)?.[0] ?? refuse()).length - 1;
    }
  }
  return refuse();
};

/** Flags, up to the one that names a file. */
const WRITES = /^[gpiImMe\d\s]*w/;

/** If a set contains the delimiter, the text after any later delimiter may be read as the flags. */
const checkFlags = (script: string, from: number, end: number): void => {
  const delimiter = script[from - 1] as string;
  const unescaped = script.slice(from).replace(/\\./gs, "  ");
  const inSet = unescaped.slice(0, end - from).indexOf(delimiter);
  if (inSet < 0) return;
  const [, ...after] = unescaped.slice(inSet).split(delimiter);
  if (after.some((part) => WRITES.test(part))) refuse();
};

const skip = (script: string, from: number, what: RegExp): number => {
  let at = from;
  while (at < script.length && what.test(script[at] as string)) at += 1;
  return at;
};

const readAddress = (script: string, from: number): number => {
  const first = script[from] ?? "";
  if (/\d/.test(first)) {
    const at = skip(script, from, /\d/);
    return script[at] === "~" ? skip(script, at + 1, /\d/) : at;
  }
  if (first === "$") return from + 1;
  if (first === "/") return skip(script, endOfPattern(script, from + 1, "/") + 1, /[IM]/);
  if (first === "\\" && /[|#,:@!%_;~]/.test(script[from + 1] ?? "")) {
    return skip(script, endOfPattern(script, from + 2, script[from + 1] as string) + 1, /[IM]/);
  }
  if (first === "+" || first === "~") return skip(script, from + 1, /\d/);
  return from;
};

const readCommand = (script: string, from: number): number => {
  const letter = script[from] ?? "";
  if (/[pPdDnNhHgGx=l]/.test(letter)) return from + 1;
  if (/[qQ]/.test(letter)) return skip(script, skip(script, from + 1, / /), /\d/);
  if (letter !== "s" && letter !== "y") return refuse();
  const delimiter = script[from + 1] ?? "";
  if (!/[/|#,:@!%_;~+=]/.test(delimiter)) return refuse();
  const pattern = endOfPattern(script, from + 2, delimiter);
  checkFlags(script, from + 2, pattern);
  const replacement = endOfPart(script, pattern + 1, delimiter);
  if (letter === "s") return skip(script, replacement + 1, /[gpiI0-9]/);
  // In y, brackets are plain letters, so the part would end elsewhere.
  return script.slice(from, replacement).includes("[") ? refuse() : replacement + 1;
};

/** The usual way to join all lines before substituting: a loop that ends because it reads a line each time. */
const ALL_LINES = /^\s*:([a-z])[ \t]*[;\n]\s*N[ \t]*[;\n]\s*\$![ \t]*b[ \t]*\1[ \t]*[;\n]/;

/** Checks one script: addressed commands separated by `;` or newlines, and grouped by braces. */
export const checkSedScript = (script: string): void => {
  checkRepetition("sed", script);
  if (/[^\n\t\x20-\x7e\u00a0-\uffff]/.test(script)) refuse();
  let at = ALL_LINES.exec(script)?.[0].length ?? 0;
  let depth = 0;
  let used = "";
  while (at < script.length) {
    at = skip(script, at, /[\s;]/);
    if (at >= script.length) break;
    if (script[at] === "}") {
      depth -= 1;
      if (depth < 0) refuse();
      at += 1;
      continue;
    }
    const start = readAddress(script, at);
    at = start;
    if (start > 0 && script[at] === ",") {
      const second = readAddress(script, at + 1);
      if (second === at + 1) refuse();
      at = second;
    }
    at = skip(script, at, /[ !]/);
    if (script[at] === "{") {
      depth += 1;
      at += 1;
      continue;
    }
    used += script[at];
    at = skip(script, readCommand(script, at), / /);
    if (at < script.length && !/[;\n}]/.test(script[at] as string)) refuse();
  }
  // D restarts with the rest of the buffer. If something is added each time, it never ends.
  if (depth !== 0 || (used.includes("D") && /[syGgx]/.test(used))) refuse();
  checkGrowth(script, used);
};

/** What is kept from line to line may not be appended to itself: after some lines it would exhaust memory. */
const checkGrowth = (script: string, used: string): void => {
  const joins = used.replace(/[^GH]/g, "").length;
  const taken = used.indexOf("g");
  if ((joins > 1 && /[hHxg]/.test(used)) || (taken >= 0 && /[GH]/.test(used.slice(taken)))) refuse();
  if (/[hHx]/.test(used) && /&.*&|(\\\d).*\1/s.test(script)) refuse();
};

const sedRule = program({
  flags: "nErsuz",
  valued: "e",
  long: "quiet silent regexp-extended separate unbuffered null-data expression= posix debug version",
});

/** The scripts given by `-e`. A sed that accepts no options after the first operand takes that operand as its script. */
const scriptsIn = ({ options }: ParsedArguments): string[] =>
  options.filter(({ name }) => name === "e" || name === "expression").map(({ value }) => value ?? "");

const readSed = (words: readonly PlanWord[]): readonly PlanWord[] => {
  if (words.some(({ text }) => /^(-[nErsuz]*i|--in-place)/.test(text)))
    throw new Refusal("sed -i changes files; leave out -i to print the result", "write");
  const { options, operands } = readOptions("sed", words, sedRule.rule);
  if (words.length === 1 && options.some(({ name }) => name === "version")) return words;
  const given = scriptsIn({ options, operands });
  if (given.length > 0 && scriptsIn(readOptions("sed", words, { ...sedRule.rule, optionsFirst: true })).length === 0)
    throw new Refusal("sed needs -e before the files: sed -n -e '10,20p' FILE");
  if (given.length === 0) {
    const [script] = operands;
    if (!script || script.pattern || script.home) throw new Refusal(`quote the script; ${SCRIPT_HELP}`);
    given.push(script.text);
  }
  given.forEach(checkSedScript);
  // A loop or growth may be spread over several scripts, because sed reads them as one.
  if (given.length > 1) checkSedScript(given.join("\n"));
  return words;
};

export const sedPrograms: ProgramTable = { sed: program({ read: readSed }) };
