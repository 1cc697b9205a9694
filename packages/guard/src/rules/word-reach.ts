/** Where could a computed path lead: to a name in one folder, to something below it, or anywhere?
 *  Invariant: errs towards "anywhere". Only what provably has no leading slash and no `..` counts as below. A variable that the text
 *  does not set comes from the environment and could contain any path.
 *  Elsewhere: what variables contain as numbers (variable-values.ts), comparing paths with rules (command-paths.ts). */

import type { Command, ParsedScript, Statement, SyntaxNode, Word, WordPart } from "unbash";
import { type Level, type Levels, levelsOf } from "./variable-values.ts";

/** One name without a slash. */
export const NAME = 0;
/** A relative path without `..`. */
export const BELOW = 1;
export const ANYWHERE = 2;

/** At least this far, and at least as far as each of these variables. */
export type Reach = { readonly level: Level; readonly names: readonly string[] };

/** What an expansion at the start of a word stands for: the home folder, the working directory, or the top of its
 *  repository. */
export type WordStart = "home" | "here" | "top";

export type WordReach = Reach & {
  readonly start?: WordStart;
  /** A part of it may be empty. */
  readonly maybeEmpty?: true;
};

const name: Reach = { level: NAME, names: [] };
const below: Reach = { level: BELOW, names: [] };
const anywhere: Reach = { level: ANYWHERE, names: [] };

const furthest = (levels: readonly Level[]): Level =>
  levels.includes(ANYWHERE) ? ANYWHERE : levels.includes(BELOW) ? BELOW : NAME;

const joined = (reaches: readonly Reach[]): Reach => ({
  level: furthest(reaches.map(({ level }) => level)),
  names: reaches.flatMap(({ names }) => names),
});

/** Blanks, and anything that could become one, split a text into words. */
const ofText = (text: string): Reach => {
  const words = text.split(/[^\w./@%+-]+/).filter((word) => word !== "");
  const isBelow = words.every((word) => {
    const [first = "", ...more] = word.replace(/^\.\//, "").split("/");
    return first !== "" && [first, ...more].every((part) => part === "" || /^\.?[\w@%+-]/.test(part));
  });
  if (!isBelow || text.includes("\0") || text.includes("~")) return anywhere;
  return text.includes("/") ? below : name;
};

/** A word without computed parts leads only where it says. */
export const reachOfWord = (word: Word): WordReach | undefined => {
  if (!word.parts) return anywhere; // what another shell computed
  const parts = flattened(word.parts);
  if (!parts.some(isComputed)) return undefined;
  const [first, ...rest] = parts;
  const start = first && startOf(first);
  const found = (start ? rest : parts).filter(isComputed);
  const reach = joined(found.map(ofPart));
  if (!found.some(mayBeEmpty)) return { ...reach, ...(start ? { start } : {}) };
  return { ...reach, level: reach.level === NAME ? BELOW : reach.level, maybeEmpty: true, ...(start ? { start } : {}) };
};

/** If the variable is empty, `a/$x/b` is a path of two names. */
const mayBeEmpty = ({ type }: WordPart): boolean => /^(?:Simple|Parameter|Command)Expansion$/.test(type);

/** Reads a value twice: with the computed parts non-empty, and with them empty. */
const reachOfValue = (word: Word): Reach => {
  if (!word.parts) return ofText(word.value);
  const parts = flattened(word.parts);
  const filled = (filling: string): string =>
    parts.map((part) => (!isComputed(part) ? literalText(part) : mayBeEmpty(part) ? filling : "x")).join("");
  return joined([ofText(filled("x")), ofText(filled("")), ...parts.filter(isComputed).map(ofPart)]);
};

const literalText = (part: WordPart): string => ("value" in part ? part.value : part.text);

/** Parts in double quotes are treated like the others. A quoted message is skipped, because it is not a file name. */
const flattened = (parts: readonly WordPart[]): readonly WordPart[] =>
  parts.flatMap((part) =>
    part.type === "DoubleQuoted" || part.type === "LocaleString"
      ? part.parts.filter((inner) => inner.type !== "CommandExpansion" || !isMessage(onlyCommand(inner.script)))
      : [part],
  );

const isComputed = (part: WordPart): boolean =>
  !/^(?:Literal|SingleQuoted|AnsiCQuoted)$/.test(part.type) || part.text.includes("\0");

const startOf = (part: WordPart): WordStart | undefined => {
  if (part.type === "CommandExpansion") {
    const [program, ...args] = simpleWords(onlyCommand(part.script)) ?? [];
    if (program === "pwd" && args.length === 0) return "here";
    return program === "git" && args.join(" ") === "rev-parse --show-toplevel" ? "top" : undefined;
  }
  const variable = /^\$\{?(\w+)\}?$/.exec(part.text)?.[1];
  return variable === "HOME" ? "home" : variable === "PWD" ? "here" : undefined;
};

const ofPart = (part: WordPart): Reach => {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return ofText(part.value);
    case "SimpleExpansion":
      return ofVariable(part.text.slice(1));
    case "ParameterExpansion":
      return ofExpansion(part);
    case "CommandExpansion":
      return ofOutput(part.script);
    case "Glob":
      return part.text.includes("**") ? below : name;
    case "ExtendedGlob":
    case "ArithmeticExpansion":
    case "ProcessSubstitution":
      return name;
    case "BraceExpansion":
      return part.text.slice(1, -1).includes("{") ? anywhere : ofBraces(part.text.slice(1, -1));
    default:
      return anywhere;
  }
};

const ofBraces = (items: string): Reach =>
  /^\w+\.\.\w+(?:\.\.-?\d+)?$/.test(items) ? name : joined(items.split(",").map(ofText));

const ofVariable = (variable: string): Reach => {
  if (/^[?#$!-]$/.test(variable)) return name;
  return /^\w+$/.test(variable) && !/^\d/.test(variable) ? { level: NAME, names: [variable] } : anywhere;
};

const ofExpansion = ({ prefix, parameter, operation }: Extract<WordPart, { type: "ParameterExpansion" }>): Reach => {
  if (prefix === "#") return name;
  if (prefix === "!") return anywhere;
  const own = ofVariable(parameter);
  switch (operation?.type) {
    case undefined:
    case "CaseModification":
      return own;
    case "Default":
      return operation.operator.endsWith("+")
        ? reachOfValue(operation.operand)
        : joined([own, reachOfValue(operation.operand)]);
    case "Slice":
      return operation.offset.text === "0" ? own : anywhere;
    case "Remove":
      // Without `a`, the rest of `a/etc` starts with a slash; without `a/` it does not.
      return operation.operator.startsWith("%") || operation.operand.text.endsWith("/") ? own : anywhere;
    default:
      return anywhere;
  }
};

// --- what programs print -------------------------------------------------------------------------------------------------

type Node = Statement["command"];

const onlyCommand = (script: ParsedScript | undefined): Node | undefined =>
  script?.commands.length === 1 ? script.commands[0]?.command : undefined;

/** The words of a simple command in which nothing is computed, set or redirected. */
const simpleWords = (node: Node | undefined): readonly string[] | undefined => {
  if (node?.type !== "Command" || !node.name || node.prefix.length > 0) return undefined;
  const words = [node.name, ...node.suffix.filter((part) => part.type === "Word")];
  const hasMore = node.suffix.some(
    (part) => part.type !== "Word" && !/^[12]?>\s*\/dev\/null$|^2>&1$/.test(textOf(part)),
  );
  if (hasMore || !words.every((word) => !(word.parts ?? []).some(isDynamic))) return undefined;
  return words.map(({ value }) => value);
};

const textOf = (part: Command["suffix"][number]): string => ("text" in part ? String(part.text) : "");

/** Patterns expand to names in the folder, so they stay relative. */
const isDynamic = (part: WordPart): boolean => isComputed(part) && part.type !== "Glob" && part.type !== "DoubleQuoted";

/** By program: whether these arguments make it print only a name, a number or a date. */
const PRINTS_NAME: Readonly<Record<string, (args: readonly string[]) => boolean>> = {
  mktemp: (args) => args.every((text) => /^-[dqt]+$|^[\w.-]+X{3,}$/.test(text)),
  basename: (args) => args.every((text) => ofText(text).level < ANYWHERE),
  date: (args) => args.every((text) => /^-u$|^\+[\w%:-]*$/.test(text)),
  seq: (args) => args.every((text) => /^-?\d+$/.test(text)),
  wc: (args) => args.every((text) => /^-[clmwL]+$/.test(text)),
  whoami: () => true,
  nproc: () => true,
  uname: () => true,
  id: () => true,
};

/** They print names of files below where they are, unless their words lead elsewhere. */
const listsBelow = ([program = "", ...args]: readonly string[]): boolean => {
  const has = (pattern: RegExp): boolean => args.some((text) => pattern.test(text));
  if (args.some((text) => /^[/~]|(?:^|[/=])\.\.(?:\/|$)|=[/~]/.test(text))) return false;
  switch (program) {
    case "ls":
      return args.every((text) => !/^-./.test(text) || /^-[1aAtrSd]+$/.test(text));
    case "find":
      return !has(/^-(?:printf|exec|fls|fprint|ok|ls)/);
    case "fd":
      return !has(/^-(?:x|X|-exec|a|-absolute|-format)/);
    case "git":
      return args[0] === "ls-files" || (args[0] === "diff" && has(/^--name-only$/));
    case "rg":
      return has(/^--files|^-[a-z]*l$/);
    case "grep":
      return has(/^-[a-zA-Z]*[lL]$|^--files-with/);
    default:
      return false;
  }
};

/** They pass lines through unchanged. */
const PASSES_LINES = new Set("grep head tail sort uniq".split(" "));

const ofOutput = (script: ParsedScript | undefined): Reach => {
  const node = onlyCommand(script);
  const [first, ...others] = node?.type === "Pipeline" ? node.commands : [node];
  const filters = others.map(simpleWords);
  const last = others.length > 0 ? filters.at(-1) : simpleWords(first);
  const [program = "", ...args] = last ?? [];
  if (Object.hasOwn(PRINTS_NAME, program) && PRINTS_NAME[program]?.(args)) return name;
  const given = baseNameOf(node);
  if (given) return given;
  const listed = simpleWords(first);
  const passes = filters.every((words) => words !== undefined && PASSES_LINES.has(words[0] ?? ""));
  return listed && listsBelow(listed) && passes ? below : anywhere;
};

/** `$(basename "$file")` and `$(dirname "$file")` lead no further than the file does. */
const baseNameOf = (node: Node | undefined): Reach | undefined => {
  if (node?.type !== "Command" || !/^(?:base|dir)name$/.test(node.name?.text ?? "")) return undefined;
  const isPlain = node.prefix.length === 0 && node.suffix.every((part) => part.type === "Word");
  return isPlain
    ? joined(node.suffix.map((part) => (part.type === "Word" ? reachOfValue(part) : anywhere)))
    : undefined;
};

/** `$(cat <<'END' …)` with a text of several words. */
const isMessage = (node: Node | undefined): boolean => {
  if (node?.type !== "Command" || node.name?.text !== "cat" || node.prefix.length > 0) return false;
  const [only, ...more] = node.suffix;
  return more.length === 0 && only?.type === "HereDoc" && /\S\s+\S/.test(only.body.text);
};

// --- what variables are set to ---------------------------------------------------------------------------------------------

/** Set by bash or the system to a word without a slash. */
const PLAIN_BY_NATURE =
  /^(?:USER|LOGNAME|HOSTNAME|RANDOM|SRANDOM|SECONDS|LINENO|UID|EUID|PPID|BASHPID|COLUMNS|LINES|SHLVL|EPOCHSECONDS|OSTYPE)$/;

/** How far variables reach, collected node by node. */
export class VariableReach {
  readonly #settings = new Map<string, { level: Level; readonly names: Set<string> }>();

  take(node: SyntaxNode): void {
    switch (node.type) {
      case "Assignment":
        if (node.value.type === "Word") this.#set(node.name, reachOfValue(node.value));
        else for (const element of node.value.elements) this.#set(node.name, reachOfValue(element));
        // Parts a text where no blank is.
        if (node.name === "IFS" && node.value.type === "Word" && !/^[^\w.@%+$-]*$|^\$'\\[nt]'$/.test(node.value.text))
          this.#set("IFS", anywhere);
        break;
      case "For":
      case "Select":
        this.#set(node.name.value, node.wordlist ? joined(node.wordlist.map(reachOfValue)) : anywhere);
        break;
      case "Word": {
        const set = /^["']?(\w+)\+?=/.exec(node.text)?.[1];
        if (set !== undefined) this.#set(set, anywhere);
        break;
      }
      case "ParameterExpansion":
        if (node.operation?.type === "Default" && node.operation.operator.endsWith("="))
          this.#set(node.parameter, anywhere);
        break;
      case "Command":
        if (!/^(?:read|mapfile|readarray|getopts|printf|wait|coproc)$/.test(node.name?.value ?? "")) return;
        for (const word of node.suffix) if (word.type === "Word") this.#set(word.value.replace(/^-\w*/, ""), anywhere);
        for (const filled of ["REPLY", "MAPFILE", "OPTARG"]) this.#set(filled, anywhere);
        break;
    }
  }

  #set(variable: string, { level, names }: Reach): void {
    const known = this.#settings.get(variable) ?? { level: NAME, names: new Set<string>() };
    if (level > known.level) known.level = level;
    for (const read of names) known.names.add(read);
    this.#settings.set(variable, known);
  }

  settle(outer: Levels): Levels {
    const isAnySet = outer.isAnySet || this.#settings.get("IFS")?.level === ANYWHERE;
    const set = new Map(this.#settings);
    const read = [...set.values()].flatMap(({ names }) => [...names]);
    for (const variable of read)
      if (!set.has(variable) && !outer.of.has(variable) && !PLAIN_BY_NATURE.test(variable))
        set.set(variable, { level: ANYWHERE, names: new Set() });
    const levels = levelsOf(set, outer);
    // Only what the text sets itself: the others are what they are.
    const own = [...this.#settings.keys()].map((variable) => [variable, levels.get(variable) ?? NAME] as const);
    return { of: new Map([...outer.of, ...own]), isAnySet };
  }
}

/** How far a word reaches, given how far its variables do. */
export const settledReach = ({ level, names }: Reach, { of, isAnySet }: Levels): Level => {
  const levelOf = (variable: string): Level => of.get(variable) ?? (PLAIN_BY_NATURE.test(variable) ? NAME : ANYWHERE);
  if (isAnySet && names.length > 0) return ANYWHERE;
  return furthest([level, ...names.map(levelOf)]);
};
