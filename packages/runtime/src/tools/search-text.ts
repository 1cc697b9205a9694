/** Searches the contents of files where ripgrep is not installed.
 *  Invariant: gives what ripgrep would for ordinary patterns, in the same order; a pattern that takes too long is ended,
 *  since it runs on the thread that everything else runs on.
 *  Elsewhere: with ripgrep (ripgrep.ts), which files there are (list-files.ts), showing results (grep.ts). */

import { basename } from "node:path";
import { createContext, Script } from "node:vm";
import type { Refused } from "@prefork/guard/internal";
import { linesOf, readText } from "./file-content.ts";
import { inWalkOrder, listFiles } from "./list-files.ts";
import { translatePattern } from "./search-pattern.ts";
import type { SearchPlace } from "./search-place.ts";
import type { ToolContext } from "./tool.ts";

export type SearchMode = "content" | "files_with_matches" | "count";

export type Found = {
  /** Absolute. */
  readonly path: string;
  /** `isCut`: only its beginning, since it is longer than anybody reads. */
  readonly line?: { readonly number: number; readonly fits: boolean; readonly text: string; readonly isCut?: true };
  readonly count?: number;
};

/** Of a longer line only the beginning is shown. */
export const MOST_LINE_BYTES = 1_000;

export type Search = {
  readonly pattern: string;
  readonly place: SearchPlace;
  readonly options: {
    readonly mode: SearchMode;
    readonly glob?: string;
    readonly type?: string;
    readonly ignoreCase: boolean;
    readonly multiline: boolean;
    readonly before?: number;
    readonly after?: number;
  };
  /** By the glob that was given, which files are meant? The same question with ripgrep and without. */
  readonly isWanted: (path: string) => boolean;
  /** False: enough. */
  readonly found: (found: Found) => boolean;
};

/** The endings of everyday types, by ripgrep's names for them. */
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

const MOST_FILE_BYTES = 32 * 1024 * 1024;

type Searched = { readonly ok: true; readonly isCut: boolean } | Refused;

export const searchWithout = async (search: Search, context: ToolContext): Promise<Searched> => {
  const { place, options } = search;
  const finder = finderOf(search);
  if (typeof finder === "string") return { ok: false, reason: finder };
  if (options.type !== undefined && !Object.hasOwn(TYPES, options.type))
    return { ok: false, reason: `without ripgrep the types are ${Object.keys(TYPES).join(", ")}` };
  const listed = place.isFile
    ? { ok: true as const, names: [basename(place.path)], isCut: false }
    : await listFiles(place.folder, context);
  if (!listed.ok) return listed;
  const chosen = place.isFile ? () => true : ofType(options.type);
  const mayRead = context.files.mayRead(place.path);
  const paths = listed.names
    .filter(chosen)
    .toSorted(inWalkOrder)
    .map((name) => `${place.folder}/${name}`)
    .filter((path) => search.isWanted(path) && mayRead(path));
  for (let from = 0; from < paths.length; from += AT_ONCE) {
    context.signal.throwIfAborted();
    const some = paths.slice(from, from + AT_ONCE);
    const texts = await Promise.all(some.map((path) => linesAt(path, context)));
    for (const [at, text = NO_LINES] of texts.entries()) {
      const { lines } = text;
      const fitting = finder(text);
      if (fitting === undefined) return { ok: false, reason: "the pattern takes too long; make it simpler" };
      if (fitting.lines.length > 0 && !tell({ path: some[at] ?? "", lines, fitting }, search))
        return { ok: true, isCut: true };
    }
  }
  return { ok: true, isCut: listed.isCut };
};

const NO_LINES: Lines = { lines: [], isEnded: false };

/** Files read beside each other. */
const AT_ONCE = 16;

const ofType = (type: string | undefined): ((name: string) => boolean) => {
  const endings = type === undefined ? undefined : TYPES[type];
  return (name) => endings === undefined || endings.includes(name.split(".").at(-1) ?? "");
};

type Lines = { readonly lines: readonly string[]; readonly isEnded: boolean };

const linesAt = async (path: string, { files }: ToolContext): Promise<Lines | undefined> => {
  const read = await files.read(path, { maxBytes: MOST_FILE_BYTES }); // by the tools' own way: git lists links too
  if (!read.ok) return undefined;
  const { text } = readText(read.bytes);
  if (text.includes("\0")) return undefined; // no text, as ripgrep has it
  return { lines: linesOf(text), isEnded: text.endsWith("\n") };
};

/** Indices of the lines that fit, and how often the pattern does: a match over several lines counts once. */
type Fits = { readonly lines: readonly number[]; readonly count: number };

/** Undefined where it took too long. */
type Finder = (text: Lines) => Fits | undefined;

const FIND_LINES = new Script("lines.flatMap((line, at) => (pattern.test(line) ? [at] : [])).join()");
const FIND_SPANS = new Script(
  '[...(lines.join("\\n") + end).matchAll(pattern)].map((found) => found.index + ":" + found[0].length).join()',
);
const PATIENCE_MS = 2_000;

/** In a context of its own, because only there can the engine be told to give up. */
const finderOf = ({ pattern, options: { ignoreCase, multiline } }: Search): Finder | string => {
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

/** Spans come in order and do not overlap, so one way through the lines is enough. */
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

type Fitting = { readonly path: string; readonly lines: readonly string[]; readonly fitting: Fits };

const tell = ({ path, lines, fitting }: Fitting, { options, found }: Search): boolean => {
  const { mode, before = 0, after = 0 } = options;
  if (mode === "files_with_matches") return found({ path });
  if (mode === "count") return found({ path, count: fitting.count });
  const fits = new Set(fitting.lines);
  const shown = new Set(
    fitting.lines.flatMap((at) => Array.from({ length: before + after + 1 }, (_, step) => at - before + step)),
  );
  return [...shown]
    .filter((at) => at >= 0 && at < lines.length)
    .sort((a, b) => a - b)
    .every((at) => {
      const text = lines[at] ?? "";
      const cut = Buffer.byteLength(text) > MOST_LINE_BYTES ? { isCut: true as const } : {};
      return found({ path, line: { number: at + 1, fits: fits.has(at), text, ...cut } });
    });
};
