/** Which small faults could stand in a source file? Each mutant is one: an operator, a number, a name or a call changed.
 *  Invariant: a mutant is a range of the source text and its replacement, and it parses; its id survives edits elsewhere in
 *  the file, so a reason written for a survivor stays with it, and the same seed picks the same mutants.
 *  Elsewhere: running tests against them (judge.ts), the command (../mutate.ts). */

import { createHash } from "node:crypto";
import { stripTypeScriptTypes } from "node:module";
import { parse } from "acorn";
import { lineOf } from "../checks/source.ts";

export type Mutant = {
  readonly id: string;
  readonly file: string;
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
};

type Edit = Pick<Mutant, "start" | "end" | "replacement">;
/** A syntax node with whatever fields its kind has. */
type Syntax = {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
};

const OPPOSITES: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "&&": "||",
  "||": "&&",
  "+=": "-=",
  "-=": "+=",
};

const METHODS: Readonly<Record<string, string>> = { some: "every", every: "some", min: "max", max: "min" };

/** Names, labels and constants; a sentence for a person is not behaviour. */
const BEHAVIOURAL_TEXT = /^[\w:.<>/-]+$/;

export function mutantsOf(file: string, text: string): readonly Mutant[] {
  const code = stripTypeScriptTypes(text);
  const program = parse(code, { ecmaVersion: "latest", sourceType: "module" });
  if (!isSyntax(program)) throw new Error(`${file} has no syntax tree`);
  const edits = [...editsIn(program, code)].filter(({ start, end, replacement }) =>
    parses(code.slice(0, start) + replacement + code.slice(end)),
  );
  const seen = new Map<string, number>();
  return edits.map((edit) => {
    const line = lineOf(text, edit.start);
    const shown = `${file}: ${lineAround(text, edit)} => ${edit.replacement === "" ? "(removed)" : edit.replacement}`;
    const count = (seen.get(shown) ?? 0) + 1;
    seen.set(shown, count);
    return { ...edit, file, line, id: count === 1 ? shown : `${shown} #${count}` };
  });
}

export const applied = (text: string, { start, end, replacement }: Edit): string =>
  text.slice(0, start) + replacement + text.slice(end);

/** The same seed takes the same mutants as long as their own lines stay as they are. */
export function sample(mutants: readonly Mutant[], { seed, count }: { seed: number; count: number }) {
  const rank = ({ id }: Mutant): string => createHash("sha256").update(`${seed}\0${id}`).digest("hex");
  return mutants
    .map((mutant) => ({ mutant, rank: rank(mutant) }))
    .sort((one, other) => (one.rank < other.rank ? -1 : 1))
    .slice(0, count)
    .map(({ mutant }) => mutant);
}

function parses(code: string): boolean {
  try {
    parse(code, { ecmaVersion: "latest", sourceType: "module" });
    return true;
  } catch {
    return false;
  }
}

/** The whole line with the changed part marked, so that two changes of one line have two ids. */
function lineAround(text: string, { start, end }: Edit): string {
  const from = text.lastIndexOf("\n", start - 1) + 1;
  const to = text.indexOf("\n", start);
  const line = to < 0 ? text.length : to;
  const marked = `${text.slice(from, start)}⟨${text.slice(start, Math.min(end, line))}⟩${text.slice(Math.min(end, line), line)}`;
  return marked.trim().replace(/\s+/g, " ");
}

function* editsIn(node: Syntax, code: string): Generator<Edit> {
  yield* editsOf(node, code);
  for (const [key, child] of childrenOf(node)) if (!isBeyondBehaviour(node, key)) yield* editsIn(child, code);
}

function* childrenOf(node: Syntax): Generator<readonly [string, Syntax]> {
  for (const [key, value] of Object.entries(node))
    for (const item of Array.isArray(value) ? value : [value]) if (isSyntax(item)) yield [key, item];
}

const isSyntax = (value: unknown): value is Syntax =>
  typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";

/** Where from something is imported, what a field is called, and the words of an error are not changed. */
const isBeyondBehaviour = (node: Syntax, key: string): boolean =>
  /^(?:Import|Export(?:All|Named))/.test(node.type) ? key === "source" : key === "key" && node.computed !== true;

function* editsOf(node: Syntax, code: string): Generator<Edit> {
  const { start, end } = node;
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression":
    case "AssignmentExpression": {
      const replacement = OPPOSITES[String(node.operator)];
      if (replacement !== undefined && !joinsText(node)) yield { ...operatorPlace(node, code), replacement };
      break;
    }
    case "UnaryExpression":
      if (node.operator === "!") yield { start, end: start + 1, replacement: "" };
      break;
    case "IfStatement":
    case "ConditionalExpression":
      if (isSyntax(node.test)) {
        yield { start: node.test.start, end: node.test.end, replacement: "true" };
        yield { start: node.test.start, end: node.test.end, replacement: "false" };
      }
      break;
    case "ExpressionStatement":
      if (isCall(node.expression)) yield { start, end, replacement: ";" };
      break;
    case "MemberExpression": {
      const property = node.property;
      if (!isSyntax(property) || node.computed === true) break;
      const replacement = METHODS[String(property.name)];
      if (replacement !== undefined) yield { start: property.start, end: property.end, replacement };
      break;
    }
    case "Literal": {
      const { value } = node;
      if (typeof value === "boolean") yield { start, end, replacement: String(!value) };
      if (typeof value === "number") yield { start, end, replacement: String(value === 0 ? 1 : otherNumber(value)) };
      if (typeof value === "string" && BEHAVIOURAL_TEXT.test(value))
        yield { start, end, replacement: JSON.stringify(`${value}~`) };
      break;
    }
  }
}

/** One turn less, 0.3 for 0.5, 60 s for 120 s: what a slip of the finger would make of it. */
const otherNumber = (value: number): number => (Number.isInteger(value) && value < 1_000 ? value - 1 : value * 0.6);

const isCall = (node: unknown): boolean =>
  isSyntax(node) && (node.type === "CallExpression" || (node.type === "AwaitExpression" && isCall(node.argument)));

/** A minus between texts is not a fault that anybody makes. */
const joinsText = (node: Syntax): boolean =>
  (node.operator === "+" || node.operator === "+=") && [node.left, node.right].some(isText);

const isText = (node: unknown): boolean =>
  isSyntax(node) &&
  (node.type === "TemplateLiteral" ||
    (node.type === "Literal" && typeof node.value === "string") ||
    (node.type === "BinaryExpression" && [node.left, node.right].some(isText)));

function operatorPlace(node: Syntax, code: string): Pick<Edit, "start" | "end"> {
  const operator = String(node.operator);
  const [left, right] = [node.left as Syntax, node.right as Syntax];
  const between = code.slice(left.end, right.start);
  const start = left.end + between.indexOf(operator);
  return { start, end: start + operator.length };
}
