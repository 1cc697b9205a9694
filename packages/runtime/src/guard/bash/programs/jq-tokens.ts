/** A jq filter as tokens, those inside the strings' `\(…)` among them.
 *  Invariant: every sign is understood or the filter is refused; a string's code is never taken for text. */

import { Refusal } from "../refusal.ts";

export type JqToken = {
  /** `field`: `.name`; `name`: a function or a keyword; `key`: a name before a colon in an object. */
  readonly kind: "field" | "name" | "key" | "variable" | "number" | "text" | "format" | "sign";
  readonly text: string;
};

const PATTERNS: readonly (readonly [JqToken["kind"] | "space", RegExp])[] = [
  ["space", /[ \t\r\n]+|#[^\n]*/y],
  ["field", /\.[A-Za-z_]\w*/y],
  ["number", /(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y],
  ["variable", /\$(?:__loc__|[A-Za-z_]\w*)/y],
  ["name", /[A-Za-z_]\w*/y],
  ["format", /@[a-z]\w*/y],
  ["sign", /\?\/\/|\/\/=|\|=|\+=|-=|\*=|\/=|%=|==|!=|<=|>=|\/\/|\.\.|[-+*/%<>=|,;:.?()[\]{}]/y],
];

const refuse = (what: string): never => {
  throw new Refusal(`jq: ${what}; a simple filter passes: jq '.a.b' FILE`);
};

/** All tokens in order; where a string holds code, its tokens stand in brackets beside it. */
export const jqTokens = (source: string): readonly JqToken[] => {
  const tokens: JqToken[] = [];
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
        }) ?? refuse(`\`${source.slice(at, at + 10)}\` is not read`);
      const text = source.slice(at, pattern.lastIndex);
      at = pattern.lastIndex;
      if (text === "(") depth += 1;
      if (text === ")") depth -= 1;
      if (kind !== "space") tokens.push({ kind: kindOf(kind, at), text });
    }
    if (inString) refuse("a string has no end");
  };
  /** Before a colon a name is a key, unless it names what is being defined. */
  const kindOf = (kind: JqToken["kind"], end: number): JqToken["kind"] =>
    kind === "name" && /^\s*:/.test(source.slice(end, end + 20)) && tokens.at(-1)?.text !== "def" ? "key" : kind;
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
        read(true, level + 1);
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
