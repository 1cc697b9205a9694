/** Programs that a new machine may lack: which of them are installed, and which tests did each affect?
 *  Invariant: a test that depends on one says so with `needs("…")` or `uses("…")`. If the program is installed, those tests
 *  run once more with the program hidden; being skipped then is the expected result.
 *  Elsewhere: the two calls (optional.ts of a package's tests), hiding (PREFORK_HIDE_PROGRAMS, read by the runtime). */

import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { styleText } from "node:util";
import type { FileResult } from "./report.ts";

/** Where each program would be installed. */
const PLACES: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    ["bwrap", "rg", "jq", "tree", "tmux"].map((name) => [
      name,
      ["/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin"].map((folder) => `${folder}/${name}`),
    ]),
  ),
  "@vscode/ripgrep": [`node_modules/@vscode/ripgrep-${process.platform}-${process.arch}/bin/rg`],
};

export const OPTIONAL: readonly string[] = Object.keys(PLACES);

export const placeOf = (root: string, name: string): string | undefined =>
  PLACES[name]?.find((place) => existsSync(resolve(root, place)));

/** Examples declare nothing; in these, a session runs commands. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  "examples/06-tools.ts": ["bwrap"],
  "examples/10-forks.ts": ["bwrap"],
};

/** A test file, run as usual or with one program hidden. */
export type Job = { readonly path: string; readonly hides?: string };

/** Every file once, and once more for each installed program that its tests name. */
export const jobsFor = (root: string, files: readonly string[]): readonly Job[] => {
  const found = OPTIONAL.filter((name) => placeOf(root, name) !== undefined);
  return files.flatMap((path): readonly Job[] => {
    const text = path.endsWith(".test.ts") ? readFileSync(resolve(root, path), "utf8") : "";
    const declared = [...text.matchAll(/\b(?:needs|uses)\("([^"]+)"\)/g)].map(([, name = ""]) => name);
    const named = new Set([...declared, ...(EXAMPLES[path] ?? [])]);
    return [{ path }, ...found.filter((name) => named.has(name)).map((hides) => ({ path, hides }))];
  });
};

/** Removes the skips that a hidden program is meant to cause: they are no gap in the run. */
export const withoutMeantSkips = (files: readonly FileResult[]): readonly FileResult[] =>
  files.map((file) => ({
    ...file,
    tests: file.tests.filter(({ outcome }) => neededBy(outcome) !== (file.hides ?? NONE)),
  }));

const NONE = Symbol("nothing is hidden");

/** The missing program that caused a test to be skipped. */
const neededBy = (outcome: FileResult["tests"][number]["outcome"]): string | undefined =>
  outcome.kind === "skipped" ? /^needs (\S+):/.exec(outcome.reason)?.[1] : undefined;

/** One line per program, and below it each test that depended on it. */
export const optionalLines = (root: string, files: readonly FileResult[]): readonly string[] => {
  const tests = files.flatMap(({ path, hides, tests }) => tests.map((test) => ({ path, hides, ...test })));
  return OPTIONAL.flatMap((name) => {
    const decided = tests.flatMap(({ path, hides, name: title, outcome }) => {
      if (hides === name)
        return [
          `${neededBy(outcome) === name ? "ran because it is there" : "ran with it and without"}: ${path}: ${title}`,
        ];
      return hides === undefined && neededBy(outcome) === name ? [`skipped without it: ${path}: ${title}`] : [];
    });
    const place = placeOf(root, name) ?? "not found";
    const count =
      decided.length === 0
        ? "decided no test of this run"
        : `decided ${decided.length} ${decided.length === 1 ? "test" : "tests"}`;
    return [`  ${name}: ${place}; ${count}`, ...decided.map((line) => styleText("dim", `    ${line}`))];
  });
};
