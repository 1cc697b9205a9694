/** Which test files run together in one process? Small ones that leave the process as it is: starting a process and
 *  loading the same modules takes longer than most of them run.
 *  Invariant: a file shares only as long as neither it nor a module of the tests that it imports mentions what belongs
 *  to the whole process, such as the working folder, the environment, signals, or hooks around every test. A file that
 *  begins to do so runs alone from then on.
 *  Elsewhere: running them (test.ts), telling their results apart (report.ts). */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Metafile } from "esbuild";

/** Small enough that even the longest groups can be spread over the cores. */
const MAX_FILES = 8;

/** Properties of `process` that no file changes. */
const CONSTANTS = ["arch", "argv", "env", "execArgv", "execPath", "getuid", "pid", "platform", "version", "versions"];

const TOUCHES_PROCESS = [
  new RegExp(String.raw`(?<![-\w])process\.(?!(?:${CONSTANTS.join("|")})\b)`),
  /\bprocess\b(?!\.)(?=\s*[[,;)\]}])/, // passed on, destructured or indexed
  /\bprocess\.env(?:\.\w+|\[[^\]]*\])?\s*(?:=(?!=)|\?\?=|\|\|=)/,
  /\bdelete\s+process\b|\b(?:assign|defineProperty)\(\s*process\b/,
  /\bglobalThis\b|\bsyncBuiltinESMExports\b/,
  /"node:child_process"/, // a larger process takes longer to start each program
  /"node:(?:async_hooks|cluster|inspector|process|v8|worker_threads)/,
  /import \{[^}]*\b(?:after|afterEach|before|beforeEach|mock|run)\b[^}]*\} from "node:test"/,
];

/** True if this source leaves the process that runs it unchanged. */
export const leavesProcessAlone = (text: string): boolean => !TOUCHES_PROCESS.some((pattern) => pattern.test(text));

/** The files (paths below `root`) that may share a process, according to the inputs that the bundler read for each. */
export const filesThatShare = (root: string, inputs: Metafile["inputs"]): ReadonlySet<string> => {
  const judged = new Map<string, boolean>();
  const isQuiet = (path: string): boolean => {
    const known = judged.get(path) ?? leavesProcessAlone(readFileSync(join(root, path), "utf8"));
    judged.set(path, known);
    return known;
  };
  const ofTests = (path: string): boolean => /^packages\/(?:[^/]+\/test|testing\/src)\//.test(path);
  const reached = (path: string, seen: Set<string>): Set<string> => {
    if (seen.has(path) || !ofTests(path)) return seen;
    seen.add(path);
    for (const { path: next } of inputs[path]?.imports ?? []) reached(next, seen);
    return seen;
  };
  const files = Object.keys(inputs).filter((path) => ofTests(path) && path.endsWith(".test.ts"));
  return new Set(files.filter((path) => [...reached(path, new Set())].every(isQuiet)));
};

type Job = { readonly path: string; readonly hides?: string };

/** The jobs in groups, each for one process; files share only with neighbours of their folder's package. */
export const groupsOf = (jobs: readonly Job[], shared: ReadonlySet<string>): readonly (readonly Job[])[] => {
  const packageOf = ({ path }: Job): string => path.split("/").slice(0, 2).join("/");
  const mayShare = ({ path, hides }: Job): boolean => hides === undefined && shared.has(path);
  const groups = Map.groupBy(jobs.filter(mayShare), packageOf);
  const inParts = (group: readonly Job[]): readonly (readonly Job[])[] =>
    Array.from({ length: Math.ceil(group.length / MAX_FILES) }, (_, at) =>
      group.slice(at * MAX_FILES, (at + 1) * MAX_FILES),
    );
  return [...[...groups.values()].flatMap(inParts), ...jobs.filter((job) => !mayShare(job)).map((job) => [job])];
};

/** The name of the empty test that precedes the tests of a file. */
export const beginningOf = (path: string): string => `begins: ${path}`;

/** A program that runs the tests of several files, and announces each file before its tests. */
export const programFor = (root: string, paths: readonly string[]): string =>
  [
    'import { test } from "node:test";',
    ...paths.flatMap((path) => [
      `test(${JSON.stringify(beginningOf(path))}, () => {});`,
      `await import(${JSON.stringify(pathToFileURL(join(root, path)).href)});`,
    ]),
    "",
  ].join("\n");
