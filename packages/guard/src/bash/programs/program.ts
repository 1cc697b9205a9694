/** What the table says of one program.
 *  Invariant: a check may only refuse; it never makes anything allowed that the options did not.
 *  Elsewhere: the rows (text.ts, files.ts, system.ts, …). */

import type { CompiledRule, Given, OptionRule } from "../options.ts";
import { compile } from "../options.ts";
import type { PlanWord } from "../plan.ts";

export type ProgramCheck = (given: Given) => void;

export type Program = {
  readonly rule: CompiledRule;
  /** Least and most operands; a pattern counts as many. Default: any. */
  readonly least?: number;
  readonly most?: number;
  /** No option of it, listed or not, writes, runs or sends: it may be given names that only turn up when it runs. */
  readonly harmless?: boolean;
  readonly check?: ProgramCheck;
  /** It prints nothing, so it cannot tell what a file holds. */
  readonly silent?: boolean;
  /** The words that are text to look for and no files. */
  readonly looksFor?: (words: readonly PlanWord[]) => readonly PlanWord[];
  /** Programs with a language of their own read all their words themselves, and may change them. */
  readonly read?: (words: readonly PlanWord[], inner: InnerCommand) => readonly PlanWord[];
};

/** Names that a command is given only when it runs: none, any number as its last operands, or one wherever a word with
 *  `slot` stands. */
export type LateNames = "none" | "last" | "placed";

/** Judges a command inside another (xargs, find -exec). */
export type InnerCommand = (words: readonly PlanWord[], late: LateNames) => readonly PlanWord[];

type Row = OptionRule & Omit<Program, "rule">;

export const program = ({
  flags,
  valued,
  glued,
  long,
  count,
  strict,
  dashed,
  apart,
  single,
  ...rest
}: Row): Program => ({
  rule: compile({
    ...(flags === undefined ? {} : { flags }),
    ...(valued === undefined ? {} : { valued }),
    ...(glued === undefined ? {} : { glued }),
    ...(long === undefined ? {} : { long }),
    ...(count === undefined ? {} : { count }),
    ...(strict === undefined ? {} : { strict }),
    ...(dashed === undefined ? {} : { dashed }),
    ...(apart === undefined ? {} : { apart }),
    ...(single === undefined ? {} : { single }),
  }),
  ...rest,
});

export type ProgramTable = Readonly<Record<string, Program>>;
