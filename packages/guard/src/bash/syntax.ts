/** The small part of bash that a read-only command may use, taken from a real parse.
 *  Invariant: every node of the parse is known here, or the text is refused. Every character of the text is accounted for. Words
 *  come out with their quotes resolved.
 *  Elsewhere: what the words mean (programs/), the whole verdict (classify.ts). */

import {
  type Command,
  type ParsedScript,
  parse,
  type Redirect,
  type Statement,
  type TestCommand,
  type TestExpression,
  type Word,
} from "unbash";
import type { PlanRedirect, PlanWord } from "./plan.ts";
import { Refusal } from "./refusal.ts";
import { readWord } from "./words.ts";

export const LONGEST_TEXT = 10_000;
export const MOST_COMMANDS = 100;

export type SimpleCommand = {
  readonly words: readonly PlanWord[];
  readonly redirects: readonly PlanRedirect[];
  readonly assignments: readonly { readonly name: string; readonly value: string }[];
};

export type Step = {
  readonly after: "always" | "success" | "failure";
  readonly negated: boolean;
  readonly commands: readonly SimpleCommand[];
  /** Steps in brackets, in place of commands. A `cd` inside `( … )` ends with it. */
  readonly group?: { readonly steps: readonly Step[]; readonly scoped: boolean };
};

/** The steps of a command, or a Refusal. */
export const readSteps = (text: string): readonly Step[] => {
  checkText(text);
  const script = parseText(text);
  const steps = readStatements(script.commands, 0);
  checkGaps(text, script);
  const commands = commandsOf(steps).length;
  if (commands === 0) throw new Refusal("contains no command");
  if (commands > MOST_COMMANDS) throw new Refusal(`has more than ${MOST_COMMANDS} commands; run fewer at a time`);
  return steps;
};

/** Every simple command, including those in brackets. */
export const commandsOf = (steps: readonly Step[]): readonly SimpleCommand[] =>
  steps.flatMap(({ commands, group }) => (group ? commandsOf(group.steps) : commands));

/** Control and format characters (including bidi), spaces that bash does not treat as spaces, invisible letters, and lone
 *  surrogates: what a reader sees would not be what runs. Joiners and variation selectors are allowed only inside emoji. */
const MISLEADING = /[^\P{Cc}\t\n]|\p{Cf}|\p{Cs}|\p{DI}|[^\P{Z} ]|[\u2800\ufffc-\uffff]/u;
const EMOJI = /\p{Extended_Pictographic}(\ufe0f|\u200d\p{Extended_Pictographic})*/gu;

/** The parser searches for the end of each of these; many that are never closed would make it slow. */
const MAX_OPENERS: readonly (readonly [RegExp, number])[] = [
  [/\{/g, 200],
  [/<</g, 200],
  [/\$\[/g, 200],
  [/\[/g, 400],
];

const checkText = (text: string): void => {
  if (text.length > LONGEST_TEXT) throw new Refusal(`is longer than ${LONGEST_TEXT} characters; run a shorter command`);
  if (MAX_OPENERS.some(([opens, most]) => (text.match(opens)?.length ?? 0) > most))
    throw new Refusal("has too many braces, brackets or here-documents; run a shorter command");
  if (/(?<!\\)(\\\\)*\\$/.test(text)) throw new Refusal("ends in a backslash with nothing after it");
  if (MISLEADING.test(text.replace(EMOJI, "")))
    throw new Refusal("contains an invisible or control character; use plain spaces and newlines");
};

const parseText = (text: string): ParsedScript => {
  let script: ParsedScript;
  try {
    script = parse(text);
  } catch (cause) {
    throw new Refusal(`does not parse: ${(cause as Error).message}`);
  }
  if (script.shebang) throw new Refusal("starts with a #! line; leave it out");
  const [error] = script.errors ?? [];
  if (error) throw new Refusal(`does not parse: ${error.message}`);
  return script;
};

/** Between the words there may be only operators, space and comments: no part of the text may have been skipped. */
export const checkGaps = (text: string, script: ParsedScript): void => {
  let at = 0;
  for (const { pos, end } of spansOf(script)) {
    checkGap(text.slice(at, pos), at === 0);
    at = Math.max(at, end);
  }
  checkGap(text.slice(at), at === 0);
};

const checkGap = (gap: string, first: boolean): void => {
  if (gap === " " || gap === "") return;
  const bare = gap.replace(/\\\n/g, " ").replace(first ? /(^|\s|[;|&])#[^\n]*/g : /([\s;|&])#[^\n]*/g, "$1");
  if (!/^[\s;|&!]*$/.test(bare))
    throw new Refusal("a part of the text was not understood; write simple commands joined by | && || ;");
};

type TextSpan = { readonly pos: number; readonly end: number };

const spansOf = (script: ParsedScript): readonly TextSpan[] => {
  const spans: TextSpan[] = [];
  const visit = (node: Statement["command"]): void => {
    if (node.type === "AndOr" || node.type === "Pipeline") for (const part of node.commands) visit(part);
    else if (node.type === "Command") spans.push(...(node.name ? [node.name] : []), ...node.prefix, ...node.suffix);
    else if (node.type === "Subshell" || node.type === "BraceGroup") {
      spans.push({ pos: node.pos, end: node.pos + 1 }, { pos: node.end - 1, end: node.end });
      for (const { command } of node.body.commands) visit(command);
    } else spans.push(node);
  };
  for (const { command } of script.commands) visit(command);
  return spans.sort((a, b) => a.pos - b.pos);
};

// --- statements ------------------------------------------------------------------------------------------------------

type NodePosition = { readonly after: Step["after"]; readonly depth: number };

const DEEPEST = 4;

const readStatements = (statements: readonly Statement[], depth: number): readonly Step[] => {
  if (depth > DEEPEST) throw new Refusal("brackets are nested too deeply; write simple commands joined by | && || ;");
  return statements.flatMap(({ background, command }) => {
    if (background) throw new Refusal("runs in the background; leave out the `&`");
    return readNode(command, { after: "always", depth });
  });
};

const readNode = (node: Statement["command"], { after, depth }: NodePosition): readonly Step[] => {
  switch (node.type) {
    case "Subshell":
    case "BraceGroup": {
      const steps = readStatements(node.body.commands, depth + 1);
      return [{ after, negated: false, commands: [], group: { steps, scoped: node.type === "Subshell" } }];
    }
    case "AndOr":
      return node.commands.flatMap((part, index) => {
        const operator = node.operators[index - 1];
        return readNode(part, { after: index === 0 ? after : operator === "&&" ? "success" : "failure", depth });
      });
    case "Pipeline": {
      if (node.prefixes.some(({ type }) => type !== "Negation") || node.prefixes.length > 1) {
        throw new Refusal("uses `time` or a double `!`; leave it out");
      }
      const commands = node.commands.map((part, index) => {
        const command = readCommand(part);
        // `a |& b` also sends standard error through the pipe.
        const joined: PlanRedirect = { kind: "join", from: 2, to: 1 };
        return node.operators[index] === "|&" ? { ...command, redirects: [...command.redirects, joined] } : command;
      });
      return [{ after, negated: node.prefixes.length === 1, commands }];
    }
    default:
      return [{ after, negated: false, commands: [readCommand(node)] }];
  }
};

const COMPOUND_NAMES: Readonly<Record<string, string>> = {
  If: "`if`",
  For: "a loop",
  ArithmeticFor: "a loop",
  While: "a loop",
  Select: "`select`",
  Case: "`case`",
  Function: "a function",
  Subshell: "a subshell in a pipe or with a redirection",
  BraceGroup: "a group in a pipe or with a redirection",
  ArithmeticCommand: "`(( ))`",
  Coproc: "`coproc`",
  Redirected: "a compound command",
};

const readCommand = (node: { readonly type: string }): SimpleCommand => {
  if (node.type === "TestCommand") {
    return { words: [{ text: "test" }, ...readTest((node as TestCommand).expression)], redirects: [], assignments: [] };
  }
  if (node.type !== "Command") {
    throw new Refusal(`uses ${COMPOUND_NAMES[node.type] ?? node.type}; write simple commands joined by | && || ;`);
  }
  const { name, prefix, suffix } = node as Command;
  const words = name ? [...readWord(name)] : [];
  const redirects: PlanRedirect[] = [];
  const assignments: { name: string; value: string }[] = [];
  for (const part of [...prefix, ...suffix]) {
    switch (part.type) {
      case "Word":
        words.push(...readWord(part));
        break;
      case "Redirect":
        redirects.push(readRedirect(part));
        break;
      case "Assignment":
        assignments.push(readAssignment(part));
        break;
      default:
        throw new Refusal("uses a here-document or here-string; give the text as an argument or a file");
    }
  }
  if (!name) throw new Refusal("sets variables or redirects without running a command");
  if (words.some(({ status }) => status) && words[0]?.text !== "echo") {
    throw new Refusal("uses $? for more than printing it; run the command and read its exit code");
  }
  return { words, redirects, assignments };
};

const plainWord = (word: Word): PlanWord => literal(word, "uses a pattern in `[[ ]]`; use grep, or a plain word");

/** `[[ ]]` with one test of a file or of two plain words, which `test` answers the same way. */
const readTest = (expression: TestExpression): readonly PlanWord[] => {
  switch (expression.type) {
    case "TestNot":
      if (expression.negations.length > 1 || expression.operand.type === "TestNot") break;
      return [{ text: "!" }, ...readTest(expression.operand)];
    case "TestUnary":
      if (/^-[bcdefghkLnprsStuwxz]$/.test(expression.operator))
        return [{ text: expression.operator }, plainWord(expression.operand)];
      break;
    case "TestBinary": {
      const [left, right] = [plainWord(expression.left), plainWord(expression.right)];
      const number = /^-(eq|ne|lt|le|gt|ge)$/.test(expression.operator);
      if (number && !(/^\d+$/.test(left.text) && /^\d+$/.test(right.text))) break;
      if (number || /^(-nt|-ot|-ef|=|!=)$/.test(expression.operator))
        return [left, { text: expression.operator }, right];
      if (expression.operator === "==") return [left, { text: "=" }, right];
    }
  }
  throw new Refusal("uses `[[ ]]` for more than one plain test; use test, or [ … ] joined by && ||");
};

type AssignmentNode = Extract<Command["suffix"][number], { readonly type: "Assignment" }>;

const readAssignment = ({ name, value, append, index }: AssignmentNode): { name: string; value: string } => {
  const [word, ...more] = value.type === "Word" ? readWord(value) : [];
  if (append || index || more.length > 0 || word?.pattern || word?.home || word?.status) {
    throw new Refusal(`sets ${name}; read-only commands set no variables`);
  }
  return { name, value: word?.text ?? "" };
};

// --- redirections ----------------------------------------------------------------------------------------------------

const literal = (
  word: Word | undefined,
  complaint = "redirects to something other than one literal file name",
): PlanWord => {
  const [only, ...more] = word ? readWord(word) : [];
  if (!only || more.length > 0 || only.pattern || only.status) throw new Refusal(complaint);
  return only;
};

const readRedirect = ({ operator, descriptor, target }: Redirect): PlanRedirect => {
  if (descriptor && descriptor.type !== "FileDescriptor")
    throw new Refusal("opens a named file descriptor; use < FILE or > /dev/null");
  const number = descriptor?.value;
  const file = literal(target);
  switch (operator) {
    case "<":
      if (number !== undefined && number !== 0)
        throw new Refusal("redirects input to a descriptor other than standard input; use < FILE");
      return { kind: "input", file };
    case ">":
    case ">>":
      if (file.text !== "/dev/null")
        throw new Refusal(`writes to ${file.text}; read-only commands may only redirect to /dev/null`, "write");
      if (number !== undefined && number !== 1 && number !== 2)
        throw new Refusal("redirects a descriptor other than standard output and error");
      return { kind: "discard", descriptor: number ?? 1 };
    case "&>":
    case "&>>":
      if (file.text !== "/dev/null")
        throw new Refusal(`writes to ${file.text}; read-only commands may only redirect to /dev/null`, "write");
      return { kind: "discard", descriptor: "both" };
    case ">&":
      return joinDescriptors(number ?? 1, file.text);
    default:
      throw new Refusal(
        `redirects with ${operator}; use < FILE or > /dev/null`,
        operator === "<&" ? "unknown" : "write",
      );
  }
};

const joinDescriptors = (from: number, to: string): PlanRedirect => {
  if ((from === 1 || from === 2) && (to === "1" || to === "2")) return { kind: "join", from, to: Number(to) as 1 | 2 };
  throw new Refusal("redirects to something other than standard output or error; use 2>&1", "write");
};
