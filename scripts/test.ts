/** `npm test`: runs every test file and every example, most in their own process, and ends with a count.
 *  Invariant: exit code 0 means that something ran and nothing failed; what was skipped is listed with its reason.
 *  Elsewhere: how results are shown (report.ts), what a process loads (test-bundle.ts), which files share one
 *  (share-process.ts), where they keep temporary files (temporary-folder.ts), making a clone runnable (bootstrap.mjs).
 *
 *  npm test [-- <filter>…]   a filter is a path or parts of one: wire/prefix, examples, cli */

import { globSync } from "node:fs";
import { join } from "node:path";
import { run } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "./checks/tools.ts";
import { type Job, jobsFor, optionalLines, withoutMeantSkips } from "./optional.ts";
import { collect, collectShared, type FileResult, showClosing, showFile } from "./report.ts";
import { groupsOf, programFor } from "./share-process.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";
import { type Bundles, bundleTests } from "./test-bundle.ts";

/** Only a hanging file takes this long: the longest file takes seconds, and a busy machine is not an error. */
const FILE_TIMEOUT_MS = 300_000;
/** More than the cores of the machines that run the checks: tests wait for processes, clocks and disks. */
const CONCURRENCY = 3;
/** A small young heap: starting a program copies the page tables of all memory in use, and the tests start 30,000 programs. */
const HEAP = "--max-semi-space-size=4";
const patterns = ["packages/*/test/**/*.test.ts", "scripts/**/*.test.ts", "examples/*.ts"];

/** `wire/prefix` finds packages/wire/test/prefix.test.ts: the parts of a filter occur in this order. */
function matches(path: string, filter: string): boolean {
  const parts = filter.replace(/^\.\//, "").split("/");
  const pattern = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*");
  return new RegExp(pattern).test(path);
}

async function main(root: string, parameters: readonly string[]): Promise<number> {
  const option = parameters.find((parameter) => parameter.startsWith("-"));
  if (option !== undefined) {
    console.error(`unknown option ${option}; usage: npm test [-- <part of a path>…]`);
    return 2;
  }
  const all = globSync(patterns, { cwd: root }).sort();
  const files = all.filter((path) => parameters.length === 0 || parameters.some((filter) => matches(path, filter)));
  if (files.length === 0) {
    console.log(`nothing to run: no file of ${all.length} matches ${parameters.join(" ")}\n\n0 passed, 0 failed`);
    return 1;
  }
  // Every file is a process that often starts more processes; each would compile the same sources again.
  process.env.NODE_COMPILE_CACHE ??= join(root, "node_modules/.cache/compiled");
  delete process.env.COLUMNS; // tests expect tables as wide as their texts
  using _temporary = makeTemporaryFolder(process.env);
  const built = await buildPackages(root);
  const results = await runFiles(root, jobsFor(root, files));
  console.log(`\noptional programs:\n${optionalLines(root, results).join("\n")}`);
  return showClosing([built, ...withoutMeantSkips(results)]) ? 0 : 1;
}

/** The command line's tests start the built program, which must match these sources. */
async function buildPackages(root: string): Promise<FileResult> {
  const begun = performance.now();
  const { ok, output } = await build(root);
  const tests = ok
    ? []
    : [{ name: "compiles", ms: 0, endedAt: 0, outcome: { kind: "failed", detail: output } as const }];
  return { path: "packages", tests, ms: performance.now() - begun, printed: "" };
}

/** A few processes at a time. */
async function runFiles(root: string, jobs: readonly Job[]): Promise<readonly FileResult[]> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"])
    process.once(signal, () => {
      console.error(`stopped by ${signal}: running files count as failed, the rest was not run`);
      stop.abort();
    });
  const bundles = await bundleTests(root, [...new Set(jobs.map(({ path }) => path))]);
  if ("why" in bundles)
    console.log(`running the sources, which is slower, because they cannot be bundled: ${bundles.why}`);
  const runner = "why" in bundles ? SOURCES : bundles;
  const results: FileResult[] = [];
  const waiting = [...groupsOf(jobs, runner.shared)];
  const work = async (): Promise<void> => {
    for (let group = waiting.shift(); group !== undefined && !stop.signal.aborted; group = waiting.shift())
      for (const result of await runGroup(group, { root, runner, stop: stop.signal })) {
        showFile(result);
        results.push(result);
      }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return results;
}

type Run = { readonly root: string; readonly runner: Bundles; readonly stop: AbortSignal };

const SOURCES: Bundles = { flags: [], toSources: (stack) => stack, shared: new Set(), keepProgram: (text) => text };

/** Runs files that share a process. If that process fails as a whole, each file runs again alone to show which one failed. */
async function runGroup(group: readonly Job[], how: Run): Promise<readonly FileResult[]> {
  const paths = group.map(({ path }) => path);
  const [only] = group;
  if (only !== undefined && group.length === 1) return [await runAlone(only, how)];
  const { toSources, keepProgram } = how.runner;
  const program = keepProgram(programFor(how.root, paths));
  const shared = await collectShared(start(program, {}, how), { program, paths, toSources });
  if (!("why" in shared)) return shared;
  const alone: FileResult[] = [];
  for (const job of group) alone.push(await runAlone(job, how));
  const isFound = alone.some(({ tests }) => tests.some(({ outcome }) => outcome.kind === "failed"));
  return isFound ? alone : [...alone, failedTogether(paths, shared.why)];
}

const failedTogether = (paths: readonly string[], why: string): FileResult => ({
  path: paths.join(", "),
  tests: [
    { name: "run in one process", ms: 0, endedAt: 0, outcome: { kind: "failed", detail: `only together: ${why}` } },
  ],
  ms: 0,
  printed: "",
});

const runAlone = (job: Job, how: Run): Promise<FileResult> =>
  collect(start(join(how.root, job.path), job, how), { ...job, root: how.root, toSources: how.runner.toSources });

/** Each process is a separate run, because only a run, not a file in it, can be given a timeout. */
function start(file: string, { hides }: Pick<Job, "hides">, { root, runner, stop }: Run): ReturnType<typeof run> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(FILE_TIMEOUT_MS)]);
  const hiding = hides === undefined ? {} : { only: true, env: { ...process.env, PREFORK_HIDE_PROGRAMS: hides } };
  const how = { cwd: root, isolation: "process", signal, execArgv: [HEAP, ...runner.flags], ...hiding } as const;
  return run({ files: [file], ...how });
}

process.exitCode = await main(fileURLToPath(new URL("..", import.meta.url)), process.argv.slice(2));
