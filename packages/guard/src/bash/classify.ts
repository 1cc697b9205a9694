/** May this command run without approval? Only if it is provably read-only; then the verdict contains the plan to run.
 *  Invariant: total and fast; any doubt is "unknown". A plan consists only of programs, options and words that the tables
 *  know. What runs is the plan, never the text.
 *  Elsewhere: syntax (syntax.ts), programs (programs/), running a plan (../run). */

import {
  broadFolderProblem,
  checkPipedNames,
  LISTS_NAMES,
  NEEDS_WHOLE_NAMES,
  PRINTS_WORDS,
  walkByOptions,
  withoutFollowingLinks,
} from "./indirect-reads.ts";
import { readOptions } from "./options.ts";
import type { CommandPlan, GitFolder, PlanCommand, PlanStep, PlanWord } from "./plan.ts";
import { gitFolders, PROGRAM_ALIASES, type Program, programs, type RuntimeNames } from "./programs/index.ts";
import { Refusal } from "./refusal.ts";
import { checkNetwork, checkSecrets, gluedWork, joinPath, normalizePath, type PossibleFolders } from "./secrets.ts";
import { readSteps, type SimpleCommand, type Step } from "./syntax.ts";
import { isWriter } from "./writers.ts";

export type Verdict =
  | { readonly verdict: "read-only"; readonly reason: string; readonly plan: CommandPlan }
  | { readonly verdict: "write" | "unknown"; readonly reason: string };

/** A program that only reads if its first arguments are these; without `args`, whatever its arguments. */
export type OwnProgram = { readonly name: string; readonly args?: readonly string[] };

export type ClassifyOptions = {
  /** Programs that the user, never a project, has declared read-only. A name alone stands for any arguments. */
  readonly readOnlyPrograms?: readonly (string | OwnProgram)[];
};

export const classify = (text: string, options: ClassifyOptions = {}): Verdict => {
  try {
    const { steps } = readAll(readSteps(text), {
      userPrograms: (options.readOnlyPrograms ?? []).map((one) => (typeof one === "string" ? { name: one } : one)),
      folders: [""],
      gluedWork: { letters: 0 },
    });
    return { verdict: "read-only", reason: "every part only reads", plan: { steps, gitFolders: gitFoldersOf(steps) } };
  } catch (error) {
    if (error instanceof Refusal) return { verdict: error.verdict, reason: error.message };
    return { verdict: "unknown", reason: "could not be understood; write simple commands joined by | && || ;" };
  }
};

/** What is known when a step is classified: the programs that the user declared read-only, the folders that the step may run
 *  in, and how much work the glued options of the whole text have caused so far. */
type StepContext = {
  readonly userPrograms: readonly OwnProgram[];
  readonly folders: PossibleFolders;
  readonly gluedWork: { letters: number };
};

type ReadSteps = { readonly steps: readonly PlanStep[]; readonly folders: PossibleFolders };

const readAll = (steps: readonly Step[], { folders: start, ...context }: StepContext): ReadSteps => {
  let folders = start;
  const read = steps.map((step) => {
    const [plan, after] = readStep(step, { ...context, folders });
    folders = after;
    return plan;
  });
  return { steps: read, folders };
};

const readStep = (step: Step, context: StepContext): readonly [PlanStep, PossibleFolders] => {
  const { after, negated, commands, group } = step;
  const { folders } = context;
  if (group) {
    const inside = readAll(group.steps, context);
    const run = { kind: "group" as const, steps: inside.steps, scoped: group.scoped };
    return [{ after, negated, run }, group.scoped ? folders : inside.folders];
  }
  const [first] = commands;
  if (first?.words[0]?.text === "cd") {
    if (commands.length > 1 || negated) throw new Refusal("cd may not be part of a pipe or negated: cd DIR && command");
    const run = readFolder(first, folders);
    return [{ after, negated, run }, foldersAfter(folders, run.folder.text)];
  }
  const read = commands.map((command) => readCommand(command, context));
  checkPipedNames(read, (start) => startProblem(start, folders));
  return [{ after, negated, run: { kind: "pipe", commands: read } }, folders];
};

/** If the folder does not exist, the step stays where it is, so both folders are possible. */
const foldersAfter = (folders: PossibleFolders, folder: string): PossibleFolders => {
  const after = [...new Set([...folders, ...folders.map((path) => joinPath(path, folder))])];
  if (after.length > 16) throw new Refusal("changes the folder too often; name the folders in the commands");
  return after;
};

/** Every name is checked against every folder that it may be relative to; these limits bound that work. */
const REACH_LIMITS = { names: 2_000, letters: 50_000, glued: 200_000 };

const checkReach = (words: readonly PlanWord[], { folders, gluedWork: glued }: StepContext): void => {
  const lengths = folders.reduce((sum, path) => sum + path.length, 0);
  const many = folders.length > 1 && words.length * folders.length > REACH_LIMITS.names;
  if (many || words.length * lengths > REACH_LIMITS.letters)
    throw new Refusal("has too many words after cd; name the folders in the commands");
  // A file may follow any number of an option's letters, so each path in it is checked against each folder.
  glued.letters += words.reduce((sum, { text }) => sum + gluedWork(text) * folders.length, 0);
  if (glued.letters > REACH_LIMITS.glued)
    throw new Refusal("has options that are too long to search for file names; write their values as separate words");
};

/** Why a walk may not start here. */
const startProblem = ({ text, home }: PlanWord, folders: PossibleFolders): string | undefined =>
  (home ? [text] : folders.map((path) => joinPath(path, text)))
    .map((path) => broadFolderProblem(normalizePath(path)))
    .find((problem) => problem !== undefined);

type FolderChange = Extract<PlanStep["run"], { readonly kind: "cd" }>;

const readFolder = ({ words, redirects, assignments }: SimpleCommand, folders: PossibleFolders): FolderChange => {
  const [, folder, ...more] = words;
  if (!folder || more.length > 0 || folder.pattern || assignments.length > 0) {
    throw new Refusal("cd takes one plain folder");
  }
  if (folder.text.startsWith("-")) throw new Refusal("cd takes one plain folder and no options");
  checkSecrets([folder], folders, { listsOnly: true });
  checkNetwork([folder], folders);
  if (redirects.length === 0) return { kind: "cd", folder };
  // cd prints only its error message, so only that can be redirected.
  if (redirects.some(({ kind }) => kind !== "discard")) throw new Refusal("cd may only be redirected with 2>/dev/null");
  const quiet = redirects.some((redirect) => redirect.kind === "discard" && redirect.descriptor !== 1);
  return quiet ? { kind: "cd", folder, quiet } : { kind: "cd", folder };
};

/** Variables that only change how output looks. The runner sets all of them anyway, except for the time zone. */
const DISPLAY_VARIABLES: Readonly<Record<string, RegExp>> = {
  LC_ALL: /^(C|POSIX|C\.UTF-8|en_US\.UTF-8)$/,
  LANG: /^(C|POSIX|C\.UTF-8|en_US\.UTF-8)$/,
  TZ: /^(UTC|UTC0)$/,
  NO_COLOR: /^1$/,
  PAGER: /^cat$/,
  GIT_PAGER: /^cat$/,
  GIT_OPTIONAL_LOCKS: /^0$/,
};

const readCommand = ({ words, redirects, assignments }: SimpleCommand, context: StepContext): PlanCommand => {
  const { userPrograms, folders } = context;
  for (const { name, value } of assignments) {
    if (!Object.hasOwn(DISPLAY_VARIABLES, name) || !DISPLAY_VARIABLES[name]?.test(value))
      throw new Refusal(`sets ${name}; read-only commands set no variables`);
  }
  checkReach(words, context);
  for (const redirect of redirects) {
    if (redirect.kind !== "input") continue;
    checkSecrets([redirect.file], folders);
    checkNetwork([redirect.file], folders);
  }
  const { words: command, limit } = unwrapTimeout(words);
  const [name, ...args] = command as [PlanWord, ...PlanWord[]];
  const program = programName(name);
  const surroundings = {
    redirects,
    ...(assignments.some((set) => set.name === "TZ") ? ({ zone: "UTC0" } as const) : {}),
    ...(limit === undefined ? {} : { limit }),
  };
  if (userPrograms.some((one) => isUseOf(one, program, args))) return { program, args, ...surroundings };
  const known = programs.get(program);
  const final = markSearchText(program, judge(program, args, "none"));
  if (!known?.silent)
    checkSecrets(
      final.filter(({ searchText }) => !searchText),
      folders,
      { listsOnly: LISTS_NAMES.includes(program) && program !== "du" }, // the sandbox covers what du would measure
    );
  if (!PRINTS_WORDS.includes(program))
    checkNetwork(
      final.filter(({ searchText }) => !searchText),
      folders,
    );
  checkWalk(program, final, folders);
  return {
    program: PROGRAM_ALIASES[program] ?? program,
    args: withoutFollowingLinks(program, final, known?.rule),
    ...surroundings,
  };
};

/** Compares the words that run, not those of a wrapper around them. */
const isUseOf = ({ name, args = [] }: OwnProgram, program: string, given: readonly PlanWord[]): boolean =>
  name === program && args.every((text, at) => isPlain(given[at]) && given[at].text === text);

/** A walk starts at each of its operands, or in the working directory if it has none. */
const checkWalk = (program: string, args: readonly PlanWord[], folders: PossibleFolders): void => {
  const walk = walkOf(program, args);
  if (!walk) return;
  const starts = walk.starts.length === 0 ? [{ text: "." }] : walk.starts;
  const problem = starts.map((start) => startProblem(start, folders)).find((one) => one !== undefined);
  if (problem !== undefined) throw new Refusal(problem);
};

/** System folders: a path there names the same program as the bare name. */
const SYSTEM = /^\/(usr\/)?bin\/([\w.[+-]+)$/;

const programName = ({ text, pattern, home }: PlanWord): string => {
  if (pattern || home) throw new Refusal("name the program literally, without patterns or ~");
  const named = SYSTEM.exec(text)?.[2] ?? text;
  if (named.includes("/")) throw new Refusal(`${text} is not a program in /bin or /usr/bin, so it needs approval`);
  return named;
};

/** The arguments as they may run, or a Refusal. */
const judge = (name: string, args: readonly PlanWord[], late: RuntimeNames): readonly PlanWord[] => {
  if (name === WRAPPER) throw new Refusal(`${name} must come first in a command: ${name} 5 xargs PROGRAM`);
  const program = programs.get(name);
  if (!program) {
    if (isWriter(name)) throw new Refusal(`${name} changes files or processes`, "write");
    throw new Refusal(`${name} is not a known read-only program`);
  }
  if (asksHelp(program, args) && late === "none") return args;
  const takesNames = program.harmless || (late === "placed" && NEEDS_WHOLE_NAMES.includes(name));
  if (late !== "none" && !takesNames)
    throw new Refusal(`${name} could mistake a name from the pipe for an option; use find DIR -exec ${name} … {} +`);
  if (!program.harmless) checkPatterns(name, args);
  return program.read ? program.read(args, judgeInner) : judgeOptions(name, args, { program, late });
};

/** Their options cannot write, run or send anything, or they accept no options after the first operand. */
const TAKE_ANY_NAME: readonly string[] = ["awk", "gawk", "mawk", "jq", "echo", "printf"];

/** The runner never lets a name become an option, but the text must also be harmless if bash runs it. */
const checkPatterns = (name: string, args: readonly PlanWord[]): void => {
  if (TAKE_ANY_NAME.includes(name)) return;
  const ended = args.findIndex(({ text, pattern }) => text === "--" && !pattern);
  const before = ended < 0 || name === "find" ? args : args.slice(0, ended);
  // No action of find contains a dot.
  const couldAct = (text: string): boolean => /^[*?[]/.test(text) && !(name === "find" && text.includes("."));
  if (before.some(({ text, pattern, home }) => pattern && !home && couldAct(text))) {
    throw new Refusal(`a file name could become an option of ${name}; quote the pattern, or put ./ before it`);
  }
};

/** Programs that parse their own words decide themselves whether --help is allowed. */
const asksHelp = (program: Program, args: readonly PlanWord[]): boolean =>
  !program.read && args.length === 1 && args[0]?.text === "--help" && !args[0].pattern;

const judgeInner = (words: readonly PlanWord[], late: RuntimeNames): readonly PlanWord[] => {
  const [name, ...args] = words;
  if (!name) throw new Refusal("names no command to run");
  const program = programName(name);
  const judged = markSearchText(program, judge(program, args, late));
  return [
    { text: PROGRAM_ALIASES[program] ?? program },
    ...withoutFollowingLinks(program, judged, programs.get(program)?.rule),
  ];
};

/** Marks words that are text to search for, so that nothing takes them for files. */
const markSearchText = (program: string, words: readonly PlanWord[]): readonly PlanWord[] => {
  const known = programs.get(program);
  const text = known?.searchText && !asksHelp(known, words) ? known.searchText(words) : [];
  if (text.length === 0) return words;
  return words.map((word) => (text.includes(word) ? { ...word, searchText: true as const } : word));
};

const judgeOptions = (
  name: string,
  args: readonly PlanWord[],
  { program, late }: { readonly program: Program; readonly late: RuntimeNames },
): readonly PlanWord[] => {
  const given = readOptions(name, args, program.rule);
  const many =
    given.operands.some(({ pattern, placeholder }) => pattern && !(placeholder && late === "placed")) ||
    late === "last";
  const { minOperands = 0, maxOperands = Number.POSITIVE_INFINITY } = program;
  const asksVersion = given.options.some(({ name: option }) => option === "version");
  if (given.operands.length < minOperands && !asksVersion && late !== "last")
    throw new Refusal(`${name} needs more operands (at least ${minOperands})`);
  if (given.operands.length > maxOperands || (many && Number.isFinite(maxOperands))) {
    throw new Refusal(`${name} accepts fewer operands here (at most ${maxOperands}); it could write to more`);
  }
  program.check?.(given);
  return args;
};

/** Each `cd` that led to a folder, as written. */
type FolderChanges = readonly (readonly PlanWord[])[];

/** Where git will run: after each `cd` that may have succeeded, and through its own `-C`. */
const gitFoldersOf = (steps: readonly PlanStep[]): CommandPlan["gitFolders"] => {
  const found: GitFolder[] = [];
  const walk = (part: readonly PlanStep[], start: FolderChanges): FolderChanges => {
    let reached = start;
    for (const { run } of part) {
      if (run.kind === "cd") reached = [...reached, ...reached.map((changes) => [...changes, run.folder])];
      if (reached.length > 16) throw new Refusal("changes the folder too often; use git -C DIR");
      if (run.kind === "group") {
        const after = walk(run.steps, reached);
        reached = run.scoped ? reached : after;
      }
      for (const { program, args } of run.kind === "pipe" ? run.commands : []) {
        if (program === "git") found.push(...reached.map((cd) => ({ cd, within: gitFolders(args) })));
      }
    }
    return reached;
  };
  walk(steps, [[]]);
  return found;
};

// --- timeout ---------------------------------------------------------------------------------------------------------
// `timeout` only limits how long a command runs, so it is removed before anything else is checked. After that, every check
// and the runner see the program itself. Other wrappers (nice, stdbuf, env, nohup …) and nested ones are refused. Programs
// that run another one with arguments of their own are in programs/xargs.ts and programs/find.ts.

export type Unwrapped = {
  readonly words: readonly PlanWord[];
  /** The duration given to `timeout`, as written. */
  readonly limit?: string;
};

export const WRAPPER = "timeout";
const NAMES: readonly string[] = [WRAPPER, `/bin/${WRAPPER}`, `/usr/bin/${WRAPPER}`];
const DURATION = /^0{0,9}[1-9]\d{0,9}(?:\.\d{1,9})?[smh]?$/;

const isPlain = (word: PlanWord | undefined): word is PlanWord =>
  word !== undefined && !word.pattern && !word.home && !word.status;

const isWrapper = (word: PlanWord | undefined): boolean => isPlain(word) && NAMES.includes(word.text);

export const unwrapTimeout = (words: readonly PlanWord[]): Unwrapped => {
  if (!isWrapper(words[0])) return { words };
  const [, limit, ...rest] = words;
  if (!isPlain(limit) || !DURATION.test(limit.text))
    throw new Refusal("timeout takes a duration and a command: timeout 5 COMMAND");
  if (rest.length === 0) throw new Refusal("timeout needs a command: timeout 5 COMMAND");
  if (isWrapper(rest[0])) throw new Refusal("one timeout is enough; leave out the second");
  return { words: rest, limit: limit.text };
};

/** The folders that a command walks through to read files. The value of an option is not a starting point. `starts` is empty
 *  if the walk starts in the working directory, which is also assumed if the options cannot be parsed. */
export const walkOf = (
  program: string,
  args: readonly PlanWord[],
): { readonly starts: readonly PlanWord[] } | undefined => {
  const walk = walkByOptions(program, args);
  const known = programs.get(program);
  if (!walk || !known || known.read) return walk;
  try {
    return { starts: readOptions(program, args, known.rule).operands.filter(({ searchText }) => !searchText) };
  } catch (error) {
    if (error instanceof Refusal) return { starts: [] };
    throw error;
  }
};

// --- plans that open no file -----------------------------------------------------------------------------------------
// Such a plan is just as harmless in a plain shell, where nobody checks names, links and repositories before it runs. An
// allow-list of programs; a filter counts only if it is given no file, by the same rules that classified it.

/** Whatever their arguments, they open nothing, or only tell that a file exists. */
const OPENS_NOTHING: readonly string[] = [
  ...LISTS_NAMES.filter((name) => name !== "du"), // an option has it read a file with names
  ...["true", "false", "pwd", "uname", "whoami", "seq", "sleep", "tr"],
];

const GREPS: readonly string[] = ["grep", "egrep", "fgrep"];

/** They read standard input if no file is named. */
const FILTERS: readonly string[] = [
  ...["cat", "head", "tail", "wc", "sort", "uniq", "cut", "tac", "nl", "rev", "column"],
  ...GREPS,
];

/** Options whose values are files; for grep, also `-f`. */
const FILE_OPTIONS = /^(?:file|exclude-from|files0-from)$/;

/** `sed -n 1,5p`, `awk '{print $2}'`. */
const SHORT_PROGRAM: Readonly<Record<string, RegExp>> = {
  sed: /^-n (?:\d+|\$)(?:,(?:\d+|\$))?p$/,
  awk: /^\{ ?print \$(?:\d+|NF) ?\}$/,
};

/** The runner hands no name over as an option; a plain shell does. */
const couldBeOption = ({ text, pattern }: PlanWord): boolean => pattern === true && /^[-*?[{]/.test(text);

const opensNothing = ({ program, args, redirects }: PlanCommand): boolean => {
  if (redirects.some(({ kind }) => kind === "input") || args.some(couldBeOption)) return false;
  if (OPENS_NOTHING.includes(program)) return true;
  if (program === "du") return args.every((word) => !word.pattern);
  if (SHORT_PROGRAM[program]?.test(args.map(({ text }) => text).join(" "))) return args.every((word) => !word.pattern);
  const known = programs.get(program);
  if (!FILTERS.includes(program) || !known || known.read || walkOf(program, args)) return false;
  const { options, operands } = readOptions(program, args, known.rule);
  const namesFile = options.some(({ name }) => FILE_OPTIONS.test(name) || (name === "f" && GREPS.includes(program)));
  return operands.every(({ searchText }) => searchText) && !namesFile;
};

const stepOpensNothing = ({ run }: PlanStep): boolean => {
  if (run.kind === "group") return run.steps.every(stepOpensNothing);
  return run.kind === "cd" || run.commands.every(opensNothing);
};

export const opensNoFile = ({ steps }: Pick<CommandPlan, "steps">): boolean => steps.every(stepOpensNothing);
