/** git: subcommands that only look, each with its own options; and a git command that was allowed, as it was understood.
 *  Invariant: nothing contacts a remote, verifies a signature, starts a helper, or looks into submodules, whose configuration
 *  we cannot switch off. Subcommands that can both list and change may only list.
 *  Elsewhere: switching off what a repository's configuration could start (../../run). */

import type { CompiledRule, OptionRule, ParsedArguments } from "../options.ts";
import { compileRule, readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { checkConfig } from "./git-config.ts";
import { DASH_VALUES, DIFF, DISPLAY_SETTINGS, LOG, PRETTY, WRITING } from "./git-options.ts";
import { checkRepetition, checkWidth, type ProgramTable, program } from "./program.ts";

type Subcommand = OptionRule & {
  readonly maxOperands?: number;
  readonly check?: (given: ParsedArguments, words: readonly PlanWord[]) => void;
  /** Its verb must come first: after an option, git may take it for something else. */
  readonly verbFirst?: boolean;
  /** It prints the contents of files. */
  readonly printsContents?: true;
  /** Options added to every such command, so that the repository's configuration cannot turn a helper on. */
  readonly addedOptions?: readonly string[];
};

const has = ({ options }: ParsedArguments, ...names: readonly string[]): boolean =>
  options.some(({ name }) => names.includes(name));

const refuse = (text: string, verdict: "write" | "unknown" = "unknown"): never => {
  throw new Refusal(`git ${text}`, verdict);
};

/** `%G` in a format verifies a signature, which starts another program; `remerge` writes a merge to compare with. */
const checkFormats = (given: ParsedArguments): void => {
  for (const { name, value = "" } of given.options) {
    if (["format", "pretty", "sort", "group"].includes(name) && /%[-+ ]?G|signature/i.test(value))
      refuse(`--${name} may not verify signatures; leave out %G and signature`);
    if (name === "format" && /%\(\*?raw/.test(value))
      refuse("--format: %(raw) prints whole files; use git show REV:FILE");
    if (name === "diff-merges" && /^r/.test(value)) refuse(`--diff-merges=${value} writes objects`);
    if (/^(format|pretty|date)$/.test(name)) checkWidth("git", value);
    if (/^(expand-tabs|w|threads)$/.test(name) && /\d{4}/.test(value))
      refuse(`--${name}=${value} is too large; use at most three digits`);
  }
};

const checkKnownFormat = (given: ParsedArguments): void => {
  checkFormats(given);
  for (const { name, value = "" } of given.options) {
    if (/^(format|pretty)$/.test(name) && !PRETTY.test(value))
      refuse(`--${name}=${value} is not one of git's own formats; spell it out: --format='%h %s'`);
  }
};

/** When one of two paths is outside the repository, git compares them directly, including whole folders. */
const checkInsideRepository = ({ options, operands }: ParsedArguments): void => {
  const outside = operands.some(({ text, home }) => home || /^\/|(^|\/)\.\.(\/|$)/.test(text));
  const asIs = options.some(({ name }) => name === "no-index");
  if (outside && (asIs || operands.length > 1))
    refuse("diff may only compare what is in the repository; for other files use diff FILE FILE");
};

const NO_DRIVERS = ["--no-ext-diff", "--no-textconv"];
const NO_SUBMODULES = "--ignore-submodules=all";

const diffRule: Subcommand = {
  flags: DIFF.flags,
  valued: DIFF.valued,
  glued: DIFF.glued,
  long: `${DIFF.long} cached staged merge-base no-index ours theirs base`,
  check: checkInsideRepository,
  printsContents: true,
  addedOptions: [...NO_DRIVERS, NO_SUBMODULES],
};

const logRule: Subcommand = {
  flags: DIFF.flags + LOG.flags,
  valued: DIFF.valued + LOG.valued,
  glued: DIFF.glued,
  long: `${DIFF.long} ${LOG.long}`,
  dashValues: DASH_VALUES,
  count: true,
  check: checkKnownFormat,
  printsContents: true,
  addedOptions: NO_DRIVERS,
};

const blameRule: Subcommand = {
  flags: "swtlcefnbp",
  valued: "LS",
  glued: "MC",
  long:
    "root show-stats reverse? first-parent date= score-debug show-name show-number show-email porcelain line-porcelain " +
    "incremental abbrev? color-lines color-by-age ignore-rev= ignore-revs-file= since= encoding= minimal",
  addedOptions: ["--no-textconv"],
};

const refRule = "sort= format= points-at= contains? no-contains? merged? no-merged? ignore-case color? no-color";

/** For a subcommand that lists with an option, and creates something when it only gets a name. */
const listsOnly =
  (what: string, ...asks: readonly string[]) =>
  (given: ParsedArguments): void => {
    checkFormats(given);
    if (given.operands.length > 0 && !has(given, ...asks))
      refuse(`${what} NAME changes something; use git ${what} --list`, "write");
  };

/** The first operand must be one of these verbs; all others change something. */
const allowVerbs =
  (subcommand: string, known: readonly string[]) =>
  ({ operands }: ParsedArguments): void => {
    const [verb] = operands;
    if (verb && !known.includes(verb.text)) refuse(`${subcommand} ${verb.text} is not read-only`, "write");
  };

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  status: {
    flags: "sbvz",
    glued: "u",
    long:
      "short branch show-stash porcelain? long verbose untracked-files? ignored? column? no-column ahead-behind " +
      "no-ahead-behind renames no-renames find-renames? null no-optional-locks",
    addedOptions: [NO_SUBMODULES],
  },
  diff: diffRule,
  log: logRule,
  show: logRule,
  whatchanged: logRule,
  "diff-tree": {
    ...diffRule,
    flags: `${DIFF.flags}mcv`,
    long: `${DIFF.long} root no-commit-id always pretty? format= merge-base`,
    check: checkKnownFormat,
  },
  "diff-index": { ...diffRule, flags: `${DIFF.flags}m`, long: `${DIFF.long} cached merge-base` },
  "diff-files": { ...diffRule, flags: `${DIFF.flags}0123cq` },
  "range-diff": { ...diffRule, long: `${DIFF.long} creation-factor= no-dual-color left-only right-only` },
  "rev-list": {
    ...logRule,
    long: `${DIFF.long} ${LOG.long} count objects objects-edge timestamp header disk-usage? use-bitmap-index`,
    addedOptions: [],
  },
  shortlog: {
    flags: "snec",
    glued: "w",
    long: `${LOG.long} summary numbered email group= committer`,
    check: checkKnownFormat,
  },
  blame: blameRule,
  annotate: blameRule,
  "ls-files": {
    flags: "cdmoikustzvfr",
    valued: "xX",
    long:
      "cached deleted modified others ignored stage directory no-empty-directory unmerged killed eol exclude= exclude-from= " +
      "exclude-standard exclude-per-directory= error-unmatch with-tree= full-name abbrev? debug deduplicate sparse format=",
  },
  "ls-tree": { flags: "drtlz", long: "name-only name-status abbrev? full-name full-tree long format= object-only" },
  grep: {
    flags: "iIwvhHEGFPnlLzoqcWpar",
    valued: "efABCm",
    dashValues: "e",
    count: true,
    long:
      "cached untracked exclude-standard text ignore-case word-regexp invert-match full-name " +
      "extended-regexp basic-regexp perl-regexp fixed-strings line-number column files-with-matches name-only " +
      "files-without-match null only-matching count color? no-color break heading show-function context= after-context= " +
      "before-context= function-context max-count= max-depth= threads= and or not all-match quiet recursive no-recursive no-textconv",
    check: checkFormats,
    printsContents: true,
  },
  branch: {
    flags: "avril",
    long: `all remotes list verbose show-current column? no-column abbrev? no-abbrev omit-empty ${refRule}`,
    check: listsOnly("branch", "list", "l", "contains", "no-contains", "merged", "no-merged", "points-at"),
  },
  tag: {
    flags: "li",
    glued: "n",
    long: `list column? no-column omit-empty ${refRule}`,
    check: listsOnly("tag", "list", "l", "contains", "no-contains", "merged", "no-merged", "points-at"),
  },
  remote: {
    verbFirst: true,
    flags: "v",
    long: "verbose all push",
    check: (given) => {
      allowVerbs("remote", ["get-url", "show"])(given);
      const [verb, name] = given.operands;
      if (verb?.text === "get-url" && !name)
        refuse("remote get-url needs the name of a remote: git remote get-url origin");
      if (verb?.text === "show" && name) refuse("remote show NAME contacts the remote; use git remote -v");
    },
  },
  stash: {
    ...logRule,
    flags: `${DIFF.flags}${LOG.flags}`,
    long: `${DIFF.long} ${LOG.long} include-untracked only-untracked`,
    verbFirst: true,
    check: (given, words) => {
      checkKnownFormat(given);
      if (given.operands.length === 0) refuse("stash puts changes away; use git stash list", "write");
      allowVerbs("stash", ["list", "show"])(given);
      // stash show sorts its words by their first character before it reads them, so values are separated from their options.
      const isPlain = (word: PlanWord): boolean => word.text.startsWith("-") || given.operands.includes(word);
      if (given.operands[0]?.text === "show" && !words.every(isPlain))
        refuse("stash show needs each value in the same word as its option: -U5, --stat=80");
    },
    addedOptions: [],
  },
  reflog: {
    ...logRule,
    check: (given) => {
      checkKnownFormat(given);
      const [first] = given.operands;
      // Verbs are bare words; a word with one of these characters is a branch or a point in its history.
      if (first && /[@/~^]/.test(first.text)) return;
      if (first && !["show", "exists", "HEAD"].includes(first.text))
        refuse(`reflog ${first.text} could change something; use git reflog show NAME`, "write");
    },
    addedOptions: [],
  },
  worktree: {
    verbFirst: true,
    flags: "vz",
    long: "porcelain verbose",
    check: (given) => {
      if (given.operands.length === 0) refuse("worktree needs a verb; use git worktree list");
      allowVerbs("worktree", ["list"])(given);
    },
  },
  clean: {
    flags: "ndxXqfi",
    valued: "e",
    long: "dry-run quiet exclude= force interactive",
    check: (given) => {
      if (!has(given, "n", "dry-run") || has(given, "f", "i", "force", "interactive"))
        refuse("clean deletes files; use git clean -n to see which", "write");
    },
  },
  notes: {
    check: (given) => {
      if (given.operands.length === 0) return;
      allowVerbs("notes", ["list", "show"])(given);
    },
  },
  config: {
    // After the first operand, git accepts no options: `git config user.name --get` sets the value.
    optionsFirst: true,
    flags: "lz",
    long:
      "list get get-all get-regexp show-origin show-scope global local system worktree name-only null type= bool int path " +
      "default= includes no-includes",
    check: checkConfig,
  },
  // It compares with the submodules' heads and prints them; it does not look into their folders.
  submodule: {
    verbFirst: true,
    long: "cached",
    check: (given) => {
      if (given.operands.length === 0 && given.options.length > 0)
        refuse("submodule takes its verb first: git submodule status");
      allowVerbs("submodule", ["status"])(given);
    },
  },
  bisect: {
    verbFirst: true,
    check: (given) => {
      if (given.operands.length !== 1) refuse("bisect changes the working tree; use git bisect log", "write");
      allowVerbs("bisect", ["log"])(given);
    },
  },
  "sparse-checkout": {
    verbFirst: true,
    check: (given) => {
      if (given.operands.length !== 1)
        refuse("sparse-checkout changes the working tree; use git sparse-checkout list", "write");
      allowVerbs("sparse-checkout", ["list"])(given);
    },
  },
  // Without -l, which lists all settings.
  var: {
    maxOperands: 1,
    check: ({ operands: [name] }) => {
      if (!/^GIT_(AUTHOR_IDENT|COMMITTER_IDENT|DEFAULT_BRANCH)$/.test(name?.text ?? ""))
        refuse("var may only show identities and the default branch: git var GIT_AUTHOR_IDENT");
    },
  },
  // Prints what a patch says; it is not applied unless --apply is given. Without --check, which opens the files that
  // the patch names, and tells by its messages what is in them.
  apply: {
    flags: "vR",
    valued: "p",
    long: "stat numstat summary verbose reverse",
    check: (given) => {
      if (!has(given, "stat", "numstat", "summary")) refuse("apply changes files; use git apply --stat PATCH", "write");
    },
  },
  replace: {
    flags: "l",
    long: "list format=",
    check: (given) => {
      if (!has(given, "l", "list")) refuse("replace changes something; use git replace --list", "write");
    },
  },
  "patch-id": { long: "stable unstable verbatim", maxOperands: 0 },
  "rev-parse": {
    flags: "q",
    long:
      "git-dir show-toplevel abbrev-ref? short? verify quiet is-inside-work-tree is-inside-git-dir is-bare-repository " +
      "is-shallow-repository show-prefix show-cdup show-superproject-working-tree symbolic-full-name symbolic all branches? " +
      "tags? remotes? glob= exclude= git-common-dir absolute-git-dir git-path= path-format= revs-only no-revs flags no-flags " +
      "not default= disambiguate= since= until= sq shared-index-path show-object-format? show-ref-format",
  },
  describe: {
    long: "all tags contains abbrev? candidates= exact-match debug long match= exclude= always first-parent dirty?",
    check: (given) => {
      if (has(given, "dirty")) refuse("describe --dirty writes to the index; use git describe and git status --short");
    },
  },
  "merge-base": { flags: "a", long: "all octopus independent is-ancestor fork-point" },
  "cat-file": {
    flags: "tsep",
    long: "batch? batch-check? batch-all-objects unordered buffer allow-unknown-type use-mailmap follow-symlinks",
    check: (given) => {
      // By its object id, a file with secrets looks like any other.
      if (has(given, "batch"))
        refuse("cat-file --batch prints any object it receives; use git show REV:FILE or --batch-check");
    },
  },
  "for-each-ref": { long: `count= omit-empty ${refRule}`, check: checkFormats },
  "show-ref": { flags: "dsqh", long: "head heads tags branches dereference hash? verify quiet abbrev? exists" },
  "show-branch": {
    flags: "ar",
    long: "all remotes current topo-order date-order sparse more= list merge-base independent no-name sha1-name color? no-color",
  },
  "symbolic-ref": { flags: "q", long: "quiet short recurse no-recurse", maxOperands: 1 },
  "name-rev": { long: "tags all name-only refs= exclude= always no-undefined" },
  "count-objects": { flags: "vH", long: "verbose human-readable", maxOperands: 0 },
  cherry: { flags: "v", long: "abbrev?" },
  "check-ignore": { flags: "qvnz", long: "quiet verbose non-matching no-index" },
  "check-attr": { flags: "az", long: "all cached" },
  "check-ref-format": { long: "branch allow-onelevel no-allow-onelevel refspec-pattern normalize" },
  version: { long: "build-options", maxOperands: 0 },
};

const COMPILED = new Map(Object.entries(SUBCOMMANDS).map(([name, sub]) => [name, { ...sub, rule: compileRule(sub) }]));

/** The options that the rules themselves add to a command. */
const ADDED = "no-ext-diff no-textconv ignore-submodules? no-text";

type Globals = { readonly at: number; readonly kept: readonly PlanWord[] };

/** Options before the subcommand: where git runs, and how its output looks. */
const readGlobals = (words: readonly PlanWord[]): Globals => {
  const kept: PlanWord[] = [];
  let at = 0;
  for (;;) {
    const word = words[at];
    if (!word || word.pattern || word.home || !word.text.startsWith("-")) return { at, kept };
    const value = words[at + 1];
    if (
      /^(--no-pager|-P|--no-optional-locks|--literal-pathspecs|--no-replace-objects|--glob-pathspecs|--icase-pathspecs)$/.test(
        word.text,
      )
    ) {
      at += 1;
    } else if (word.text === "-C" && value && !value.pattern && value.text !== "") {
      kept.push(word, value);
      at += 2;
    } else if (word.text === "-c" && value && !value.pattern && DISPLAY_SETTINGS.test(value.text)) {
      kept.push(word, value);
      at += 2;
    } else if (word.text === "--version" && words.length === 1) return { at, kept };
    else refuse(`${word.text} before the subcommand is not a known read-only option; leave it out`);
  }
};

const readGit = (words: readonly PlanWord[]): readonly PlanWord[] => {
  const { at, kept } = readGlobals(words);
  const name = words[at];
  if (!name) return refuse("needs a subcommand: git status");
  if (name.text === "--version") return words;
  if (name.pattern || name.home) return refuse("needs a plain subcommand: git status");
  if (WRITING.includes(name.text)) refuse(`${name.text} is not read-only`, "write");
  const sub = COMPILED.get(name.text) ?? refuse(`${name.text} is not known to be read-only`);
  const rest = words.slice(at + 1);
  // Alone, -h prints the usage of any subcommand.
  if (rest.length === 1 && rest[0]?.text === "-h") return [...kept, name, ...rest];
  const given = readOptions(`git ${name.text}`, rest, sub.rule);
  if (sub.maxOperands !== undefined && given.operands.length > sub.maxOperands)
    refuse(`${name.text} takes at most ${sub.maxOperands} operands here; more could change something`, "write");
  if (sub.verbFirst && given.operands.length > 0 && rest[0] !== given.operands[0]) {
    refuse(`${name.text} needs its verb before its options`);
  }
  sub.check?.(given, rest);
  for (const { text } of rest) checkRepetition("git", text);
  const addedOptions = (sub.addedOptions ?? []).map((text): PlanWord => ({ text }));
  return [
    { text: "--no-pager" },
    ...kept,
    name,
    ...addedOptions,
    ...(sub.printsContents ? withoutBinary(rest, sub.rule, name.text === "grep") : rest),
  ];
};

/** Files that may contain secrets are marked as binary for git, which then does not print them. Options that print binary
 *  files too are dropped; if a letter `a` remains inside another option, a `--no-text` after it overrides it. */
const withoutBinary = (words: readonly PlanWord[], rule: CompiledRule, isGrep: boolean): readonly PlanWord[] => {
  const kept: PlanWord[] = [];
  let end = 0;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as PlanWord;
    const { text } = word;
    if (text === "--" && !word.pattern) {
      kept.push(...words.slice(at));
      break;
    }
    if (word.pattern || word.home || text === "-" || !text.startsWith("-")) {
      kept.push(word);
      // grep accepts no options after its first operand.
      if (!isGrep) continue;
      kept.push(...words.slice(at + 1).filter((one) => !BINARY.test(one.text)));
      break;
    }
    const { left, takesNext } = dropBinary(text, rule);
    if (left !== "") kept.push({ ...word, text: left });
    const value = takesNext ? words[at + 1] : undefined;
    if (value) {
      kept.push(value);
      at += 1;
    }
    end = kept.length;
  }
  const isLeft = kept.slice(0, end).some(({ text }) => /^-[^-]*a/.test(text));
  return isLeft ? [...kept.slice(0, end), { text: "--no-text" }, ...kept.slice(end)] : kept;
};

const BINARY = /^--(?:text|binary)$|^-a$/;

/** The option without the letters that print binary files, and whether the next word is its value. */
const dropBinary = (
  text: string,
  { valued = "", glued = "", names }: CompiledRule,
): { readonly left: string; readonly takesNext: boolean } => {
  if (BINARY.test(text)) return { left: "", takesNext: false };
  if (text.startsWith("--")) return { left: text, takesNext: names.get(text.slice(2)) === "required" };
  const value = [...text].findIndex((letter, at) => at > 0 && (valued + glued).includes(letter));
  const flags = value < 0 ? text : text.slice(0, value);
  const left = flags.replaceAll("a", "") + text.slice(flags.length);
  const takesNext = value === text.length - 1 && valued.includes(text.at(-1) ?? "");
  return { left: left === "-" ? "" : left, takesNext };
};

/** The folders that `-C` names, in order; git runs in the folder they lead to. */
export const gitFolders = (args: readonly PlanWord[]): readonly PlanWord[] => {
  const found: PlanWord[] = [];
  for (let at = 0; args[at]?.text.startsWith("-"); at += /^-[Cc]$/.test(args[at]?.text ?? "") ? 2 : 1) {
    if (args[at]?.text === "-C") found.push(args[at + 1] as PlanWord);
  }
  return found;
};

export const gitPrograms: ProgramTable = { git: program({ read: readGit }) };

/** A git command as it was understood when it was classified. */
export type GitInvocation = ParsedArguments & {
  readonly verb: string;
  /** All words after the verb. */
  readonly words: readonly string[];
};

/** Reads the final words of a command that was allowed, by the same rules that allowed it. Code after the classifier asks
 *  this instead of looking for an option among all words: there it could mistake a pattern, a path or a value for one. */
export const readGitInvocation = (all: readonly string[]): GitInvocation | { readonly problem: string } => {
  let at = 0;
  while (all[at]?.startsWith("-")) at += /^-[Cc]$/.test(all[at] ?? "") ? 2 : 1;
  const [verb = "", words] = [all[at], all.slice(at + 1)];
  const sub = Object.hasOwn(SUBCOMMANDS, verb) ? SUBCOMMANDS[verb] : undefined;
  const isUsage = words.length === 1 && words[0] === "-h";
  if (sub === undefined || isUsage) return { verb, words, options: [], operands: [] };
  // Options end where git ends them: grep accepts none after its first operand.
  const optionsFirst = verb === "grep" ? { optionsFirst: true } : {};
  const rule = compileRule({ ...sub, long: `${sub.long ?? ""} ${ADDED}`, ...optionsFirst });
  const given = words.map((text) => ({ text }));
  try {
    return { ...readOptions(`git ${verb}`, given, rule), verb, words };
  } catch (error) {
    if (error instanceof Refusal) return { problem: error.message };
    throw error;
  }
};
