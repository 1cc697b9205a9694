import assert from "node:assert/strict";
import { test } from "node:test";
import { classify } from "@prefork/guard";
import fc from "fast-check";
import {
  countFiles,
  countFilesPerFolder,
  countLines,
  gitBlame,
  gitDiff,
  gitLog,
  lastLines,
  repeatedMatches,
} from "../../src/rehearsal/commands.ts";

/** The arguments of each program that the guard parsed; undefined if it refused. */
const wordsOf = (command: string): readonly (readonly string[])[] | undefined => {
  const judged = classify(command);
  if (judged.verdict !== "read-only") return undefined;
  return judged.plan.steps.flatMap(({ run }) =>
    run.kind === "pipe" ? run.commands.map(({ program, args }) => [program, ...args.map(({ text }) => text)]) : [],
  );
};

const hostile = fc.oneof(
  fc.string({ minLength: 1, unit: fc.constantFrom(..."ab '\"`$();|&<>\\*?[]{}~!#-/.\t\n") }),
  fc.constantFrom("a'; rm -rf /; '", "$(touch x)", "-rf", "--output=x", "a b", "'", "''", "`id`", "~root", "*"),
);

const asPath = (path: string): string => (path.startsWith("-") ? `./${path}` : path);

const SKIPPED = ["--exclude-dir=.git", "--exclude-dir=node_modules"];

test("a path from a prompt is one word of the command, whatever it contains", () => {
  let read = 0;
  fc.assert(
    fc.property(hostile, hostile, (one, two) => {
      const commands: readonly (readonly [string, readonly (readonly string[])[]])[] = [
        [countLines([one, two]), [["wc", "-l", "--", asPath(one), asPath(two)]]],
        [lastLines(3, one), [["tail", "-n", "3", "--", asPath(one)]]],
        [
          repeatedMatches(one, two),
          [["grep", "-rhoE", "-e", one, ...SKIPPED, "--", asPath(two)], ["sort"], ["uniq", "-d"]],
        ],
      ];
      for (const [command, words] of commands) {
        const found = wordsOf(command);
        if (found === undefined) continue; // the guard refuses some names, such as those of keys
        read += 1;
        assert.deepEqual(found, words);
      }
    }),
  );
  assert.ok(read > 50, `the guard read only ${read} of the commands`);
});

test("every command that is made only reads", () => {
  const made = [
    countFiles({}),
    countFiles({ folder: "src", name: "*.ts" }),
    countFilesPerFolder(),
    countFilesPerFolder("src"),
    repeatedMatches("route\\(.*", "src"),
    gitLog(3, ["a.ts"]),
    gitDiff(true, []),
    gitBlame("a.ts", { from: 1, to: 2 }),
  ];
  assert.deepEqual(
    made.filter((command) => classify(command).verdict !== "read-only"),
    [],
  );
});
