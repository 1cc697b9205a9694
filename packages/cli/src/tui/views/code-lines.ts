/** Code as coloured lines.
 *  Invariant: the text is already safe and stays as it is; without tools, or for an unknown language, it is shown plain. The
 *  code of an answer that is still growing is coloured up to a point that depends on its length alone, so that a long answer
 *  is not highlighted again for each word.
 *  Elsewhere: the tokens (code-tools.ts), fences (markdown.ts), diffs (diff-lines.ts). */

import { extname } from "node:path";
import type { CodeToken } from "./code-tools.ts";
import type { Theme } from "./theme.ts";

const plainTokens = (line: string): readonly CodeToken[] => (line === "" ? [] : [{ text: line }]);

/** One list of tokens per line. */
export const tokenLines = (
  code: string,
  language: string | undefined,
  theme: Theme,
): readonly (readonly CodeToken[])[] =>
  (language === undefined || theme.name === "none" ? undefined : theme.code?.tokenize(code, language)) ??
  code.split("\n").map(plainTokens);

export const paintTokens = (tokens: readonly CodeToken[], theme: Theme): string =>
  tokens.map(({ text, role }) => (role ? theme[role](text) : text)).join("");

export const codeLines = (code: string, language: string | undefined, theme: Theme): readonly string[] =>
  tokenLines(code, language, theme).map((tokens) => paintTokens(tokens, theme));

/** As `codeLines`, for code that is still growing. */
export const growingCodeLines = (code: string, language: string | undefined, theme: Theme): readonly string[] => {
  const end = code.lastIndexOf("\n", checkpoint(code.length));
  if (end <= 0) return codeLines(code, undefined, theme);
  return [...codeLines(code.slice(0, end), language, theme), ...code.slice(end + 1).split("\n")];
};

/** The largest point that is not above the length; the points are an eighth apart. */
const checkpoint = (length: number): number => {
  let point = 64;
  while (point * 1.125 <= length) point *= 1.125;
  return point;
};

const BY_EXTENSION: Readonly<Record<string, string>> = {
  ...{ ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescript" },
  ...{ ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript" },
  ...{ ".py": "python", ".rs": "rust", ".go": "go", ".rb": "ruby", ".java": "java", ".kt": "kotlin", ".lua": "lua" },
  ...{ ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".hpp": "cpp", ".cs": "csharp", ".swift": "swift" },
  ...{ ".sh": "bash", ".bash": "bash", ".zsh": "bash", ".sql": "sql", ".php": "php", ".css": "css", ".scss": "css" },
  ...{ ".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toml": "ini", ".ini": "ini", ".html": "xml", ".xml": "xml" },
  ...{ ".svg": "xml", ".vue": "xml", ".mk": "makefile" },
};

export const languageOf = (path: string): string | undefined => BY_EXTENSION[extname(path).toLowerCase()];
