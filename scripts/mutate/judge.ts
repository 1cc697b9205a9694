/** Does a test notice this mutant? Test files run one by one, each against a copy of the repository with the fault in it.
 *  Invariant: the repository itself is never changed; only test files that execute the changed line are asked, the quickest
 *  first, and the first failing test settles it; a copy is whole again after every mutant.
 *  Elsewhere: which faults (mutants.ts), the command (../mutate.ts). */

import { execFileSync, spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { applied, type Mutant } from "./mutants.ts";

export type Outcome =
  | { readonly kind: "killed"; readonly by: string }
  | { readonly kind: "survived"; readonly asked: number }
  | { readonly kind: "unreached" };

/** What one test file takes, and which parts of which source files it executes. */
export type Reach = {
  readonly test: string;
  readonly ms: number;
  readonly executed: ReadonlyMap<string, readonly Span[]>;
};

/** A part of a file that was executed or not; inner spans stand after outer ones and outrank them. */
type Span = { readonly start: number; readonly end: number; readonly executed: boolean };

/** A file that hangs through a fault is ended; a slow machine is not a fault. */
const SLOWER = 6;
const MIN_MS = 20_000;

/** The files of the work tree, with packages of ours in the copy and those of others shared. */
export function copyRepository(root: string, copy: string): void {
  const names = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  for (const path of names.toString().split("\0")) {
    if (path === "" || !existsSync(join(root, path))) continue;
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    cpSync(join(root, path), join(copy, path));
  }
  for (const dist of globSync("packages/*/dist", { cwd: root }))
    cpSync(join(root, dist), join(copy, dist), { recursive: true });
  const modules = join(copy, "node_modules");
  mkdirSync(join(modules, "@prefork"), { recursive: true });
  for (const name of readdirSync(join(root, "node_modules")))
    if (name !== "@prefork" && name !== "prefork") symlinkSync(join(root, "node_modules", name), join(modules, name));
  for (const name of readdirSync(join(copy, "packages"))) {
    const { name: full } = JSON.parse(readFileSync(join(copy, "packages", name, "package.json"), "utf8"));
    symlinkSync(join(copy, "packages", name), join(modules, full));
  }
}

/** Runs one test file unchanged; undefined when it fails, since then it can judge nothing. */
export async function reachOf(copy: string, test: string): Promise<Reach | undefined> {
  const folder = join(copy, "coverage", test.replaceAll("/", "_"));
  mkdirSync(folder, { recursive: true });
  const begun = performance.now();
  const passed = await passes(copy, { test, limitMs: 300_000, env: { NODE_V8_COVERAGE: folder } });
  const ms = performance.now() - begun;
  return passed ? { test, ms, executed: executedIn(copy, folder) } : undefined;
}

export async function judge(copy: string, mutant: Mutant, reaches: readonly Reach[]): Promise<Outcome> {
  const asked = reaches
    .filter(({ executed }) => isExecuted(executed.get(mutant.file), mutant))
    .toSorted((one, other) => one.ms - other.ms);
  if (asked.length === 0) return { kind: "unreached" };
  const path = join(copy, mutant.file);
  const text = readFileSync(path, "utf8");
  writeFileSync(path, applied(text, mutant));
  try {
    for (const { test, ms } of asked)
      if (!(await passes(copy, { test, limitMs: Math.max(MIN_MS, ms * SLOWER), env: {} })))
        return { kind: "killed", by: test };
    return { kind: "survived", asked: asked.length };
  } finally {
    writeFileSync(path, text);
  }
}

type TestRun = { readonly test: string; readonly limitMs: number; readonly env: Readonly<Record<string, string>> };

/** Ends the whole process group at the first test that fails: the rest would say no more. */
function passes(copy: string, { test, limitMs, env }: TestRun): Promise<boolean> {
  const flags = ["--conditions=prefork-source", "--disable-warning=ExperimentalWarning", "--test-reporter=tap"];
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const child = spawn(process.execPath, [...flags, join(copy, test)], {
    cwd: copy,
    env: { ...inherited, ...env },
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  return new Promise((done) => {
    const stop = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      } catch {
        // it has ended by itself
      }
    };
    process.prependOnceListener("exit", stop); // before its folder is removed
    const timer = setTimeout(stop, limitMs);
    let rest = "";
    child.stdout.on("data", (chunk: Buffer) => {
      rest = (rest + chunk.toString()).slice(-4_096);
      if (/^\s*not ok\b/m.test(rest)) stop();
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      stop();
      process.off("exit", stop);
      done(code === 0);
    });
  });
}

type Coverage = {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
    }[];
  }[];
};

/** The union over all processes that the test started. */
function executedIn(copy: string, folder: string): ReadonlyMap<string, readonly Span[]> {
  const found = new Map<string, Span[]>();
  for (const name of readdirSync(folder)) {
    const { result }: Coverage = JSON.parse(readFileSync(join(folder, name), "utf8"));
    for (const { url, functions } of result) {
      if (!url.startsWith("file:")) continue;
      const path = fileURLToPath(url);
      if (!path.startsWith(`${copy}/packages/`)) continue;
      const file = path.slice(copy.length + 1);
      const spans = functions.flatMap(({ ranges }) =>
        ranges.map(({ startOffset, endOffset, count }) => ({
          start: startOffset,
          end: endOffset,
          executed: count > 0,
        })),
      );
      found.set(file, [...(found.get(file) ?? []), ...narrowestFirst(spans)]);
    }
  }
  return found;
}

const narrowestFirst = (spans: readonly Span[]): readonly Span[] =>
  spans.toSorted((one, other) => one.end - one.start - (other.end - other.start));

/** Executed where any process's narrowest span around it was. Several processes stand one after another in the list, so a
 *  wide span of one may come before a narrow one of the next: each restart of widths begins another process. */
function isExecuted(spans: readonly Span[] | undefined, { start }: Mutant): boolean {
  if (spans === undefined) return false;
  let settled = false;
  let width = 0;
  for (const span of spans) {
    if (span.end - span.start < width) settled = false;
    width = span.end - span.start;
    if (settled || start < span.start || start >= span.end) continue;
    if (span.executed) return true;
    settled = true;
  }
  return false;
}
