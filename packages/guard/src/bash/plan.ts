/** A read-only command as data: what runs in place of its text.
 *  Invariant: every word is final except for the file names that a pattern stands for; nothing in it is shell syntax.
 *  Elsewhere: making a plan (classify.ts), running it (../run). */

/** A word with its quotes resolved. */
export type PlanWord = {
  readonly text: string;
  /** `text` is a file name pattern (`*`, `?`, `[…]`), with a backslash before characters that were quoted. */
  readonly pattern?: true;
  /** `text` starts with `~`, which stands for the home directory. */
  readonly home?: true;
  /** Each `$?` in `text` stands for the exit code of the previous step. */
  readonly status?: true;
  /** Text to search for. Whatever it looks like, no file of that name is opened. */
  readonly searchText?: true;
  /** A name known only at run time will replace it. Set only during classification; no word of a finished plan has it. */
  readonly placeholder?: true;
};

export type PlanRedirect =
  /** To /dev/null: descriptor 1, 2 or both. */
  | { readonly kind: "discard"; readonly descriptor: 1 | 2 | "both" }
  | { readonly kind: "join"; readonly from: 1 | 2; readonly to: 1 | 2 }
  | { readonly kind: "input"; readonly file: PlanWord };

export type PlanCommand = {
  /** A name from the program table; it is looked up in system directories at run time. */
  readonly program: string;
  readonly args: readonly PlanWord[];
  readonly redirects: readonly PlanRedirect[];
  /** The time zone that the command sets. */
  readonly zone?: "UTC0";
  /** The duration given to `timeout`: `5`, `1.5m`. */
  readonly limit?: string;
};

export type PlanStep = {
  /** When it runs, depending on the previous step. */
  readonly after: "always" | "success" | "failure";
  readonly negated: boolean;
  readonly run: /** `quiet`: no error message if the folder does not exist. */
    | { readonly kind: "cd"; readonly folder: PlanWord; readonly quiet?: true }
    | { readonly kind: "pipe"; readonly commands: readonly PlanCommand[] }
    /** `scoped`: a `cd` in it ends with the group. */
    | { readonly kind: "group"; readonly steps: readonly PlanStep[]; readonly scoped: boolean };
};

/** How a git command gets to its folder: each `cd`, which goes by names, then each `-C`, which git follows through links. */
export type GitFolder = {
  readonly cd: readonly PlanWord[];
  readonly within: readonly PlanWord[];
};

/** A pattern for paths as plain data: `**`, a literal name, or a pattern for names. */
export type PathPatternData = readonly (readonly ("**" | { readonly name: string } | { readonly glob: string })[])[];

/** `rule`: the rule as the user wrote it, with its source. */
export type PlanRule = { readonly rule: string; readonly paths: PathPatternData };

export type CommandPlan = {
  readonly steps: readonly PlanStep[];
  /** Where git runs. This is checked before the plan runs, because a repository's configuration can make git start
   *  programs. */
  readonly gitFolders: readonly GitFolder[];
  /** Files whose contents git must not show, as patterns relative to the top of a repository. */
  readonly hiddenFiles?: readonly string[];
  /** Rules about reading. A file that matches one is not read, whatever name leads to it. */
  readonly rules?: readonly PlanRule[];
};
