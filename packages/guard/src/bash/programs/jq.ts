/** jq: filters that look at data and come to an end.
 *  Invariant: every function is known; no environment, no module; what repeats goes down into the data, or up to a small
 *  number; nothing is multiplied, doubled or placed so that it could fill the memory.
 *  Elsewhere: the tokens (jq-tokens.ts). A filter can neither write nor run anything. */

import { readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { mayMatchEmpty } from "./empty-match.ts";
import { type JqToken, jqTokens } from "./jq-tokens.ts";
import { checkRepetition, type ProgramTable, program } from "./program.ts";

const refuse = (what: string): never => {
  throw new Refusal(`jq: ${what}; a simple filter passes: jq '.a.b' FILE`);
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

/** Why some functions are none of the above. */
const REFUSED_FUNCTIONS: Readonly<Record<string, string>> = {
  env: "it may not show the environment",
  ...Object.fromEntries(["import", "include", "modulemeta"].map((name) => [name, "modules are not read"])),
  ...Object.fromEntries(["repeat", "until", "while", "infinite"].map((name) => [name, "it may never end"])),
};

type Tokens = readonly JqToken[];

const OPENING = "([{";
const CLOSING = ")]}";

/** Where the bracket that opens at `from` closes. */
const closingBracket = (tokens: Tokens, from: number): number => {
  let depth = 0;
  for (let at = from; at < tokens.length; at += 1) {
    const { kind, text } = tokens[at] as JqToken;
    if (kind !== "sign") continue;
    if (OPENING.includes(text)) depth += 1;
    if (CLOSING.includes(text)) depth -= 1;
    if (depth === 0) return at;
  }
  return refuse("a bracket has no end");
};

/** The parts between `;` of the brackets after a function's name. */
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

/** How far a `range` goes: a number, the length of something, or refused. */
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

/** A place in the data: `.a.b[0]`, `$x[]?`; with `texts` of names alone: `.a["b"][]`. */
const isPath = (part: Tokens, texts = false): boolean => {
  for (let at = 0; at < part.length; at += 1) {
    const { kind, text } = part[at] as JqToken;
    if (kind === "field" || text === "." || text === "?" || (kind === "variable" && !texts)) continue;
    if (texts && part[at - 1]?.text === "." && isPlainText(part[at])) continue;
    if (text !== "[" || kind !== "sign") return false;
    const inside = part[at + 1];
    const wanted = texts ? isPlainText(inside) : inside?.kind === "number";
    const close = inside?.text === "]" ? at + 1 : at + 2;
    if (part[close]?.text !== "]" || (close === at + 2 && !wanted)) return false;
    at = close;
  }
  return true;
};

const isPlainText = (token: JqToken | undefined): boolean => token?.kind === "text" && !token.text.includes("\\");

/** `length` of what is there, less one at most: `length`, `(.a | length) - 1`. */
const isLength = (end: Tokens): boolean => {
  const last = end.slice(-2).map(({ text }) => text);
  const less = last[0] === "-" && /^\d$/.test(last[1] ?? "") ? end.slice(0, -2) : end;
  const whole = less[0]?.text === "(" && less.at(-1)?.text === ")" ? less.slice(1, -1) : less;
  if (whole.at(-1)?.text !== "length" || whole.at(-1)?.kind !== "name") return false;
  const of = whole.slice(0, -1);
  return of.length === 0 || (of.at(-1)?.text === "|" && isPath(of.slice(0, -1)));
};

/** `.children[]` goes down a level each time; what could stay where it is, or stand on null, could go on for ever. */
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
    refuse("gsub takes a pattern in quotes");
  try {
    if (!mayMatchEmpty(String(JSON.parse(pattern?.text ?? "")))) return;
  } catch {
    // Not a string that can be read.
  }
  refuse("gsub with a pattern that matches nothing may never end");
};

/** What one round of `reduce` and `foreach` may not do with what it is given: put it there twice. */
const checkReduceStep = ([start = [], round = []]: readonly Tokens[]): void => {
  const joins = round.some(({ kind, text }) => (kind === "sign" && /^([+*,]|[+*]=)$/.test(text)) || text === '"\\(');
  const whole = round.filter(({ kind, text }, at) => kind === "sign" && text === "." && round[at + 1]?.text !== "[");
  const twice = round.some(
    ({ text }, at) =>
      /^[+*]=?$/.test(text) && round[at - 1]?.text === round[at + 1]?.text && round[at - 1]?.text !== "]",
  );
  if (twice || (joins && whole.length > 1)) refuse("a round that doubles what it is given grows too fast");
  const times = round.some(({ kind, text }) => kind === "sign" && /^\*=?$/.test(text));
  if (times && !/^(\{|\d)/.test(start[0]?.text ?? "")) refuse("a round that multiplies may grow too fast");
};

/** `as $x (` or `as [$x, $y] (`. */
const isName = (tokens: Tokens, at: number): boolean =>
  tokens[at]?.kind === "variable" || (/^[\]}]$/.test(tokens[at]?.text ?? "") && tokens[at - 1]?.kind === "variable");

const ASSIGNS = /^(=|\|=|\+=|-=|\*=|\/=|%=|\/\/=)$/;

/** An index that something is stored at makes the list that long. */
const checkStoredIndexes = (tokens: Tokens): void => {
  const stores = tokens.some(({ kind, text }) => (kind === "sign" && ASSIGNS.test(text)) || text === "setpath");
  let indexes = 0;
  tokens.forEach((token, at) => {
    if (!stores) return;
    if (token.kind === "number" && Number(token.text) > MAX_COUNT) refuse("stores at a place that is too far");
    const before = tokens[at - 1];
    const isIndex =
      token.text === "[" && (/^(field|variable)$/.test(before?.kind ?? "") || /^[.\])?]$/.test(before?.text ?? ""));
    if (!isIndex) return;
    indexes += 1;
    if (indexes > 100) refuse("it has too many places");
    const inside = tokens.slice(at + 1, closingBracket(tokens, at));
    if (inside.some(({ kind, text }) => kind === "name" || /^[*/%]$/.test(text))) refuse("stores at a computed place");
  });
};

/** Text times a number is that much text. */
const checkMultiplication = (tokens: Tokens): void => {
  let product = 1;
  tokens.forEach(({ kind, text }, at) => {
    if (kind !== "sign" || !/^\*=?$/.test(text)) return;
    const sides = [tokens[at - 1], tokens[at + 1]];
    const number = sides.find((side) => side?.kind === "number");
    product *= Math.max(1, Number(number?.text ?? 1));
    const isText = sides.some((side) => side?.kind === "text" || side?.kind === "format");
    if (product > MAX_COUNT || (isText && !(Number(number?.text ?? "x") <= 10_000)))
      refuse("multiplies by too large a number");
  });
};

/** Where a name of jq's own is defined anew, some calls of it still mean jq's, and nobody could tell which. */
const isBuiltIn = (name: string): boolean =>
  FUNCTIONS.has(name) || Object.hasOwn(REFUSED_FUNCTIONS, name) || /^_|^(combinations|get_search_list)$/.test(name);

/** Names that the filter defines itself. A function may not speak of itself. */
const definedNames = (tokens: Tokens): ReadonlySet<string> => {
  const found = new Set<string>();
  tokens.forEach(({ kind, text }, at) => {
    if (kind !== "name" || text !== "def") return;
    const name = tokens[at + 1];
    if (name?.kind !== "name" || KEYWORDS.has(name.text)) refuse("this def is not read");
    if (name && isBuiltIn(name.text)) refuse(`${name.text} is a function of jq; give yours another name`);
    let open = at + 2;
    if (tokens[open]?.text === "(") {
      const end = closingBracket(tokens, open);
      for (const { kind: part, text: parameter } of tokens.slice(open + 1, end))
        if (part === "name" && isBuiltIn(parameter)) refuse(`${parameter} is a function of jq; use another name`);
        else if (part === "name") found.add(parameter);
      open = end + 1;
    }
    if (tokens[open]?.text !== ":") refuse("this def is not read");
    // Its own name anywhere but after it would be a call from inside, or another of the same name.
    const end = endOfDefinition(tokens, open);
    if (
      tokens
        .slice(open, end)
        .some((token) => token.kind === "name" && (token.text === name?.text || token.text === "def"))
    )
      refuse("a function that calls itself may never end");
    found.add(name?.text ?? "");
  });
  if (tokens.filter(({ kind, text }) => kind === "name" && text === "def").length > 5) refuse("defines too much");
  return found;
};

const endOfDefinition = (tokens: Tokens, from: number): number => {
  for (let at = from; at < tokens.length; at += 1) {
    const { kind, text } = tokens[at] as JqToken;
    if (kind !== "sign") continue;
    if (OPENING.includes(text)) at = closingBracket(tokens, at);
    else if (text === ";") return at;
  }
  return refuse("a def has no end");
};

/** Each `,` in round brackets doubles what comes after it. Asked first, so that all else looks at few brackets. */
const checkBranches = (tokens: Tokens): void => {
  const open: string[] = [];
  let branches = 0;
  for (const { kind, text } of tokens) {
    if (kind !== "sign") continue;
    if (OPENING.includes(text)) open.push(text);
    if (open.length > 40) refuse("its brackets are too deep");
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
    // As a key without a value it is read by some as what it is elsewhere.
    const isBareKey = kind === "key" && tokens[at + 1]?.text !== ":" && Object.hasOwn(REFUSED_FUNCTIONS, text);
    if ((kind !== "name" && !isBareKey) || KEYWORDS.has(text) || own.has(text)) return;
    if (!FUNCTIONS.has(text))
      refuse(REFUSED_FUNCTIONS[text] === undefined ? `${text} is not known` : `${text}: ${REFUSED_FUNCTIONS[text]}`);
    if (text === "range") size *= rangeSize(tokens, at);
    if (text === "recurse" && argumentsOf(tokens, at).some((part, index) => index > 0 || !descends(part)))
      refuse("recurse(f) may never end unless f goes down: recurse(.children[]?)");
    if (text === "sub" || text === "gsub") checkPattern(tokens, at);
  });
  if (size > 10 * MAX_COUNT) refuse("its ranges are too long");
  tokens.forEach(({ kind, text }, at) => {
    if (kind !== "name" || (text !== "reduce" && text !== "foreach")) return;
    // Its rounds stand in the brackets after what each thing is called.
    const open = tokens.findIndex(({ text: sign }, index) => index > at && sign === "(" && isName(tokens, index - 1));
    if (open < 0) refuse(`${text} is not read`);
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

/** Options that name a variable and its value. */
const NAMED = /^--(arg|argjson|slurpfile|rawfile)$/;

const readJq = (words: readonly PlanWord[]): readonly PlanWord[] => {
  const plain: PlanWord[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as PlanWord;
    if (!NAMED.test(word.text)) plain.push(word);
    else {
      if (words.slice(at, at + 3).some(({ pattern }) => pattern))
        throw new Refusal(`jq ${word.text} needs plain words`);
      if (word.text === "--argjson" && Number(words[at + 2]?.text) > MAX_COUNT)
        refuse("a number that large is not taken");
      at += 2;
    }
  }
  const { operands, options } = readOptions("jq", plain, jqRule);
  if (words.length === 1 && options.some(({ name }) => name === "version" || name === "h")) return words;
  const [filter] = operands;
  if (!filter || filter.home) throw new Refusal("quote the jq filter");
  // Where xargs or find would put a name in place of this sign, the filter would be another one.
  if (filter.placeholder || filter.text.trim() === "{}")
    throw new Refusal("a jq filter may not be made of names; write it out");
  if (filter.pattern) {
    if (!filter.text.startsWith(".")) throw new Refusal("quote the jq filter");
    // `.[0]` without quotes: a filter, whatever files there are.
    const literalFilter = { text: filter.text.replace(/\\(.)/gs, "$1") };
    return readJq(words.map((word) => (word === filter ? literalFilter : word)));
  }
  checkJqFilter(filter.text);
  return words;
};

/** The filter, which is no file: `.env` is a field. */
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
    // No option of it writes, runs or sends either.
    harmless: true,
  }),
};
