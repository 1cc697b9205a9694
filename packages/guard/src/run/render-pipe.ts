/** One pipe of a plan as canonical bash, with every name in it checked once more.
 *  Invariant: the script contains only pipes and fixed redirections; the words are passed separately. A name that leads to secrets or to a
 *  special file is not passed to a program that prints contents.
 *  Elsewhere: judging names as they are written (../bash), running (run-pipe.ts). */

import { realpathSync, statSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import type { PathJudge } from "../files/index.ts";
import { realPath, resolveName } from "../files/index.ts";
import type { GitViews } from "../git/index.ts";
import { objectProblem, ownAnswer, remoteProblem, withoutRenames } from "../git/index.ts";
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
import { firstProblem } from "./in-turns.ts";
import { expandPattern, type LookedAt } from "./patterns.ts";
import { waitingFile } from "./waiting-files.ts";
import { GREPS, withoutKeys } from "./walk-limits.ts";
import { goRound } from "./walk-round.ts";
import {
  alsoOpened,
  gitFolder,
  gitProblem,
  gitWithout,
  type Known,
  lookThrough,
  reenter,
  walkAt,
} from "./walk-starts.ts";

export type Problem = { readonly problem: string };

export type Rendered = { readonly script: string; readonly words: readonly string[] };

/** What stands around a pipe when its words are made final. */
export type RenderPlace = {
  readonly cwd: string;
  readonly home: string;
  readonly exitCode: number;
  /** What the first command, an xargs, will be given beside its words. */
  readonly fed?: readonly string[];
  readonly judge: PathJudge;
  /** What git gets to see. */
  readonly views: GitViews;
  readonly signal?: AbortSignal;
  /** How many other pipes are running, which share the memory. */
  readonly beside?: number;
};

export const atHome = ({ text, home: tilde }: PlanWord, home: string): string => (tilde ? home + text.slice(1) : text);

/** All commands of a pipe run at once, so they share this much memory; a command alone may take all of it. */
const PIPE_KIBIBYTES = 4_194_304;
/** Enough for every program of the tables to start and to read lines of ordinary length. */
const LEAST_KIBIBYTES = 65_536;

/** What tac writes of a pipe before it turns it round. */
const FILE_KIBIBYTES = 262_144;

/** A program that fails writes no core file. One that never stops runs out of memory or time, even if no process is left
 *  that could end it. */
const limitsFor = (processes: number): string =>
  `ulimit -c 0 -d ${Math.max(LEAST_KIBIBYTES, Math.floor(PIPE_KIBIBYTES / processes))} -f ${FILE_KIBIBYTES} -t 600; `;

/** xargs starts as many as it is told to, and each has the same limits. */
const processesOf = ({ program, args }: PlanCommand): number => {
  if (program !== "xargs") return 1;
  const told = args.slice(0, innerProgramIndex(args)).map(({ text }) => /^(?:-P|--max-procs=)(\d+)$/.exec(text)?.[1]);
  return 1 + Math.max(1, ...told.map((count) => Number(count ?? 1)));
};

/** sort writes what it has no memory for to as many files as it takes, also where find or xargs run it; without a place for
 *  them it fails. Only tac needs one, for what comes through a pipe. */
const NO_SCRATCH: Readonly<Record<string, string>> = { TMPDIR: "/dev/null/none" };

/** More than the system starts a program with, and more than a call can be given. */
const MOST_WORDS = 20_000;

export const renderPipe = async (commands: readonly PlanCommand[], place: RenderPlace): Promise<Rendered | Problem> => {
  const parts: string[] = [];
  const all: string[] = [];
  const { judge, signal } = place;
  const lookedAt = { names: 0, steps: 0, walks: new Map(), judge, ...(signal === undefined ? {} : { signal }) };
  for (const [at, command] of commands.entries()) {
    const expanded = await expandAll(command, at === 0 ? place : { ...place, fed: [] }, lookedAt);
    if ("problem" in expanded) return expanded;
    const { words, stands = command.program, variables = {} } = expanded;
    const inputs = command.redirects.flatMap((to) => (to.kind === "input" ? [atHome(to.file, place.home)] : []));
    const problem = await reachedProblem(inputs, command.program, place);
    if (problem !== undefined) return { problem };
    // After the names: what may not be read is said so, whether or not the program is there.
    const program = findProgram(stands);
    if (program === undefined) return { problem: `${stands}: not found in system folders` };
    if (all.length + words.length > MOST_WORDS)
      return { problem: `${command.program}: too many names to exclude; search a smaller folder` };
    const zone = command.zone === undefined ? "" : `TZ=${quoted(command.zone)} `;
    const redirects = command.redirects.map((to) => renderRedirect(to, place.home)).join("");
    // Programs call themselves by the name they are given; it must be the one that the reader of their output knows.
    const limited = timeLimit(command);
    if ("problem" in limited) return limited;
    const argv = limited.length === 0 ? [program, ...words] : [...limited, stands, ...words];
    const name = limited.length === 0 ? command.program : "timeout";
    const scratch = command.program === "tac" ? {} : NO_SCRATCH;
    const around = Object.entries({ ...scratch, ...variables }).map(([key, value]) => `${key}=${quoted(value)} `);
    parts.push(`${zone}${around.join("")}exec -a ${quoted(name)} "\${@:${all.length + 1}:${argv.length}}"${redirects}`);
    all.push(...argv);
  }
  const [only = "", ...more] = parts;
  const processes = commands.reduce((sum, command) => sum + processesOf(command), 0) * (1 + (place.beside ?? 0));
  const script = limitsFor(processes) + (more.length === 0 ? only : parts.map((part) => `(${part})`).join(" | "));
  return { script, words: all };
};

/** What stands before a program that may only run so long; it finds the program in the same folders as we do. In the
 *  foreground, because a process group of its own would outlive the plan. */
const timeLimit = ({ limit }: PlanCommand): readonly string[] | Problem => {
  if (limit === undefined) return [];
  const timeout = findProgram("timeout");
  if (timeout === undefined) return { problem: "timeout: not found in system folders" };
  const knowsForeground = !realpathSync(timeout).endsWith("busybox");
  return [timeout, ...(knowsForeground ? ["--foreground"] : []), limit];
};

type Expanded = {
  readonly words: readonly string[];
  /** The program that stands in for the one of the plan. */
  readonly stands?: string;
  /** Its own environment variables, in addition to those of all programs. */
  readonly variables?: Readonly<Record<string, string>>;
};

const expandAll = async (
  { program, args }: PlanCommand,
  place: RenderPlace,
  lookedAt: LookedAt & Known,
): Promise<Expanded | Problem> => {
  const { cwd, home, exitCode, fed = [], judge } = place;
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
      const matching = await expandPattern(atHome(word, home), cwd, lookedAt);
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
  const walk = walkAt({ program, args }, { names, fed, cwd });
  const problem =
    (await reachedProblem([...names, ...alsoOpened(program, names, cwd)], program, place)) ??
    walk?.starts.map(({ path }) => folderProblem(path, judge)).find(Boolean) ??
    (walk && names.concat(program).includes("rg") ? ignoreProblem(walk.starts, judge) : undefined);
  if (problem !== undefined) return { problem };
  if (program === "git") return expandGit(words, place, lookedAt);
  if (!walk) return { words };
  const entered = words.map((word) => reenter(word, cwd, program));
  const left = lookThrough(walk, lookedAt);
  if ("problem" in left) return left;
  if (!GREPS.includes(program)) return { words: withoutKeys(program, entered, left) };
  const round = goRound(entered, operands, left);
  return { words: withoutKeys(program, round.words, round.left) };
};

const expandGit = async (
  words: readonly string[],
  { cwd, judge, views }: RenderPlace,
  lookedAt: Known,
): Promise<Expanded | Problem> => {
  const folder = gitFolder(words, cwd);
  // `REV:./NAME` and `-L1,1:NAME` are counted from there, whatever name led to it.
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
  const limited = gitWithout({ asked, words: named }, view, lookedAt);
  return "problem" in limited ? limited : { words: limited, variables: view.variables(asked.verb) };
};

/** ripgrep reads what is to be ignored in every folder that it comes to. */
const ignoreProblem = (starts: readonly { readonly path: string }[], judge: PathJudge): string | undefined => {
  const mayNot = (target: string): boolean => judge.problem(target) !== undefined;
  const waiting = starts.map(({ path }) => waitingFile(path, mayNot)).find((path) => path !== undefined);
  return waiting === undefined ? undefined : `${waiting} is not a regular file, or leads to what may not be read`;
};

/** find takes a name that begins with one of these signs for a part of its expression, and looks no further for folders. */
const notAnAction = (name: string, program: string): string =>
  program === "find" && /^[(),!]/.test(name) ? `./${name}` : name;

/** Names that were not in the text, so that nobody has judged them yet. */
export const namesProblem = (names: readonly string[]): string | undefined =>
  names.map(pathProblem).find((problem) => problem !== undefined);

/** The question that was asked of each name as it stood, asked again now that it is known where it leads. */
export const reachedProblem = async (
  words: readonly string[],
  program: string,
  { cwd, judge, signal }: Pick<RenderPlace, "cwd" | "judge" | "signal">,
): Promise<string | undefined> => {
  if (LISTS_NAMES.includes(program)) return undefined;
  const bases = program === "git" ? [...new Set([cwd, gitFolder(words, cwd)])] : [cwd];
  const paths = [...new Set(words)]
    .flatMap((word) => (word.startsWith("-") ? [word, ...valuesIn(word)] : [word])) // behind `--` it is a name
    .flatMap((word) => bases.map((base) => resolveName(base, word)));
  return firstProblem(paths, (path) => specialFileProblem(resolve(path)) ?? linkProblem(path, judge), signal);
};

/** What an option may name: after its sign, or glued to one or more letters. */
const valuesIn = (option: string): readonly string[] => {
  const at = option.indexOf("=");
  if (option.startsWith("--")) return at < 0 ? [] : [option.slice(at + 1)];
  return gluedValues(option);
};

/** A folder that is too broad to be read as a whole, by whatever name. */
const folderProblem = (path: string, judge: PathJudge): string | undefined => {
  try {
    const real = realpathSync.native(path);
    return statSync(real).isDirectory() ? judge.folderProblem(real) : undefined;
  } catch {
    return undefined; // no such folder: the program says so itself
  }
};

/** Where a link leads counts, not its name; and a pipe or a socket would keep its reader waiting. */
const linkProblem = (path: string, judge: PathJudge): string | undefined => {
  try {
    const real = realpathSync.native(path);
    const stats = statSync(real);
    if (stats.isFIFO() || stats.isSocket()) return `${path} is not a regular file`;
    const problem = judge.problem(real) ?? judge.rules.problem(resolve(path));
    return problem === undefined || real === path ? problem : `${path} leads to what may not be read: ${problem}`;
  } catch {
    return undefined; // no such file: the program says so itself
  }
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
