/** One row of the program table: which options and operands a program takes, and what is checked about them.
 *  Invariant: a check may only refuse; it never allows what the option rule did not.
 *  Elsewhere: the rows themselves (text.ts, files.ts, system.ts, …). */

import type { CompiledRule, OptionRule, ParsedArguments } from "../options.ts";
import { compileRule } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";

export type ProgramCheck = (given: ParsedArguments) => void;

export type Program = {
  readonly rule: CompiledRule;
  /** Bounds on the number of operands; a pattern counts as many. Default: any number. */
  readonly minOperands?: number;
  readonly maxOperands?: number;
  /** None of its options, listed or not, writes, runs or sends anything, so it may receive names that are known only at
   *  run time. */
  readonly harmless?: boolean;
  readonly check?: ProgramCheck;
  /** It prints nothing, so it cannot reveal what a file contains. */
  readonly silent?: boolean;
  /** The words that are text to search for, not files. */
  readonly searchText?: (words: readonly PlanWord[]) => readonly PlanWord[];
  /** For programs with a language of their own: parses all words and returns the words to run. */
  readonly read?: (words: readonly PlanWord[], inner: InnerCommand) => readonly PlanWord[];
};

/** Names that a command receives only at run time: none, any number as its last operands, or one in place of each word
 *  marked `placeholder`. */
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

/** Programs that are refused with a hint, whatever their arguments. `NAME` in a hint stands for the program. */
export const refusedPrograms = (
  hints: readonly (readonly [names: string, hint: string])[],
  verdict: "write" | "unknown" = "unknown",
): ProgramTable =>
  Object.fromEntries(
    hints.flatMap(([names, hint]) =>
      names.split(" ").map((name) => {
        const read = (): never => {
          throw new Refusal(hint.replaceAll("NAME", name), verdict);
        };
        return [name, program({ read })];
      }),
    ),
  );

/** The words that print a program's version, and why any other use needs approval. */
export type VersionRule = { readonly accepts: string; readonly otherwise: string };

export const readVersion = (
  name: string,
  words: readonly PlanWord[],
  { accepts, otherwise }: VersionRule,
): readonly PlanWord[] => {
  const forms = accepts.split(" ");
  if (words.length === 1 && forms.includes(words[0]?.text ?? "")) return words;
  throw new Refusal(`${name} ${otherwise}; only ${name} ${forms[0]} runs without approval`);
};

/** Programs of which only the version may be printed. `otherwise`: the reason for rows that give none. */
export const versionPrograms = (
  otherwise: string,
  rules: Readonly<Record<string, Partial<VersionRule>>>,
): ProgramTable =>
  Object.fromEntries(
    Object.entries(rules).map(([name, rule]) => [
      name,
      program({ read: (words) => readVersion(name, words, { accepts: "--version", otherwise, ...rule }) }),
    ]),
  );

// --- numbers that only make the output huge ------------------------------------------------------------------------
// A width, precision or count that could exhaust memory is refused for every program that pads with it. The limits on
// output and time are enforced by the runner (../../run).

/** A width of five digits, or one taken from an argument (`%*d`), in the formats of printf, strftime and git. */
const WIDE = /%(?:w?[^a-zA-Z%]*?(?:\d{5}|\*)|\([^)]{0,99}\d{5})/;

export const isWide = (format: string): boolean => WIDE.test(format);

export const checkWidth = (program: string, format: string): void => {
  if (isWide(format)) throw new Refusal(`${program} accepts format widths of at most four digits, such as %20s`);
};

/** `(a{1,999}){1,999}` compiles to a million states before the search starts. */
export const repetitionProblem = (program: string, pattern: string): string | undefined => {
  let states = 1;
  for (const [, least = "", most = ""] of pattern.matchAll(/\{(\d{0,9})(?:,(\d{0,9}))?\\?\}/g)) {
    states *= Math.max(1, Number(least), Number(most));
    if (states > 250_000)
      return `${program}: the pattern repeats so often that it could exhaust memory; use smaller counts in {…}`;
  }
  return undefined;
};

export const checkRepetition = (program: string, pattern: string): void => {
  const problem = repetitionProblem(program, pattern);
  if (problem !== undefined) throw new Refusal(problem);
};

/** Refuses numbers of more than four digits in the values of these options, also in lists and with a sign. */
export const limitNumbers =
  (program: string, ...names: readonly string[]) =>
  ({ options }: ParsedArguments): void => {
    for (const { name, value = "" } of options) {
      if (names.includes(name) && /\d{5}|0x/i.test(value))
        throw new Refusal(`${program} accepts numbers of at most four digits; ${value} is too large`);
    }
  };

/** Refuses wide formats in the values of these options. */
export const limitWidths =
  (program: string, ...names: readonly string[]) =>
  ({ options }: ParsedArguments): void => {
    for (const { name, value = "" } of options) if (names.includes(name)) checkWidth(program, value);
  };

const NAMES_ZONE = /^TZ="[A-Za-z][\w+/-]*"(?!.*TZ=)/is;

/** Dates of GNU programs may begin with a time zone, and any file that it names is opened: a pipe would block. */
export const checkZone = (program: string, date: string): void => {
  if (/TZ\s*=/i.test(date) && !NAMES_ZONE.test(date.trim()))
    throw new Refusal(`${program} takes time zones by their names: TZ="Europe/Berlin"`);
};

/** Combines checks; all of them must pass. */
export const allOf =
  (...checks: readonly ((given: ParsedArguments) => void)[]) =>
  (given: ParsedArguments): void => {
    for (const check of checks) check(given);
  };
