/** One pipe of a plan as canonical bash, with every name in it checked once more.
 *  Invariant: the script contains only pipes and fixed redirections; the words are passed separately. A name that
 *  leads to secrets or to a special file is not passed to a program that prints contents.
 *  Elsewhere: judging names as they are written (../bash), running (run-pipe.ts). */

import { statSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import type { PathJudge } from "../files/index.ts";
import { existingPath, isFolder, realPath, resolveName, unlessMissing } from "../files/index.ts";
import type { GitViews } from "../git/index.ts";
import { objectProblem, ownAnswer, remoteProblem, withoutRenames } from "../git/index.ts";
import { isProtectedBySystem } from "../paths/index.ts";
import { findProgram } from "../process/index.ts";
import {
  gluedValues,
  innerProgramIndex,
  LISTS_NAMES,
  type PlanCommand,
  type PlanRedirect,
  type PlanWord,
  pathProblem,
  readGitInvocation,
  specialFileProblem,
  walkOf,
} from "../rules/index.ts";
import { findBlockingFile } from "./blocking-files.ts";
import { replaceStarts } from "./grep-starts.ts";
import { firstProblem } from "./in-turns.ts";
import { expandPattern, type PatternSearch } from "./patterns.ts";
import { GREPS, withoutKeys } from "./walk-limits.ts";
import {
  alsoOpened,
  gitFolder,
  gitProblem,
  gitWithout,
  type KnownFolders,
  lookThrough,
  reenter,
  standingIn,
  walkAt,
} from "./walk-starts.ts";

export type Problem = { readonly problem: string };

export type Rendered = { readonly script: string; readonly words: readonly string[] };

/** The context in which a pipe's words are expanded. */
export type RenderPlace = {
  /** Canonical. */
  readonly cwd: string;
  /** Its name, as `cd` led to it. */
  readonly cwdName: string;
  readonly home: string;
  readonly exitCode: number;
  /** The names that the first command, an xargs, will get on its standard input. */
  readonly xargsNames?: readonly string[];
  readonly judge: PathJudge;
  /** The views of repositories that git may read. */
  readonly views: GitViews;
  readonly signal?: AbortSignal;
  /** How many other pipes are running and share the memory. */
  readonly otherPipes?: number;
  readonly maxKibibytes?: number; // default: PIPE_KIBIBYTES
};

export const atHome = ({ text, home: tilde }: PlanWord, home: string): string => (tilde ? home + text.slice(1) : text);

/** All commands of a pipe run at once, so they share this much memory; a command alone may take all of it. */
const PIPE_KIBIBYTES = 4_194_304;
/** Enough for every program in the tables to start, and to read lines of ordinary length. */
const LEAST_KIBIBYTES = 65_536;

/** How much of a pipe tac can buffer in a file before it reverses it. */
const FILE_KIBIBYTES = 262_144;

/** A program that fails writes no core file. One that never stops runs out of memory or time, even if no process is
 *  left that could end it. */
const limitsFor = (kibibytes: number, processes: number): string =>
  `ulimit -c 0 -d ${Math.max(LEAST_KIBIBYTES, Math.floor(kibibytes / processes))} -f ${FILE_KIBIBYTES} -t 600; `;

/** How many processes a pipe has at the same time. */
export const processCount = (commands: readonly PlanCommand[]): number =>
  commands.reduce((sum, command) => sum + processesOf(command), 0);

/** xargs starts as many processes as its options say, and each has the same limits. */
const processesOf = ({ program, args }: PlanCommand): number => {
  if (program !== "xargs") return 1;
  const limits = args.slice(0, innerProgramIndex(args)).map(({ text }) => /^(?:-P|--max-procs=)(\d+)$/.exec(text)?.[1]);
  return 1 + Math.max(1, ...limits.map((count) => Number(count ?? 1)));
};

/** If sort runs out of memory, it would write any number of temporary files, even under find or xargs; without a
 *  folder for them it fails. Only tac needs a folder, to buffer a pipe. */
const NO_SCRATCH: Readonly<Record<string, string>> = { TMPDIR: "/dev/null/none" };

/** The system starts no program with more words, and no call can have more. */
const MOST_WORDS = 20_000;

export const renderPipe = async (commands: readonly PlanCommand[], place: RenderPlace): Promise<Rendered | Problem> => {
  const parts: string[] = [];
  const all: string[] = [];
  const { judge, signal } = place;
  const searchState = { names: 0, steps: 0, walks: new Map(), judge, ...(signal === undefined ? {} : { signal }) };
  for (const [at, command] of commands.entries()) {
    const expanded = await expandAll(command, at === 0 ? place : { ...place, xargsNames: [] }, searchState);
    if ("problem" in expanded) return expanded;
    const { words, program: name = command.program, variables = {} } = expanded;
    const inputs = command.redirects.flatMap((to) => (to.kind === "input" ? [atHome(to.file, place.home)] : []));
    const problem = await reachedProblem(inputs, command.program, place);
    if (problem !== undefined) return { problem };
    // Checked after the names: a file that may not be read is reported whether or not the program exists.
    const program = findProgram(name);
    if (program === undefined) return { problem: `${name}: not found in system folders` };
    if (all.length + words.length > MOST_WORDS)
      return { problem: `${command.program}: too many names to exclude; search a smaller folder` };
    const zone = command.zone === undefined ? "" : `TZ=${quoted(command.zone)} `;
    const redirects = command.redirects.map((to) => renderRedirect(to, place.home)).join("");
    // Programs print the name they are started with; it must be the one that the reader of their output knows.
    const limited = timeLimit(command);
    if ("problem" in limited) return limited;
    const argv = limited.length === 0 ? [program, ...words] : [...limited, name, ...words];
    const shownName = limited.length === 0 ? command.program : "timeout";
    const scratch = command.program === "tac" ? {} : NO_SCRATCH;
    const assignments = Object.entries({ ...scratch, ...variables }).map(([key, value]) => `${key}=${quoted(value)} `);
    parts.push(
      `${zone}${assignments.join("")}exec -a ${quoted(shownName)} "\${@:${all.length + 1}:${argv.length}}"${redirects}`,
    );
    all.push(...argv);
  }
  const [only = "", ...more] = parts;
  const { otherPipes = 0, maxKibibytes = PIPE_KIBIBYTES } = place;
  const limits = limitsFor(maxKibibytes, processCount(commands) * (1 + otherPipes));
  const script = limits + (more.length === 0 ? only : parts.map((part) => `(${part})`).join(" | "));
  return { script, words: all };
};

/** The words before a program with a time limit. `timeout` searches for the program in the same folders as we do. It
 *  runs in the foreground, because its own process group would outlive the plan. */
const timeLimit = ({ limit }: PlanCommand): readonly string[] | Problem => {
  if (limit === undefined) return [];
  const timeout = findProgram("timeout");
  if (timeout === undefined) return { problem: "timeout: not found in system folders" };
  const knowsForeground = !realPath(timeout).endsWith("busybox");
  return [timeout, ...(knowsForeground ? ["--foreground"] : []), limit];
};

type Expanded = {
  readonly words: readonly string[];
  /** The program that runs instead of the plan's. */
  readonly program?: string;
  /** Variables for this program, in addition to those that all programs get. */
  readonly variables?: Readonly<Record<string, string>>;
};

const expandAll = async (
  { program, args }: PlanCommand,
  place: RenderPlace,
  searchState: PatternSearch & KnownFolders,
): Promise<Expanded | Problem> => {
  const { cwd, home, exitCode, xargsNames = [], judge } = place;
  const words: string[] = [];
  const names: string[] = [];
  const operands = new Set<number>();
  const starts = walkOf(program, args)?.starts ?? [];
  for (const word of args) {
    if (!word.pattern) {
      if (starts.includes(word)) operands.add(words.length);
      words.push(word.status ? word.text.replaceAll("$?", String(exitCode)) : atHome(word, home));
      if (!word.searchText) names.push(atHome(word, home));
      continue;
    }
    try {
      const matching = await expandPattern(atHome(word, home), cwd, searchState);
      const found = matching.map((name) => notAnAction(name, program));
      const problem = LISTS_NAMES.includes(program) ? undefined : namesProblem(found);
      if (problem !== undefined) return { problem };
      if (starts.includes(word)) for (const at of found.keys()) operands.add(words.length + at);
      words.push(...found);
      names.push(...found);
      if (words.length > MOST_WORDS) return { problem: `${program}: the patterns match too many names; use find` };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return { problem: `${program}: ${error.message}; use find` };
    }
  }
  const walk = walkAt({ program, args }, { names, xargsNames, cwd });
  const problem =
    (await reachedProblem([...names, ...alsoOpened(program, names, cwd)], program, place)) ??
    walk?.starts.map(({ path }) => folderProblem(path, judge)).find(Boolean) ??
    (walk && names.concat(program).includes("rg") ? ignoreProblem(walk.starts, judge) : undefined);
  if (problem !== undefined) return { problem };
  if (program === "git") return expandGit(words, place, searchState);
  if (!walk) return { words };
  const entered = words.map((word) => reenter(word, cwd, program));
  const exclusions = lookThrough(walk, searchState);
  if ("problem" in exclusions) return exclusions;
  if (!GREPS.includes(program)) return { words: withoutKeys(program, entered, exclusions) };
  const round = replaceStarts(entered, operands, exclusions);
  return { words: withoutKeys(program, round.words, round.exclusions) };
};

const expandGit = async (
  words: readonly string[],
  { cwd, judge, views }: RenderPlace,
  searchState: KnownFolders,
): Promise<Expanded | Problem> => {
  const folder = gitFolder(words, cwd);
  // `REV:./NAME` and `-L1,1:NAME` are relative to that folder, whatever name led to it.
  const inKeys = judge.problem(join(realPath(folder), "name"));
  if (inKeys !== undefined) return { problem: inKeys };
  const view = views.of(folder, words);
  if ("problem" in view) return view;
  const asked = readGitInvocation(words);
  if ("problem" in asked) return asked;
  const found =
    (await gitProblem(asked, view, judge)) ?? (await objectProblem(asked, view, judge)) ?? remoteProblem(asked, view);
  if (found !== undefined) return found;
  const answer = await ownAnswer(asked, view);
  if (answer !== undefined) return answer;
  const named = await withoutRenames({ asked, words }, view);
  if ("problem" in named) return named;
  const limited = gitWithout({ asked, words: named }, view, searchState);
  if ("problem" in limited) return limited;
  // If there is no such folder, git reports it by the name that it was given, and finds no repository.
  const placed = isFolder(folder) ? standingIn(folder, limited) : limited;
  return { words: placed, variables: view.variables(asked.verb) };
};

/** ripgrep reads the ignore files of every folder that it enters. */
const ignoreProblem = (starts: readonly { readonly path: string }[], judge: PathJudge): string | undefined => {
  const mayNot = (target: string): boolean => judge.problem(target) !== undefined;
  const waiting = starts.map(({ path }) => findBlockingFile(path, mayNot)).find((path) => path !== undefined);
  return waiting === undefined ? undefined : `${waiting} is not a regular file, or leads to what may not be read`;
};

/** find takes a name that begins with one of these characters as the start of its expression, and stops reading
 *  folders. */
const notAnAction = (name: string, program: string): string =>
  program === "find" && /^[(),!]/.test(name) ? `./${name}` : name;

/** Names that were not in the command's text and so were never checked. */
export const namesProblem = (names: readonly string[]): string | undefined =>
  names.map(pathProblem).find((problem) => problem !== undefined);

/** Each name was checked as it was written; this checks it again, now that its target is known. */
export const reachedProblem = async (
  words: readonly string[],
  program: string,
  { cwd, cwdName, judge, signal }: Pick<RenderPlace, "cwd" | "cwdName" | "judge" | "signal">,
): Promise<string | undefined> => {
  if (LISTS_NAMES.includes(program)) return undefined;
  const bases = program === "git" ? [...new Set([cwd, gitFolder(words, cwd)])] : [cwd];
  const names = [...new Set(words)].flatMap((word) => (word.startsWith("-") ? [word, ...valuesIn(word)] : [word])); // after `--` it is a name
  const problemOf = (name: string): string | undefined =>
    bases
      .map((base) => resolveName(base, name))
      .map((path) => specialFileProblem(resolve(path)) ?? linkProblem(path, resolve(cwdName, name), judge))
      .find((problem) => problem !== undefined);
  return firstProblem(names, problemOf, signal);
};

/** The value that an option may contain: after `=`, or directly after one or more letters. */
const valuesIn = (option: string): readonly string[] => {
  const at = option.indexOf("=");
  if (option.startsWith("--")) return at < 0 ? [] : [option.slice(at + 1)];
  return gluedValues(option);
};

/** A folder that is too broad to be read completely, under any name. */
const folderProblem = (path: string, judge: PathJudge): string | undefined => {
  // If there is no such folder, the program reports that itself.
  return isFolder(path) ? judge.folderProblem(realPath(path)) : undefined;
};

/** A link's target counts, and for rules its name too. A pipe or a socket would make its reader wait. `name`: the path
 *  by the folder names that led to it. */
const linkProblem = (path: string, name: string, judge: PathJudge): string | undefined => {
  const real = existingPath(path);
  const stats = real === undefined ? undefined : unlessMissing(real, () => statSync(real));
  // If there is no such file, the program reports that itself.
  if (real === undefined || stats === undefined) return undefined;
  if (stats.isFIFO() || stats.isSocket()) return `${path} is not a regular file`;
  if (stats.isFile() && isProtectedBySystem(real, stats.mode))
    return `${path} is kept from other users, so reading it needs approval`;
  const problem = judge.problem(real) ?? judge.rules.problem(resolve(path)) ?? judge.rules.problem(name);
  return problem === undefined || real === path ? problem : `${path} leads to what may not be read: ${problem}`;
};

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

const renderRedirect = (redirect: PlanRedirect, home: string): string => {
  switch (redirect.kind) {
    case "discard":
      return redirect.descriptor === "both" ? " >/dev/null 2>&1" : ` ${redirect.descriptor}>/dev/null`;
    case "join":
      return ` ${redirect.from}>&${redirect.to}`;
    case "input": {
      const path = atHome(redirect.file, home);
      // Never joined to the folder: bash would open a connection for a name that becomes /dev/tcp/….
      return ` <${quoted(isAbsolute(path) ? path : `./${path}`)}`;
    }
  }
};
