/** What the table says of one program.
 *  Invariant: a check may only refuse; it never makes anything allowed that the options did not.
 *  Elsewhere: the rows (text.ts, files.ts, system.ts, …). */

import type { CompiledRule, OptionRule, ParsedArguments } from "../options.ts";
import { compileRule } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";

export type ProgramCheck = (given: ParsedArguments) => void;

export type Program = {
  readonly rule: CompiledRule;
  /** Least and most operands; a pattern counts as many. Default: any. */
  readonly minOperands?: number;
  readonly maxOperands?: number;
  /** No option of it, listed or not, writes, runs or sends: it may be given names that only turn up when it runs. */
  readonly harmless?: boolean;
  readonly check?: ProgramCheck;
  /** It prints nothing, so it cannot tell what a file holds. */
  readonly silent?: boolean;
  /** The words that are text to look for and no files. */
  readonly searchText?: (words: readonly PlanWord[]) => readonly PlanWord[];
  /** Programs with a language of their own read all their words themselves, and may change them. */
  readonly read?: (words: readonly PlanWord[], inner: InnerCommand) => readonly PlanWord[];
};

/** Names that a command is given only when it runs: none, any number as its last operands, or one wherever a word with
 *  `slot` stands. */
export type RuntimeNames = "none" | "last" | "placed";

/** Judges a command inside another (xargs, find -exec). */
export type InnerCommand = (words: readonly PlanWord[], late: RuntimeNames) => readonly PlanWord[];

type Row = OptionRule & Omit<Program, "rule">;

export const program = ({
  flags,
  valued,
  glued,
  long,
  count,
  optionsFirst,
  dashValues,
  separateValues,
  oneLetter,
  ...rest
}: Row): Program => ({
  rule: compileRule({
    ...(flags === undefined ? {} : { flags }),
    ...(valued === undefined ? {} : { valued }),
    ...(glued === undefined ? {} : { glued }),
    ...(long === undefined ? {} : { long }),
    ...(count === undefined ? {} : { count }),
    ...(optionsFirst === undefined ? {} : { optionsFirst }),
    ...(dashValues === undefined ? {} : { dashValues }),
    ...(separateValues === undefined ? {} : { separateValues }),
    ...(oneLetter === undefined ? {} : { oneLetter }),
  }),
  ...rest,
});

export type ProgramTable = Readonly<Record<string, Program>>;

/** Which numbers only make an answer huge?
 *  Invariant: a width, a precision or a count that could fill the memory is refused, whatever program pads with it.
 *  Elsewhere: what a plan may print and how long it may run (../../run). */

/** A width of five digits or one that comes from elsewhere (`%*d`), in the formats of printf, strftime and git. */
const WIDE = /%(?:w?[^a-zA-Z%]*?(?:\d{5}|\*)|\([^)]{0,99}\d{5})/;

export const isWide = (format: string): boolean => WIDE.test(format);

export const checkWidth = (program: string, format: string): void => {
  if (isWide(format)) throw new Refusal(`${program} takes widths of at most four digits: %20s`);
};

/** `(a{1,999}){1,999}` is made out into a million states before anything is looked for. */
export const repetitionProblem = (program: string, pattern: string): string | undefined => {
  let states = 1;
  for (const [, least = "", most = ""] of pattern.matchAll(/\{(\d{0,9})(?:,(\d{0,9}))?\\?\}/g)) {
    states *= Math.max(1, Number(least), Number(most));
    if (states > 250_000) return `${program}: a pattern that repeats so often fills the memory`;
  }
  return undefined;
};

export const checkRepetition = (program: string, pattern: string): void => {
  const problem = repetitionProblem(program, pattern);
  if (problem !== undefined) throw new Refusal(problem);
};

/** The options with these names take numbers of at most four digits, in lists or with a sign. */
export const limitNumbers =
  (program: string, ...names: readonly string[]) =>
  ({ options }: ParsedArguments): void => {
    for (const { name, value = "" } of options) {
      if (names.includes(name) && /\d{5}|0x/i.test(value))
        throw new Refusal(`${program} takes numbers of at most four digits; ${value} is too large`);
    }
  };

/** The options with these names hold formats. */
export const limitWidths =
  (program: string, ...names: readonly string[]) =>
  ({ options }: ParsedArguments): void => {
    for (const { name, value = "" } of options) if (names.includes(name)) checkWidth(program, value);
  };

/** Several checks, all of which must hold. */
export const allOf =
  (...checks: readonly ((given: ParsedArguments) => void)[]) =>
  (given: ParsedArguments): void => {
    for (const check of checks) check(given);
  };
