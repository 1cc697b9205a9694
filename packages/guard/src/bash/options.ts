/** Options of a program, by allow-list and with their arity.
 *  Invariant: unlisted options are refused, and so are abbreviations. A word that could expand to an option is never taken as
 *  an operand. Values of options are literal.
 *  Elsewhere: which options each program has (programs/). */

import type { PlanWord } from "./plan.ts";
import { Refusal } from "./refusal.ts";

/** The options that a program accepts. Strings of letters are short options. */
export type OptionRule = {
  readonly flags?: string;
  /** Short options that take a value, glued or as the next word. */
  readonly valued?: string;
  /** Short options whose value, if any, is glued: `-M`, `-M90%`. */
  readonly glued?: string;
  /** Long options by name: `all`, `color?` (optional value after `=`), `width=` (required value). */
  readonly long?: string;
  /** `-20` counts as an option (head, tail, git log). */
  readonly count?: boolean;
  /** Options end at the first operand, as in find and xargs. */
  readonly optionsFirst?: boolean;
  /** Options whose value may start with a dash: patterns to search for. Everywhere else such a value is refused, because a
   *  program with a different arity would take it for an option. */
  readonly dashValues?: string;
  /** Values are separate words, or numbers: the program reads other letters after the option as more options. */
  readonly separateValues?: boolean;
  /** One option per word: the program does not combine letters. */
  readonly oneLetter?: boolean;
};

export type ParsedArguments = {
  /** In the order given: the name without dashes, and its value. */
  readonly options: readonly { readonly name: string; readonly value?: string }[];
  readonly operands: readonly PlanWord[];
};

type Arity = "none" | "optional" | "required";

const readLongNames = (rule: OptionRule): ReadonlyMap<string, Arity> =>
  new Map(
    (rule.long ?? "")
      .split(/\s+/)
      .filter((word) => word !== "")
      .map((word) => {
        if (word.endsWith("=")) return [word.slice(0, -1), "required"] as const;
        if (word.endsWith("?")) return [word.slice(0, -1), "optional"] as const;
        return [word, "none"] as const;
      }),
  );

/** A rule with its long options split once. */
export type CompiledRule = OptionRule & { readonly names: ReadonlyMap<string, Arity> };
export const compileRule = (rule: OptionRule): CompiledRule => ({ ...rule, names: readLongNames(rule) });

const mayBeDashed = (rule: OptionRule, name: string): boolean => (rule.dashValues ?? "").split(" ").includes(name);

/** The options and operands, or a Refusal that names the option. */
export const readOptions = (program: string, words: readonly PlanWord[], rule: CompiledRule): ParsedArguments => {
  const options: { name: string; value?: string }[] = [];
  const operands: PlanWord[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as PlanWord;
    const { text } = word;
    if (word.pattern || word.home || text === "-" || !text.startsWith("-")) {
      operands.push(word);
      if (rule.optionsFirst) return { options, operands: [...operands, ...words.slice(at + 1)] };
      continue;
    }
    if (text === "--") return { options, operands: [...operands, ...words.slice(at + 1)] };
    const next = (name: string): string => {
      at += 1;
      const given = words[at];
      // Text to search for may be a name known only at run time; any other value is literal.
      const value = given?.placeholder && mayBeDashed(rule, name) ? given.text : literalValue(program, text, given);
      if (value === "--" || (/^-(?!\d*$)/.test(value) && !mayBeDashed(rule, name))) {
        throw new Refusal(
          `${program} ${text} ${value}: attach a value that starts with a dash to its option, as ${text}=… or -x…`,
        );
      }
      return value;
    };
    if (text.startsWith("--")) options.push(readLong(program, text, { rule, next }));
    else options.push(...readShort(program, text, { rule, next }));
  }
  return { options, operands };
};

type OptionReader = { readonly rule: CompiledRule; readonly next: (name: string) => string };

const refuse = (program: string, option: string): never => {
  throw new Refusal(`${program} ${option} is not a known read-only option; leave it out`);
};

const literalValue = (program: string, option: string, word: PlanWord | undefined): string => {
  if (!word || word.pattern || word.home) throw new Refusal(`${program} ${option} needs a literal value; quote it`);
  return word.text;
};

const readLong = (program: string, text: string, { rule, next }: OptionReader): { name: string; value?: string } => {
  const [, name = "", value] = /^--([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
  const arity = rule.names.get(name) ?? refuse(program, text);
  if (arity === "none") return value === undefined ? { name } : refuse(program, text);
  if (value !== undefined) return { name, value };
  return arity === "required" ? { name, value: next(name) } : { name };
};

const readShort = (program: string, text: string, { rule, next }: OptionReader): { name: string; value?: string }[] => {
  if (rule.count && /^-\d+$/.test(text)) return [{ name: "count", value: text.slice(1) }];
  const found: { name: string; value?: string }[] = [];
  for (let at = 1; at < text.length; at += 1) {
    const letter = text[at] as string;
    if (rule.oneLetter && at > 1) return refuse(program, text);
    if (rule.flags?.includes(letter)) found.push({ name: letter });
    else if (rule.glued?.includes(letter)) {
      const glued = text.slice(at + 1);
      found.push(glued === "" ? { name: letter } : { name: letter, value: glued });
      return found;
    } else if (rule.valued?.includes(letter)) {
      const glued = text.slice(at + 1);
      if (rule.separateValues && !/^\d*$/.test(glued)) return refuse(program, text);
      found.push({ name: letter, value: glued === "" ? next(letter) : glued });
      return found;
    } else return refuse(program, text);
  }
  return found;
};
