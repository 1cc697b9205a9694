/** Which reading calls does a clause of a prompt ask for: search, read, list, count?
 *  Invariant: pure; a clause that matches no pattern returns undefined, never a guess. Text from the prompt is searched for
 *  literally, unless the prompt calls it a pattern.
 *  Elsewhere: git and commands (command-moves.ts), clauses that change files (changing-moves.ts). */

import type { JsonObject } from "@prefork/wire";
import { countFiles, countLines, type Lines, lastLines } from "./commands.ts";
import { bash, type Look, look, type Move } from "./moves.ts";
import {
  isFileName,
  isMarkedPath,
  isPattern,
  isWholePlace,
  looksLikePath,
  type Masked,
  SPAN,
  spansOf,
  textOfWord,
  WORD,
} from "./spans.ts";

const pattern = (source: string): RegExp => new RegExp(source.replaceAll("WORD", WORD).replaceAll("SPAN", SPAN), "i");

/** Escapes the special characters of a search pattern. */
const literal = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");

const PLACE = pattern(
  "\\s+(?:in|under|inside|within|below|across|throughout)\\s+((?:(?:the|this|all|every|each|folder|directory|file|files|whole|entire|of)\\s+)*)(WORD)(?:\\s+(?:folder|directory|file|files|tree))?[.?!]?$",
);

type Placed = { readonly rest: string; readonly place?: string };

/** `TODO in src` → TODO and src; `TODO in the repository` → TODO and everywhere. */
export const splitPlace = (text: string, masked: Masked): Placed => {
  const found = PLACE.exec(text);
  if (found === null) return { rest: text };
  const place = textOfWord(found[2] ?? "", masked);
  const rest = text.slice(0, found.index);
  return isWholePlace(place) || place === "" ? { rest } : { rest, place };
};

/** Where to search: a file pattern and a folder are different arguments. */
const searchLocation = (place: string | undefined): JsonObject =>
  place === undefined ? {} : isPattern(place) ? { glob: place } : { path: place };

const NOUNS =
  /^(?:(?:all|any|every|each|the|for|of|uses?|usages?|occurrences?|references?|mentions?|instances?|calls?|lines?|with|to|containing|word|words|string|strings|text|function|class|method|symbol|variable|constant|name|phrase|identifier)\s+)+/i;

/** The text to search for, as a pattern. */
export const searchText = (text: string, masked: Masked): string | undefined => {
  const asPattern = /\b(?:pattern|regex|regexp|regular expression)\s/i.test(text);
  const [span] = spansOf({ ...masked, text });
  if (span !== undefined) return asPattern ? span.text : literal(span.text);
  const bare = text
    .trim()
    .replace(NOUNS, "")
    .replace(/[.?!,;:]+$/, "")
    .trim();
  const slashes = /^\/(.+)\/$/.exec(bare)?.[1];
  if (slashes !== undefined) return slashes;
  return bare === "" ? undefined : literal(bare);
};

const grep = (text: string, place: string | undefined, extras: JsonObject = {}): Look => ({
  name: "Grep",
  input: { pattern: text, ...searchLocation(place), output_mode: "content", "-n": true, ...extras },
  about: "search",
});

const DEFINES =
  "(function|class|const|let|var|type|interface|enum|def|fn|func|struct|trait|impl|module|namespace|package|macro_rules!)";

const withWordBounds = (text: string): string => (/^\w.*\w$|^\w$/.test(text) ? `\\b${text}\\b` : text);

/** These do not name a text to search for: `find and fix the test`, `find out why`. */
const ASKS_FOR_MORE = /^\w+\s+(?:and|out|why|how|whether|what|who|into|after)\b/i;

export const searchMove = (clause: Masked): Move | undefined => {
  const caseless = /\b(?:case[- ]insensitive(?:ly)?|ignoring case)\b/i;
  const text = clause.text.replace(caseless, "").trim();
  const extras: JsonObject = caseless.test(clause.text) ? { "-i": true } : {};
  const where = pattern(
    "^(?:find\\s+)?where\\s+(?:is|are|do we|does|did|was)?\\s*(.+?)\\s+(?:is\\s+|are\\s+)?(used|called|imported|referenced|mentioned|defined|declared|implemented|exported)\\b(.*)$",
  ).exec(text);
  const definition = pattern("^(?:find|show|search for)\\s+(?:me\\s+)?(?:the\\s+)?definitions?\\s+of\\s+(.+)$").exec(
    text,
  );
  if (where !== null || definition !== null) {
    const { rest, place } = splitPlace(definition?.[1] ?? `${where?.[1]}${where?.[3]}`, clause);
    const name = searchText(rest, clause);
    if (name === undefined) return undefined;
    const defines = definition !== null || /^(?:defined|declared|implemented|exported)$/i.test(where?.[2] ?? "");
    return look(grep(defines ? `${DEFINES}\\s+${withWordBounds(name)}` : withWordBounds(name), place, extras));
  }
  const turned = pattern(
    "^(?:search|grep|look)\\s+(?:through\\s+|in\\s+)?(?:the\\s+)?(WORD)\\s+(?:folder\\s+|directory\\s+|file\\s+)?for\\s+(.+)$",
  ).exec(text);
  if (turned !== null && turned[1] !== "for") {
    const place = textOfWord(turned[1] ?? "", clause);
    const found = searchText(turned[2] ?? "", clause);
    return found === undefined ? undefined : look(grep(found, isWholePlace(place) ? undefined : place, extras));
  }
  const plain = /^(?:find|search|grep|look)\s+(.+)$/i.exec(text);
  if (plain === null || /^look\s+at\b/i.test(text) || ASKS_FOR_MORE.test(text)) return undefined;
  const { rest, place } = splitPlace(plain[1] ?? "", clause);
  const found = searchText(rest, clause);
  return found === undefined ? undefined : look(grep(found, place, extras));
};

const LANGUAGES: Readonly<Record<string, string>> = {
  ...{ typescript: "*.ts", javascript: "*.js", python: "*.py", rust: "*.rs", go: "*.go", java: "*.java", ruby: "*.rb" },
  ...{ markdown: "*.md", json: "*.json", yaml: "*.yaml", css: "*.css", html: "*.html", text: "*.txt", shell: "*.sh" },
  ...{ test: "*.test.*", tests: "*.test.*", c: "*.c" },
};

/** `TypeScript`, `*.ts`, `.ts`, `config` → a pattern of file names; undefined if the words name no files. */
const namePattern = (words: string, masked: Masked): string | undefined => {
  for (const word of words.split(/\s+/)) {
    const text = textOfWord(word, masked);
    const named = Object.hasOwn(LANGUAGES, text.toLowerCase()) ? LANGUAGES[text.toLowerCase()] : undefined;
    if (named !== undefined) return named;
    if (isPattern(text)) return text;
    if (/^\.\w+$/.test(text)) return `*${text}`;
    if (word !== text && text !== "" && new RegExp(SPAN).test(word)) return isFileName(text) ? text : `*${text}*`;
    if (isFileName(text)) return text;
  }
  return undefined;
};

const anywhere = (name: string | undefined): string =>
  name === undefined ? "**/*" : name.includes("/") ? name : `**/${name}`;

const FILES = pattern(
  "^(?:list|show|find|give|print|which|what)\\b\\s*(?:me\\s+)?((?:(?!files?\\b)WORD\\s+)*)files?\\b(.*)$",
);

export const listMove = (clause: Masked): Move | undefined => {
  const files = FILES.exec(clause.text);
  if (files === null) return listFolder(clause);
  const after = files[2] ?? "";
  const holds =
    /^\s*(?:that\s+|which\s+)?(?:contain|contains|containing|mention|mentions|mentioning|use|uses|using|import|imports|importing|with the (?:text|word|string))\s+(.+)$/i.exec(
      after,
    );
  if (holds !== null) {
    const { rest, place } = splitPlace(holds[1] ?? "", clause);
    const found = searchText(rest, clause);
    if (found === undefined) return undefined;
    const name = namePattern(files[1] ?? "", clause);
    const input = { pattern: found, ...(name === undefined ? {} : { glob: name }), ...searchLocation(place) };
    return look({ name: "Grep", input: { ...input, output_mode: "files_with_matches" }, about: "names" });
  }
  const { rest, place } = splitPlace(after.replace(/\s+(?:are there|there are|exist)\b/i, ""), clause);
  const name = namePattern(`${rest} ${files[1] ?? ""}`.trim(), clause);
  // In `list the files in src/**/*.ts` the place is itself the pattern.
  if (place !== undefined && isPattern(place)) return look(glob(place));
  return look(glob(anywhere(name), place));
};

const glob = (text: string, path?: string): Look => ({
  name: "Glob",
  input: { pattern: text, ...(path === undefined ? {} : { path }) },
  about: "list",
});

const listFolder = (clause: Masked): Move | undefined => {
  const found = pattern(
    "^list\\s+(?:me\\s+)?(?:everything\\s+in\\s+)?(?:the\\s+)?(?:contents?\\s+of\\s+)?(?:the\\s+)?(?:folder\\s+|directory\\s+)?(WORD)(?:\\s+(?:folder|directory))?[.?!]?$",
  ).exec(clause.text);
  if (found === null) return undefined;
  const place = textOfWord(found[1] ?? "", clause);
  if (isPattern(place)) return look(glob(anywhere(place)));
  return isWholePlace(place) ? look(glob("*")) : look(glob("*", place));
};

const COUNT = /^(?:count|how many)\s+(?:up\s+)?(?:(?:the|all|of|number|are|there)\s+)*(.+)$/i;

export const countMove = (clause: Masked): Move | undefined => {
  const what = COUNT.exec(clause.text.replace(/\?$/, ""))?.[1];
  if (what === undefined) return undefined;
  const tidy = what
    .replace(/\b(?:are|is)\s+there\b/i, "")
    .replace(/\s+(?:have|has|appears?|occurs?|exist|are)(?=\s|$)/gi, "")
    .replace(/^times\s+(?:does|do|is|are)?\s*/i, "occurrences of ")
    .replace(/\s+used(?=\s|$)/i, "")
    .replace(/\s+/g, " ")
    .trim();
  if (/^lines?\b/i.test(tidy) && !/^lines?\s+(?:with|containing|that|matching)\b/i.test(tidy))
    return countLinesMove({ ...clause, text: tidy.replace(/\bdoes\b/i, "in") });
  const files = pattern("^((?:(?!files?\\b)WORD\\s+)*)files?\\b(.*)$").exec(tidy);
  if (files !== null) {
    const { rest, place } = splitPlace(files[2] ?? "", clause);
    const name = namePattern(`${rest} ${files[1] ?? ""}`.trim(), clause)?.replace(/^.*\//, "");
    return look(bash(countFiles({ ...(place === undefined ? {} : { folder: place }), ...(name ? { name } : {}) })));
  }
  const { rest, place } = splitPlace(
    tidy.replace(/^lines?\s+(?:with|containing|that\s+contain|matching)\s+/i, ""),
    clause,
  );
  const marked = spansOf({ ...clause, text: rest }).length > 0;
  const found = searchText(marked ? rest : rest.replace(/^([A-Z]{2,})s$/, "$1"), clause);
  if (found === undefined) return undefined;
  return look({ name: "Grep", input: { pattern: found, ...searchLocation(place), ...COUNTING }, about: "count" });
};

/** As many files as the tool can show, because a sum over only some of them would be wrong. */
const COUNTING = { output_mode: "count", head_limit: 2_000 } as const;

/** Counts a file with `wc`, and a folder or a file pattern by its line starts. */
const countLinesMove = (clause: Masked): Move | undefined => {
  const paths = pathsIn(clause);
  if (paths.length > 0 && paths.every(isFileName)) return look(bash(countLines(paths)));
  const { rest, place } = splitPlace(clause.text.replace(/^lines?\s+of\b/i, "lines in"), clause);
  const name = namePattern(rest.replace(/^lines?\s*(?:in)?\s*/i, ""), clause);
  const input = { pattern: "^", ...(name === undefined ? {} : { glob: name }), ...searchLocation(place) };
  return look({ name: "Grep", input: { ...input, ...COUNTING }, about: "count" });
};

const wordsOf = (text: string): readonly string[] => [...text.matchAll(new RegExp(WORD, "g"))].map(([word]) => word);

/** Every word of a clause that names a path, in order; a marked word counts if it could be one. */
export const pathsIn = (clause: Masked): readonly string[] =>
  wordsOf(clause.text).flatMap((word) => {
    const text = textOfWord(word, clause);
    const isMarked = new RegExp(SPAN).test(word);
    return (isMarked ? isMarkedPath(text) : looksLikePath(text)) ? [text] : [];
  });

/** `lines 10-20`, `line 7`. */
export const linesIn = (text: string): Lines | undefined => {
  const found = /\blines?\s+(\d{1,7})(?:\s*(?:-|–|to|through|until)\s*(\d{1,7}))?/i.exec(text);
  if (found === null) return undefined;
  const from = Math.max(1, Number(found[1]));
  return { from, to: Math.max(from, Number(found[2] ?? from)) };
};

export const readMove = (clause: Masked): Move | undefined => {
  const { text } = clause;
  const edge = /\b(?:the\s+)?(first|last|top|head|tail)\s+(\d{1,6})\s+lines?\b/i.exec(text);
  const asks = /^(?:read|re-read|show|open|print|display|cat|view|look\s+at|have a look at|what is in|what's in)\b/i;
  if (!asks.test(text) && edge === null) return undefined;
  const paths = pathsIn(clause);
  if (paths.length === 0) return undefined;
  const count = Math.max(1, Number(edge?.[2] ?? 1));
  if (edge !== null && /^(?:last|tail)$/i.test(edge[1] ?? ""))
    return look(...paths.map((path) => bash(lastLines(count, path))));
  if (edge !== null) return look(...paths.map((path) => read(path, { from: 1, to: count })));
  return look(...readsIn(clause));
};

const read = (path: string, lines: Lines | undefined): Look => ({
  name: "Read",
  input: {
    file_path: path,
    ...(lines === undefined ? {} : { offset: lines.from, limit: lines.to - lines.from + 1 }),
  },
  about: "read",
});

/** `a.ts lines 3-9 and b.ts`: lines belong to the file before them; lines before the first file belong to all. */
const readsIn = (clause: Masked): readonly Look[] => {
  const parts: { path: string | undefined; words: string }[] = [{ path: undefined, words: "" }];
  for (const word of wordsOf(clause.text)) {
    const [path] = pathsIn({ ...clause, text: word });
    const last = parts.at(-1);
    if (path !== undefined) parts.push({ path, words: "" });
    else if (last !== undefined) last.words += ` ${word}`;
  }
  const [lead] = parts;
  const forAll = linesIn(lead?.words ?? "");
  return parts.flatMap(({ path, words }) => (path === undefined ? [] : [read(path, linesIn(words) ?? forAll)]));
};
