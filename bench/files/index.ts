/** How many of our files does one prompt execute? A reader who follows a prompt through the sources reads about as many.
 *  Invariant: counted by V8's coverage in a process that runs the sources; the provider is in another process.
 *  Elsewhere: the prompts (session-process.ts). */

import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startChild } from "../children.ts";
import type { Extent } from "../measure.ts";
import { makeScratch } from "../scratch.ts";
import type { Finding } from "../table.ts";

type Coverage = {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
    }[];
  }[];
};

const PROMPTS = [
  { kind: "read", figure: "one prompt with one Read", most: 120 },
  { kind: "forks", figure: "one prompt that starts five forks", most: 135 },
] as const;

export const measureFiles = async (_extent: Extent, report: (step: string) => void): Promise<readonly Finding[]> => {
  await using scratch = await makeScratch();
  await using provider = await startChild<never, { readonly url: string }>(
    new URL("./simulator-process.ts", import.meta.url),
  );
  return PROMPTS.map(({ kind, figure, most }) => {
    report(figure);
    const value = executedBy(kind, { url: provider.first.url, folder: join(scratch.path, kind) }).size;
    return {
      group: "Files of ours that are executed",
      figure,
      ours: { value, unit: "files" },
      limit: { of: "ours", is: "at most", value: most },
    };
  });
};

const executedBy = (
  kind: string,
  { url, folder }: { readonly url: string; readonly folder: string },
): ReadonlySet<string> => {
  const [work, coverage] = [join(folder, "work"), join(folder, "coverage")];
  mkdirSync(work, { recursive: true });
  const script = fileURLToPath(new URL("./session-process.ts", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [...process.execArgv, script, kind, url, work], {
    env: { ...process.env, NODE_V8_COVERAGE: coverage },
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the session ended with ${status}: ${stderr}`);
  // Loading a file runs its outermost function, which proves nothing: a function inside it must have been called.
  const isExecuted = ({ functions }: Coverage["result"][number]): boolean =>
    functions.some(({ ranges: [range] }) => range !== undefined && range.startOffset > 0 && range.count > 0);
  return new Set(
    readdirSync(coverage).flatMap((name) => {
      const { result } = JSON.parse(readFileSync(join(coverage, name), "utf8")) as Coverage;
      return result
        .filter(isExecuted)
        .flatMap(({ url: file }) => (/\/packages\/[^/]+\/src\//.test(file) ? [file] : []));
    }),
  );
};
