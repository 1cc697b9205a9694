/** A jq filter as tokens, including those inside the `\(…)` of strings.
 *  Invariant: every character is understood, and in the same way by every version of jq, or the filter is refused. Code in a
 *  string is never mistaken for text, and a call is never mistaken for the key of an object. */

import { Refusal } from "../refusal.ts";

export type JqToken = {
  /** `field`: `.name`; `name`: a function or a keyword; `key`: a name used as the key of an object. */
  readonly kind: "field" | "name" | "key" | "variable" | "number" | "text" | "format" | "sign";
  readonly text: string;
};

const PATTERNS: readonly (readonly [JqToken["kind"] | "space", RegExp])[] = [
  // Since jq 1.8, a comment continues after a line that ends in a backslash.
  ["space", /[ \t\r\n]+|#[^\n\r\\]*(?=\r?\n|$)/y],
  ["field", /\.[A-Za-z_]\w*/y],
  ["number", /(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y],
  ["variable", /\$(?:__loc__|[A-Za-z_]\w*)/y],
  ["name", /[A-Za-z_]\w*/y],
  ["format", /@[a-z]\w*/y],
  ["sign", /\?\/\/|\/\/=|\|=|\+=|-=|\*=|\/=|%=|==|!=|<=|>=|\/\/|\.\.|[-+*/%<>=|,;:.?()[\]{}]/y],
];

const OPENED_BY: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };

const refuse = (what: string): never => {
  throw new Refusal(`jq: ${what}; a simple filter runs without approval: jq '.a.b' FILE`);
};

const describeUnknown = (source: string, at: number): string =>
  source[at] === "#"
    ? "a comment may not contain a backslash"
    : `\`${/.{0,10}/.exec(source.slice(at))?.[0]}\` is not understood`;

/** All tokens in order. The code of a string follows the string, in parentheses. */
export const jqTokens = (source: string): readonly JqToken[] => {
  const tokens: JqToken[] = [];
  /** Open brackets, and each `if` until its `end`, because commas may occur there too. */
  const open: string[] = [];
  let at = 0;
  /** Reads to the end, or to the parenthesis that closes a string's code. */
  const read = (inString: boolean, level: number): void => {
    if (level > 20) refuse("strings are nested too deeply");
    let depth = 0;
    while (at < source.length) {
      if (source[at] === '"') {
        readText(level);
        continue;
      }
      if (inString && source[at] === ")" && depth === 0) return;
      const [kind, pattern] =
        PATTERNS.find(([, one]) => {
          one.lastIndex = at;
          return one.test(source);
        }) ?? refuse(describeUnknown(source, at));
      const text = source.slice(at, pattern.lastIndex);
      at = pattern.lastIndex;
      if (text === "(") depth += 1;
      if (text === ")") depth -= 1;
      if (kind === "space") continue;
      const token = { kind: isKey(kind, at) ? "key" : kind, text } as const;
      follow(token);
      tokens.push(token);
    }
    if (inString) refuse("a string is never closed");
  };
  /** A key is directly inside braces, after the brace or a comma, and before a colon, a comma or the closing brace. */
  const isKey = (kind: JqToken["kind"], end: number): boolean => {
    const before = tokens.at(-1);
    const after = /^[ \t\r\n]{0,99}([:,}])(?!:)/.exec(source.slice(end, end + 101));
    return kind === "name" && open.at(-1) === "{" && /^[{,]$/.test(before?.text ?? "") && after !== null;
  };
  const follow = ({ kind, text }: JqToken): void => {
    if (kind === "name" && text === "if") open.push(text);
    if (kind === "name" && text === "end" && open.at(-1) === "if") open.pop();
    if (kind !== "sign") return;
    if (/^[([{]$/.test(text)) open.push(text);
    if (/^[)\]}]$/.test(text) && open.pop() !== OPENED_BY[text]) refuse("its brackets do not match");
    if (text === ":" && tokens.at(-1)?.text === ":") refuse("modules are not allowed");
  };
  const readText = (level: number): void => {
    const start = at;
    let code = false;
    const mark = tokens.length;
    tokens.push({ kind: "text", text: "" });
    at += 1;
    while (source[at] !== '"') {
      if (at >= source.length) refuse("a string is never closed");
      if (source[at] === "\\" && source[at + 1] === "(") {
        at += 2;
        tokens.push({ kind: "sign", text: "(" });
        open.push("(");
        read(true, level + 1);
        if (open.pop() !== "(") refuse("its brackets do not match");
        tokens.push({ kind: "sign", text: ")" });
        at += 1;
        code = true;
      } else at += source[at] === "\\" ? 2 : 1;
    }
    at += 1;
    tokens[mark] = { kind: "text", text: code ? '"\\(' : source.slice(start, at) };
  };
  read(false, 0);
  return tokens;
};
