/** A small project generated from a seed: modules of arithmetic, a program that uses them, and tests that define what is correct.
 *  Invariant: the same seed gives the same bytes; only running the tests shows what is wrong. */

import { execFileSync, spawnSync } from "node:child_process";
import type { Ground } from "../print/ground.ts";

/** A linear congruential generator: good enough for names and numbers. */
const chanceOf = (seed: number): ((below: number) => number) => {
  let state = (seed * 2_654_435_761 + 1) % 4_294_967_296;
  return (below) => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return Math.floor((state / 4_294_967_296) * below);
  };
};

const VERBS = ["scale", "blend", "shift", "weigh", "round", "fold", "trim", "stack"];
const NOUNS = ["Harbour", "Meadow", "Lantern", "Orchard", "Quarry", "Saddle", "Thicket", "Willow"];
const OPERATORS = ["+", "-", "*"] as const;

type Operator = (typeof OPERATORS)[number];

/** `(a first factor) second b`, read as JavaScript does. */
export type Formula = { readonly first: Operator; readonly factor: number; readonly second: Operator };

export type Made = {
  /** A function whose formula is wrong. */
  readonly broken: string;
  /** A function that other files use. */
  readonly used: string;
  readonly unused: string;
};

export type RepositoryOptions = {
  readonly seed: number;
  /** Whether one formula is wrong. Default: true. */
  readonly isBroken?: boolean;
};

export const evaluate = ({ first, factor, second }: Formula, a: number, b: number): number =>
  apply(second, apply(first, a, factor), b);

const apply = (operator: Operator, one: number, other: number): number => {
  switch (operator) {
    case "+":
      return one + other;
    case "-":
      return one - other;
    case "*":
      return one * other;
  }
};

export const spelled = ({ first, factor, second }: Formula): string => `(a ${first} ${factor}) ${second} b`;

const MODULES = 3;
const FUNCTIONS = 4;

export const makeRepository = (ground: Ground, { seed, isBroken = true }: RepositoryOptions): Made => {
  const chance = chanceOf(seed);
  const drawn = <T>(from: T[]): T => from.splice(chance(from.length), 1)[0] as T;
  const one = <T>(from: readonly T[]): T => from[chance(from.length)] as T;
  const nouns = [...NOUNS];
  const modules = Array.from({ length: MODULES }, () => {
    const noun = drawn(nouns);
    const verbs = [...VERBS];
    const functions = Array.from({ length: FUNCTIONS }, () => ({
      name: `${drawn(verbs)}${noun}`,
      formula: { first: one(OPERATORS), factor: 2 + chance(7), second: one(OPERATORS) } satisfies Formula,
    }));
    return { file: noun.toLowerCase(), functions };
  });
  const broken = one(one(modules).functions);
  const { name: used } = one(modules[0]?.functions ?? []);
  const wrong = (formula: Formula): Formula => ({
    ...formula,
    second: OPERATORS[(OPERATORS.indexOf(formula.second) + 1 + chance(2)) % OPERATORS.length] as Operator,
  });
  ground.put(
    "package.json",
    `${JSON.stringify({ name: "arithmetic", type: "module", scripts: { test: "node --test" } })}\n`,
  );
  for (const { file, functions } of modules) {
    const lines = functions.map(({ name, formula }) => {
      const written = isBroken && name === broken.name ? wrong(formula) : formula;
      return `/** Takes two numbers. */\nexport const ${name} = (a, b) => ${spelled(written)};\n`;
    });
    // A name that is a prefix of another: renaming one must not change the other.
    const decoy = `export const ${functions[0]?.name}Twice = (a, b) => 2 * ${functions[0]?.name}(a, b);\n`;
    ground.put(`src/${file}.js`, [...lines, decoy].join("\n"));
    const [a, b] = [11 + chance(20), 3 + chance(7)];
    const names = functions.map(({ name }) => name).join(", ");
    ground.put(
      `test/${file}.test.js`,
      [
        'import assert from "node:assert/strict";',
        'import { test } from "node:test";',
        `import { ${names} } from "../src/${file}.js";\n`,
        ...functions.map(({ name, formula }) => {
          const title = `${name}(${a}, ${b}) is ${evaluate(formula, a, b)}`;
          return `test("${title}", () => assert.equal(${name}(${a}, ${b}), ${evaluate(formula, a, b)}));`;
        }),
        "",
      ].join("\n"),
    );
  }
  const first = modules.map(({ file, functions }) => ({
    file,
    name: functions.find(({ name }) => name === used)?.name ?? functions[0]?.name,
  }));
  ground.put(
    "src/main.js",
    [
      ...first.map(({ file, name }) => `import { ${name} } from "./${file}.js";`),
      `\nexport const all = (a, b) => [${first.map(({ name }) => `${name}(a, b)`).join(", ")}];\n`,
    ].join("\n"),
  );
  for (const words of [
    ["init", "-q", "-b", "main"],
    ["add", "-A"],
    ["commit", "-q", "-m", "Begin"],
  ])
    execFileSync("git", words, { cwd: ground.work, env: { ...ground.env, ...AUTHOR }, stdio: "ignore" });
  return { broken: broken.name, used, unused: `${used}Again` };
};

const AUTHOR = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "Ada",
  GIT_AUTHOR_EMAIL: "ada@example.com",
  GIT_COMMITTER_NAME: "Ada",
  GIT_COMMITTER_EMAIL: "ada@example.com",
};

export type Tested = { readonly code: number | null; readonly passed: number; readonly failed: number };

/** Runs the project's tests, as its developers would. */
export const testsOf = (ground: Ground): Tested => {
  const { status, stdout } = spawnSync(process.execPath, ["--test", "--test-isolation=none", "--test-reporter=tap"], {
    cwd: ground.work,
    env: { PATH: ground.env.PATH ?? "" },
    encoding: "utf8",
  });
  const count = (what: string): number => Number(new RegExp(`^# ${what} (\\d+)$`, "m").exec(stdout)?.[1]);
  return { code: status, passed: count("pass"), failed: count("fail") };
};

export const ALL_PASS: Tested = { code: 0, passed: MODULES * FUNCTIONS, failed: 0 };

/** The names of files that differ from the last commit. */
export const changedFiles = (ground: Ground): readonly string[] =>
  execFileSync("git", ["diff", "--name-only"], { cwd: ground.work, env: ground.env, encoding: "utf8" })
    .split("\n")
    .filter((name) => name !== "");
