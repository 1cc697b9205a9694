/** Highlighting (highlight.js) and differences (diff), behind what views ask for.
 *  Invariant: loaded when the first code is shown, because they take longer to load than the first frame to draw; nothing
 *  throws; texts and times are bounded; what comes back is exactly the text that was passed in.
 *  Elsewhere: how tokens and diffs look (views: code-lines.ts, diff-lines.ts). */

import { diffArrays, diffWordsWithSpace } from "diff";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import lua from "highlight.js/lib/languages/lua";
import makefile from "highlight.js/lib/languages/makefile";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import type { CodeToken, CodeTools, DiffRun, SyntaxRole } from "./views/index.ts";

const LANGUAGES = {
  ...{ bash, c, cpp, csharp, css, dockerfile, go, ini, java, javascript, json, kotlin, lua, makefile, php, python },
  ...{ ruby, rust, sql, swift, typescript, xml, yaml },
};

const MAX_CODE = 20_000;
const MAX_LINE = 1_000;
/** Frames show the same code again and again. */
const MAX_CACHED = 32;
const DIFF_TIMEOUT_MS = 50;
/** Some grammars take cubic time for texts made for it, so code is highlighted in pieces of whole lines: a string or comment
 *  over several pieces is coloured up to its piece's end. */
const MAX_PIECE = 1_000;
/** A text that has taken this long is plain from there on. */
const MAX_MS = 100;
/** A language that was slow this often is shown plain. */
const MAX_SLOW = 3;

/** By the first part of a class of highlight.js: `title function_` is a title. */
const ROLES: Readonly<Record<string, SyntaxRole>> = {
  ...{ keyword: "keyword", "selector-tag": "keyword", tag: "keyword", operator: "keyword" },
  ...{ string: "string", regexp: "string", "meta-string": "string", char: "string", link: "string" },
  ...{ number: "number", literal: "number", symbol: "number", "variable.constant_": "number" },
  ...{ comment: "comment", quote: "comment", doctag: "comment", meta: "comment" },
  ...{
    title: "identifier",
    section: "identifier",
    name: "identifier",
    attr: "identifier",
    attribute: "identifier",
    "selector-class": "identifier",
  },
  ...{ type: "type", built_in: "type", class: "type", "selector-id": "type" },
};

export const loadCodeTools = (now: () => number = () => performance.now()): CodeTools => {
  const highlighter = hljs.newInstance();
  for (const [name, language] of Object.entries(LANGUAGES)) highlighter.registerLanguage(name, language);
  const cache = new Map<string, ReturnType<CodeTools["tokenize"]>>();
  const slow = new Map<string, number>();
  const tokenize: CodeTools["tokenize"] = (code, language) => {
    const grammar = highlighter.getLanguage(language.toLowerCase());
    if (code.length > MAX_CODE || !grammar) return undefined;
    // One language has several names.
    const name = grammar.name ?? language.toLowerCase();
    const key = `${name}\n${code}`;
    if (cache.has(key)) return cache.get(key);
    if ((slow.get(name) ?? 0) >= MAX_SLOW) return undefined;
    const startedAt = now();
    const isSlow = (): boolean => now() - startedAt > MAX_MS;
    const toHtml = (text: string): string =>
      highlighter.highlight(text, { language: language.toLowerCase(), ignoreIllegals: true }).value;
    const tokens = code.split("\n").some((line) => line.length > MAX_LINE)
      ? undefined
      : piecesOf(code).flatMap((piece) => (isSlow() ? undefined : tokensOf(piece, toHtml)) ?? plainLines(piece));
    if (isSlow()) slow.set(name, (slow.get(name) ?? 0) + 1);
    cache.set(key, tokens);
    for (const old of cache.keys()) if (cache.size > MAX_CACHED) cache.delete(old);
    return tokens;
  };
  return { tokenize, diffLines, diffWords };
};

/** Whole lines, together at most as long as a piece may be. */
const piecesOf = (code: string): readonly string[] => {
  const pieces: string[] = [];
  for (const line of code.split("\n")) {
    const last = pieces.at(-1);
    if (last !== undefined && last.length + line.length < MAX_PIECE) pieces[pieces.length - 1] = `${last}\n${line}`;
    else pieces.push(line);
  }
  return pieces;
};

const plainLines = (code: string): readonly (readonly CodeToken[])[] =>
  code.split("\n").map((line) => (line === "" ? [] : [{ text: line }]));

const tokensOf = (code: string, toHtml: (code: string) => string): ReturnType<CodeTools["tokenize"]> => {
  try {
    const lines = linesOf(toHtml(code));
    const text = lines.map((tokens) => tokens.map((token) => token.text).join("")).join("\n");
    return text === code ? lines : undefined;
  } catch {
    return undefined; // a grammar failed; plain text says the same
  }
};

const PART = /<span class="([^"]*)">|(<\/span>)|&(amp|lt|gt|quot|#x27);|([^<&]+)/g;
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'" };

const linesOf = (html: string): readonly (readonly CodeToken[])[] => {
  const lines: CodeToken[][] = [[]];
  const roles: (SyntaxRole | undefined)[] = [];
  const add = (text: string): void => {
    const role = roles.at(-1);
    for (const [index, part] of text.split("\n").entries()) {
      if (index > 0) lines.push([]);
      if (part !== "") append(lines.at(-1) ?? [], part, role);
    }
  };
  for (const [, opened, closed, entity, text] of html.matchAll(PART)) {
    if (opened !== undefined) roles.push(roleOf(opened) ?? roles.at(-1));
    else if (closed !== undefined) roles.pop();
    else add(entity === undefined ? (text ?? "") : (ENTITIES[entity] ?? ""));
  }
  return lines;
};

const append = (line: CodeToken[], text: string, role: SyntaxRole | undefined): void => {
  const last = line.at(-1);
  if (last && last.role === role) line[line.length - 1] = { ...last, text: last.text + text };
  else line.push({ text, ...(role ? { role } : {}) });
};

const roleOf = (classes: string): SyntaxRole | undefined =>
  ROLES[(classes.split(" ")[0] ?? "").replace(/^hljs-|^language-.*/, "")];

type Change<T> = { readonly value: T; readonly added?: boolean; readonly removed?: boolean };

const toRun = <T>({ added, removed }: Change<unknown>, items: readonly T[]): DiffRun<T> => ({
  kind: added ? "added" : removed ? "removed" : "same",
  items,
});

const diffLines: CodeTools["diffLines"] = (before, after) =>
  diffArrays([...before], [...after], { timeout: DIFF_TIMEOUT_MS })?.map((change) => toRun(change, change.value));

const diffWords: CodeTools["diffWords"] = (before, after) =>
  diffWordsWithSpace(before, after, { timeout: DIFF_TIMEOUT_MS })?.map((change) => toRun(change, [change.value]));
