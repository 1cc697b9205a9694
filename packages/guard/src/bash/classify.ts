/** May this command run unasked? Only if it is provably read-only; then the verdict carries what to run.
 *  Invariant: total and fast; any doubt is "unknown"; a plan is made only of programs, options and words that the tables
 *  know. What is run is the plan, never the text.
 *  Elsewhere: syntax (syntax.ts), programs (programs/), running a plan (../run). */

import {
  broadFolderProblem,
  checkPipedNames,
  NEEDS_WHOLE_NAMES,
  PRINTS_WORDS,
  walkByOptions as walkIn,
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

/** A program that only reads where its first arguments are these; without them, whatever it is given. */
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
    return { verdict: "unknown", reason: "could not be read" };
  }
};

/** What is known when a step is read: the user's own programs, the folders that it may run in, and how much was to be
 *  looked at in the options of the whole text so far. */
type Reading = {
  readonly userPrograms: readonly OwnProgram[];
  readonly folders: PossibleFolders;
  readonly gluedWork: { letters: number };
};

type ReadSteps = { readonly steps: readonly PlanStep[]; readonly folders: PossibleFolders };

const readAll = (steps: readonly Step[], { folders: start, ...reading }: Reading): ReadSteps => {
  let folders = start;
  const read = steps.map((step) => {
    const [plan, after] = readStep(step, { ...reading, folders });
    folders = after;
    return plan;
  });
  return { steps: read, folders };
};

const readStep = (step: Step, reading: Reading): readonly [PlanStep, PossibleFolders] => {
  const { after, negated, commands, group } = step;
  const { folders } = reading;
  if (group) {
    const inside = readAll(group.steps, reading);
    const run = { kind: "group" as const, steps: inside.steps, scoped: group.scoped };
    return [{ after, negated, run }, group.scoped ? folders : inside.folders];
  }
  const [first] = commands;
  if (first?.words[0]?.text === "cd") {
    if (commands.length > 1 || negated) throw new Refusal("cd stands alone: cd DIR && command");
    const run = readFolder(first, folders);
    return [{ after, negated, run }, foldersAfter(folders, run.folder.text)];
  }
  const read = commands.map((command) => readCommand(command, reading));
  checkPipedNames(read, (start) => startProblem(start, folders));
  return [{ after, negated, run: { kind: "pipe", commands: read } }, folders];
};

/** A folder that is not there is not changed to, so both count. */
const foldersAfter = (folders: PossibleFolders, folder: string): PossibleFolders => {
  const after = [...new Set([...folders, ...folders.map((path) => joinPath(path, folder))])];
  if (after.length > 16) throw new Refusal("changes folder too often; name the folders in the commands");
  return after;
};

/** Every name is asked for from every folder it may count from. */
const REACH_LIMITS = { names: 2_000, letters: 50_000, glued: 200_000 };

const checkReach = (words: readonly PlanWord[], { folders, gluedWork: glued }: Reading): void => {
  const lengths = folders.reduce((sum, path) => sum + path.length, 0);
  const many = folders.length > 1 && words.length * folders.length > REACH_LIMITS.names;
  if (many || words.length * lengths > REACH_LIMITS.letters)
    throw new Refusal("has too many words after cd; name the folders in the commands");
  // Any number of an option's letters may stand before a file, so each path in it is looked at from each folder.
  glued.letters += words.reduce((sum, { text }) => sum + gluedWork(text) * folders.length, 0);
  if (glued.letters > REACH_LIMITS.glued)
    throw new Refusal("has options that are too long to look for files in; write values as words of their own");
};

/** Why a walk may not begin here. */
const startProblem = ({ text, home }: PlanWord, folders: PossibleFolders): string | undefined =>
  (home ? [text] : folders.map((path) => joinPath(path, text)))
    .map((path) => broadFolderProblem(normalizePath(path)))
    .find((problem) => problem !== undefined);

type ChangeOfFolder = Extract<PlanStep["run"], { readonly kind: "cd" }>;

const readFolder = ({ words, redirects, assignments }: SimpleCommand, folders: PossibleFolders): ChangeOfFolder => {
  const [, folder, ...more] = words;
  if (!folder || more.length > 0 || folder.pattern || assignments.length > 0) {
    throw new Refusal("cd takes one plain folder");
  }
  if (folder.text.startsWith("-")) throw new Refusal("cd takes one plain folder, no option");
  checkSecrets([folder], folders);
  checkNetwork([folder], folders);
  if (redirects.length === 0) return { kind: "cd", folder };
  // It prints nothing but its complaint, so all that can be sent away is that.
  if (redirects.some(({ kind }) => kind !== "discard"))
    throw new Refusal("cd takes 2>/dev/null and no other redirection");
  const quiet = redirects.some((redirect) => redirect.kind === "discard" && redirect.descriptor !== 1);
  return quiet ? { kind: "cd", folder, quiet } : { kind: "cd", folder };
};

/** Settings that only change how an answer looks. All but the time zone are what the runner sets anyway. */
const DISPLAY_VARIABLES: Readonly<Record<string, RegExp>> = {
  LC_ALL: /^(C|POSIX|C\.UTF-8|en_US\.UTF-8)$/,
  LANG: /^(C|POSIX|C\.UTF-8|en_US\.UTF-8)$/,
  TZ: /^(UTC|UTC0)$/,
  NO_COLOR: /^1$/,
  PAGER: /^cat$/,
  GIT_PAGER: /^cat$/,
  GIT_OPTIONAL_LOCKS: /^0$/,
};

const readCommand = ({ words, redirects, assignments }: SimpleCommand, reading: Reading): PlanCommand => {
  const { userPrograms, folders } = reading;
  for (const { name, value } of assignments) {
    if (!Object.hasOwn(DISPLAY_VARIABLES, name) || !DISPLAY_VARIABLES[name]?.test(value))
      throw new Refusal(`sets ${name}; read-only commands set no variables`);
  }
  checkReach(words, reading);
  for (const redirect of redirects) {
    if (redirect.kind !== "input") continue;
    checkSecrets([redirect.file], folders);
    checkNetwork([redirect.file], folders);
  }
  const { words: run, limit } = unwrapTimeout(words);
  const [name, ...args] = run as [PlanWord, ...PlanWord[]];
  const program = programName(name);
  const around = {
    redirects,
    ...(assignments.some((set) => set.name === "TZ") ? ({ zone: "UTC0" } as const) : {}),
    ...(limit === undefined ? {} : { limit }),
  };
  if (userPrograms.some((one) => isUseOf(one, program, args))) return { program, args, ...around };
  const judged = judge(program, args, "none");
  const known = programs.get(program);
  const final = markSearchText(program, judged);
  if (!known?.silent)
    checkSecrets(
      final.filter(({ searchText }) => !searchText),
      folders,
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
    ...around,
  };
};

/** By the words that are run, and not by those of a wrapper around them. */
const isUseOf = ({ name, args = [] }: OwnProgram, program: string, given: readonly PlanWord[]): boolean =>
  name === program && args.every((text, at) => isPlain(given[at]) && given[at].text === text);

/** A walk begins in each of its starting points, or where the command is. */
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
  if (pattern || home) throw new Refusal("the program must be named plainly");
  const named = SYSTEM.exec(text)?.[2] ?? text;
  if (named.includes("/")) throw new Refusal(`${text} is no program of the system`);
  return named;
};

/** The arguments as they may be run, or a Refusal. */
const judge = (name: string, args: readonly PlanWord[], late: RuntimeNames): readonly PlanWord[] => {
  if (name === WRAPPER) throw new Refusal(`${name} stands at the start of a command: ${name} 5 xargs PROGRAM`);
  const program = programs.get(name);
  if (!program) {
    if (isWriter(name)) throw new Refusal(`${name} changes something`, "write");
    throw new Refusal(`${name} is not a known read-only program`);
  }
  if (asksHelp(program, args) && late === "none") return args;
  const takesNames = program.harmless || (late === "placed" && NEEDS_WHOLE_NAMES.includes(name));
  if (late !== "none" && !takesNames)
    throw new Refusal(`${name} could take a name that turns up for an option; use find DIR -exec ${name} … {} +`);
  if (!program.harmless) checkPatterns(name, args);
  return program.read ? program.read(args, judgeInner) : judgeOptions(name, args, { program, late });
};

/** None of their options writes, runs or sends, or they look for none among names. */
const TAKE_ANY_NAME: readonly string[] = ["awk", "gawk", "mawk", "jq", "echo", "printf"];

/** The runner never lets a name become an option, but the text must be harmless to bash as well. */
const checkPatterns = (name: string, args: readonly PlanWord[]): void => {
  if (TAKE_ANY_NAME.includes(name)) return;
  const ended = args.findIndex(({ text, pattern }) => text === "--" && !pattern);
  const before = ended < 0 || name === "find" ? args : args.slice(0, ended);
  // No word that find acts on has a dot in it.
  const couldAct = (text: string): boolean => /^[*?[]/.test(text) && !(name === "find" && text.includes("."));
  if (before.some(({ text, pattern, home }) => pattern && !home && couldAct(text))) {
    throw new Refusal(`a file name could become an option of ${name}; quote it, or put ./ before the pattern`);
  }
};

/** Programs that read all their words themselves say by themselves what may be asked of them. */
const asksHelp = (program: Program, args: readonly PlanWord[]): boolean =>
  !program.read && args.length === 1 && args[0]?.text === "--help" && !args[0].pattern;

const judgeInner = (words: readonly PlanWord[], late: RuntimeNames): readonly PlanWord[] => {
  const [name, ...args] = words;
  if (!name) throw new Refusal("there is no inner command");
  const program = programName(name);
  const judged = markSearchText(program, judge(program, args, late));
  return [
    { text: PROGRAM_ALIASES[program] ?? program },
    ...withoutFollowingLinks(program, judged, programs.get(program)?.rule),
  ];
};

/** Words that are text to look for are marked, so that nobody takes them for files. */
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
  const { minOperands: least = 0, maxOperands: most = Number.POSITIVE_INFINITY } = program;
  const asksVersion = given.options.some(({ name: option }) => option === "version");
  if (given.operands.length < least && !asksVersion && late !== "last") throw new Refusal(`${name} needs more words`);
  if (given.operands.length > most || (many && Number.isFinite(most))) {
    throw new Refusal(`${name} takes at most ${most} plain words; more could be written to`);
  }
  program.check?.(given);
  return args;
};

/** Each `cd` on the path, as it is written. */
type FolderChanges = readonly (readonly PlanWord[])[];

/** Where git will run: after each `cd` that may have happened, and through its own `-C`. */
const gitFoldersOf = (steps: readonly PlanStep[]): CommandPlan["gitFolders"] => {
  const found: GitFolder[] = [];
  const walk = (part: readonly PlanStep[], start: FolderChanges): FolderChanges => {
    let reached = start;
    for (const { run } of part) {
      if (run.kind === "cd") reached = [...reached, ...reached.map((changes) => [...changes, run.folder])];
      if (reached.length > 16) throw new Refusal("changes folder too often; use git -C DIR");
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

/** What a command really runs: `timeout` only says how long, so it is taken off before anything else is asked.
 *  Invariant: after this every check, and the runner, sees the program itself; no other place knows the name of a wrapper.
 *  Other wrappers (nice, stdbuf, env, nohup …) are not read at all, nor is one inside another.
 *  Elsewhere: programs that make up arguments for another one (programs/xargs.ts, programs/find.ts). */

export type Unwrapped = {
  readonly words: readonly PlanWord[];
  /** How long `timeout` lets the program run, as it was written. */
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
    throw new Refusal("timeout takes a number of seconds and a command");
  if (rest.length === 0) throw new Refusal("timeout needs a command");
  if (isWrapper(rest[0])) throw new Refusal("one timeout is enough");
  return { words: rest, limit: limit.text };
};

/** Which folders does a command walk through, reading what files hold?
 *  Invariant: what an option takes as its value is no starting point; where options cannot be read, the walk begins where
 *  the command is.
 *  Elsewhere: which commands walk, and where a walk may begin (below.ts). */

/** `starts` is empty where it begins in the working directory. */
export const walkOf = (
  program: string,
  args: readonly PlanWord[],
): { readonly starts: readonly PlanWord[] } | undefined => {
  const walk = walkIn(program, args);
  const known = programs.get(program);
  if (!walk || !known || known.read) return walk;
  try {
    return { starts: readOptions(program, args, known.rule).operands.filter(({ searchText }) => !searchText) };
  } catch (error) {
    if (error instanceof Refusal) return { starts: [] };
    throw error;
  }
};
