/** The long form of every property: the test files that draw values, run again with seeds that `npm test` does not use.
 *  Invariant: bounded in rounds; a failure is reported with the seed that reproduces it.
 *  Elsewhere: the seed of `npm test` (test-bundle.ts). */

import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROUNDS = 10;

type Result = {
  readonly files: number;
  readonly rounds: number;
  /** One line for each round that failed. */
  readonly broken: readonly string[];
};

export function propertiesSoak(root: string): Result {
  const files = globSync("packages/*/test/**/*.test.ts", { cwd: root }).filter((path) =>
    /from "(?:fast-check|[./]*any-character\.ts)"/.test(readFileSync(join(root, path), "utf8")),
  );
  const broken: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const seed = String(randomInt(2 ** 31));
    const { status, stdout } = spawnSync(process.execPath, [...process.execArgv, "scripts/test.ts", ...files], {
      cwd: root,
      encoding: "utf8",
      env: { ...process.env, PREFORK_PROPERTY_SEED: seed },
      maxBuffer: 64 * 1024 * 1024,
      stdio: ["ignore", "pipe", "inherit"],
    });
    if (status === 0) continue;
    console.log(stdout);
    broken.push(`reproduce with: PREFORK_PROPERTY_SEED=${seed} npm test`);
  }
  return { files: files.length, rounds: ROUNDS, broken };
}
