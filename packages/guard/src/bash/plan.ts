/** A read-only command as data: what is run in place of its text.
 *  Invariant: every word is final but for file names that a pattern stands for; nothing in it is shell syntax.
 *  Elsewhere: making one (classify.ts), running one (../run). */

/** A word with its quotes resolved. */
export type PlanWord = {
  readonly text: string;
  /** `text` is a file name pattern (`*`, `?`, `[…]`; a backslash before what stood quoted). */
  readonly pattern?: true;
  /** `text` starts with `~`, which stands for the home directory. */
  readonly home?: true;
  /** Each `$?` in `text` stands for the exit code of the step before. */
  readonly status?: true;
  /** Text to look for: whatever it looks like, no file of that name is opened. */
  readonly searchText?: true;
  /** A name that turns up later stands in it. Only while a command is judged; in a plan no word has it. */
  readonly placeholder?: true;
};

export type PlanRedirect =
  /** To nowhere: descriptor 1, 2 or both. */
  | { readonly kind: "discard"; readonly descriptor: 1 | 2 | "both" }
  | { readonly kind: "join"; readonly from: 1 | 2; readonly to: 1 | 2 }
  | { readonly kind: "input"; readonly file: PlanWord };

export type PlanCommand = {
  /** A name from the program table; found in system directories when it is run. */
  readonly program: string;
  readonly args: readonly PlanWord[];
  readonly redirects: readonly PlanRedirect[];
  /** The time zone that the command asks for. */
  readonly zone?: "UTC0";
  /** How long `timeout` lets it run: `5`, `1.5m`. */
  readonly limit?: string;
};

export type PlanStep = {
  /** How it follows the step before: always, after success, after failure. */
  readonly after: "always" | "success" | "failure";
  readonly negated: boolean;
  readonly run: /** `quiet`: a folder that is not there is not complained about. */
    | { readonly kind: "cd"; readonly folder: PlanWord; readonly quiet?: true }
    | { readonly kind: "pipe"; readonly commands: readonly PlanCommand[] }
    /** `scoped`: a `cd` in it is forgotten at its end. */
    | { readonly kind: "group"; readonly steps: readonly PlanStep[]; readonly scoped: boolean };
};

/** The way to a folder: each `cd`, which goes by names, then each `-C`, which git follows through links. */
export type GitFolder = {
  readonly cd: readonly PlanWord[];
  readonly within: readonly PlanWord[];
};

/** A pattern for paths as plain data: `**`, a name that is meant letter by letter, or a pattern for names. */
export type PathPatternData = readonly (readonly ("**" | { readonly name: string } | { readonly glob: string })[])[];

/** `rule`: as people know it, with where it was written. */
export type PlanRule = { readonly rule: string; readonly paths: PathPatternData };

export type CommandPlan = {
  readonly steps: readonly PlanStep[];
  /** Where git runs. Checked before the plan is run, because a repository's own configuration can make git start
   *  programs. */
  readonly gitFolders: readonly GitFolder[];
  /** Files of repositories that git must not show what is in, as patterns from the top of a repository. */
  readonly hiddenFiles?: readonly string[];
  /** Rules about reading: whatever a name turns out to be, a file that falls under one is not read. */
  readonly rules?: readonly PlanRule[];
};
