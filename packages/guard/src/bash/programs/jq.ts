/** jq: filters that only look at data, and that end.
 *  Invariant: every function is known; no environment, no modules. What repeats either descends into the data or counts to a
 *  small number. Nothing is multiplied, doubled or stored so that it could exhaust memory.
 *  Elsewhere: the tokens (jq-tokens.ts). A jq filter can neither write nor run anything. */

import { readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { mayMatchEmpty } from "./empty-match.ts";
import { type JqToken, jqTokens } from "./jq-tokens.ts";
import { checkRepetition, type ProgramTable, program } from "./program.ts";

const refuse = (what: string): never => {
  throw new Refusal(`jq: ${what}; a simple filter runs without approval: jq '.a.b' FILE`);
};

const KEYWORDS: ReadonlySet<string> = new Set(
  "def if then elif else end as reduce foreach try catch label break and or not null true false".split(" "),
);

const FUNCTIONS: ReadonlySet<string> = new Set(
  (
    "length utf8bytelength keys keys_unsorted values has in map map_values pick path paths leaf_paths del delpaths getpath " +
    "setpath to_entries from_entries with_entries select empty error add any all flatten range floor sqrt ceil round fabs abs " +
    "log log2 log10 tostring tonumber type isinfinite isnan isnormal isvalid sort sort_by group_by min max min_by max_by unique " +
    "unique_by reverse contains inside startswith endswith explode implode split splits join ascii ascii_downcase " +
    "ascii_upcase ltrimstr rtrimstr trimstr trim ltrim rtrim recurse recurse_down transpose input inputs debug stderr " +
    "input_filename input_line_number tojson fromjson todate fromdate now localtime gmtime mktime strftime strptime " +
    "strflocaltime fromdateiso8601 todateiso8601 dateadd datesub date test match capture scan sub gsub limit first last nth " +
    "index rindex indices bsearch tostream fromstream truncate_stream walk arrays objects iterables booleans numbers normals " +
    "finites strings nulls scalars halt halt_error toarray INDEX GROUP_BY IN skip"
  ).split(" "),
);

const NO_MODULES = "modules are not allowed";
const MAY_NOT_END = "it may never end";

/** Functions of jq that are refused, and why. */
const REFUSED_FUNCTIONS: Readonly<Record<string, string>> = {
  env: "it may not show the environment",
  ...{ import: NO_MODULES, include: NO_MODULES, modulemeta: NO_MODULES },
  ...{ repeat: MAY_NOT_END, until: MAY_NOT_END, while: MAY_NOT_END, infinite: MAY_NOT_END },
};

type Tokens = readonly JqToken[];

const OPENING = "([{";
const CLOSING = ")]}";

/** The index of the bracket that closes the one at `from`. */
const closingBracket = (tokens: Tokens, from: number): number => {
  let depth = 0;
  for (let at = from; at < tokens.length; at += 1) {
    const { kind, text } = tokens[at] as JqToken;
    if (kind !== "sign") continue;
    if (OPENING.includes(text)) depth += 1;
    if (CLOSING.includes(text)) depth -= 1;
    if (depth === 0) return at;
  }
  return refuse("a bracket is never closed");
};

/** The arguments of the function at index `name`; jq separates them by `;`. */
const argumentsOf = (tokens: Tokens, name: number): readonly Tokens[] => {
  if (tokens[name + 1]?.text !== "(") return [];
  const end = closingBracket(tokens, name + 1);
  const parts: JqToken[][] = [[]];
  let depth = 0;
  for (const token of tokens.slice(name + 2, end)) {
    if (token.kind === "sign" && OPENING.includes(token.text)) depth += 1;
    if (token.kind === "sign" && CLOSING.includes(token.text)) depth -= 1;
    if (token.text === ";" && token.kind === "sign" && depth === 0) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
};

const literal = ([only, ...more]: Tokens): number | undefined =>
  only?.kind === "number" && more.length === 0 ? Number(only.text) : undefined;

const MAX_COUNT = 1_000_000;

/** How far a `range` counts, or a Refusal. The end must be a number or the length of something. */
const rangeSize = (tokens: Tokens, at: number): number => {
  const parts = argumentsOf(tokens, at);
  const step = parts[2] && literal(parts[2]);
  if (parts.length > 3 || (parts.length === 3 && !(step !== undefined && step >= 1)))
    return refuse("this range may never end");
  const end = parts.length === 1 ? parts[0] : parts[1];
  const size = end && literal(end);
  if (size !== undefined) return size <= MAX_COUNT ? Math.max(1, size) : refuse("this range is too long");
  if (end && isLength(end)) return 1;
  return refuse("range takes a number or a length: range(0; length)");
};

/** A path into the data: `.a.b[0]`, `$x[]?`. With `namesOnly`, its indexes are names: `.a["b"][]`. */
const isPath = (part: Tokens, namesOnly = false): boolean => {
  for (let at = 0; at < part.length; at += 1) {
    const { kind, text } = part[at] as JqToken;
    if (kind === "field" || text === "." || text === "?" || (kind === "variable" && !namesOnly)) continue;
    if (namesOnly && part[at - 1]?.text === "." && isPlainText(part[at])) continue;
    if (text !== "[" || kind !== "sign") return false;
    const inside = part[at + 1];
    const isAllowed = namesOnly ? isPlainText(inside) : inside?.kind === "number";
    const close = inside?.text === "]" ? at + 1 : at + 2;
    if (part[close]?.text !== "]" || (close === at + 2 && !isAllowed)) return false;
    at = close;
  }
  return true;
};

const isPlainText = (token: JqToken | undefined): boolean => token?.kind === "text" && !token.text.includes("\\");

/** The `length` of existing data, less at most one digit: `length`, `(.a | length) - 1`. */
const isLength = (end: Tokens): boolean => {
  const last = end.slice(-2).map(({ text }) => text);
  const less = last[0] === "-" && /^\d$/.test(last[1] ?? "") ? end.slice(0, -2) : end;
  const whole = less[0]?.text === "(" && less.at(-1)?.text === ")" ? less.slice(1, -1) : less;
  if (whole.at(-1)?.text !== "length" || whole.at(-1)?.kind !== "name") return false;
  const of = whole.slice(0, -1);
  return of.length === 0 || (of.at(-1)?.text === "|" && isPath(of.slice(0, -1)));
};

/** `.children[]` descends one level each time. A path that could stay where it is, or sit on null, might never end. */
const descends = (part: Tokens): boolean => {
  const [operator, empty] = part.slice(-2);
  const place = operator?.text === "//" && empty?.text === "empty" ? part.slice(0, -2) : part;
  return place.some(({ text }, at) => text === "[" && place[at + 1]?.text === "]") && isPath(place, true);
};

const checkPattern = (tokens: Tokens, at: number): void => {
  const parts = argumentsOf(tokens, at);
  const everywhere = tokens[at]?.text === "gsub" || parts.length > 2;
  if (!everywhere) return;
  const [pattern, ...more] = parts[0] ?? [];
  if (pattern?.kind !== "text" || more.length > 0 || pattern.text.includes("\\("))
    refuse("gsub takes a quoted pattern");
  try {
    if (!mayMatchEmpty(String(JSON.parse(pattern?.text ?? "")))) return;
  } catch {
    // Not valid JSON, so what the pattern matches is unknown.
  }
  refuse("gsub may never end if its pattern can match the empty string");
};

/** One step of `reduce` or `foreach` may not use its input twice in its result: that doubles it each time. */
const checkReduceStep = ([start = [], round = []]: readonly Tokens[]): void => {
  const joins = round.some(({ kind, text }) => (kind === "sign" && /^([+*,]|[+*]=)$/.test(text)) || text === '"\\(');
  const whole = round.filter(({ kind, text }, at) => kind === "sign" && text === "." && round[at + 1]?.text !== "[");
  const twice = round.some(
    ({ text }, at) =>
      /^[+*]=?$/.test(text) && round[at - 1]?.text === round[at + 1]?.text && round[at - 1]?.text !== "]",
  );
  if (twice || (joins && whole.length > 1)) refuse("a reduce step that uses its input twice grows too fast");
  const times = round.some(({ kind, text }) => kind === "sign" && /^\*=?$/.test(text));
  if (times && !/^(\{|\d)/.test(start[0]?.text ?? "")) refuse("a reduce step that multiplies may grow too fast");
};

/** `as $x (` or `as [$x, $y] (`. */
const isName = (tokens: Tokens, at: number): boolean =>
  tokens[at]?.kind === "variable" || (/^[\]}]$/.test(tokens[at]?.text ?? "") && tokens[at - 1]?.kind === "variable");

const ASSIGNS = /^(=|\|=|\+=|-=|\*=|\/=|%=|\/\/=)$/;

/** Storing at an index makes the array at least that long. */
const checkStoredIndexes = (tokens: Tokens): void => {
  const stores = tokens.some(({ kind, text }) => (kind === "sign" && ASSIGNS.test(text)) || text === "setpath");
  let indexes = 0;
  tokens.forEach((token, at) => {
    if (!stores) return;
    if (token.kind === "number" && Number(token.text) > MAX_COUNT) refuse("it stores at an index that is too large");
    const before = tokens[at - 1];
    const isIndex =
      token.text === "[" && (/^(field|variable)$/.test(before?.kind ?? "") || /^[.\])?]$/.test(before?.text ?? ""));
    if (!isIndex) return;
    indexes += 1;
    if (indexes > 100) refuse("it has too many indexes");
    const inside = tokens.slice(at + 1, closingBracket(tokens, at));
    if (inside.some(({ kind, text }) => kind === "name" || /^[*/%]$/.test(text)))
      refuse("it stores at a computed index");
  });
};

/** A string times a number repeats the string that often. */
const checkMultiplication = (tokens: Tokens): void => {
  let product = 1;
  tokens.forEach(({ kind, text }, at) => {
    if (kind !== "sign" || !/^\*=?$/.test(text)) return;
    const sides = [tokens[at - 1], tokens[at + 1]];
    const number = sides.find((side) => side?.kind === "number");
    product *= Math.max(1, Number(number?.text ?? 1));
    const isText = sides.some((side) => side?.kind === "text" || side?.kind === "format");
    if (product > MAX_COUNT || (isText && !(Number(number?.text ?? "x") <= 10_000)))
      refuse("it multiplies by too large a number");
  });
};

/** If a filter redefines one of jq's functions, some calls still mean jq's own, and we could not tell which. */
const isBuiltIn = (name: string): boolean =>
  FUNCTIONS.has(name) || Object.hasOwn(REFUSED_FUNCTIONS, name) || /^_|^(combinations|get_search_list)$/.test(name);

/** The functions that the filter defines. None may call itself. */
const definedNames = (tokens: Tokens): ReadonlySet<string> => {
  const found = new Set<string>();
  tokens.forEach(({ kind, text }, at) => {
    if (kind !== "name" || text !== "def") return;
    const name = tokens[at + 1];
    if (name?.kind !== "name" || KEYWORDS.has(name.text)) refuse("this form of def is not supported");
    if (name && isBuiltIn(name.text)) refuse(`${name.text} is a function of jq; choose another name for yours`);
    let open = at + 2;
    if (tokens[open]?.text === "(") {
      const end = closingBracket(tokens, open);
      for (const { kind: part, text: parameter } of tokens.slice(open + 1, end))
        if (part === "name" && isBuiltIn(parameter)) refuse(`${parameter} is a function of jq; choose another name`);
        else if (part === "name") found.add(parameter);
      open = end + 1;
    }
    if (tokens[open]?.text !== ":") refuse("this form of def is not supported");
    // Its own name inside the body would be a recursive call, or another function of the same name.
    const end = endOfDefinition(tokens, open);
    if (
      tokens
        .slice(open, end)
        .some((token) => token.kind === "name" && (token.text === name?.text || token.text === "def"))
    )
      refuse("a function that calls itself may never end");
    found.add(name?.text ?? "");
  });
  if (tokens.filter(({ kind, text }) => kind === "name" && text === "def").length > 5)
    refuse("it defines more than five functions");
  return found;
};

const endOfDefinition = (tokens: Tokens, from: number): number => {
  for (let at = from; at < tokens.length; at += 1) {
    const { kind, text } = tokens[at] as JqToken;
    if (kind !== "sign") continue;
    if (OPENING.includes(text)) at = closingBracket(tokens, at);
    else if (text === ";") return at;
  }
  return refuse("a def has no closing `;`");
};

/** Each `,` in parentheses doubles the results after it. This check runs first, so that the others see few brackets. */
const checkBranches = (tokens: Tokens): void => {
  const open: string[] = [];
  let branches = 0;
  for (const { kind, text } of tokens) {
    if (kind !== "sign") continue;
    if (OPENING.includes(text)) open.push(text);
    if (open.length > 40) refuse("its brackets are nested too deeply");
    if (CLOSING.includes(text)) open.pop();
    if (text === "," && open.at(-1) === "(") branches += 1;
  }
  if (branches > 16) refuse("it branches too often");
};

export const checkJqFilter = (source: string): void => {
  if (source.length > 4_000) refuse("the filter is too long");
  const tokens = jqTokens(source);
  checkBranches(tokens);
  const own = definedNames(tokens);
  let size = 1;
  tokens.forEach(({ kind, text }, at) => {
    if (kind === "text") checkRepetition("jq", text);
    if (kind === "variable" && /^\$(ENV|__prog_args)$/.test(text)) refuse("it may not show the environment");
    // As a key without a value, some versions of jq read it as a call.
    const isBareKey = kind === "key" && tokens[at + 1]?.text !== ":" && Object.hasOwn(REFUSED_FUNCTIONS, text);
    if ((kind !== "name" && !isBareKey) || KEYWORDS.has(text) || own.has(text)) return;
    if (!FUNCTIONS.has(text))
      refuse(
        REFUSED_FUNCTIONS[text] === undefined
          ? `${text} is not a known function`
          : `${text}: ${REFUSED_FUNCTIONS[text]}`,
      );
    if (text === "range") size *= rangeSize(tokens, at);
    if (text === "recurse" && argumentsOf(tokens, at).some((part, index) => index > 0 || !descends(part)))
      refuse("recurse(f) may never end unless f descends: recurse(.children[]?)");
    if (text === "sub" || text === "gsub") checkPattern(tokens, at);
  });
  if (size > 10 * MAX_COUNT) refuse("its ranges are too long");
  tokens.forEach(({ kind, text }, at) => {
    if (kind !== "name" || (text !== "reduce" && text !== "foreach")) return;
    // Its steps are in the parentheses after the variable.
    const open = tokens.findIndex(({ text: sign }, index) => index > at && sign === "(" && isName(tokens, index - 1));
    if (open < 0) refuse(`this form of ${text} is not supported`);
    checkReduceStep(argumentsOf(tokens, open - 1));
  });
  checkStoredIndexes(tokens);
  checkMultiplication(tokens);
};

const jqRule = program({
  flags: "rcsSenMCjaRh",
  long:
    "raw-output compact-output slurp sort-keys exit-status null-input monochrome-output color-output join-output " +
    "ascii-output raw-input tab indent= seq stream version",
}).rule;

/** Options that take the name of a variable and its value. */
const NAMED = /^--(arg|argjson|slurpfile|rawfile)$/;

const readJq = (words: readonly PlanWord[]): readonly PlanWord[] => {
  const plain: PlanWord[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as PlanWord;
    if (!NAMED.test(word.text)) plain.push(word);
    else {
      if (words.slice(at, at + 3).some(({ pattern }) => pattern))
        throw new Refusal(`jq ${word.text} takes a plain name and value`);
      if (word.text === "--argjson" && Number(words[at + 2]?.text) > MAX_COUNT)
        refuse("--argjson takes numbers up to a million");
      at += 2;
    }
  }
  const { operands, options } = readOptions("jq", plain, jqRule);
  if (words.length === 1 && options.some(({ name }) => name === "version" || name === "h")) return words;
  const [filter] = operands;
  if (!filter || filter.home) throw new Refusal("quote the jq filter");
  // xargs and find would replace a placeholder with a name, and so change the filter.
  if (filter.placeholder || filter.text.trim() === "{}")
    throw new Refusal("a jq filter may not contain names that are filled in later; write it out");
  if (filter.pattern) {
    if (!filter.text.startsWith(".")) throw new Refusal("quote the jq filter");
    // `.[0]` without quotes is taken as the filter, whatever files exist.
    const literalFilter = { text: filter.text.replace(/\\(.)/gs, "$1") };
    return readJq(words.map((word) => (word === filter ? literalFilter : word)));
  }
  checkJqFilter(filter.text);
  return words;
};

/** The filter, which is not a file: `.env` is a field. */
const filterOf = (words: readonly PlanWord[]): readonly PlanWord[] => {
  const plain = words.filter((_, at) => ![0, 1, 2].some((back) => NAMED.test(words[at - back]?.text ?? "")));
  return readOptions("jq", plain, jqRule)
    .operands.slice(0, 1)
    .filter(({ pattern }) => !pattern);
};

export const jqPrograms: ProgramTable = {
  jq: program({
    read: readJq,
    searchText: filterOf,
    // None of its options writes, runs or sends anything.
    harmless: true,
  }),
};
