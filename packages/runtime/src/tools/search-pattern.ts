/** How is a regular expression in ripgrep's syntax written in JavaScript's? Pure.
 *  Invariant: what is translated means the same in both, including letters of every script. What JavaScript cannot
 *  express is refused with an explanation and never searched for as something else.
 *  Elsewhere: searching with it (search-text.ts). */

export type TranslatedPattern = { readonly source: string; readonly flags: string };

class UntranslatableError extends Error {}

const refuse = (what: string): never => {
  throw new UntranslatableError(`${what} needs ripgrep, which is not installed`);
};

const WORD = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}";
const CLASSES: Readonly<Record<string, string>> = {
  ...{ w: `[${WORD}]`, W: `[^${WORD}]`, d: "\\p{Nd}", D: "\\P{Nd}", s: "\\s", S: "\\S" },
};
const NAMED: Readonly<Record<string, string>> = {
  ...{ alpha: "A-Za-z", digit: "0-9", alnum: "0-9A-Za-z", upper: "A-Z", lower: "a-z", xdigit: "0-9A-Fa-f" },
  ...{ word: "0-9A-Za-z_", space: "\\t\\n\\v\\f\\r ", blank: "\\t ", punct: "!-\\/:-@\\[-`\\{-~" },
};
const WORD_BOUNDARY = `(?:(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}]))`;
const NO_WORD_BOUNDARY = `(?:(?<=[${WORD}])(?=[${WORD}])|(?<![${WORD}])(?![${WORD}]))`;
const BOUNDARIES: Readonly<Record<string, string>> = {
  ...{ b: WORD_BOUNDARY, B: NO_WORD_BOUNDARY, "<": `(?<![${WORD}])(?=[${WORD}])`, ">": `(?<=[${WORD}])(?![${WORD}])` },
};

/** A character that stands for itself in any position. */
const literal = (character: string): string =>
  /[\p{L}\p{N}_ ]/u.test(character) ? character : `\\u{${character.codePointAt(0)?.toString(16)}}`;

/** Undefined where the text does not continue like this. */
type Translation = { readonly out: string; readonly length: number } | undefined;

/** Translates an escape at the start of `rest` that means one character or a class of characters. */
const translateEscape = (rest: string): Translation => {
  const [whole, code] = /^\\(?:x\{([0-9a-fA-F]+)\}|u\{([0-9a-fA-F]+)\})/.exec(rest) ?? [];
  if (whole !== undefined) return { out: `\\u{${code ?? whole.slice(3, -1)}}`, length: whole.length };
  const [plain] = /^\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[pP]\{[\w=]+\}|[tnrfv])/.exec(rest) ?? [];
  if (plain !== undefined) return { out: plain, length: plain.length };
  const [letter, one] = /^\\[pP](\w)/.exec(rest) ?? [];
  if (letter !== undefined) return { out: `${letter.slice(0, 2)}{${one}}`, length: letter.length };
  const next = rest[1] ?? "";
  if (CLASSES[next] !== undefined) return { out: CLASSES[next], length: 2 };
  if (/^[!-/:-@[-`{-~]$/.test(next)) return { out: literal(next), length: 2 };
  return undefined;
};

/** Translates a bracket expression at the start of `rest`. */
const translateBrackets = (rest: string): { readonly out: string; readonly length: number } => {
  const [open = "["] = /^\[\^?/.exec(rest) ?? [];
  let out = open;
  let at = open.length;
  while (at < rest.length) {
    const here = rest.slice(at);
    if (here.startsWith("]") && at > open.length) return { out: `${out}]`, length: at + 1 };
    const [named, name = ""] = /^\[:(\w+):\]/.exec(here) ?? [];
    if (/^(?:&&|--|~~|\[(?!:))/.test(here) || (named !== undefined && NAMED[name] === undefined))
      refuse(`${here.slice(0, 2)} inside of brackets`);
    const [first = ""] = here;
    const isRange = first === "-" && at > open.length && !here.startsWith("-]");
    const step =
      named !== undefined
        ? { out: NAMED[name] ?? "", length: named.length }
        : first === "\\"
          ? (translateEscape(here) ?? refuse(here.slice(0, 2)))
          : { out: isRange ? "-" : literal(first), length: first.length };
    out += step.out;
    at += step.length;
  }
  throw new UntranslatableError("a bracket is not closed");
};

const GROUPS = /^\((?:\?(?:P?<([A-Za-z_]\w*)>|:))?/;

const translateNext = (rest: string): { readonly out: string; readonly length: number } => {
  const [first = ""] = rest;
  if (first === "[") return translateBrackets(rest);
  if (first === "\\") {
    const edge = BOUNDARIES[rest[1] ?? ""];
    if (edge !== undefined && !/^\\b\{/.test(rest)) return { out: edge, length: 2 };
    return translateEscape(rest) ?? refuse(rest.slice(0, 2));
  }
  if (first === "(") {
    const [group = "(", name] = GROUPS.exec(rest) ?? [];
    if (group === "(" && rest.startsWith("(?")) refuse(rest.slice(0, 3));
    return { out: name === undefined ? group : `(?<${name}>`, length: group.length };
  }
  const [counted] = /^\{\d+(?:,\d*)?\}/.exec(rest) ?? [];
  if (counted !== undefined) return { out: counted, length: counted.length };
  if (first === "{") throw new UntranslatableError("a repetition is not closed");
  const isSyntax = ".*+?^$|)".includes(first);
  return { out: isSyntax ? first : literal(first), length: first.length };
};

/** V8 needs memory for each nested group and kills the whole process when it runs out, at about 8,000 of them. */
const MAX_LENGTH = 2_000;

/** The translation, or why there is none. */
export const translatePattern = (pattern: string, flags: string): TranslatedPattern | string => {
  if (pattern.length > MAX_LENGTH) return `it is longer than ${MAX_LENGTH} characters`;
  try {
    const [start = "", inline = ""] = /^\(\?([imsu]+)\)/.exec(pattern) ?? [];
    let source = "";
    for (let at = start.length; at < pattern.length; ) {
      const { out, length } = translateNext(pattern.slice(at));
      source += out;
      at += length;
    }
    return { source, flags: [...new Set(`${flags}${inline.replaceAll("u", "")}v`)].join("") };
  } catch (error) {
    if (error instanceof UntranslatableError) return error.message;
    throw error;
  }
};
