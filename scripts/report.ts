/** Prints a test run: one line per test, file by file; then skipped tests, full failures and the count.
 *  Invariant: every test counts once; a parent that failed only through its children is not counted beside them.
 *  Elsewhere: finding and running the files (test.ts). */

import { basename, dirname, relative } from "node:path";
import type { run } from "node:test";
import { styleText } from "node:util";
import { beginningOf } from "./share-process.ts";

type Events = ReturnType<typeof run>;

type Outcome =
  | { readonly kind: "passed" }
  | { readonly kind: "skipped"; readonly reason: string }
  | { readonly kind: "failed"; readonly detail: string };

export type TestResult = {
  readonly name: string;
  readonly ms: number;
  /** Milliseconds after the start of its process. */
  readonly endedAt: number;
  readonly outcome: Outcome;
};

export type FileResult = {
  readonly path: string;
  /** The optional program that was hidden from it. */
  readonly hides?: string;
  readonly tests: readonly TestResult[];
  /** From the start of its process to its end; where it shares one, from its first test to its last. */
  readonly ms: number;
  /** What the file printed; shown only with a failure. */
  readonly printed: string;
};

type Finished = {
  readonly name: string;
  readonly nesting: number;
  readonly skip?: string | boolean | undefined;
  readonly todo?: string | boolean | undefined;
  readonly details: {
    readonly duration_ms: number;
    readonly type?: string | undefined;
    readonly error?: Failure;
  };
};

type Failure = Error & { readonly failureType?: string; readonly exitCode?: number };

const PRINTED_LINES = 40;
const WHOLE_FILE = "runs to its end";

type TestFile = {
  readonly path: string;
  readonly root: string;
  readonly hides?: string;
  /** Replaces bundles with their sources in a stack trace. */
  readonly toSources: (stack: string) => string;
};

type SharedProcess = {
  /** The program that runs the files. */
  readonly program: string;
  readonly paths: readonly string[];
  readonly toSources: (stack: string) => string;
};

/** One result per file. If the process failed as a whole, or a file had no test, only the reason: which file caused it is
 *  unknown until each has run alone. */
export async function collectShared(
  events: Events,
  { program, paths, toSources }: SharedProcess,
): Promise<readonly FileResult[] | { readonly why: string }> {
  const all = await collect(events, { path: basename(program), root: dirname(program), toSources });
  const isWhole = ({ name }: TestResult): boolean => name === WHOLE_FILE;
  const failed = all.tests
    .filter(isWhole)
    .flatMap(({ outcome }) => (outcome.kind === "failed" ? [outcome.detail] : []));
  if (failed.length > 0) return { why: [...failed, lastLines(all.printed)].join("\n") };
  const starts = paths.map((path) => all.tests.findIndex(({ name }) => name === beginningOf(path)));
  const results = paths.map((path, at): FileResult => {
    const start = starts[at] ?? 0;
    const tests = all.tests.slice(start + 1, starts[at + 1]).filter((test) => !isWhole(test));
    const ms = (tests.at(-1)?.endedAt ?? 0) - (all.tests[start]?.endedAt ?? 0);
    return { path, tests, ms, printed: all.printed };
  });
  const empty = results.findIndex(({ tests }, at) => starts[at] === -1 || tests.length === 0);
  return empty === -1 ? results : { why: `${paths[empty]} ended without a single test` };
}

export async function collect(events: Events, file: TestFile): Promise<FileResult> {
  const tests: TestResult[] = [];
  const names: string[] = [];
  let printed = "";
  const begun = performance.now();
  for await (const event of events) {
    if (event.type === "test:stdout" || event.type === "test:stderr") printed += event.data.message;
    // The runner's own messages, for example an error that belongs to no test.
    if (event.type === "test:diagnostic") printed += `${event.data.message}\n`;
    if (event.type === "test:start") names.splice(event.data.nesting, names.length, event.data.name);
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    const finished: Finished = event.data;
    const isWholeFile = relative(file.root, finished.name) === file.path;
    const outcome = outcomeOf(finished, isWholeFile && file.path.endsWith(".test.ts"));
    const name = isWholeFile ? WHOLE_FILE : [...names.slice(0, finished.nesting), finished.name].join(" › ");
    const endedAt = performance.now() - begun;
    if (outcome !== undefined) tests.push({ name, ms: finished.details.duration_ms, endedAt, outcome });
  }
  const { path, hides, toSources } = file;
  return {
    path,
    tests: tests.map(named(file)),
    ms: performance.now() - begun,
    printed: toSources(printed),
    ...(hides === undefined ? {} : { hides }),
  };
}

const named =
  ({ toSources }: TestFile) =>
  ({ outcome, ...rest }: TestResult): TestResult => ({
    ...rest,
    outcome: outcome.kind === "failed" ? { kind: "failed", detail: toSources(outcome.detail) } : outcome,
  });

function outcomeOf({ skip, todo, details }: Finished, shouldHaveTests: boolean): Outcome | undefined {
  if (isSet(skip)) return { kind: "skipped", reason: typeof skip === "string" ? skip : "no reason given" };
  if (isSet(todo)) return { kind: "skipped", reason: `to do${typeof todo === "string" ? `: ${todo}` : ""}` };
  if (details.error !== undefined) {
    return details.error.failureType === "subtestsFailed"
      ? undefined
      : { kind: "failed", detail: explain(details.error) };
  }
  if (details.type === "suite") return undefined;
  return shouldHaveTests ? { kind: "failed", detail: "this file ended without a single test" } : { kind: "passed" };
}

const isSet = (mark: string | boolean | undefined): boolean => mark !== undefined && mark !== false;

function explain(error: Failure): string {
  if (error.failureType === "testAborted") return "stopped: the file did not end in its time";
  if (error.exitCode !== undefined) return `the program ended with exit code ${error.exitCode}`;
  return withCauses(error.cause ?? error);
}

function withCauses(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const stack = (error.stack ?? error.message).replace(/\n\s+at (?:[^\n]*\(node:|node:|async node:)[^\n]*/g, "");
  return error.cause === undefined ? stack : `${stack}\ncaused by: ${withCauses(error.cause)}`;
}

const marks = {
  passed: styleText("green", "✔"),
  skipped: styleText("yellow", "–"),
  failed: styleText("red", "✖"),
};

/** The file's path, and the program that was hidden from it. */
const titleOf = ({ path, hides }: FileResult): string => (hides === undefined ? path : `${path} without ${hides}`);

export function showFile(file: FileResult): void {
  const { tests } = file;
  console.log(titleOf(file));
  for (const { name, ms, outcome } of tests) {
    console.log(`  ${marks[outcome.kind]} ${name} ${styleText("dim", `(${(ms / 1000).toFixed(2)} s)`)}`);
  }
}

/** Prints what needs attention and the final count, and returns whether the run succeeded. */
export function showClosing(files: readonly FileResult[]): boolean {
  const results = files.flatMap((file) => file.tests.map((test) => ({ file, ...test })));
  const skipped = results.flatMap(({ file, name, outcome }) =>
    outcome.kind === "skipped" ? [`  ${marks.skipped} ${titleOf(file)}: ${name} (${outcome.reason})`] : [],
  );
  const failed = results.flatMap(({ file, name, outcome }) =>
    outcome.kind === "failed" ? [`${marks.failed} ${titleOf(file)}: ${name}\n${indent(outcome.detail)}`] : [],
  );
  const printed = files
    .filter((file) => file.printed.trim() !== "" && file.tests.some(({ outcome }) => outcome.kind === "failed"))
    .map((file) => `${titleOf(file)} printed:\n${indent(lastLines(file.printed))}`);
  if (skipped.length > 0) console.log(`\nskipped:\n${skipped.join("\n")}`);
  console.log(`\nlongest: ${longest(files).join(", ")}`);
  for (const block of [...failed, ...printed]) console.log(`\n${block}`);
  const passed = results.length - skipped.length - failed.length;
  const count = `${passed} passed, ${failed.length} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ""}`;
  console.log(`\n${count}`);
  return failed.length === 0 && passed > 0;
}

const LONGEST = 5;

/** Where to look when a run takes too long. */
const longest = (files: readonly FileResult[]): readonly string[] =>
  files
    .toSorted((one, other) => other.ms - one.ms)
    .slice(0, LONGEST)
    .map(({ path, ms }) => `${path} ${Math.round(ms / 1_000)} s`);

const indent = (text: string): string => text.trimEnd().replace(/^/gm, "    ");

const lastLines = (text: string): string => {
  const lines = text.trimEnd().split("\n");
  const cut = lines.length - PRINTED_LINES;
  return cut > 0 ? [`(${cut} earlier lines left out)`, ...lines.slice(cut)].join("\n") : lines.join("\n");
};
