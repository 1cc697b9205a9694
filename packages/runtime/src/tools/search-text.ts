/** How are file contents searched if ripgrep is not installed?
 *  Invariant: ordinary patterns give what ripgrep would give, in the same order. A pattern that takes too long is
 *  aborted, because it blocks the main thread.
 *  Elsewhere: searching with ripgrep (ripgrep.ts), listing files (list-files.ts), showing results (grep.ts). */

import { basename } from "node:path";
import { createContext, Script } from "node:vm";
import type { Refused } from "@prefork/guard/internal";
import { decodeText, splitLines } from "./file-content.ts";
import { compareWalkOrder, listFiles } from "./list-files.ts";
import { translatePattern } from "./search-pattern.ts";
import type { SearchRoot } from "./search-root.ts";
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

const MAX_FILE_BYTES = 32 * 1024 * 1024;

type SearchResult = { readonly ok: true; readonly isCut: boolean } | Refused;

export const searchWithoutRipgrep = async (search: Search, context: ToolContext): Promise<SearchResult> => {
  const { root, options } = search;
  const finder = compileFinder(search);
  if (typeof finder === "string") return { ok: false, reason: finder };
  if (options.type !== undefined && !Object.hasOwn(TYPES, options.type))
    return { ok: false, reason: `without ripgrep the types are ${Object.keys(TYPES).join(", ")}` };
  const listed = root.isFile
    ? { ok: true as const, names: [basename(root.path)], isCut: false }
    : await listFiles(root.folder, context);
  if (!listed.ok) return listed;
  const chosen = root.isFile ? () => true : typeFilter(options.type);
  const mayRead = context.files.mayRead(root.path);
  const paths = listed.names
    .filter(chosen)
    .toSorted(compareWalkOrder)
    .map((name) => `${root.folder}/${name}`)
    .filter((path) => search.isWanted(path) && mayRead(path));
  for (let from = 0; from < paths.length; from += AT_ONCE) {
    context.signal.throwIfAborted();
    const some = paths.slice(from, from + AT_ONCE);
    const texts = await Promise.all(some.map((path) => readLines(path, context)));
    for (const [at, text = NO_LINES] of texts.entries()) {
      const { lines } = text;
      const matches = finder(text);
      if (matches === undefined) return { ok: false, reason: "the pattern takes too long; make it simpler" };
      if (matches.lines.length > 0 && !reportMatches({ path: some[at] ?? "", lines, matches }, search))
        return { ok: true, isCut: true };
    }
  }
  return { ok: true, isCut: listed.isCut };
};

const NO_LINES: Lines = { lines: [], isEnded: false };

/** How many files are read in parallel. */
const AT_ONCE = 16;

const typeFilter = (type: string | undefined): ((name: string) => boolean) => {
  const endings = type === undefined ? undefined : TYPES[type];
  return (name) => endings === undefined || endings.includes(name.split(".").at(-1) ?? "");
};

type Lines = { readonly lines: readonly string[]; readonly isEnded: boolean };

const readLines = async (path: string, { files }: ToolContext): Promise<Lines | undefined> => {
  const read = await files.read(path, { maxBytes: MAX_FILE_BYTES }); // through ToolFiles, because git also lists links
  if (!read.ok) return undefined;
  const { text } = decodeText(read.bytes);
  if (text.includes("\0")) return undefined; // binary, by ripgrep's rule
  return { lines: splitLines(text), isEnded: text.endsWith("\n") };
};

/** Indices of the matching lines, and the number of matches: a match across several lines counts once. */
type LineMatches = { readonly lines: readonly number[]; readonly count: number };

/** Undefined if it took too long. */
type Finder = (text: Lines) => LineMatches | undefined;

const FIND_LINES = new Script("lines.flatMap((line, at) => (pattern.test(line) ? [at] : [])).join()");
const FIND_SPANS = new Script(
  '[...(lines.join("\\n") + end).matchAll(pattern)].map((found) => found.index + ":" + found[0].length).join()',
);
const PATIENCE_MS = 2_000;

/** In a separate context, because only there can the regular expression be given a time limit. */
const compileFinder = ({ pattern, options: { ignoreCase, multiline } }: Search): Finder | string => {
  const flags = `${ignoreCase ? "i" : ""}${multiline ? "gms" : ""}`;
  const translated = translatePattern(pattern, flags);
  if (typeof translated === "string") return `the pattern cannot be read: ${translated}`;
  const scope: { lines: readonly string[]; end: string; pattern: RegExp } = { lines: [], end: "", pattern: /$^/ };
  try {
    scope.pattern = new RegExp(translated.source, translated.flags);
  } catch (error) {
    return `the pattern cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
  const inside = createContext(scope);
  return ({ lines, isEnded }) => {
    scope.lines = lines;
    scope.end = isEnded ? "\n" : "";
    try {
      const found: unknown = (multiline ? FIND_SPANS : FIND_LINES).runInContext(inside, { timeout: PATIENCE_MS });
      const parts = typeof found === "string" && found !== "" ? found.split(",") : [];
      return { lines: multiline ? linesOfSpans(parts, lines) : parts.map(Number), count: parts.length };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return undefined;
      throw error;
    }
  };
};

/** Spans are in order and do not overlap, so one pass over the lines is enough. */
const linesOfSpans = (spans: readonly string[], lines: readonly string[]): readonly number[] => {
  const found = new Set<number>();
  let line = 0;
  let start = 0;
  for (const span of spans) {
    const [from = 0, length = 0] = span.split(":").map(Number);
    const last = from + Math.max(0, length - 1);
    for (; line < lines.length && start + (lines[line]?.length ?? 0) < from; line++)
      start += (lines[line]?.length ?? 0) + 1;
    for (; line < lines.length && start <= last; line++) {
      found.add(line);
      if (start + (lines[line]?.length ?? 0) >= last) break; // the next match may begin on the same line
      start += (lines[line]?.length ?? 0) + 1;
    }
  }
  return [...found];
};

type FileMatches = { readonly path: string; readonly lines: readonly string[]; readonly matches: LineMatches };

const reportMatches = ({ path, lines, matches }: FileMatches, { options, onMatch }: Search): boolean => {
  const { mode, before = 0, after = 0 } = options;
  if (mode === "files_with_matches") return onMatch({ path });
  if (mode === "count") return onMatch({ path, count: matches.count });
  const matching = new Set(matches.lines);
  const shown = new Set(
    matches.lines.flatMap((at) => Array.from({ length: before + after + 1 }, (_, step) => at - before + step)),
  );
  return [...shown]
    .filter((at) => at >= 0 && at < lines.length)
    .sort((a, b) => a - b)
    .every((at) => {
      const text = lines[at] ?? "";
      const cut = Buffer.byteLength(text) > MAX_LINE_BYTES ? { isCut: true as const } : {};
      return onMatch({ path, line: { number: at + 1, isMatch: matching.has(at), text, ...cut } });
    });
};
