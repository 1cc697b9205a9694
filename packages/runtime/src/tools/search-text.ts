/** How are file contents searched if ripgrep is not installed?
 *  Invariant: ordinary patterns give what ripgrep would give, in the same order. Nothing blocks the event loop for
 *  long, and memory does not grow with the number of files or matches.
 *  Elsewhere: searching with ripgrep (ripgrep.ts), listing files (list-files.ts), running the pattern
 *  (find-pattern.ts), showing results (grep.ts). */

import { basename } from "node:path";
import { type Refused, Turns } from "@prefork/guard/internal";
import { decodeText, LineReader } from "./file-content.ts";
import { type LineMatches, PatternFinder } from "./find-pattern.ts";
import { type Filtered, filterInTurns } from "./in-turns.ts";
import { listFiles, sortInWalkOrder } from "./list-files.ts";
import { translatePattern } from "./search-pattern.ts";
import type { SearchRoot } from "./search-root.ts";
import { OWN_SEARCHES } from "./slots.ts";
import type { ToolContext } from "./tool.ts";

export type SearchMode = "content" | "files_with_matches" | "count";

export type GrepMatch = {
  /** Absolute. */
  readonly path: string;
  /** `isCut`: only the beginning of a very long line. */
  readonly line?: { readonly number: number; readonly isMatch: boolean; readonly text: string; readonly isCut?: true };
  readonly count?: number;
};

/** Longer lines are truncated. */
export const MAX_LINE_BYTES = 1_000;

export type Search = {
  readonly pattern: string;
  readonly root: SearchRoot;
  readonly options: {
    readonly mode: SearchMode;
    readonly glob?: string;
    readonly type?: string;
    readonly ignoreCase: boolean;
    readonly multiline: boolean;
    readonly before?: number;
    readonly after?: number;
  };
  /** Does the glob of the search mean this file? Applied with and without ripgrep. */
  readonly isWanted: (path: string) => boolean;
  /** Returns false to stop the search. */
  readonly onMatch: (match: GrepMatch) => boolean;
};

/** File name extensions of common types, by ripgrep's names for the types. */
const TYPES: Readonly<Record<string, readonly string[]>> = {
  c: ["c", "h"],
  cpp: ["cpp", "cc", "cxx", "hpp", "hh", "hxx", "h", "inl"],
  cs: ["cs"],
  css: ["css", "scss"],
  go: ["go"],
  html: ["html", "htm"],
  java: ["java"],
  js: ["js", "jsx", "mjs", "cjs", "vue"],
  json: ["json"],
  kotlin: ["kt", "kts"],
  md: ["md", "markdown", "mdx"],
  php: ["php"],
  py: ["py", "pyi"],
  ruby: ["rb", "gemspec"],
  rust: ["rs"],
  sh: ["sh", "bash", "zsh"],
  sql: ["sql"],
  swift: ["swift"],
  toml: ["toml"],
  ts: ["ts", "tsx", "cts", "mts"],
  txt: ["txt"],
  xml: ["xml", "xsd"],
  yaml: ["yaml", "yml"],
};

export const MAX_FILE_BYTES = 32 * 1024 * 1024;
/** How many files are read in parallel. Each may be as large as the limit. */
const AT_ONCE = 4;
/** How many matching lines of one file are reported. Grep stops before: it counts a million and shows far fewer. */
const MAX_LINES = 1_100_000;
/** For the search as a whole. What was found until then is shown. */
const MAX_SEARCH_MS = 60_000;

type SearchResult = { readonly ok: true; readonly isCut: boolean } | Refused;

export const searchWithoutRipgrep = async (search: Search, context: ToolContext): Promise<SearchResult> => {
  const { root, options } = search;
  const { signal } = context;
  const finder = createFinder(search, signal);
  if (typeof finder === "string") return { ok: false, reason: `the pattern cannot be read: ${finder}` };
  await using _ = finder;
  if (options.type !== undefined && !Object.hasOwn(TYPES, options.type))
    return { ok: false, reason: `without ripgrep the types are ${Object.keys(TYPES).join(", ")}` };
  const listed = root.isFile
    ? { ok: true as const, names: [basename(root.path)], isCut: false }
    : await listFiles(root.folder, context);
  if (!listed.ok) return listed;
  const { items: paths, isCut } = await pathsToSearch(search, listed.names, context);
  const start = performance.now();
  for (let from = 0; from < paths.length; from += AT_ONCE) {
    const some = paths.slice(from, from + AT_ONCE);
    using _slot = await OWN_SEARCHES.enter(signal);
    const texts = await Promise.all(some.map((path) => readSearchable(path, context)));
    for (const [at, text = ""] of texts.entries()) {
      signal.throwIfAborted();
      if (performance.now() - start > MAX_SEARCH_MS) return { ok: true, isCut: true };
      if (text === "") continue;
      const matches = await finder.find(text);
      if (typeof matches === "string") return { ok: false, reason: matches };
      const file = { path: some[at] ?? "", text, matches };
      if (matches.count > 0 && !(await reportMatches(file, search, signal))) return { ok: true, isCut: true };
    }
  }
  return { ok: true, isCut: isCut || listed.isCut };
};

/** A string says what is wrong with the pattern. */
const createFinder = ({ pattern, options }: Search, signal: AbortSignal): PatternFinder | string => {
  const { mode, ignoreCase, multiline } = options;
  const translated = translatePattern(pattern, `${ignoreCase ? "i" : ""}${multiline ? "gms" : ""}`);
  if (typeof translated === "string") return translated;
  const maxLines = mode === "content" ? MAX_LINES : 0;
  const how = { isMultiline: multiline, maxLines, firstIsEnough: mode === "files_with_matches" };
  try {
    return new PatternFinder({ ...translated, ...how, signal });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

const pathsToSearch = async (
  { root, options, isWanted }: Search,
  names: readonly string[],
  { files, signal }: ToolContext,
): Promise<Filtered<string>> => {
  const hasType = root.isFile ? () => true : typeFilter(options.type);
  const mayRead = files.mayRead(root.path);
  const pathOf = (name: string): string => `${root.folder}/${name}`;
  const isMeant = (name: string): boolean => hasType(name) && isWanted(pathOf(name)) && mayRead(pathOf(name));
  const { items, isCut } = await filterInTurns(names, isMeant, signal);
  return { items: sortInWalkOrder(items).map(pathOf), isCut };
};

const typeFilter = (type: string | undefined): ((name: string) => boolean) => {
  const endings = type === undefined ? undefined : TYPES[type];
  return (name) => endings === undefined || endings.includes(name.slice(name.lastIndexOf(".") + 1));
};

/** Undefined if the file cannot be read or is binary. */
const readSearchable = async (path: string, { files }: ToolContext): Promise<string | undefined> => {
  const read = await files.read(path, { maxBytes: MAX_FILE_BYTES }); // through ToolFiles, because git also lists links
  if (!read.ok) return undefined;
  const { text } = decodeText(read.bytes);
  return text.includes("\0") ? undefined : text; // binary, by ripgrep's rule
};

type FileMatches = { readonly path: string; readonly text: string; readonly matches: LineMatches };

/** Reports the matching lines and the context lines around them, each once. */
const reportMatches = async (
  { path, text, matches: { lines, count } }: FileMatches,
  { options, onMatch }: Search,
  signal: AbortSignal,
): Promise<boolean> => {
  const { mode, before = 0, after = 0 } = options;
  if (mode === "files_with_matches") return onMatch({ path });
  if (mode === "count") return onMatch({ path, count });
  const reader = new LineReader(text);
  const turns = new Turns();
  let [next, match] = [0, 0];
  for (const at of lines) {
    for (next = Math.max(next, at - before); next <= at + after; next += 1) {
      const line = reader.line(next);
      if (line === undefined) break;
      while ((lines[match] ?? next) < next) match += 1;
      const cut = Buffer.byteLength(line) > MAX_LINE_BYTES ? { isCut: true as const } : {};
      const isMatch = lines[match] === next;
      if (!onMatch({ path, line: { number: next + 1, isMatch, text: line, ...cut } })) return false;
      if (turns.isOver) await turns.next();
      signal.throwIfAborted();
    }
  }
  return true;
};
