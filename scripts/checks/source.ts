/** What every check needs: the list of files, and their text without comments and strings.
 *  Invariant: blanked text has the same length and line breaks as its source, so positions are the same in both.
 *  Elsewhere: the rules (one file each beside this one), running and printing them (../check.ts). */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

export type Problem = { readonly place: string; readonly rule: string; readonly wayOut: string };

export type Verdict = {
  readonly files: number;
  readonly problems: readonly Problem[];
  /** What a tool of somebody else printed; it has its own form. */
  readonly output?: string;
};

export type SourceFile = { readonly path: string; readonly text: string; readonly blanked: string };

const skippedFolders = new Set(["node_modules", "dist", "coverage", "fixtures"]);

/** Paths below `root` with forward slashes, sorted; hidden, built and fixture folders are left out. */
export function listFiles(root: string, ending: RegExp): readonly string[] {
  const walk = (folder: string): readonly string[] =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return entry.name.startsWith(".") || skippedFolders.has(entry.name) ? [] : walk(path);
      return ending.test(entry.name) ? [path] : [];
    });
  return [...walk("")].sort();
}

export function readSources(root: string, wanted: RegExp = /^/): readonly SourceFile[] {
  return listFiles(root, /\.[cm]?[jt]s$/)
    .filter((path) => wanted.test(path))
    .map((path) => {
      const text = readFileSync(join(root, path), "utf8");
      return { path, text, blanked: blank(text) };
    });
}

export function lineOf(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < index; at = text.indexOf("\n", at + 1)) line++;
  return line;
}

export const placeOf = (file: SourceFile, index: number): string => `${file.path}:${lineOf(file.text, index)}`;

export const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;

/** A slash after one of these starts a regular expression; after anything else it divides. */
const beforeExpression = /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|await|yield|throw|else|do))\s*$/;

const token = {
  lineComment: /\/\/[^\n]*/y,
  blockComment: /\/\*[\s\S]*?(?:\*\/|$)/y,
  string: /"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?/y,
  regex: /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y,
  templateText: /(?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)?/y,
};

const matchAt = (pattern: RegExp, text: string, index: number): string => {
  pattern.lastIndex = index;
  return pattern.exec(text)?.[0] ?? "";
};

const spaces = (text: string): string => text.replace(/[^\n]/g, " ");

/** The inside of a string becomes spaces and its quotes stay, so an import still shows where its path stands. */
const blankInside = (text: string): string => text.slice(0, 1) + spaces(text.slice(1, -1)) + text.slice(1).slice(-1);

/** Replaces comments, regular expressions and the text of strings and templates by spaces. */
export function blank(text: string): string {
  const templates: number[] = []; // brace depth at which each open `${` ends
  let depth = 0;
  let out = "";
  while (out.length < text.length) {
    const at = out.length;
    const char = text.charAt(at);
    const startsText = char === "`" || (char === "}" && templates.at(-1) === depth);
    if (startsText) {
      if (char === "}") templates.pop();
      const rest = matchAt(token.templateText, text, at + 1);
      const opens = rest.endsWith("${");
      if (opens) templates.push(depth);
      const close = opens ? 2 : rest.endsWith("`") ? 1 : 0;
      out += char + spaces(rest.slice(0, rest.length - close)) + rest.slice(rest.length - close);
    } else if (text.startsWith("//", at)) out += spaces(matchAt(token.lineComment, text, at));
    else if (text.startsWith("/*", at)) out += spaces(matchAt(token.blockComment, text, at));
    else if (char === '"' || char === "'") out += blankInside(matchAt(token.string, text, at));
    else if (char === "/" && beforeExpression.test(out.slice(-80)))
      out += spaces(matchAt(token.regex, text, at)) || char;
    else {
      if (char === "{") depth++;
      if (char === "}") depth--;
      out += char;
    }
  }
  return out;
}
