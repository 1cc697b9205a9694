/** A jq filter as tokens, those inside the strings' `\(…)` among them.
 *  Invariant: every sign is understood, and by every version of jq in the same way, or the filter is refused; a string's
 *  code is never taken for text, and what is called never for the key of an object. */

import { Refusal } from "../refusal.ts";

export type JqToken = {
  /** `field`: `.name`; `name`: a function or a keyword; `key`: a name that stands for the key of an object. */
  readonly kind: "field" | "name" | "key" | "variable" | "number" | "text" | "format" | "sign";
  readonly text: string;
};

const PATTERNS: readonly (readonly [JqToken["kind"] | "space", RegExp])[] = [
  // From 1.8 on, a comment whose line ends in a backslash goes on.
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
  throw new Refusal(`jq: ${what}; a simple filter passes: jq '.a.b' FILE`);
};

const describeUnknown = (source: string, at: number): string =>
  source[at] === "#" ? "a comment may hold no backslash" : `\`${/.{0,10}/.exec(source.slice(at))?.[0]}\` is not read`;

/** All tokens in order; where a string holds code, its tokens stand in brackets beside it. */
export const jqTokens = (source: string): readonly JqToken[] => {
  const tokens: JqToken[] = [];
  /** Brackets that are open, and each `if` up to its `end`, since commas may stand there too. */
  const open: string[] = [];
  let at = 0;
  /** Reads up to the end, or to the bracket that closes a string's code. */
  const read = (inString: boolean, level: number): void => {
    if (level > 20) refuse("strings in strings are too deep");
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
    if (inString) refuse("a string has no end");
  };
  /** Directly inside braces, after the brace or a comma, and before a colon, a comma or the end. */
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
    if (text === ":" && tokens.at(-1)?.text === ":") refuse("modules are not read");
  };
  const readText = (level: number): void => {
    const start = at;
    let code = false;
    const mark = tokens.length;
    tokens.push({ kind: "text", text: "" });
    at += 1;
    while (source[at] !== '"') {
      if (at >= source.length) refuse("a string has no end");
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
