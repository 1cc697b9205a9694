/** Which faults are planted, and does the same seed plant the same ones? */

import assert from "node:assert/strict";
import { test } from "node:test";
import { applied, mutantsOf, sample } from "./mutate/mutants.ts";

const SOURCE = `import { limit } from "./limit.ts";
export const turns: number = 200;
export const isDue = (at: number, said?: string): boolean => at >= turns && said === "main";
export const tell = (list: string[]): void => {
  if (list.some((word) => !word)) list.push("two words");
};
`;

test("operators, numbers, names, conditions and calls are changed; imports, types and sentences are not", () => {
  const lines = mutantsOf("a.ts", SOURCE).map((mutant) => {
    const changed = applied(SOURCE, mutant).split("\n");
    return `${mutant.line}: ${changed[mutant.line - 1]?.trim()}`;
  });
  assert.deepEqual(lines, [
    "2: export const turns: number = 199;",
    `3: export const isDue = (at: number, said?: string): boolean => at >= turns || said === "main";`,
    `3: export const isDue = (at: number, said?: string): boolean => at > turns && said === "main";`,
    `3: export const isDue = (at: number, said?: string): boolean => at >= turns && said !== "main";`,
    `3: export const isDue = (at: number, said?: string): boolean => at >= turns && said === "main~";`,
    `5: if (true) list.push("two words");`,
    `5: if (false) list.push("two words");`,
    `5: if (list.every((word) => !word)) list.push("two words");`,
    `5: if (list.some((word) => word)) list.push("two words");`,
    "5: if (list.some((word) => !word)) ;",
  ]);
});

test("a seed picks the same mutants after an edit elsewhere in the file", () => {
  const pick = (text: string, seed: number): readonly string[] =>
    sample(mutantsOf("a.ts", text), { seed, count: 4 }).map(({ id }) => id);
  const edited = `${SOURCE.slice(0, SOURCE.indexOf("export const turns"))}// why\n\n${SOURCE.slice(SOURCE.indexOf("export const turns"))}`;
  assert.deepEqual(pick(edited, 1), pick(SOURCE, 1));
  assert.notDeepEqual(pick(SOURCE, 2), pick(SOURCE, 1));
});
