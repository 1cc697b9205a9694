/** Paths of secrets, generated from the table: every row, plain and as copies of every kind. */

import { seededRandom } from "@prefork/testing/chance";
import { isSecret, secretSamples } from "../../src/paths/index.ts";
import { BEFORE_COPIES, COPIES, FOLDER_COPIES, SOURCES, TEMPLATES } from "../../src/paths/secret-tables.ts";

const AFTER: readonly string[] = [
  ...[...COPIES].flatMap((copy) => [`.${copy}`, `_${copy}`, `-${copy}2`, ` ${copy}`]),
  ...[
    "~",
    "#",
    ".",
    " ",
    "\t",
    "\u00a0",
    ".1",
    "-2024-01-01",
    " (1)",
    " (copy)",
    "2",
    "bak",
    "backup",
    ".old.gz",
    "~~",
  ],
  ...[...SOURCES, ...TEMPLATES].map((ending) => `.${ending}`),
];
const BEFORE: readonly string[] = [...BEFORE_COPIES, ".", ".#backup_", "Copy of old-", "backup_new_", "x_", "prod."];
const FOLDER_AFTER: readonly string[] = [
  ...[...FOLDER_COPIES].flatMap((copy) => [`.${copy}`, `_${copy}`, `-${copy}1`]),
  ...["~", " (1)", ".1", "-2024", "."],
];

const inAnyCase = (path: string, round: number): string =>
  round % 5 === 0
    ? path.toUpperCase()
    : round % 5 === 1
      ? path.replace(/(?:^|[^a-z])[a-z]/g, (at) => at.toUpperCase())
      : path;

/** A path with one of its names replaced. */
const withName = (path: string, at: number, change: (name: string) => string): string =>
  path
    .split("/")
    .map((name, index) => (index === at ? change(name) : name))
    .join("/");

/** Each row of the table `rounds` times, each time in another form; only paths that are judged secret. */
export const secretPaths = (rounds: number, seed = 7): readonly string[] => {
  const chance = seededRandom(seed);
  const made = Array.from({ length: rounds }, (_, round) =>
    secretSamples.map((sample, index) => {
      const names = sample.split("/").length;
      const last = withName(sample, names - 1, (name) => {
        const before = chance.below(3) === 0 ? chance.one(BEFORE) : "";
        const after = chance.below(3) > 0 ? chance.one(AFTER) : "";
        return before + name + after;
      });
      const path =
        names > 1 && chance.below(2) === 0
          ? withName(last, chance.below(names - 1), (name) =>
              chance.below(3) === 0 ? chance.one(BEFORE_COPIES) + name : name + chance.one(FOLDER_AFTER),
            )
          : last;
      const below = chance.below(4) === 0 ? `some/folder/${path}` : path;
      return inAnyCase(round === 0 ? sample : below, round === 0 ? 2 : index);
    }),
  );
  return [...new Set(made.flat())].filter(isSecret);
};
