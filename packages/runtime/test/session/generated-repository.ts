/** A small project with a history, made from a seed: the same seed gives the same files and the same commit ids.
 *  Invariant: nothing in it depends on the machine or the time, so two runs in one folder show a model the same bytes. */

import { execFileSync } from "node:child_process";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { seededRandom } from "@prefork/testing/chance";

const GIT = {
  PATH: "/usr/local/bin:/usr/bin:/bin",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "Grace Hopper",
  GIT_AUTHOR_EMAIL: "grace@example.com",
  GIT_AUTHOR_DATE: "2025-05-05T09:00:00Z",
  GIT_COMMITTER_NAME: "Grace Hopper",
  GIT_COMMITTER_EMAIL: "grace@example.com",
  GIT_COMMITTER_DATE: "2025-05-05T09:00:00Z",
};

export type Project = {
  readonly folder: string;
  readonly at: (name: string) => string;
  /** Writes a file and the folders above it. */
  readonly put: (name: string, content: string) => void;
  readonly git: (...words: readonly string[]) => void;
};

/** A project that is there already. */
export const projectIn = (folder: string): Project => {
  const at = (name: string): string => join(folder, name);
  return {
    folder,
    at,
    put: (name, content) => {
      mkdirSync(dirname(at(name)), { recursive: true });
      writeFileSync(at(name), content);
    },
    git: (...words) => void execFileSync("git", words, { cwd: folder, env: GIT, stdio: "ignore" }),
  };
};

export const MODULES = 12;

export const moduleName = (number: number): string => `src/part-${String(number).padStart(2, "0")}.ts`;

/** Longer than a result may be in the window of the long session, and shorter than what Read shows at most. */
const CHRONICLE_LINES = 1_150;

/** In seconds since 1970. */
const FIRST_DAY = Date.UTC(2025, 4, 5) / 1_000;

const WORDS = ["amber", "basalt", "cedar", "delta", "ember", "fjord", "grove", "harbour", "islet", "juniper"] as const;

export const generateProject = (folder: string, seed: number): Project => {
  mkdirSync(folder, { recursive: true });
  const project = projectIn(folder);
  const chance = seededRandom(seed);
  const word = (): string => chance.one(WORDS);
  const moduleText = (number: number): string =>
    Array.from({ length: 30 + chance.below(8) }, (_, line) =>
      [
        `/** ${word()} ${word()} ${word()}. */`,
        `export const ${word()}${number}x${line} = (${word()}: number): number => ${word().length} + ${line};`,
      ].join("\n"),
    ).join("\n\n");
  /** Files are listed by their age, so that has to be the same in every run. */
  const putAt = (name: string, content: string, minute: number): void => {
    project.put(name, content);
    utimesSync(project.at(name), FIRST_DAY + minute * 60, FIRST_DAY + minute * 60);
  };
  project.git("init", "-q", "-b", "main");
  project.put("AGENTS.md", "# Conventions\n\n- Functions are arrows.\n- Every module has a number.\n");
  for (let number = 1; number <= MODULES; number += 1)
    putAt(moduleName(number), `export const PART = ${number};\n\n${moduleText(number)}\n`, number);
  project.git("add", "-A");
  project.git("commit", "-q", "-m", "Begin with numbered parts");
  const chronicle = Array.from(
    { length: CHRONICLE_LINES },
    (_, line) => `${line + 1} ${word()} ${word()} ${word()} ${word()}`,
  );
  project.put("docs/chronicle.txt", `${chronicle.join("\n")}\n`);
  project.git("add", "-A");
  project.git("commit", "-q", "-m", "Keep a chronicle");
  return project;
};
