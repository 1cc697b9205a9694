/** Are files and functions small? At most 500 lines per file and three parameters per function, without exceptions.
 *  Elsewhere: how text is read without comments and strings (source.ts). */

import { type Problem, placeOf, readSources, type SourceFile, type Verdict } from "./source.ts";

const MAX_LINES = 500;
const MAX_PARAMETERS = 3;

const control = new Set(["if", "for", "while", "switch", "catch", "with", "return", "await", "super", "import"]);

export function checkSize(root: string): Verdict {
  const files = readSources(root);
  return { files: files.length, problems: files.flatMap((file) => [...longFile(file), ...wideFunctions(file)]) };
}

function longFile(file: SourceFile): readonly Problem[] {
  const lines = file.text.split("\n").length - (file.text.endsWith("\n") ? 1 : 0);
  if (lines <= MAX_LINES) return [];
  return [
    {
      place: `${file.path}:${MAX_LINES + 1}`,
      rule: `a file has at most ${MAX_LINES} lines; this one has ${lines}`,
      wayOut: "split it where the question it answers changes, and give each part a header that names its question",
    },
  ];
}

function wideFunctions(file: SourceFile): readonly Problem[] {
  const text = file.blanked;
  const problems: Problem[] = [];
  for (let open = text.indexOf("("); open !== -1; open = text.indexOf("(", open + 1)) {
    const inside = upToMatch(text, open);
    const count = countParameters(inside);
    if (count <= MAX_PARAMETERS) continue;
    const after = text.slice(open + inside.length + 2, open + inside.length + 200).trimStart();
    if (!takesParameters(withoutTypeParameters(text.slice(Math.max(0, open - 400), open)), after)) continue;
    problems.push({
      place: placeOf(file, open),
      rule: `a function has at most ${MAX_PARAMETERS} parameters; this one has ${count}`,
      wayOut: "keep the one or two that name the matter, and put the rest into one options object",
    });
  }
  return problems;
}

/** Is the parenthesis between these two texts a parameter list, and not a call, a condition or a group? */
function takesParameters(before: string, after: string): boolean {
  if (/\bfunction\s*\*?\s*[\w$]*\s*$/.test(before) || after.startsWith("=>")) return true;
  const word = /[\w$#]+\s*$/.exec(before)?.[0].trim();
  if (word === undefined || word === "async") return after.startsWith(":") && !/[)\]]\s*$/.test(before);
  const startsMember =
    /(?:^|[{;,}]|\n)\s*(?:(?:static|async|override|get|set|private|public|protected)\s+|\*\s*)*[\w$#]+\s*$/;
  return !control.has(word) && startsMember.test(before) && /^[{:]/.test(after);
}

/** Everything between the parenthesis at `open` and its partner. */
function upToMatch(text: string, open: number): string {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === "(" || char === "[" || char === "{") depth++;
    else if (char === ")" || char === "]" || char === "}") depth--;
    if (depth === 0) return text.slice(open + 1, at);
  }
  return text.slice(open + 1);
}

function countParameters(inside: string): number {
  let depth = 0;
  const parts = [""];
  for (let at = 0; at < inside.length; at++) {
    const char = inside.charAt(at);
    if ("([{<".includes(char)) depth++;
    else if (")]}".includes(char) || (char === ">" && inside.charAt(at - 1) !== "=")) depth--;
    if (char === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += char;
  }
  return parts.filter((part) => part.trim() !== "" && !/^\s*this\s*:/.test(part)).length;
}

/** `name<T extends X<Y>>` → `name`. */
function withoutTypeParameters(before: string): string {
  if (!/[^=]>\s*$/.test(before)) return before;
  let depth = 0;
  for (let at = before.length - 1; at >= 0; at--) {
    if (before.charAt(at) === ">" && before.charAt(at - 1) !== "=") depth++;
    if (before.charAt(at) === "<") depth--;
    if (depth === 0 && before.charAt(at) === "<") return before.slice(0, at);
  }
  return before;
}
